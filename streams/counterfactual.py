"""Decides how turns would have ended, had the policy been another one from the beginning.

All else stays: what was said, read, listed, remembered and approved. That is exact where the agent spoke regardless of
what was decided (docs/agents.md); elsewhere it is as if nobody had acted on what else would have passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from turngate.processors.engine import Engine
from turngate.processors.keys import Keys
from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import PolicyPublished
from turngate.schemas.policy import PolicyInvalid, parse_policy, policy_data
from turngate.streams.log import Message
from turngate.streams.recorded import Records
from turngate.streams.refusals import Ended, ends
from turngate.streams.replay import Replay

#: A policy document as plain data, and what it is made.
Document = dict[str, Any]
Change = Callable[[Document], Document]


def document_of(record: PolicyPublished) -> Document | None:
    """A policy document as plain data; None where the engine would refuse it (R-POL-3)."""
    try:
        parse_policy(record.document)
    except PolicyInvalid:
        return None
    return policy_data(record.document)


class _Instead:
    """Recorded topics, in which every policy of a tenant is changed (`turngate.streams.recorded.Records`)."""

    def __init__(self, records: Records, codec: Codec, tenant: str, change: Change) -> None:
        self._records = records
        self._codec = codec
        self._tenant = tenant
        self._change = change
        self.partitions = records.partitions
        self.first = records.first
        self.end = records.end

    def scan(self, topic: str, partition: int = 0, start: int = 0, end: int | None = None) -> Iterator[Message]:
        """The records, with other policies."""
        found = self._records.scan(topic, partition, start, end)
        return map(self._changed, found) if topic == "policies" else found

    def _changed(self, message: Message) -> Message:
        try:
            record = self._codec.decode(message.value)
        except Undecodable:
            return message
        document = document_of(record) if isinstance(record, PolicyPublished) else None
        if not isinstance(record, PolicyPublished) or record.tenant != self._tenant or document is None:
            return message
        changed = record.model_copy(update={"document": json.dumps(self._change(document), default=str)})
        return replace(message, value=self._codec.encode(changed))


def ends_under(
    records: Records,
    codec: Codec,
    keys: Keys,
    tenant: str,
    change: Change,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, Ended]:
    """How each turn of a tenant would have ended, had each of its policies been changed.

    `told` is called with how many of how many stretches of a partition are done. Raises `LogError` where what is needed
    from the beginning on is not there.
    """
    found: dict[str, Ended] = {}
    instead = _Instead(records, codec, tenant, change)
    for partition in range(records.partitions):
        replay = Replay(instead, partial(Engine.restore, keys=keys), codec, partition)
        for step in replay.steps():
            told(step.message.offset + 1, replay.ends[APPLIED])
            found |= ends((out.value for out in step.outputs if out.topic == "turn-verdicts"), codec, tenant)
    return found
