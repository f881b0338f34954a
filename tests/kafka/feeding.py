"""What the live tests feed: inputs of several topics for every partition, a quarter of them drafts."""

from __future__ import annotations

from tests.kafka.cluster import Sent
from tests.streams.world import READERS, ROOMS, an, draft, listing, message, ref


def mixture(count: int, partitions: int, start: int = 0) -> list[Sent]:
    """`count` inputs, numbered from `start`, spread evenly over partitions and topics."""
    made = []
    for n in range(start, start + count):
        room = ROOMS[n % 2]
        one = (
            message(n, room, n),
            draft(n, room, f"t{n}", (ref(room, n - 1),)),
            listing(n, room, READERS[: 1 + n % 3]),
            an("MembershipChanged", n, room=room, reader=READERS[n % 3], kind="member", change="joined"),
        )[n // partitions % 4]
        made.append(Sent(one.topic, n % partitions, one.key, one.value))
    return made
