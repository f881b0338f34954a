"""A history of any length, drawn from a seed: rooms whose members change, messages, memories, grants, drafts of all."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.streams.world import READERS, Input, an, draft, listing, message, policy, ref, tick

ROOMS = tuple(f"slack:T1/C{n}" for n in range(8))
#: Messages of a room that a draft may be made of, before they are forgotten here.
_RECENT = 20


def history(drafts: int, *, tenant: str = "acme", seed: int = 1) -> Iterator[Input]:
    """A second between two records; it ends with the last draft's room listed, so that nothing waits."""
    draw = random.Random(seed)
    at, drafted, number = 0, 0, 0
    said: list[str] = []
    written: list[str] = []
    yield policy(at, tenant)
    while drafted < drafts:
        at += 1000
        number += 1
        room = draw.choice(ROOMS)
        if number % 12 == 1:
            yield listing(at, ROOMS[number // 12 % len(ROOMS)], READERS[: draw.choice((2, 3, 3))], tenant)
        what = draw.random()
        if what < 0.5:
            drafted += 1
            sources = draw.sample(said, min(len(said), 2)) + draw.sample(written, min(len(written), draw.randrange(2)))
            yield draft(at, room, f"t{drafted}", tuple(sources), tenant)
        elif what < 0.75:
            said.append(ref(room, number))
            del said[:-_RECENT]
            yield message(at, room, number, tenant)
        elif what < 0.85 and said:
            revision = f"m{number}@1"
            written.append(f"revision:{revision}")
            del written[:-_RECENT]
            names = {"write": f"w{number}", "memory": f"m{number}", "revision": revision}
            yield an(
                "MemoryWrite", at, tenant, op="create", by="dream", kind="note", sources=[said[-1]], text="n", **names
            )
        elif what < 0.9 and written:
            memory = written[-1].removeprefix("revision:")
            grant = {"command": f"g{number}", "op": "grant", "grant": f"g{number}", "operator": "ops"}
            named = {"memory": memory.removesuffix("@1"), "revision": memory}
            yield an("GrantCommanded", at, tenant, audience={"scope": "public"}, **grant, **named)
        else:
            change = {"reader": draw.choice(READERS), "change": draw.choice(("joined", "left")), "kind": "member"}
            yield an("MembershipChanged", at, tenant, room=room, **change)
        if number % 10 == 0:
            yield tick(at)
