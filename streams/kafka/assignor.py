"""Decides which worker owns which partition: one owner for a partition number of all topics, keeping what it had."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from turngate.streams.log import LogError


class CoPartitioned(AbstractPartitionAssignor):  # type: ignore[misc]
    """Gives partition p of every topic to one member, evenly, and moves as few as balance allows.

    Each member tells the leader which partition numbers it had. Made once for each consumer, since it remembers them.
    """

    name = "turngate"
    version = 0

    def __init__(self) -> None:
        self.owned: frozenset[int] = frozenset()
        #: Why the last assignment that this member was to make was refused; aiokafka passes on a text of it only.
        self.refusal: LogError | None = None

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """The assignment of every member, made by the group's leader.

        Raises `LogError` where topics differ in their number of partitions: a tenant's records would then lie in
        different partitions, and no one worker would see them all.
        """
        topics = sorted({topic for member in members.values() for topic in member.subscription})
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        if len(set(counts.values())) > 1 or 0 in counts.values():
            found = {n: sorted(t for t in topics if counts[t] == n) for n in sorted(set(counts.values()))}
            said = "; ".join(f"{n}: {', '.join(names)}" for n, names in found.items())
            self.refusal = LogError(f"topics must have equal numbers of partitions, and have {said}; make them anew")
            raise self.refusal
        had = {member: _had(metadata.user_data) for member, metadata in members.items()}
        share = divide(next(iter(counts.values()), 0), had)
        return {
            member: ConsumerProtocolMemberAssignment(0, [(t, numbers) for t in topics] if numbers else [], b"")
            for member, numbers in share.items()
        }

    def metadata(self, topics: Iterable[str]) -> Any:
        """What this member tells the leader when it joins."""
        return ConsumerProtocolMemberMetadata(0, sorted(topics), json.dumps(sorted(self.owned)).encode())

    def on_assignment(self, assignment: Any) -> None:
        """Remember what this member got."""
        self.owned = frozenset(number for _, numbers in assignment.assignment for number in numbers)


def divide(partitions: int, had: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
    """Divide partition numbers over members, each of which had some before; the shares differ by one at most."""
    members = sorted(had)
    least, more = divmod(partitions, len(members))
    free = set(range(partitions))
    share: dict[str, list[int]] = {}
    for member in members:
        keep = sorted(free.intersection(had[member]))[: least + (more > 0)]
        if len(keep) > least:
            more -= 1
        free.difference_update(keep)
        share[member] = keep
    for number in sorted(free):
        share[min(members, key=lambda m: (len(share[m]), m))].append(number)
    return {member: sorted(numbers) for member, numbers in share.items()}


def _had(user_data: bytes) -> list[int]:
    try:
        numbers = json.loads(user_data or b"[]")
    except ValueError:
        return []
    return [n for n in numbers if isinstance(n, int)] if isinstance(numbers, list) else []
