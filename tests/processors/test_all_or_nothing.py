"""A record is applied wholly or not at all: an error at any write to the state leaves nothing of it behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.processors.feed import ALEX, BOT, C1, D1, KIM, POLICY, SELF, Feed, ready, untraced, verdicts
from tests.processors.streams import O1, TICKS, Player, Sent, Step, draft, listing, message, ref, sent, told
from turngate.processors.engine import Engine
from turngate.processors.rows import Context, Revision, Room, RoomLog, Taint, Turn, Waiting
from turngate.processors.state import Key, State, Table
from turngate.schemas import inputs
from turngate.schemas.catalog import INPUT_TOPICS
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, RecordRefused, TurnDecided


class OutOfMemory(MemoryError):
    """What ends a worker: it is no decision."""


class Broken(Exception):
    """Any other error, such as a bug would raise."""


def page(number: int, last: bool) -> Step:
    return listing(C1, [(ALEX, KIM)[number]], page=number, last=last, refresh="two", started_at=0)


def started(stream: list[Sent]) -> list[Sent]:
    """The stream with the two pages of one listing begun together."""
    pages = [s for s in stream if isinstance(s.record, inputs.MembershipPage) and s.record.refresh == "two"]
    begun = {"started_at": pages[0].timestamp}
    return [Sent(s.record.model_copy(update=begun), s.timestamp) if s in pages else s for s in stream]


EVENT = {"room": C1, "kind": "member", "reader": "slack:T1/UNEW"}
WRITE = {"agent": "mesh", "write": "w", "memory": "m", "revision": "m@1", "op": "create", "by": "turn", "kind": "note"}
OPERATOR = {"operator": "ops", "agent": "mesh"}
#: Every record type on its own topic, in states that make it write as much as it can.
STEPS = [
    Step(inputs.PolicyPublished, {"document": POLICY + "open_rooms: own_words\n"}),
    message(C1, 0),  # before any listing: waits for one
    Step(inputs.ContextRequested, {"agent": "mesh", "room": C1, "turn": "t", "candidates": [ref(C1, 0), "tool:c0"]}),
    draft(C1, [ref(C1, 0)], turn="t"),  # waits too
    Step(inputs.PolicyPublished, {"document": POLICY}),
    page(1, True),
    draft(C1, ["tool:c9"]),
    Step(inputs.ContextRequested, {"agent": "mesh", "room": C1, "candidates": [ref(C1, 0)]}),
    page(0, False),  # settles, answers, decides
    listing(D1, [ALEX, SELF]),
    listing(O1, [BOT]),
    listing(C1, [ALEX], early=-60_000),  # from the future
    listing(C1, [ALEX], error="rate limited"),
    Step(inputs.MembershipChanged, EVENT | {"change": "joined"}),
    message(C1, 1),  # somebody joined: waits for a listing
    message(C1, 0, edited=True, text="more", quotes=[ref(D1, 0), ref(C1, 1)]),
    Step(inputs.MembershipChanged, EVENT | {"change": "left", "agent": "mesh"}),
    Step(inputs.ToolReturned, {"agent": "mesh", "room": C1, "call": "c0", "server": "wiki", "operation": "get"}),
    Step(
        inputs.ToolReturned,
        {"agent": "mesh", "room": C1, "call": "c1", "server": "web", "operation": "get", "request": "?"},
    ),
    Step(inputs.ContextRequested, {"agent": "mesh", "room": D1, "candidates": ["tool:c0"], "request": "?"}),
    draft(D1, ["tool:c0"], turn="u"),
    draft(D1, ["tool:c1"], turn="u"),  # a conflict
    draft(O1, ["tool:c1"]),
    *(draft(room, ["tool:c1"]) for room in (D1, C1, D1)),
    draft(C1, ["tool:c0"]),
    Step(inputs.MessageDeleted, {"agent": "mesh", "room": C1, "message": f"{C1}/1"}),
    Step(inputs.RoomChanged, {"room": C1, "what": "converted"}),
    draft(C1, ["tool:c1"]),  # held, and dropped by the pause
    Step(inputs.AgentPaused, OPERATOR | {"paused": True, "room": C1}),
    Step(inputs.AgentPaused, OPERATOR | {"paused": False, "room": C1}),
    draft(C1, ["tool:c1"]),  # held until its time is up
    Step(inputs.ContextRequested, {"agent": "mesh", "room": C1, "candidates": ["tool:c1"]}),
    TICKS[2],
    TICKS[2],
    Step(inputs.AccountProven, {"agent": "mesh", "proof": "p", "reader": ALEX, "subject": "s", "expires_at": 1}),
    Step(inputs.ProofRevoked, {"proof": "p"}),
    Step(inputs.MemoryWrite, WRITE),
    Step(inputs.SensitivityAssessed, {"write": "w", "label": "ordinary"}),
    Step(inputs.SharingRequested, {"agent": "mesh", "room": D1, "revision": "m@1", "audience": "public"}),
    Step(inputs.GrantCommanded, OPERATOR | {"op": "grant", "revision": "m@1"}),
    Step(inputs.ErasureCommanded, {"operator": "ops", "room": C1}),
    Step(inputs.ActionApproved, {"approval": "a", "fingerprint": "f", "by": ALEX, "room": C1}),
    Step(inputs.ApprovalWithdrawn, {"approval": "a"}),
    Step(inputs.TurnDelivered, {"turn": "t", "room": C1, "status": "sent"}),
    draft(D1, ["tool:c0"]),
]
STREAM = started(sent(STEPS))


def writing(engine: Engine, at: int = -1, error: type[BaseException] = Broken) -> Callable[[], int]:
    """Let the write to the state of this number raise, counted from now; what it gives ends that and counts writes."""
    state, writes = engine.state, 0

    def remember(table: Table[Any], key: Key) -> None:
        nonlocal writes
        writes += 1
        if writes == at:
            raise error
        State.remember(state, table, key)

    def stop() -> int:
        del state.remember  # type: ignore[method-assign]
        return writes

    state.remember = remember  # type: ignore[method-assign]
    return stop


def test_the_stream_holds_every_record_and_lets_turns_out() -> None:
    assert {type(s.record) for s in STREAM} == {kind for kinds in INPUT_TOPICS.values() for kind in kinds}
    out = [r for made in Player().play(STREAM) for r in made]
    verdicts = [r.verdict.value for r in out if isinstance(r, TurnDecided)]
    assert {"deliver", "downgrade", "hold", "drop"} <= set(verdicts)
    assert verdicts.count("deliver") >= len(verdicts) / 5
    assert "decision_error" not in codes(out)


def test_no_row_is_changed_where_it_stands() -> None:
    """What the journal brings back is the row itself, and rows are not frozen as they run."""
    known: dict[int, tuple[object, str]] = {}
    for stream in (STREAM, sent(told(range(0, 2**24, 2**16)))):
        player = Player()
        for one in stream:
            player.one(one)
            for table in player.engine.state.tables.values():
                for row in table.rows.values():
                    known.setdefault(id(row), (row, repr(row)))
    assert {Turn, Room, RoomLog, Taint, Waiting, Context, Revision} <= {type(row) for row, _ in known.values()}
    assert [row for row, before in known.values() if repr(row) != before] == []


@pytest.mark.parametrize("error", [OutOfMemory, KeyboardInterrupt])
def test_an_error_that_leaves_the_engine_leaves_its_state_as_it_was(error: type[BaseException]) -> None:  # R-RUN-6
    player = Player()
    raised = 0
    for one, expected in zip(STREAM, Player().play(STREAM), strict=True):
        position = player.position(one)
        before = player.engine.state.digest()
        for at in count(1):
            stop = writing(player.engine, at, error)
            try:
                out = player.engine.apply(one.record, position, one.timestamp, b"raw")
            except error:
                assert player.engine.state.digest() == before
                raised += 1
            else:
                break
            finally:
                stop()
        assert out == expected  # and then it goes on as if nothing had been
    assert raised > 200


def test_an_error_inside_a_decision_is_a_drop_and_changes_nothing_but_the_clock() -> None:  # R-RUN-5, R-RUN-6
    player = Player()
    failed: Counter[str] = Counter()
    for place, one in enumerate(STREAM):
        there = list(player.engine.state.entries())
        offsets = dict(player.offsets)

        def again(there: list[tuple[bytes, bytes]] = there, offsets: dict[str, int] = offsets) -> Player:
            return Player(Engine.restore(there, Engine.version), offsets)

        skipped = again()
        stop = writing(skipped.engine)
        due = skipped.engine.refuse("acme", None, skipped.position(one), one.timestamp, b"")[:-1]
        moved = stop()  # what moving the clock writes, and what is due then
        left, rest = unchained(skipped), [untraced(out) for out in skipped.play(STREAM[place + 1 :])]
        for at in count(moved + 1):
            faulty = again()
            stop = writing(faulty.engine, at)
            out = faulty.one(one)
            if stop() < at:
                break
            assert out[: len(due)] == due
            if codes(out[len(due) :]) == {"decision_error"} and not of_what_waited(one.record, out):
                assert named(untraced(out)[-1]) == named(one.record)
                if not isinstance(one.record, inputs.MembershipChanged | inputs.RoomChanged):
                    assert unchained(faulty) == left
                    assert [untraced(out) for out in faulty.play(STREAM[place + 1 :])] == rest
                failed[type(one.record).__name__] += 1
            else:
                assert of_what_waited(one.record, out)
                failed["waiting"] += 1
        player.one(one)
    everything = {
        "MembershipPage",
        "MembershipChanged",
        "MessageObserved",
        "ToolReturned",
        "AgentPaused",
        "RoomChanged",
    }
    assert {"TurnDrafted", "ContextRequested", "PolicyPublished", "waiting"} | everything <= set(failed)


def unchained(player: Player) -> dict[bytes, bytes]:
    """All state but the last link of the chain of decisions, in which one that failed has its place too."""
    return {key: value for key, value in player.engine.state.entries() if not key.startswith(b'["heads"')}


def of_what_waited(record: Record, out: list[Record]) -> bool:
    """Whether a draft or request that waited for this listing, or was stopped by this pause, ended with an error."""
    kinds = (TurnDecided, ContextDecided)
    ended = [r for r in out if isinstance(r, kinds) and "decision_error" in codes([r])]
    return isinstance(record, inputs.MembershipPage | inputs.AgentPaused) and len(ended) == 1


@pytest.mark.parametrize("then", ["listing", "tick"])
def test_an_error_in_deciding_what_waits_drops_that_alone(then: str) -> None:  # R-RUN-6, R-TURN-9
    feed = ready(C1, [ALEX])
    feed.tool(C1, "c")
    feed.tick(60_000)
    feed.draft(C1, "t1", exposed=("tool:c",))
    feed.draft(C1, "t2", exposed=("tool:c",))
    stop = writing(feed.engine, at=CLOCK + 1 + (LISTED if then == "listing" else 0))
    out = feed.listing(C1, [ALEX], refresh="new") if then == "listing" else feed.tick(6_000)
    stop()
    assert [(r.turn, r.verdict.value) for r in out if isinstance(r, TurnDecided)] == [
        ("t1", "drop"),
        ("t2", "deliver" if then == "listing" else "downgrade"),
    ]
    assert "decision_error" in codes(out)
    assert feed.tick(60_000) == []


@pytest.mark.parametrize("what", ["joined", "left", "changed"])
@pytest.mark.parametrize("fails", [True, False])
def test_a_room_of_which_something_is_known_that_could_not_be_taken_in_is_unknown(what: str, fails: bool) -> None:
    """R-RUN-6, R-ROOM-5: the older, wider account must not be what a draft is decided on."""

    def tell(feed: Feed) -> list[Record]:
        return feed.changed(C1) if what == "changed" else getattr(feed, what)(C1, KIM, agent="mesh")

    count_writes = ready(C1, [ALEX, KIM])
    stop = writing(count_writes.engine)
    tell(count_writes)
    for at in range(CLOCK + 1, stop() + 1):
        feed = ready(C1, [ALEX, KIM])
        feed.tool(C1, "c")
        stop = writing(feed.engine, at if fails else -1)
        out = tell(feed)
        stop()
        assert codes(out) == ({"decision_error"} if fails else set())
        # A reader who is known already joins, or leaves: that alone makes no room unknown.
        decided = verdicts(feed.draft(C1, "t", exposed=("tool:c",)))
        assert decided == [("t", "hold" if fails or what == "changed" else "deliver")]
        assert verdicts(feed.listing(C1, [ALEX])) == ([] if decided[0][1] == "deliver" else [("t", "deliver")])


#: Writes that move the clock (`now`, the arrival, the position) and that take in a listing of the same members.
CLOCK, LISTED = 3, 1


def codes(out: list[Record]) -> set[str]:
    """The codes of every refusal in these records."""
    found = {r.code for r in out if isinstance(r, RecordRefused)}
    found |= {reason.code for r in out if isinstance(r, TurnDecided) for reason in r.reasons}
    return found | {x.code for r in out if isinstance(r, ContextDecided) for w in r.withheld for x in w.reasons}


def named(record: Record) -> tuple[object, ...]:
    """What tells which record failed: the turn or request of a decision, else the topic of the dead letter."""
    if isinstance(record, RecordRefused):
        return ("dead", record.schema_)
    if isinstance(record, TurnDecided | inputs.TurnDrafted):
        return ("turn", record.turn)
    if isinstance(record, ContextDecided | inputs.ContextRequested):
        return ("request", record.request)
    return ("dead", type(record).__name__)
