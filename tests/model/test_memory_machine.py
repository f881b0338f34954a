"""The engine agrees with the model of the lineage and grant rules, whatever happens in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.actions import Memory
from tests.model.machine import Pair
from tests.processors.streams import examples
from turngate.processors import collecting, lineage, memory, permits, sharing
from turngate.processors.rows import Offer
from turngate.schemas.shapes import Code

STEPS = 13
#: What a run must have come to, so many times in a thousand examples, or it proves little.
SHOWN = {
    "by grant": 100,
    "by proof": 100,
    "attribution hidden": 100,
    "CommandHandled granted": 100,
    "GrantChanged revoked": 30,
    "GrantChanged expired": 30,
    "RevisionRecorded staged": 60,
    "RevisionRecorded world": 60,
    "RevisionRecorded transcript": 60,
    "ErasureApplied": 60,
    **dict.fromkeys(("restricted_to_conversation", "leaf_limit", "proof_not_live"), 40),
    **dict.fromkeys(
        ("tainted_rule", "tainted_correction", "source_deleted", "dream_mixed_audience", "destination_stale"), 10
    ),
    **dict.fromkeys(("not_operator", "revision_staged", "revision_not_current", "other_agent"), 20),
    **dict.fromkeys(("grant_revoked", "grant_expired", "trigger_not_subset", "machine_refusal"), 2),
}


@pytest.fixture(autouse=True)
def leaves_are_looked_through_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "LEAST", 8)


@pytest.mark.timeout(900)
def test_the_engine_agrees_with_the_model() -> None:
    Pair.verdicts.clear()
    Pair.seen.clear()
    chosen = examples(2_000)
    run_state_machine_as_test(Memory, settings=settings(chosen, stateful_step_count=STEPS))
    assert Pair.verdicts["deliver"] >= sum(Pair.verdicts.values()) / 4
    thousands = chosen.max_examples // 1_000
    missed = {what: Pair.seen[what] for what, least in SHOWN.items() if Pair.seen[what] < least * thousands}
    assert not missed, missed


def via_is_kept(change: pytest.MonkeyPatch) -> None:
    """A grant passes to what is made of the granted text (R-GRT-7)."""

    def kept(*args: Any, **more: Any) -> lineage.Lineage:
        made = made_of(*args, **more)
        return replace(made, leaves=made.seen)

    made_of = lineage.made_of
    change.setattr(lineage, "made_of", kept)


def restrictions_are_of_each_leaf(change: pytest.MonkeyPatch) -> None:
    """R-EVI-4"""
    bound = lineage._bound
    change.setattr(lineage, "_restrictions", lambda *_: ())
    change.setattr(
        lineage, "_bound", lambda to, key, _, world: bound(to, key, {*to.leaf(key).restrictions}, world=world)
    )


def what_a_turn_was_shown_is_not_inherited(change: pytest.MonkeyPatch) -> None:
    """R-EVI-2"""
    of_turn = lineage.of_turn
    change.setattr(lineage, "of_turn", lambda *args: replace(of_turn(*args), permitted=()))


def anybody_may_read_what_a_write_is_made_of(change: pytest.MonkeyPatch) -> None:
    """R-EVI-7"""
    change.setattr(memory, "_readable", lambda *_: [])


def a_code_is_anybodys(change: pytest.MonkeyPatch) -> None:
    """R-GRT-2"""
    offered = sharing._offer

    def found(ledger: Any, record: Any, code: str, keys: Any, **more: Any) -> tuple[str, Offer] | Code:
        rows = ledger.tables.offers.rows.values()
        readers = [row.reader for row in rows]
        tried = [offered(ledger, record.model_copy(update={"author": r}), code, keys, **more) for r in readers]
        return next((t for t in tried if isinstance(t, tuple)), offered(ledger, record, code, keys, **more))

    change.setattr(sharing, "_offer", found)


def an_audience_of_several_is_one_person(change: pytest.MonkeyPatch) -> None:
    """R-IDN-2"""
    change.setattr(permits, "_alone", lambda audience: audience.readers[0] if audience.readers else None)


def a_belief_needs_no_operator(change: pytest.MonkeyPatch) -> None:
    """R-MEM-2, R-MEM-3"""
    change.setattr(memory, "_STAGED", frozenset())


@pytest.mark.parametrize(
    "fault",
    [
        via_is_kept,
        restrictions_are_of_each_leaf,
        what_a_turn_was_shown_is_not_inherited,
        anybody_may_read_what_a_write_is_made_of,
        a_code_is_anybodys,
        an_audience_of_several_is_one_person,
        a_belief_needs_no_operator,
    ],
)
def test_a_fault_is_found(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    quick = settings(
        max_examples=1_500,
        stateful_step_count=STEPS,
        phases=[Phase.generate],
        derandomize=True,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError, match="only the engine"):
        run_state_machine_as_test(Memory, settings=quick)
