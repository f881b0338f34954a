"""What is acknowledged on the log counts before a turn is sent, also where only the engine can say what it comes to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sinks.engine import Engine, offered
from tests.sinks.records import ALEX, DIRECT, KIM, ROOM, made
from turngate.schemas.inputs import ErasureCommanded, MessageObserved, TurnDrafted
from turngate.schemas.outputs import TurnAuthorized
from turngate.streams.clock import now_ms

WITHHELD = {"t1": ("withheld", "source_deleted")}
REACHES: dict[str, Any] = {
    "a room": {"room": ROOM},
    "an author": {"reader": ALEX},
    "a memory": {"memory": "m"},
    "a room by lineage": {"room": DIRECT},
}
PASSES_BY: dict[str, Any] = {"another room": {"room": f"{ROOM}2"}, "another author": {"reader": KIM}}


def erase(engine: Engine, **what: Any) -> None:
    """An operator's command is acknowledged, and no worker has read it yet."""
    engine.stage.write(made(ErasureCommanded, at=now_ms(), command="e1", operator="o", **what))


def remembered(engine: Engine) -> str:
    """A memory of what Alex said in private, which the whole workspace may hear."""
    engine.policy(tools={"wiki": {"audience": {"workspace": "slack:T1"}}})
    offer = offered(engine)
    share = engine.make(MessageObserved, agent="mesh", room=DIRECT, message=f"{DIRECT}/8", author=ALEX,
                        author_kind="person", text=f"share {offer.code}")  # fmt: skip
    assert share
    return offer.code


def authorized(engine: Engine) -> TurnAuthorized:
    """A turn in the room that repeats the memory."""
    fields = {"agent": "mesh", "turn": "t1", "room": ROOM, "trigger": f"message:{ROOM}/1"}
    came = engine.make(TurnDrafted, exposed=["revision:m@1"], renderings=[{"text": "in June"}], **fields)
    (turn,) = (r for r in came if isinstance(r, TurnAuthorized))
    return turn


@pytest.mark.parametrize("what", REACHES.values(), ids=REACHES)
async def test_a_turn_made_of_what_is_being_erased_is_withheld(engine: Engine, what: dict[str, Any]) -> None:
    remembered(engine)
    assert authorized(engine).grants
    erase(engine, **what)  # R-RET-3
    await engine.deliver()
    assert engine.stage.outcomes()["t1"][:2] == WITHHELD["t1"]
    assert "in June" not in engine.stage.said()


@pytest.mark.parametrize("what", PASSES_BY.values(), ids=PASSES_BY)
async def test_an_erasure_of_something_else_withholds_nothing(engine: Engine, what: dict[str, Any]) -> None:
    remembered(engine)
    authorized(engine)
    erase(engine, **what)
    await engine.deliver()
    assert engine.stage.outcomes() == {"t1": ("sent",)}


async def test_an_erasure_that_came_before_the_delivery_began_counts_too(engine: Engine) -> None:
    remembered(engine)
    authorized(engine)
    erase(engine, memory="m")
    engine.feed()
    await engine.deliver()
    assert engine.stage.outcomes() == {"t1": ("withheld", "source_deleted")}


@pytest.mark.parametrize("taken", [True, False])
async def test_who_types_unshare_takes_back_what_is_not_said_yet(engine: Engine, taken: bool) -> None:  # R-GRT-9
    code = remembered(engine)
    authorized(engine)
    text = f"unshare {code}" if taken else "never mind"
    engine.stage.write(made(MessageObserved, at=now_ms(), agent="mesh", room=DIRECT, message=f"{DIRECT}/9", author=ALEX,
                            author_kind="person", text=text))  # fmt: skip
    await engine.deliver()
    assert engine.stage.outcomes() == {"t1": ("withheld", "grant_revoked") if taken else ("sent",)}


async def test_where_nobody_applies_it_what_rests_on_a_grant_is_withheld(engine: Engine) -> None:
    remembered(engine)
    engine.stage.write(made(MessageObserved, at=now_ms(), agent="mesh", room=DIRECT, message=f"{DIRECT}/9", author=ALEX,
                            author_kind="person", text="hello"))  # fmt: skip
    engine.stage.authorize("t2", valid_until=now_ms() + 300, grants=["g"])
    engine.stage.authorize("t3")
    await engine.stage.deliver()
    assert (engine.stage.outcomes()["t2"], engine.stage.outcomes()["t3"]) == (("withheld", "barrier_late"), ("sent",))


async def test_a_question_about_what_is_being_erased_is_not_asked(engine: Engine) -> None:
    engine.draft()
    erase(engine, room=ROOM)
    await engine.deliver()
    assert engine.stage.slack.posts == []


async def test_an_offer_of_what_is_being_erased_is_not_shown(engine: Engine) -> None:
    offered(engine)
    erase(engine, memory="m")
    await engine.deliver()
    assert engine.stage.slack.posts == []
