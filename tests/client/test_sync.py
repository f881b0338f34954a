"""A program without an event loop has the same turn, and is answered the same."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.client.places import ALEX, BO, DIRECT, GENERAL, POLICY
from turngate.client import Audience, Gate, Turn
from turngate.client.sync import SyncGate, blocking
from turngate.client.testing import Workplace
from turngate.schemas.shapes import Code, Scope

PRIVATE = "I fly on the 14th"


class Asked:
    """The refs of what was said: to the agent alone, and in each room as the question."""

    private: str
    rooms: dict[str, str]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def gate(asked: Asked) -> Iterator[SyncGate]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Gate]:  # in the loop's own thread, which alone may use the log
        with Workplace(policy=POLICY) as office:
            office.room(DIRECT, ALEX, kind="direct")
            office.room(GENERAL, ALEX, BO)
            asked.private = office.said(DIRECT, PRIVATE, by=ALEX)
            asked.rooms = {room: office.said(room, "when am I away?", by=ALEX) for room in (DIRECT, GENERAL)}
            yield office.gate()

    with blocking(opened()) as made:
        yield made


@pytest.mark.parametrize(("room", "text"), [(GENERAL, None), (DIRECT, "On the 14th")])
def test_what_somebody_there_may_not_hear_is_not_said(
    gate: SyncGate, asked: Asked, room: str, text: str | None
) -> None:
    with gate.turn(room=room, trigger=asked.rooms[room]) as turn:
        turn.saw(asked.private)
        said = turn.say("On the 14th")
        assert (said.text, turn.final().text) == (text, text)


def test_every_call_waits_for_what_it_comes_to(gate: SyncGate, asked: Asked) -> None:
    with gate.turn(room=DIRECT, trigger=asked.rooms[DIRECT], name="t1") as turn:
        context = turn.context({asked.private: PRIVATE})
        assert dict(context) == {asked.private: PRIVATE}
        assert turn.tool_returned("diary", "read", context=context, call="c1") == "tool:c1"
        kept = turn.remember("Alex flies on the 14th", memory="plan")
        assert kept.revision is not None
        assert turn.request_sharing(kept.revision, Audience(scope=Scope.PUBLIC)) is not None
        assert turn.forget("plan", kept.revision).reasons == ()
        assert {r.code for r in turn.forget("plan", "plan@never").reasons} == {Code.BASE_NOT_CURRENT}
    assert turn.name == "t1"


def test_it_has_all_that_a_turn_has(gate: SyncGate) -> None:
    of_a_turn = {name for name, _ in inspect.getmembers(Turn, inspect.isfunction) if not name.startswith("_")}
    with gate.turn(room=DIRECT) as turn:
        assert {name for name in dir(turn) if not name.startswith("_")} == of_a_turn | {"name"}
