"""Inputs for tests: records as bytes on their topics, by hand or at random, near the line of deliver and drop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from turngate.schemas.catalog import INPUT_TOPICS, RECORDS, topic_of
from turngate.schemas.codec import Codec
from turngate.streams.log import Headers

CODEC = Codec()
#: 2026-01-01T00:00:00Z in milliseconds, as in scenarios.
EPOCH = 1_767_225_600_000
TENANTS = ("acme", "bolt")
ROOMS = ("slack:T1/C1", "slack:T1/D1")
READERS = ("slack:T1/UALEX", "slack:T1/UBO", "slack:T1/UCY")
POLICY = '{"version": 1, "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}}}'


@dataclass(frozen=True, slots=True)
class Input:
    """One record on its way to a log."""

    topic: str
    key: bytes
    value: bytes
    timestamp: int
    headers: Headers = ()


def an(record: str, at: int, tenant: str = "acme", **fields: Any) -> Input:
    """A record by its name, `at` milliseconds after the epoch, which is its broker's timestamp too."""
    if record not in ("PolicyPublished", "Tick", "MembershipChanged") and "agent" in RECORDS[record].model_fields:
        fields.setdefault("agent", "mesh")
    model = RECORDS[record].model_validate({"tenant": tenant, "at": EPOCH + at, **fields})
    return Input(topic_of(record, fields), tenant.encode(), CODEC.encode(model), EPOCH + at)


def policy(at: int, tenant: str = "acme") -> Input:
    return an("PolicyPublished", at, tenant, version="1", document=POLICY)


def tick(at: int, partition: int = 0) -> Input:
    return an("Tick", at, str(partition))


def listing(at: int, room: str, readers: tuple[str, ...], tenant: str = "acme") -> Input:
    info = {"kind": "channel", "visibility": "members"}
    members = [{"reader": r, "kind": "member"} for r in readers]
    return an(
        "MembershipPage",
        at,
        tenant,
        room=room,
        refresh=f"l{at}",
        page=0,
        last=True,
        started_at=EPOCH + at,
        info=info,
        members=members,
    )


def message(at: int, room: str, number: int, tenant: str = "acme") -> Input:
    return an(
        "MessageObserved",
        at,
        tenant,
        room=room,
        message=f"{room}/{number}",
        author=READERS[0],
        author_kind="person",
        text=f"text {number}",
    )


def draft(at: int, room: str, turn: str, exposed: tuple[str, ...], tenant: str = "acme") -> Input:
    return an(
        "TurnDrafted",
        at,
        tenant,
        room=room,
        turn=turn,
        trigger=exposed[0] if exposed else None,
        exposed=exposed,
        renderings=[{"text": f"words of {turn}"}],
    )


def ref(room: str, number: int) -> str:
    return f"message:{room}/{number}"


def a_delivered_turn(tenant: str = "acme", start: int = 0, turn: str = "t1") -> list[Input]:
    """A policy, a listing, a message and a draft that answers it in its own room: it is delivered."""
    room = ROOMS[0]
    return [
        policy(start, tenant),
        listing(start + 1000, room, READERS[:2], tenant),
        message(start + 2000, room, start, tenant),
        draft(start + 3000, room, turn, (ref(room, start),), tenant),
    ]


Move = Callable[[int], Input]


def _what_happens(tenant: str, room: str, said: list[str]) -> st.SearchStrategy[Move]:
    """One thing that happens, as a function of when it does; what is drafted is mostly made of what was `said`."""
    number = st.integers(0, 4)
    refs = st.lists(st.sampled_from(said) if said else number.map(lambda n: ref(room, n)), min_size=1, max_size=2)
    readers = st.sets(st.sampled_from(READERS), min_size=1).map(lambda rs: tuple(sorted(rs)))
    change = st.tuples(st.sampled_from(READERS), st.sampled_from(["joined", "left"]))

    def spoken(number: int) -> Move:
        def move(at: int) -> Input:
            said.append(ref(room, number))
            return message(at, room, number, tenant)

        return move

    def drafted(number: int, exposed: list[str]) -> Move:
        return lambda at: draft(at, room, f"t{number}", tuple(exposed), tenant)

    def asked(number: int, candidates: list[str]) -> Move:
        ids = {"request": f"r{number}", "turn": f"t{number}"}
        return lambda at: an("ContextRequested", at, tenant, room=room, candidates=candidates, **ids)

    def changed(reader: str, change: str) -> Move:
        return lambda at: an("MembershipChanged", at, tenant, room=room, reader=reader, kind="member", change=change)

    def garbage(topic: str, value: bytes) -> Move:
        return lambda at: Input(topic, tenant.encode(), value, EPOCH + at)

    drafts = st.builds(drafted, st.integers(0, 20), refs)
    messages = st.builds(spoken, number)
    return st.one_of(
        drafts,
        drafts,
        messages,
        messages,
        readers.map(lambda rs: lambda at: listing(at, room, rs, tenant)),
        change.map(lambda c: changed(*c)),
        st.builds(asked, number, refs),
        st.just(lambda at: an("RoomChanged", at, tenant, room=room, what="converted")),
        st.just(tick),
        st.builds(garbage, st.sampled_from(sorted(INPUT_TOPICS)), st.binary(max_size=12)),
    )


@st.composite
def inputs(draw: st.DrawFn, max_size: int = 30) -> list[Input]:
    """A stream of inputs of two tenants; broker timestamps mostly grow, and sometimes go back a little.

    Each tenant has one turn at least that is delivered, unless it is dropped as late.
    """
    at = 3
    made = [policy(0, tenant) for tenant in TENANTS]
    made += [listing(1, room, READERS[:2], tenant) for tenant in TENANTS for room in ROOMS]
    made += [message(2, ROOMS[0], 0, tenant) for tenant in TENANTS]
    made += [draft(3, ROOMS[0], "first", (ref(ROOMS[0], 0),), tenant) for tenant in TENANTS]
    said = {tenant: [ref(ROOMS[0], 0)] for tenant in TENANTS}
    for _ in range(draw(st.integers(0, max_size))):
        at += draw(st.sampled_from([0, 1, 500, 500, 1000, 1000, 6000, 61_000]))
        tenant, room = draw(st.sampled_from(TENANTS)), draw(st.sampled_from(ROOMS))
        happens = draw(_what_happens(tenant, room, said[tenant]))
        made.append(happens(max(0, at - draw(st.sampled_from([0, 0, 0, 700])))))
    return made
