"""Decides which random streams the properties here are asked of: small worlds in which much is said and much may be.

A stream is a list of steps, each drawn from closed lists of templates, so that nothing is filtered out and a failing
one shrinks by leaving steps away. A step knows no other: it names rooms, messages, calls and turns by small numbers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, islice, product

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.processors.feed import ALEX, BOT, C1, C2, D1, EPOCH, GRID, GUEST, KIM, MORGAN, OTHER, POLICY, SELF
from turngate.processors.engine import Engine
from turngate.schemas import inputs
from turngate.schemas.catalog import topic_of
from turngate.schemas.inputs import Change, Record
from turngate.schemas.shapes import Position

W1, O1 = "slack:T1/W1", "slack:T1/O1"
ROOMS = (D1, C1, C2, W1, O1)
KINDS = {GUEST: "guest", OTHER: "external", BOT: "bot", SELF: "self"}
WORKSPACES = {GRID: ("slack:T1",)}
MEMBERS = {
    D1: ([ALEX, SELF],),
    C1: ([ALEX, KIM, SELF], [ALEX, KIM, MORGAN, GUEST], [ALEX]),
    C2: ([ALEX, KIM], [ALEX, KIM, BOT, GRID]),
    W1: ([SELF], [GRID, MORGAN], [OTHER, GUEST]),
    O1: ([ALEX, OTHER],),
}
INFO = {
    D1: {"kind": "direct", "visibility": "members"},
    W1: {"kind": "channel", "visibility": "workspace", "workspaces": ("slack:T1",)},
    O1: {"kind": "channel", "visibility": "open"},
}
HOLD_MS = 5_000


@dataclass(frozen=True)
class Step:
    """One record, `after` milliseconds after the one before. Its own `at` is `early` milliseconds before its broker's.

    `kind` makes the record of its fields; numbers in it stand for ids, `None` for one that the step's place makes.
    """

    kind: type[Record]
    fields: dict[str, object] = field(hash=False)
    after: int = 1000
    early: int = 0

    def record(self, place: int, now: int, tenant: str = "acme") -> Record:
        own = {"refresh": f"r{place}", "turn": f"t{place}", "request": f"q{place}", "command": f"k{place}"}
        fields: dict[str, object] = {"tenant": tenant, "at": now - self.early} | self.fields
        for name in own.keys() & self.kind.model_fields.keys() - fields.keys():
            if self.kind.model_fields[name].is_required():
                fields[name] = own[name]
        if self.kind is inputs.MembershipPage:
            fields["started_at"] = now - self.early
        if self.kind is inputs.PolicyPublished:
            fields["version"] = str(place + 2)
            fields["document"] = str(fields["document"]).replace("version: 1\n", f"version: {place + 2}\n")
        return self.kind.model_validate(fields)


@dataclass(frozen=True)
class Sent:
    """A record as a topic holds it: what, and at which broker time."""

    record: Record
    timestamp: int

    @property
    def topic(self) -> str:
        return topic_of(type(self.record).__name__, self.record.model_dump(mode="json"))


def member(reader: str) -> dict[str, object]:
    return {"reader": reader, "kind": KINDS.get(reader, "member"), "workspaces": WORKSPACES.get(reader, ())}


def listing(room: str, members: Iterable[str], agent: str = "mesh", **more: object) -> Step:
    early = more.pop("early", 0)
    info = INFO.get(room, {"kind": "channel", "visibility": "members"})
    fields = {"agent": agent, "room": room, "page": 0, "last": True, "info": info}
    return Step(inputs.MembershipPage, fields | {"members": [member(m) for m in members]} | more, early=int(str(early)))


LISTINGS = [
    listing(room, members, early=early)
    for room in ROOMS
    for members, early in product(MEMBERS[room], (0, 0, 3_000, 30_000, -20_000))
]
OTHER_AGENT = [listing(C1, [ALEX, KIM], "scout"), listing(D1, [ALEX], "scout")]
EVENTS = [
    Step(
        inputs.MembershipChanged,
        {"room": room, "reader": reader, "kind": KINDS.get(reader, "member"), "change": change}
        | {"workspaces": WORKSPACES.get(reader, ())},
        early=early,
    )
    for room, reader, change, early in product(
        (C1, C2, W1), (ALEX, KIM, GUEST, GRID), (Change.JOINED, Change.LEFT), (0, 4_000)
    )
] + [
    Step(inputs.MembershipChanged, {"room": C2, "reader": KIM, "kind": "guest", "change": Change.JOINED}),
    Step(inputs.MembershipChanged, {"room": C2, "reader": GRID, "kind": "member", "change": Change.JOINED}),
]
CHANGES = [
    Step(inputs.RoomChanged, {"room": C1, "what": "converted"}),
    Step(inputs.RoomChanged, {"room": C2, "what": ""}),
]


def message(room: str, number: int, **fields: object) -> Step:
    base = {"agent": "mesh", "room": room, "message": f"{room}/{number}", "author": ALEX, "author_kind": "person"}
    return Step(inputs.MessageObserved, base | {"text": "hi"} | fields)


def ref(room: str, number: int) -> str:
    return f"message:{room}/{number}"


MESSAGES = [
    *(message(room, n) for room, n in product(ROOMS, range(2))),
    *(message(room, 0, agent="scout") for room in (D1, C1)),
    *(message(room, 0, edited=True, text="more") for room in (C1, C2)),
    *(message(room, 2, quotes=(ref(of, 0),)) for room, of in product((C1, C2), (D1, C1))),
    message(W1, 2, author=BOT, author_kind="bot"),
    message(C1, 3, author=SELF, author_kind="self", turn="t9"),
]
DELETIONS = [Step(inputs.MessageDeleted, {"agent": "mesh", "room": C2, "message": f"{C2}/1"})]
TOOLS = [
    Step(
        inputs.ToolReturned, {"agent": "mesh", "room": room, "call": call, "server": server, "operation": "get"} | more
    )
    for room, (call, server), more in product(
        (C1, W1),
        (("c0", "web"), ("c1", "wiki"), ("c2", "none"), ("c3", "drive")),
        ({"audience": {"readers": [ALEX, KIM]}}, {"audience": {"readers": [ALEX, KIM]}, "turn": "t12"}),
    )
]
REFS = [*(ref(room, n) for room, n in product(ROOMS, range(2))), ref(C1, 2), "tool:c0", "tool:c1", "tool:c3"]
CONTEXTS = [
    Step(inputs.ContextRequested, {"agent": "mesh", "room": room, "candidates": REFS} | more)
    for room, more in product((C1, C2, W1), ({}, {"turn": "t12"}, {"turn": "t18", "request": "q"}))
]


def draft(room: str, refs: Iterable[str] = (), **fields: object) -> Step:
    base: dict[str, object] = {"agent": "mesh", "room": room, "exposed": list(refs), "renderings": [{"text": "so"}]}
    return Step(inputs.TurnDrafted, base | fields)


DRAFTS = [
    *(draft(room, [of], trigger=ref(room, 0)) for room, of in product(ROOMS, ("tool:c0", "tool:c1"))),
    *(draft(room, trigger=ref(room, n)) for room, n in product((C1, C2, W1, D1), (0, 1))),
    *(draft(room, [ref(of, 0)]) for room, of in product((D1, C1, C2, W1), (D1, C1, C2, W1))),
    *(draft(room, trigger=ref(room, 0), turn=turn) for room, turn in product((C1, W1), ("t12", "t18"))),
    draft(C1, ["tool:c0"], renderings=[{"text": "a", "exposed": [ref(D1, 0)]}, {"text": "b", "request": "q"}]),
    draft(C1, [ref(C1, 0)], agent="scout"),
    draft(C1, ["tool:c0"], action={"operation": "x"}),
    draft(C1),
    draft(C1, renderings=[]),
]
POLICIES = [
    Step(inputs.PolicyPublished, {"document": POLICY + more})
    for more in (
        "",
        "stale: {hold: 2s, then: drop}\n",
        "open_rooms: own_words\n",
        "freshness: {destination: 20s}\n",
        "retention: {messages: 40s, log: 60s}\n",
        "retention: {room_inactive: 60s, room_empty: 30s}\n",
    )
]
PAUSES = [
    Step(inputs.AgentPaused, {"operator": "ops", "agent": "mesh", "paused": paused} | more)
    for paused, more in product((True, False, False), ({}, {"room": C1}))
]
TICKS = [Step(inputs.Tick, {"tenant": "0"}, after=ms) for ms in (1_000, 5_000, 5_000, 20_000, 45_000, 70_000)]

#: What seldom comes together by chance: something happens in a room while it is being listed, or right before.
BURSTS: list[list[Step]] = [
    [
        first,
        *between,
        listing(room, members, early=early),
        draft(room, trigger=ref(room, 0)),
        draft(room, [ref(room, 4)]),
    ]
    for room in (C1, C2, W1)
    for members in MEMBERS[room]
    for early in (0, 2_500)
    for first in [message(room, 4), *[e for e in EVENTS if e.fields["room"] == room][::3]]
    for between in ([], [message(room, 4)])
]

#: Every stream begins with these: a policy, and every room listed and spoken in.
BEGINNING = [
    Step(inputs.PolicyPublished, {"document": POLICY + "trusted_bots: [slack:T1/UAPP]\n"}),
    *(listing(room, MEMBERS[room][0]) for room in ROOMS),
    *(message(room, 0) for room in ROOMS),
    *TOOLS[:4:2],
]
#: Drafts and listings come often, so that much is decided and much of that delivered.
_MENU: list[list[Step] | list[list[Step]]] = [
    *[BURSTS] * 3,
    *[DRAFTS] * 8,
    *[LISTINGS] * 4,
    *[MESSAGES] * 3,
    *[EVENTS] * 4,
    *[TOOLS] * 2,
    *[CONTEXTS] * 2,
    *[TICKS] * 2,
    OTHER_AGENT,
    CHANGES,
    DELETIONS,
    POLICIES,
    PAUSES,
]
_LENGTH = 240  # each list counts alike, whatever its length
_WEIGHTED: list[list[Step]] = [
    step if isinstance(step, list) else [step] for steps in _MENU for step in islice(cycle(steps), _LENGTH)
]


def steps(most: int = 20, without: Callable[[Step], bool] = lambda _: False) -> st.SearchStrategy[list[Step]]:
    """Streams of up to so many steps after the beginning, without some.

    A step is drawn as a number, spread over the templates and a few lengths of time: Hypothesis likes small numbers,
    and would draw the first templates most of the time.
    """
    menu = [burst for burst in _WEIGHTED if not any(map(without, burst))]
    some = st.lists(st.integers(0, 2**24), min_size=most // 2, max_size=most)
    return some.map(lambda numbers: told(numbers, menu))


def told(numbers: Iterable[int], menu: list[list[Step]] = _WEIGHTED) -> list[Step]:
    """The beginning, and then what these numbers stand for."""

    def drawn(number: int) -> list[Step]:
        spread = number * 2_654_435_761 % 2**32
        after = _AFTER[spread // len(menu) % len(_AFTER)]
        return [s if s.kind is inputs.Tick else replace(s, after=after) for s in menu[spread % len(menu)]]

    return [*BEGINNING, *chain.from_iterable(map(drawn, numbers))]


#: Milliseconds between records.
_AFTER = (1_000, 0, 300, 1_000, 2_500, 1_000)


def sent(chosen: Iterable[Step], tenant: str = "acme", now: int = EPOCH) -> list[Sent]:
    """The records of a stream, each with its broker's time."""
    out = []
    for place, step in enumerate(chosen):
        now += step.after
        out.append(Sent(step.record(place, now, "0" if step.kind is inputs.Tick else tenant), now))
    return out


def with_ticks(stream: list[Sent]) -> list[Sent]:
    """The same with a tick a second between the records, while something may wait, and after the last."""
    out: list[Sent] = []
    for n, one in enumerate(stream):
        out.append(one)
        end = stream[n + 1].timestamp if n + 1 < len(stream) else one.timestamp + HOLD_MS + 2_000
        for at in range(one.timestamp + 1_000, min(end, one.timestamp + HOLD_MS + 2_000), 1_000):
            out.append(Sent(inputs.Tick(tenant="0", at=at), at))
    return out


class Player:
    """Hands a stream to an engine, at the offsets that its topics would give it."""

    def __init__(self, engine: Engine | None = None, offsets: dict[str, int] | None = None) -> None:
        self.engine = Engine() if engine is None else engine
        self.offsets = {} if offsets is None else dict(offsets)

    def play(self, stream: Iterable[Sent]) -> list[list[Record]]:
        """What came of each record."""
        return [self.one(sent) for sent in stream]

    def one(self, sent: Sent) -> list[Record]:
        return self.engine.apply(sent.record, self.position(sent), sent.timestamp, b"raw")

    def position(self, sent: Sent) -> Position:
        offset = self.offsets.get(sent.topic, 0)
        self.offsets[sent.topic] = offset + 1
        return Position(topic=sent.topic, partition=0, offset=offset)

    def restarted(self) -> Player:
        """Another that goes on from a checkpoint of this one, whose entries come in an order of the store's own."""
        entries = sorted(self.engine.state.entries(), key=lambda entry: hashlib.sha256(entry[0]).digest())
        return Player(Engine.restore(entries, Engine.version), self.offsets)


def examples(count: int) -> settings:
    """So many examples, the same in every run; TURNGATE_TEST_EXAMPLES=5: five times as many, and others each time."""
    times = os.environ.get("TURNGATE_TEST_EXAMPLES")
    return settings(
        max_examples=max(1, int(count * float(times or 1))),
        derandomize=times is None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


class Share:
    """How many of the cases of a property showed what it is about; a property that never does proves nothing."""

    def __init__(self) -> None:
        self.seen = self.all = 0

    def count(self, shown: int, of: int) -> None:
        self.seen += shown
        self.all += of

    def at_least(self, share: float) -> None:
        assert self.seen >= share * self.all, f"{self.seen} of {self.all}"
        assert self.seen > 0


def placed(step: Step, **fields: object) -> Step:
    """A step with other fields."""
    return replace(step, fields=step.fields | fields)
