"""Decides which rooms take so long to list that nothing but what is public is ever said in them (R-DLV-1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from turngate.schemas.inputs import MembershipPage, PolicyPublished, Record
from turngate.schemas.policy import Freshness, PolicyInvalid, parse_policy

#: Topics whose records are learnt from, in this order.
TOPICS = ("policies", "membership-refreshes")


@dataclass(frozen=True, slots=True)
class Slow:
    """A room whose quickest listing took `took`; one may be `delivery` old when a turn is sent. In milliseconds."""

    tenant: str
    room: str
    took: int
    delivery: int


class SlowRooms:
    """Learns from records, and says which rooms were never listed quickly enough."""

    def __init__(self) -> None:
        self._delivery: dict[str, int] = {}
        self._quickest: dict[tuple[str, str], int] = {}

    def learn(self, record: Record) -> None:
        """Take a record of one of `TOPICS` in; of several policies the shortest time holds (R-POL-1)."""
        match record:
            case PolicyPublished():
                with suppress(PolicyInvalid):
                    delivery = parse_policy(record.document).freshness.delivery
                    self._delivery[record.tenant] = min(delivery, self._delivery.get(record.tenant, delivery))
            case MembershipPage(last=True, error=None):
                room, took = (record.tenant, record.room), record.at - record.started_at
                self._quickest[room] = min(took, self._quickest.get(room, took))

    def slow(self) -> Iterator[Slow]:
        """The rooms that always took too long, the slowest first."""
        for (tenant, room), took in sorted(self._quickest.items(), key=lambda item: -item[1]):
            delivery = self._delivery.get(tenant, Freshness().delivery)
            if took >= delivery:
                yield Slow(tenant, room, took, delivery)
