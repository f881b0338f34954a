"""The story that the tests of what a store is asked tell."""

from __future__ import annotations

from typing import Any

from tests.streams.telling import ALEX, C1, D1, KIM, POLICY, World

C2, EVE = "slack:T1/C2", "slack:T1/UEVE"
MINE, THEIRS, SAID = f"message:{D1}/1", f"message:{C1}/2", f"message:{C1}/9"


def tell(world: World) -> None:
    """Alex says something to the agent alone, which is remembered, shared by an operator, and said to Kim."""
    world.send("PolicyPublished", version="1", document=POLICY)
    world.listing(D1, ALEX)
    world.listing(C1, ALEX, KIM)
    world.message(D1, 1, ALEX, "mine")
    world.message(C1, 2, KIM, "theirs")
    world.write("m", "m@1", "of mine", [MINE])
    world.write("d", "d@1", "of that", ["revision:m@1"], op="derive")
    world.send("ContextRequested", request="r1", turn="t1", room=C1, trigger=THEIRS, candidates=[MINE, THEIRS])
    draft(world, "t1", exposed=[MINE, "revision:d@1", "tool:none"])
    shared = {"memory": "d", "revision": "d@1", "audience": {"readers": [ALEX, KIM]}}
    world.send("GrantCommanded", command="g1", operator="ops", op="grant", **shared)
    draft(world, "t2", exposed=["revision:d@1"])
    world.send("TurnDelivered", turn="t2", room=C1, status="sent", message=f"{C1}/9")
    world.message(C1, 9, "slack:T1/UBOT", "said", author_kind="self", turn="t2")
    world.message(C1, 10, KIM, "as was said", quotes=[SAID])
    draft(world, "t3", trigger=f"message:{C1}/10")
    world.send("TurnDelivered", turn="t3", room=C1, status="withheld", reasons=[{"code": "destination_enlarged"}])
    draft(world, "t4", trigger=THEIRS)  # made of nothing of Alex's
    world.send("MembershipChanged", room=C1, reader=EVE, kind="member", change="joined")
    draft(world, "t5", trigger=THEIRS)
    draft(world, "t6", room=C2)
    draft(world, "t4", trigger=THEIRS, exposed=[MINE])  # another draft under a turn's id
    world.send("GrantCommanded", command="x", operator="ops", op="revoke", grant="g1")
    world.erase(memory="m")


def draft(world: World, turn: str, *, trigger: str = THEIRS, room: str = C1, **more: Any) -> None:
    world.send("TurnDrafted", turn=turn, room=room, trigger=trigger, renderings=[{"text": turn}], **more)
