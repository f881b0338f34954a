"""A yes that came while nobody knew who reads the room may be given again; one that is withdrawn stays so (R-TNT-6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.slack.scene import installed
from tests.sinks.engine import Engine, button
from tests.sinks.records import ALEX, KIM, ROOM
from turngate.schemas import inputs
from turngate.schemas.inputs import ActionApproved, ApprovalWithdrawn, Record
from turngate.schemas.outputs import TurnDecided
from turngate.sinks.presses import AGAIN_MS, MOST, SAME_MS, Presses
from turngate.sinks.questions import APPROVE, WITHDRAW
from turngate.streams.clock import now_ms

#: When somebody pressed first, by Slack's clock, in milliseconds.
FIRST = 1_700_000_000_000


class Pressing:
    """The question about a draft that asks, and what comes of pressing its buttons."""

    def __init__(self, engine: Engine, post: Any) -> None:
        self.engine = engine
        self._post = post
        self._presses = Presses()

    def say(self, after: int | None, action: str = APPROVE, user: str = "UALEX") -> list[Record]:
        """A press so many milliseconds after the first; None: at a time that Slack does not say."""
        payload = button(self._post, action, user)
        if after is not None:
            at = FIRST + after
            payload["actions"][0]["action_ts"] = f"{at // 1000}.{at % 1000:03}000"
        return list(self._presses(payload, installed(self.engine.stage.acme), now_ms()))

    def verdicts(self, after: int, action: str = APPROVE) -> list[str]:
        """What is decided when it is pressed."""
        came = self.engine.feed(*self.say(after, action))
        return [r.verdict.value for r in came if isinstance(r, TurnDecided)]


@pytest.fixture
async def pressing(engine: Engine) -> Pressing:
    engine.draft()
    await engine.deliver()
    (post,) = engine.stage.slack.posts
    return Pressing(engine, post)


def unknown(engine: Engine) -> None:
    engine.make(inputs.RoomChanged, agent="mesh", room=ROOM, what="renamed")


def test_a_yes_that_came_while_the_room_was_unknown_may_be_given_again(pressing: Pressing) -> None:
    unknown(pressing.engine)
    assert pressing.verdicts(0) == []
    pressing.engine.listing(ROOM, ALEX, KIM)
    assert pressing.verdicts(SAME_MS) == ["deliver"]


def test_a_press_that_slack_tells_of_again_or_a_double_click_is_the_same_yes(pressing: Pressing) -> None:
    unknown(pressing.engine)
    assert pressing.verdicts(0) == []
    pressing.engine.listing(ROOM, ALEX, KIM)
    assert [pressing.verdicts(after) for after in (0, SAME_MS - 1)] == [[], []]
    unknown(pressing.engine)
    assert pressing.verdicts(SAME_MS) == []  # and what is pressed again counts no more than what was pressed first


def test_once_withdrawn_no_further_press_counts(pressing: Pressing) -> None:
    unknown(pressing.engine)
    pressing.verdicts(0)
    pressing.engine.listing(ROOM, ALEX, KIM)
    assert pressing.verdicts(1_000, WITHDRAW) == []
    assert [pressing.verdicts(SAME_MS * number) for number in range(1, MOST + 2)] == [[]] * (MOST + 1)


def test_a_further_press_counts_at_once_or_hardly(pressing: Pressing) -> None:
    """Of two that are given for one question, none is to be left for another draft of the same bytes."""
    (first,), (again,) = pressing.say(0), pressing.say(SAME_MS)
    assert isinstance(first, ActionApproved)
    assert isinstance(again, ActionApproved)
    assert first.expires_at is not None
    assert again.expires_at is not None
    assert (again.fingerprint, again.by, again.room) == (first.fingerprint, first.by, first.room)
    assert again.approval != first.approval
    assert again.expires_at <= min(now_ms() + AGAIN_MS, first.expires_at)


def test_there_are_so_many_of_one_person_and_all_are_withdrawn_at_once(pressing: Pressing) -> None:
    given = [r.approval for n in range(9) for r in pressing.say(SAME_MS * n) if isinstance(r, ActionApproved)]
    taken = [r.approval for r in pressing.say(0, WITHDRAW) if isinstance(r, ApprovalWithdrawn)]
    assert list(dict.fromkeys(given)) == taken
    assert len(taken) == MOST
    of_bo = [r.approval for r in pressing.say(0, user="UBO") if isinstance(r, ActionApproved)]
    assert set(of_bo).isdisjoint(taken)


def test_a_press_without_a_time_is_the_first(pressing: Pressing) -> None:
    (first,), (later,) = pressing.say(0), pressing.say(SAME_MS)
    (timeless,) = pressing.say(None)
    assert isinstance(first, ActionApproved)
    assert isinstance(later, ActionApproved)
    assert isinstance(timeless, ActionApproved)
    assert timeless.approval == first.approval != later.approval
