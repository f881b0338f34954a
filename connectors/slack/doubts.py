"""Decides when Slack's word on accounts is taken no more: one of them became something else, or events were missed."""

from __future__ import annotations

from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import DOUBTED
from turngate.connectors.slack.resolving import People
from turngate.schemas.inputs import Record, RoomChanged


class Doubts:
    """For whoever lists rooms and reads `membership-refreshes`."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._directory = Directory()

    def learn(self, record: Record) -> None:
        """Take a record in; after one that doubts a room's accounts they are all asked about anew."""
        self._directory.learn(record)
        if isinstance(record, RoomChanged) and record.what in DOUBTED and record.agent is not None:
            self._people.forget(self._directory.named_in(record.tenant, record.agent, record.room))
