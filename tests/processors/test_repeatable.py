"""A partition's decisions are a function of its log: not of restarts, redeliveries, hashes or other tenants."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.feed import POLICY, untraced
from tests.processors.streams import Player, Sent, Share, Step, examples, placed, sent, steps, with_ticks
from turngate.processors.state import entry_key
from turngate.schemas import inputs
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, RefreshRequested, TurnAuthorized, TurnDecided

GOLDEN = Path(__file__).parents[1] / "golden"
TURNGATE = Path(sys.executable).with_name("turngate")
MEMBERSHIP = (inputs.MembershipPage, inputs.MembershipChanged, inputs.RoomChanged)


def authorized(outputs: list[list[Record]]) -> list[str]:
    return [r.turn for out in outputs for r in out if isinstance(r, TurnAuthorized)]


def drafted(stream: list[Sent]) -> int:
    return len({s.record.turn for s in stream if isinstance(s.record, inputs.TurnDrafted)})


def plain(outputs: list[list[Record]]) -> list[list[dict[str, object]]]:
    """Everything but where on the topics it was decided, and the traces, in whose chain that is."""
    return [[r.model_dump(mode="json", exclude={"as_of"}) for r in untraced(out)] for out in outputs]


#: Policies under which much is forgotten while a stream goes on, or everything at once.
SHORT = "retention: {messages: 30s, log: 60s, room_inactive: 50s, room_empty: 20s}\n"
QUIET = "retention: {messages: 25s, log: 20s, room_inactive: 15s, room_empty: 60s}\n"
NOTHING = "retention: {messages: 30s, log: 0s, room_inactive: 0s, room_empty: 0s}\n"


@pytest.mark.parametrize("retention", ["", SHORT, QUIET, NOTHING])
def test_a_restart_at_any_cut_changes_nothing(retention: str) -> None:  # R-RUN-1, R-RUN-3
    share = Share()

    @examples(60)
    @given(steps(), st.integers(0, 60))
    def check(chosen: list[Step], cut: int) -> None:
        stream = sent([placed(chosen[0], document=POLICY + retention), *chosen[1:]])
        whole = Player()
        outputs = whole.play(stream)
        first = Player()
        before = first.play(stream[:cut])
        second = first.restarted()
        assert before + second.play(stream[cut:]) == outputs
        assert second.engine.state.digest() == whole.engine.state.digest()
        share.count(len(authorized(outputs)), drafted(stream))

    check()
    share.at_least(0.2 if retention in ("", SHORT) else 0.01)


def test_the_changes_taken_make_up_the_state() -> None:  # the checkpoint is what the changes come to
    share = Share()

    @examples(40)
    @given(steps(), st.sets(st.integers(0, 60), max_size=10))
    def check(chosen: list[Step], commits: set[int]) -> None:
        stream = sent(chosen)
        player = Player()
        stored: dict[bytes, bytes] = {}
        outputs = []
        for n, one in enumerate(stream):
            outputs.append(player.one(one))
            if n in commits or n == len(stream) - 1:
                for key, value in player.engine.take_changes():
                    if value is None:
                        stored.pop(key, None)
                    else:
                        stored[key] = value
        assert stored == dict(player.engine.state.entries())
        share.count(len(authorized(outputs)), drafted(stream))

    check()
    share.at_least(0.25)


def test_a_record_told_again_authorizes_nothing_and_changes_no_later_decision() -> None:  # R-RUN-4
    share = Share()

    @examples(200)
    @given(steps(), st.integers(0, 60), st.integers(0, 60))
    def check(chosen: list[Step], of: int, later: int) -> None:
        stream = sent(chosen)
        of %= len(stream)
        place = min(of + later, len(stream) - 1)
        again = Sent(stream[of].record, stream[place].timestamp)
        once, twice = Player(), Player()
        outputs = once.play(stream)
        doubled = twice.play(stream[: place + 1])
        echo = twice.one(again)
        doubled += twice.play(stream[place + 1 :])
        said = authorized([*doubled, echo])
        assert len(said) == len(set(said))
        share.count(len(said), drafted(stream))
        if isinstance(again.record, MEMBERSHIP):
            assert set(said) <= set(authorized(outputs))
            assert permitted(doubled) <= permitted(outputs)
        else:
            doubled.insert(place + 1, echo)  # what a policy of this instant has made due comes with whatever is next
            assert list(chain(*plain(doubled))) == list(chain(*plain(outputs)))

    check()
    share.at_least(0.25)


def permitted(outputs: list[list[Record]]) -> set[tuple[str, str]]:
    """What context answers let a model see: request and ref."""
    answers = [r for out in outputs for r in out if isinstance(r, ContextDecided)]
    return {(r.request, p.ref) for r in answers for p in r.permitted}


def test_what_another_tenant_does_means_nothing_here() -> None:  # R-ROOM-11
    share = Share()

    @examples(60)
    @given(steps(), steps(), st.randoms(use_true_random=False))
    def check(mine: list[Step], theirs: list[Step], random) -> None:  # type: ignore[no-untyped-def]
        stream = sent(mine)
        others = [s.record for s in sent(theirs, "other") if s.record.tenant == "other"]
        alone, beside = Player(), Player()
        expected = alone.play(stream)
        came = []
        for one in stream:
            out = beside.one(one)
            for _ in range(random.randint(0, 3)):
                if others:
                    out += beside.one(Sent(others.pop(0), one.timestamp))
            came.append([r for r in out if r.tenant != "other"])
        # What a policy of this instant has made due comes with whatever is next, theirs too (R-TIME-4).
        assert list(chain(*plain(came))) == list(chain(*plain(expected)))
        share.count(len(authorized(came)), drafted(stream))

    check()
    share.at_least(0.25)


def test_every_draft_ends_in_one_final_decision_in_time() -> None:  # R-TURN-9
    share = Share()

    @examples(100)
    @given(steps())
    def check(chosen: list[Step]) -> None:
        stream = with_ticks(sent(chosen))
        outputs = Player().play(stream)
        arrived: dict[str, int] = {}
        contents: dict[str, list[object]] = {}
        for one in stream:
            if isinstance(one.record, inputs.TurnDrafted):
                arrived.setdefault(one.record.turn, one.timestamp)
                content = one.record.model_dump(exclude={"at"})
                if content not in contents.setdefault(one.record.turn, []):
                    contents[one.record.turn].append(content)
        decided = [r for out in outputs for r in out if isinstance(r, TurnDecided) and r.verdict not in ("hold", "ask")]
        conflict = [r for r in decided if any(reason.code == "turn_conflict" for reason in r.reasons)]
        final = [r for r in decided if r not in conflict]
        assert sorted(r.turn for r in final) == sorted(arrived)
        assert all(r.at <= arrived[r.turn] + 5_000 + 1_000 for r in final)
        assert len(conflict) == sum(len(c) - 1 for c in contents.values())
        share.count(len(authorized(outputs)), len(arrived))

    check()
    share.at_least(0.25)


def test_a_refresh_is_not_asked_for_twice_within_the_hold() -> None:  # R-TURN-6
    share = Share()

    @examples(60)
    @given(steps(without=lambda s: s.kind is inputs.PolicyPublished))
    def check(chosen: list[Step]) -> None:
        stream = sent(chosen)
        last: dict[tuple[str, str], int] = {}
        for one, out in zip(stream, Player().play(stream), strict=True):
            for r in out:
                if isinstance(r, RefreshRequested) and not isinstance(one.record, inputs.MembershipPage):  # R-AUD-9
                    key = (r.agent, r.room)
                    assert r.at >= last.get(key, -(10**9)) + 5_000
                    last[key] = r.at
            share.count(len(authorized([out])), isinstance(one.record, inputs.TurnDrafted))

    check()
    share.at_least(0.2)


@pytest.mark.parametrize("name", ["004-rooms-said-before-the-listing", "063-random-without-memory"])
def test_the_seed_of_the_hashes_makes_no_difference(name: str, tmp_path: Path) -> None:  # R-RUN-1
    events = tmp_path / "events.jsonl"
    events.write_bytes(gzip.decompress((GOLDEN / f"{name}.events.jsonl.gz").read_bytes()))
    printed = {
        subprocess.run(
            [str(TURNGATE), "apply", str(events)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    (only,) = printed
    assert any(json.loads(line)["record"] == "TurnAuthorized" for line in only.splitlines())


@given(st.lists(st.text()))
def test_an_entrys_key_is_what_earlier_checkpoints_have(key: list[str]) -> None:
    as_ever = json.dumps(["turns", *key], ensure_ascii=False, separators=(",", ":")).encode()
    assert entry_key("turns", tuple(key)) == as_ever
