"""A state machine that drives the engine and the model with the same records, and holds what comes of each together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st

from tests.model.book import Terms
from tests.model.compare import plain
from tests.model.facts import ALEX, GUEST, KIM, MAIL, MORGAN
from tests.model.model import Model
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas import inputs
from turngate.schemas.catalog import OUTPUT_TOPIC, topic_of
from turngate.schemas.inputs import MemoryKind, Record
from turngate.schemas.outputs import Attribution, GrantState, Outcome, RevisionState, SharingOffered, TurnDecided
from turngate.schemas.shapes import Code, Position
from turngate.streams.chain import AUDIT, BOUND, Chains, Row

T = TypeVar("T")
D1, D2, DM, C1, C2, W, O1 = (
    "slack:T1/D1",
    "slack:T1/D2",
    MAIL,
    "slack:T1/C1",
    "slack:T1/C2",
    "slack:T1/W",
    "slack:T1/O1",
)
DIRECT, MEMBERS, OPEN = ("direct", "members"), ("group", "members"), ("channel", "open")
#: What each room is, and who is in it at first.
ROOMS: dict[str, tuple[tuple[str, str], list[str]]] = {
    C1: (MEMBERS, [ALEX, KIM]),
    D1: (DIRECT, [ALEX]),
    W: (("channel", "workspace"), [KIM]),
    C2: (MEMBERS, [ALEX, KIM, MORGAN]),
    DM: (DIRECT, [MAIL]),
    D2: (DIRECT, [MORGAN]),
    O1: (OPEN, [ALEX, KIM]),
}
#: Of scout.
FEWER = (C1, D1, W)
POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}, scout: {accounts: ["slack:T1/USCOUT"]}}
notice: null
tools:
  wiki: {audience: {workspace: "slack:T1"}}
  web: {audience: public, untrusted: true}
  vault: {audience: {workspace: "slack:T1"}, restrict: "slack:T1/C1", private: true}
  drive: {audience: result}
"""
TERMS = [
    Terms(),
    Terms(assessed=True),
    Terms(max_leaves=3),
    Terms(own_words=True, share_publicly=False),
    Terms(max_leaves=2, assessed=True),
]
AUDIENCES = [
    {"workspace": "slack:T1"},
    "public",
    {"readers": [KIM]},
    {"readers": [MORGAN, GUEST], "guests": [GUEST]},
    {"readers": [ALEX, KIM, MORGAN]},
]
#: What is counted of what a run has shown.
CODES = frozenset(Code)
WORDS = frozenset({*Code, *GrantState, *Outcome, *RevisionState, *MemoryKind, *Attribution})
EPOCH = 1_767_225_600_000
DICE = st.binary(min_size=24, max_size=24)


class Dice:
    """Choices from a few drawn bytes; zero is the first of everything, so that what fails shrinks to the plainest."""

    def __init__(self, drawn: bytes) -> None:
        self._bytes: Iterator[int] = iter(drawn)

    def pick(self, among: Sequence[T]) -> T:
        return among[next(self._bytes, 0) % len(among)]

    def one_in(self, n: int) -> bool:
        return next(self._bytes, 0) % n == n - 1

    def some(self, among: Sequence[T], most: int) -> list[T]:
        count = next(self._bytes, 0) % (most + 1) if among else 0
        return list(dict.fromkeys(self.pick(among) for _ in range(count)))


class Pair:
    """The engine and the model, handed the same."""

    #: How often a draft was decided, and how.
    verdicts: ClassVar[Counter[str]] = Counter()
    #: How often each code, outcome and state was seen, of either.
    seen: ClassVar[Counter[str]] = Counter()

    def __init__(self, terms: Terms) -> None:
        self.engine = Engine(TEST_KEYS)
        self.model = Model(terms)
        self.chains = Chains(0)
        self.now = EPOCH
        self.offsets: Counter[str] = Counter()
        self.sent: list[tuple[Record, str]] = []
        document = POLICY + (
            f"evidence: {{max_leaves: {terms.max_leaves}}}\n"
            f"sensitivity: {{enabled: {str(terms.assessed).lower()}}}\n"
            f"open_rooms: {'own_words' if terms.own_words else 'refuse'}\n"
            f"sharing: {{audiences: [workspace{', public' if terms.share_publicly else ''}]}}\n"
        )
        self.send(inputs.PolicyPublished, version="1", document=document)

    @property
    def codes(self) -> list[str]:
        return sorted(self.model.book.codes)

    def send(self, kind: type[Record], /, after: int = 100, topic: str | None = None, **fields: Any) -> None:
        self.now += after
        tenant = "0" if kind is inputs.Tick else "acme"
        record = kind.model_validate({"tenant": tenant, "at": self.now} | fields)
        self.give(record, topic or topic_of(kind.__name__, record.model_dump(mode="json")))

    def give(self, record: Record, topic: str) -> None:
        position = Position(topic=topic, partition=0, offset=self.offsets[topic])
        self.offsets[topic] += 1
        self.sent.append((record, topic))
        out = self.engine.apply(record, position, self.now, b"raw")
        expected = self.model.apply(record, self.now, topic)
        came, must = Counter(plain(out)), Counter(expected)
        assert came == must, f"{record!r}\n  only the engine: {came - must}\n  only the model: {must - came}"
        self.chained(out)
        for made in out:
            if isinstance(made, SharingOffered):
                self.model.book.codes[made.code] = made.request
            if isinstance(made, TurnDecided):
                self.verdicts[made.verdict.value] += 1
        for row in expected:
            self.note(row)

    def chained(self, out: list[Record]) -> None:
        """Every decision has its trace at once, and the traces are one chain, whatever happens (R-RET-2)."""
        for made in out:
            topic = OUTPUT_TOPIC[type(made).__name__]
            if topic in (AUDIT, *BOUND):
                assert self.chains.take(Row(topic, 0, 0, made.tenant, made)) is None
        assert not self.chains.waiting()

    def note(self, row: tuple[object, ...]) -> None:
        """What a run has shown, so that a machine that never gets there is found out."""
        self.seen[str(row[0])] += 1
        for part in row[1:]:
            if isinstance(part, frozenset):
                self.seen.update(pair[0] for pair in part if isinstance(pair, tuple) and pair[0] in CODES)
        if row[0] in ("CommandRefused", "GrantChanged", "CommandHandled", "RevisionRecorded", "attribution"):
            self.seen.update(f"{row[0]} {part}" for part in row[2:] if part in WORDS)
        if row[0] == "TurnAuthorized":
            self.seen["by grant"] += bool(row[5])
            self.seen["by proof"] += bool(row[6])

    def nothing_is_missing(self) -> None:
        """Every leaf and audience that a row names is there, however often they were looked through."""
        tables = self.engine._tables
        leaves = {leaf for row in tables.evidence.rows.values() for leaf in row.leaves}
        leaves |= {leaf for row in tables.revisions.rows.values() for leaf in (*row.leaves, *row.seen)}
        leaves |= {leaf for row in tables.turns.rows.values() for leaf in row.leaves}
        rows = {leaf: tables.leaves.rows["acme", leaf] for leaf in leaves}
        audiences = {audience for row in rows.values() for audience in (row.audience, *row.each)}
        audiences |= {row.audience for table in (tables.grants, tables.offers) for row in table.rows.values()}
        assert all(("acme", audience) in tables.audiences for audience in audiences)

    def restart(self) -> None:
        entries = sorted(self.engine.state.entries(), key=lambda entry: entry[0][::-1])
        self.engine = Engine.restore(entries, Engine.version, TEST_KEYS)
