"""Rows that are held packed are the same rows: whatever is written, dropped, undone, saved and read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.feed import ALEX, C1, D1, KIM, Feed, ready, ref, verdicts
from tests.processors.streams import examples
from turngate.processors import collecting
from turngate.processors.keys import NO_KEYS
from turngate.processors.ledger import Caches, Ledger
from turngate.processors.recent import RecentBy
from turngate.processors.refnames import RefNames, short
from turngate.processors.rows import Context, Evidence, LeafRow, Revision, Turn, Value
from turngate.processors.shelves import CONTENT_BYTES
from turngate.processors.stacks import SEEN, WIDTH, Stack
from turngate.processors.state import Key
from turngate.processors.tables import Tables
from turngate.schemas.inputs import MemoryKind
from turngate.schemas.outputs import RevisionState
from turngate.schemas.shapes import FieldClass

SECOND = 1_000
DIGESTS = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(6)]
CONTENTS = [digest[: 2 * CONTENT_BYTES] for digest in DIGESTS]
NAMES = ["mesh", "slack:T1/C1", "slack:T1/UALEX", "späť", "a/b:c", "a"]
TIMES = st.sampled_from([0, 1, 10**12, 10**12 + 1, 10**12 + 9_000_000, -1, 253_402_300_799_999])
VALUES = [
    Value("salary", FieldClass.SECRET, None, marks=("k:1", "k:2")),
    Value("note", FieldClass.INTERNAL, marks=None),
]
EVIDENCE = st.builds(
    Evidence,
    leaves=st.lists(st.sampled_from(DIGESTS), max_size=3).map(tuple),
    room=st.sampled_from(NAMES),
    at=TIMES,
    seen=TIMES,
    made_of=st.just(()) | st.just(("message:a/b/1", "tool:c")),
    over=st.booleans(),
    contents=st.lists(st.sampled_from(CONTENTS), max_size=2).map(tuple),
    author=st.none() | st.sampled_from(NAMES),
    person=st.booleans(),
    quoted=st.just(()) | st.just((1, 2)),
    values=st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
    proves=st.just(()) | st.just(("k:id:abc", "k:text:def")),
    links=st.just(()) | st.just(("0" * 32,)),
    server=st.none() | st.sampled_from(NAMES),
)
#: As most are.
PLAIN = st.builds(
    Evidence,
    leaves=st.sampled_from(DIGESTS).map(lambda digest: (digest,)),
    room=st.sampled_from(NAMES[:2]),
    at=TIMES,
    seen=TIMES,
    contents=st.sampled_from(CONTENTS).map(lambda content: (content,)),
    author=st.none() | st.sampled_from(NAMES),
)
LEAVES = st.builds(
    LeafRow,
    agent=st.sampled_from(NAMES),
    audience=st.sampled_from(DIGESTS),
    author=st.none() | st.sampled_from(NAMES),
    room=st.none() | st.sampled_from(NAMES),
    open=st.booleans(),
    call=st.none() | st.just("c1"),
    via=st.none() | st.sampled_from(NAMES),
    restrictions=st.just(()) | st.just(("slack:T1/C1",)),
    private=st.booleans(),
    untrusted=st.booleans(),
    each=st.just(()) | st.just((DIGESTS[0], DIGESTS[1])),
)
MADE_OF = st.lists(
    st.sampled_from(["tool:c/1767225600.000100", "message:slack:T1/C1/1767225600.000100", "revision:é"])
).map(tuple)
TURNS = st.builds(
    Turn,
    agent=st.none() | st.sampled_from(NAMES),
    seen=TIMES,
    refs=MADE_OF,
    leaves=st.lists(st.sampled_from(DIGESTS)).map(tuple),
)
CONTEXTS = st.builds(
    Context,
    agent=st.just("mesh"),
    turn=st.just("t"),
    room=st.just("slack:T1/C1"),
    seen=TIMES,
    permitted=st.none() | MADE_OF,
)
REVISIONS = st.builds(
    Revision,
    agent=st.just("mesh"),
    memory=st.just("m"),
    kind=st.sampled_from(MemoryKind),
    state=st.sampled_from(RevisionState),
    leaves=st.lists(st.sampled_from(DIGESTS)).map(tuple),
    write=st.just("w"),
    seen=st.lists(st.sampled_from(DIGESTS)).map(tuple),
    sources=MADE_OF,
    text=st.none() | st.just('words, and "more"'),
)
#: A key, and what to put there; None: drop it. Of each three a number says whether to undo them.
STEPS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 3)), max_size=25)


def play(tables: Tables, name: str, keys: list[Key], steps: list[tuple[int, bool, int]], rows: list[object]) -> None:
    """The same to a table and to a plain mapping, some of it undone; they hold the same after each step."""
    table, plain = tables.state.tables[name], dict[Key, object]()
    written: list[tuple[bytes, bytes | None]] = []
    for n, (key, drops, undone) in enumerate(steps):
        mark, before = tables.state.mark(), dict(plain)
        if drops:
            table.drop(keys[key])
            plain.pop(keys[key], None)
        else:
            table.put(keys[key], rows[n % len(rows)])
            plain[keys[key]] = rows[n % len(rows)]
        if undone == 0:
            tables.state.undo(mark)
            plain = before
        else:
            tables.state.keep()
        written += tables.state.take_changes()
        if key % 2:
            tables.tidy()
        assert {key: table.rows[key] for key in table.rows} == plain
        assert len(table.rows) == len(plain)
        assert [key in table for key in keys] == [key in plain for key in keys]
    for entries in (sorted(tables.state.entries(), reverse=True), written):  # what stands, or all that ever did
        again = Tables()
        again.state.load(entries)
        assert again.state.digest() == tables.state.digest()
        assert dict(again.state.tables[name].rows) == plain


TIME = "1767225600.00010"
REFS = [
    ("acme", ref, agent)
    for ref in (
        "tool:c1",
        "message:slack:T1/C1/1",
        f"message:slack:T1/C1/{TIME}1",
        f"message:slack:T1/C1/{TIME}2",
        f"message:a/b:c/{TIME}1",
    )
    for agent in NAMES[:2]
]


@examples(300)
@given(STEPS, st.lists(EVIDENCE | PLAIN, min_size=1, max_size=10))
def test_evidence(steps: list[tuple[int, bool, int]], rows: list[Evidence]) -> None:
    tables = Tables()
    play(tables, "evidence", REFS, steps, list(rows))
    for name in {key[1] for key in REFS}:
        assert set(tables.shelves.agents("acme", name)) == {key[2] for key in tables.evidence.rows if key[1] == name}
    for key, row in tables.evidence.rows.items():
        assert key in tables.shelves.in_room("acme", row.room)
    again = Tables()
    again.state.load(sorted(tables.state.entries(), reverse=True))
    for shelf in tables.shelves.shelves():
        there = [row.seen for key, row in tables.evidence.rows.items() if (key[2], row.room) == shelf[1:]]
        oldest = tables.shelves.oldest(shelf)
        assert oldest is not None
        assert oldest[1] == min(there)
        assert again.shelves.oldest(shelf) == oldest
        assert again.shelves.in_room("acme", shelf.room) == tables.shelves.in_room("acme", shelf.room)


@examples(300)
@given(STEPS, st.lists(LEAVES, min_size=1, max_size=10))
def test_leaves(steps: list[tuple[int, bool, int]], rows: list[LeafRow]) -> None:
    tables = Tables()
    keys: list[Key] = [(tenant, digest) for tenant in ("acme", "other") for digest in DIGESTS[:5]]
    play(tables, "leaves", keys, steps, list(rows))
    assert tables.leaf_rows.count("acme") == sum(key[0] == "acme" for key in tables.leaves.rows)


@examples(100)
@given(STEPS, st.lists(TURNS, min_size=1, max_size=10))
def test_turns(steps: list[tuple[int, bool, int]], rows: list[Turn]) -> None:
    with at_once_held():
        play(Tables(), "turns", [("acme", f"t{n}") for n in range(10)], steps, list(rows))


@examples(50)
@given(STEPS, st.lists(CONTEXTS, min_size=1, max_size=10), st.lists(REVISIONS, min_size=1, max_size=10))
def test_contexts_and_revisions(
    steps: list[tuple[int, bool, int]], contexts: list[Context], revisions: list[Revision]
) -> None:
    with at_once_held():
        play(Tables(), "contexts", [("acme", f"c{n}") for n in range(10)], steps, list(contexts))
        play(Tables(), "revisions", [("acme", f"r{n}") for n in range(10)], steps, list(revisions))


@contextmanager
def at_once_held() -> Iterator[None]:
    """Of four rows of a table, two stand ready."""
    with pytest.MonkeyPatch.context() as change:
        change.setattr("turngate.processors.squeezed._RECENT", 4)
        yield


def test_what_is_remembered_by_two_keys_is_a_bounded_part() -> None:
    known: RecentBy[str, int, str] = RecentBy(50)
    for n in range(1_000):
        room = f"room {n // 7 % 90}"
        assert known.keep(room, n, f"{room}, {n}") == known.of(room)[n] == f"{room}, {n}"
        assert len(known) <= 50
        known.of(f"nobody asks for more of {n}")
        assert len(known) <= 50
    assert known.of("room 52")[999] == "room 52, 999"
    known.clear()
    assert not known.of("room 52")


@pytest.mark.parametrize(
    "ref", ["tool:c/1767225600.000100", "message:a/b/1767225600.000100", "message:1", "revision:é"]
)
def test_a_ref_in_few_bytes_is_the_same_ref(ref: str) -> None:
    names = RefNames()
    held = names.hold([ref, "tool:ü", ref])
    assert list(names.refs(held)) == [ref, "tool:ü", ref]
    names.give_back(held)
    assert list(names._rooms) == []


def test_messages_in_order_take_their_own_bytes_and_eight_more() -> None:
    names = [short(f"1767225600.{n:06}") for n in range(1_000)]
    stack = Stack()
    for n, name in enumerate(names):
        stack.put(name, n.to_bytes(SEEN, "big").ljust(WIDTH, b"x"))
    assert stack.names() == names
    assert not stack._strays
    for name in names[:500]:  # the oldest leave
        assert stack.oldest()[0] == name
        stack.pop(name)
    assert len(stack) == len(stack._times) == 500


def test_a_row_that_stands_ready_no_more_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.processors.squeezed._RECENT", 4)
    tables = Tables()
    rows = {("acme", f"t{n}"): Turn(agent="mesh", seen=n, refs=(f"message:{n}",)) for n in range(20)}
    for key, row in rows.items():
        tables.turns.put(key, row)
    for key in list(rows)[::3]:
        rows[key] = replace(rows[key], final=True)
        tables.turns.put(key, rows[key])
    untidy = dict(tables.state.entries())
    tables.tidy()
    assert dict(tables.turns.rows) == rows
    assert len(tables.turns.rows) == 20
    assert dict(tables.state.entries()) == untidy


def test_at_a_tick_rows_are_put_into_fewer_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.processors.squeezed._RECENT", 4)
    monkeypatch.setattr("turngate.processors.tables._TIDIED", 20)
    feed = ready(D1, [ALEX], info={"kind": "direct"})
    held, sizes = feed.engine._tables.turns.rows._held, []  # type: ignore[attr-defined]
    for n in range(60):
        feed.message(D1, f"{1767225600 + n}.000100")
        feed.draft(D1, f"t{n}", trigger=ref(D1, f"{1767225600 + n}.000100"))
    for _ in range(3):
        sizes.append(sum(map(len, held.values())))
        feed.tick()
    assert sizes[0] > sizes[1] > sizes[2]
    digest = feed.engine.state.digest()
    feed.restart()
    assert feed.engine.state.digest() == digest


def test_leaves_and_audiences_that_nothing_names_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:  # R-RET-4
    monkeypatch.setattr(collecting, "LEAST", 20)
    feed = Feed()
    feed.policy(
        "version: 1\nagents: {mesh: {accounts: []}}\nretention: {messages: 60s}\nfreshness: {observation: 1d}\n"
    )
    most = 0
    for n in range(400):  # each message by another circle of readers
        feed.listing(C1, [ALEX, f"slack:T1/U{n}"])
        feed.message(C1, n)
        most = max(most, len(feed.engine._tables.leaves.rows), len(feed.engine._tables.audiences.rows))
    assert most <= 2 * 60
    feed.restart()
    assert verdicts(feed.draft(C1, "t1", trigger=ref(C1, 399))) == [("t1", "deliver")]


def test_what_a_memory_a_turn_or_a_waiting_message_names_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "LEAST", 1)
    feed = ready(D1, [ALEX], info={"kind": "direct"})
    feed.message(D1, 1)
    assert verdicts(feed.draft(D1, "t1", trigger=ref(D1, 1))) == [("t1", "deliver")]
    feed.listing(C1, [ALEX, KIM])
    feed.joined(C1, "slack:T1/UNEW")
    feed.message(C1, 1)
    for n in range(20):
        feed.listing("slack:T1/C9", [ALEX, f"slack:T1/U{n}"])
        feed.message("slack:T1/C9", n)
    feed.message(D1, "own", author="slack:T1/UBOT", author_kind="self", turn="t1")
    assert verdicts(feed.draft(D1, "t2", trigger=ref(D1, "own"))) == [("t2", "deliver")]
    feed.listing(C1, [ALEX, KIM, "slack:T1/UNEW"], started_at=feed.now)
    assert verdicts(feed.draft(C1, "t3", trigger=ref(C1, 1))) in ([("t3", "deliver")], [("t3", "drop")])


def test_a_leaf_that_is_not_there_is_not_taken_for_one_without_values() -> None:  # R-RUN-6: the decision fails
    ledger = Ledger(Tables(), Caches("acme"), SECOND, 1, tuple, NO_KEYS)
    assert ledger.calls([]) == []
    with pytest.raises(LookupError):
        ledger.calls(["0" * 32])
