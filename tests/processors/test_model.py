"""The engine agrees with a brute-force model of the audience rules, decision by decision and leaf by leaf."""

from __future__ import annotations

from hypothesis import given

from tests.processors.feed import POLICY
from tests.processors.model import Leaf, Model, Who
from tests.processors.streams import Player, Share, Step, examples, placed, sent, steps
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import EvidenceRecorded, TurnDecided
from turngate.schemas.shapes import Audience

KINDS = {
    inputs.MembershipPage,
    inputs.MembershipChanged,
    inputs.RoomChanged,
    inputs.MessageObserved,
    inputs.MessageDeleted,
    inputs.ToolReturned,
    inputs.TurnDrafted,
    inputs.Tick,
}
FIXED = POLICY + "open_rooms: own_words\n"


def beyond(step: Step) -> bool:
    """What the model does not know: other policies, context answers, several renderings, actions, ids used twice."""
    drafted = step.kind is inputs.TurnDrafted and step.fields["renderings"] != [{"text": "so"}]
    named = step.kind in (inputs.TurnDrafted, inputs.ToolReturned) and "turn" in step.fields
    return step.kind not in KINDS or drafted or named or "action" in step.fields


def who(audience: Audience) -> tuple[object, ...]:
    """An audience as the model may compare it: whoever is covered by a workspace need not be listed."""
    return audience.scope.value, frozenset(audience.workspaces), frozenset(audience.readers), frozenset(audience.guests)


def plain(who: Who) -> tuple[object, ...]:
    return who.scope, who.workspaces, frozenset(who.people), who.guests


def decisions(out: list[Record]) -> list[tuple[str, str, frozenset[tuple[str, str | None]]]]:
    return [
        (r.turn, r.verdict.value, frozenset((reason.code, reason.ref) for reason in r.reasons))
        for r in out
        if isinstance(r, TurnDecided)
    ]


def evidence(out: list[Record]) -> list[tuple[str, str, frozenset[tuple[object, ...]]]]:
    recorded = [r for r in out if isinstance(r, EvidenceRecorded)]
    return [(r.agent, r.ref, frozenset((leaf.agent, *who(leaf.audience)) for leaf in r.leaves)) for r in recorded]


def expected(recorded: list[tuple[str, str, frozenset[Leaf]]]) -> list[tuple[str, str, frozenset[tuple[object, ...]]]]:
    return [
        (agent, ref, frozenset((leaf.agent, *plain(leaf.who)) for leaf in leaves)) for agent, ref, leaves in recorded
    ]


def test_the_engine_agrees_with_the_model() -> None:  # R-ROOM, R-AUD, R-TURN-2 to R-TURN-6
    share = Share()

    @examples(1000)
    @given(steps(18, without=beyond))
    def check(chosen: list[Step]) -> None:
        player, model = Player(), Model()
        for one in sent([placed(chosen[0], document=FIXED), *chosen[1:]]):
            out = player.one(one)
            model.apply(one.record, one.timestamp)
            assert decisions(out) == model.decided
            assert evidence(out) == expected(model.recorded)
            share.count(sum(v == "deliver" for _, v, _ in model.decided), isinstance(one.record, inputs.TurnDrafted))

    check()
    share.at_least(0.25)
