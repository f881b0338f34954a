"""What every runtime must do alike, with the product's engine: what comes out, how often, where, and as what bytes.

A runtime joins the suite with a harness (`harness.py`) and a line in `conftest.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.contract.harness import Harness
from tests.streams.world import (
    CODEC,
    READERS,
    ROOMS,
    Input,
    a_delivered_turn,
    an,
    draft,
    listing,
    message,
    policy,
    ref,
    tick,
)
from turngate.schemas.catalog import APPLIED, DEAD_LETTERS, OUTPUT_TOPICS
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import (
    RecordRefused,
    StretchApplied,
    TurnAuthorized,
    TurnDecided,
    Verdict,
)
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog
from turngate.streams.log import Headers


def records(harness: Harness, topic: str) -> list[Record]:
    return [CODEC.decode(m.value) for m in harness.outputs(topic)]


def decided(harness: Harness) -> dict[str, list[str]]:
    """The verdicts of each turn, in order."""
    verdicts: dict[str, list[str]] = {}
    for r in records(harness, "turn-verdicts"):
        if isinstance(r, TurnDecided):
            verdicts.setdefault(f"{r.tenant}/{r.turn}", []).append(r.verdict.value)
    return verdicts


def authorized(harness: Harness) -> Counter[str]:
    """How often each turn was authorized."""
    return Counter(f"{r.tenant}/{r.turn}" for r in records(harness, "outbound") if isinstance(r, TurnAuthorized))


def apply(harness: Harness, *inputs: Input) -> None:
    harness.send(inputs)
    harness.until_applied()


def start(tenant: str = "acme") -> list[Input]:
    """A policy, and a room with two readers in which message 0 has been said; up to second 2."""
    return [policy(0, tenant), listing(1000, ROOMS[0], READERS[:2], tenant), message(2000, ROOMS[0], 0, tenant)]


def turns(numbers: range, tenant: str = "acme") -> list[Input]:
    """Drafts that answer message 0 in its room, one every ten milliseconds."""
    return [draft(3000 + 10 * n, ROOMS[0], f"t{n}", (ref(ROOMS[0], 0),), tenant) for n in numbers]


def test_what_goes_in_comes_out_in_order(harness: Harness) -> None:
    apply(harness, *start(), *[message(2001 + n, ROOMS[0], n) for n in range(1, 30)], *turns(range(30)))
    assert [getattr(r, "ref", None) for r in records(harness, "source-evidence")] == [
        ref(ROOMS[0], n) for n in range(30)
    ]
    assert list(decided(harness)) == [f"acme/t{n}" for n in range(30)]
    assert list(authorized(harness)) == [f"acme/t{n}" for n in range(30)]


def test_every_turn_is_decided_once_whatever_restarts(harness: Harness) -> None:
    """R-RUN-4: at least once in, effectively once out."""
    apply(harness, *start(), *turns(range(5)))
    harness.restart()
    harness.send(turns(range(5, 10)))
    harness.restart()
    apply(harness, *turns(range(10, 15)))
    assert decided(harness) == {f"acme/t{n}": ["deliver"] for n in range(15)}
    assert authorized(harness) == Counter({f"acme/t{n}": 1 for n in range(15)})


def test_every_turn_is_decided_once_whatever_crashes(harness: Harness) -> None:
    """R-RUN-4: nothing acknowledged is lost, nothing is done twice."""
    apply(harness, *start(), *turns(range(5)))
    harness.crash()
    harness.send(turns(range(5, 10)))
    harness.crash()
    harness.until_applied()
    harness.crash()
    apply(harness, *turns(range(10, 15)))
    assert decided(harness) == {f"acme/t{n}": ["deliver"] for n in range(15)}
    assert authorized(harness) == Counter({f"acme/t{n}": 1 for n in range(15)})


def test_everything_again_comes_to_nothing_more(harness: Harness) -> None:
    """R-RUN-4, R-TURN-8, R-AUD-6: redelivery by whoever writes the input topics."""
    given = [*start(), *turns(range(5))]
    apply(harness, *given)
    topics = [t for t in OUTPUT_TOPICS if t not in (APPLIED, "audit")]
    before = {topic: harness.outputs(topic) for topic in topics}
    assert len(before["outbound"]) == 5
    apply(harness, *given)
    harness.restart()
    apply(harness, *given)
    assert {topic: harness.outputs(topic) for topic in topics} == before


def test_a_dead_letter_does_not_stop_the_partition(harness: Harness) -> None:
    """R-RUN-5."""
    bad = [
        Input("observed-messages", b"acme", b"no record at all", turns(range(1))[0].timestamp),
        Input("turn-drafts", b"acme", b"", turns(range(1))[0].timestamp),
    ]
    apply(harness, *start(), *bad, *turns(range(1)))
    letters = records(harness, DEAD_LETTERS)
    assert [(r.code, r.topic, r.offset, r.size) for r in letters if isinstance(r, RecordRefused)] == [
        ("invalid", "observed-messages", 1, 16),
        ("invalid", "turn-drafts", 0, 0),
    ]
    assert decided(harness) == {"acme/t0": ["deliver"]}


def test_a_tick_ends_a_hold(harness: Harness) -> None:
    """R-TIME-3, R-TURN-6: the room of the draft was never listed, and nothing else arrives."""
    apply(harness, *start(), draft(3000, "slack:T1/C9", "t1", (ref(ROOMS[0], 0),)))
    assert decided(harness) == {"acme/t1": ["hold"]}
    apply(harness, tick(5000))
    assert decided(harness) == {"acme/t1": ["hold"]}
    harness.restart()  # a hold outlives the runtime that began it
    apply(harness, tick(9000))
    assert decided(harness) == {"acme/t1": ["hold", "downgrade"]}


def test_a_draft_sees_everything_that_was_acknowledged_before_it(harness: Harness) -> None:
    """R-RUN-2: a join on another topic, acknowledged before the draft was sent, is in force; its twin has none."""
    rooms = [f"slack:T1/R{n}" for n in range(20)]
    apply(harness, policy(0), *[listing(1000, room, READERS[:2]) for room in rooms])
    apply(harness, *[message(2000, room, 0) for room in rooms])
    for n, room in enumerate(rooms):
        at = 3000 + 10 * n
        if n % 2:
            join = {"reader": READERS[2], "kind": "member", "change": "joined"}
            harness.send([an("MembershipChanged", at, room=room, **join)])
        harness.send([draft(at, room, f"t{n}", (ref(room, 0),))])
    harness.until_applied()
    assert decided(harness) == {f"acme/t{n}": ["drop" if n % 2 else "deliver"] for n in range(20)}


def test_outputs_carry_their_tenant_as_key_and_cloudevents_headers(harness: Harness) -> None:
    """Contract section 7."""
    apply(harness, *start(), *turns(range(2)))
    seen = set()
    for topic in OUTPUT_TOPICS:
        for m in harness.outputs(topic):
            record, headers = CODEC.decode(m.value), dict(m.headers)
            assert m.key == record.tenant.encode()
            assert headers["ce_type"] == f"turngate.v1.{type(record).__name__}".encode()
            assert set(headers) == {"ce_id", "ce_source", "ce_type", "ce_specversion", "ce_time", "traceparent"}
            seen.add(headers["ce_id"])
    assert len(seen) == sum(len(harness.outputs(topic)) for topic in OUTPUT_TOPICS) > 5


def test_nothing_of_a_tenant_appears_under_the_key_of_another(harness: Harness) -> None:
    """R-ROOM-11, contract section 1: not by equal ids, and not by a record under a foreign key."""
    forged = message(2500, ROOMS[0], 7, "bolt")
    apply(harness, *start(), policy(0, "bolt"), Input(forged.topic, b"acme", forged.value, forged.timestamp))
    apply(harness, *turns(range(3)), *turns(range(3), "bolt"))
    assert decided(harness) == {f"acme/t{n}": ["deliver"] for n in range(3)} | {
        f"bolt/t{n}": ["hold"] for n in range(3)
    }
    for topic in OUTPUT_TOPICS:
        assert [m.key for m in harness.outputs(topic)] == [r.tenant.encode() for r in records(harness, topic)]
    assert {r.tenant for r in records(harness, "source-evidence")} == {"acme"}
    assert [r.tenant for r in records(harness, DEAD_LETTERS)] == ["acme"]


def test_stretches_follow_each_other_without_gap_or_overlap(harness: Harness) -> None:
    """R-RUN-3: whatever restarts, each input is in exactly one recorded stretch."""
    apply(harness, *start(), *turns(range(3)))
    harness.crash()
    harness.send(turns(range(3, 6)))
    harness.restart()
    apply(harness, tick(9000))
    at: dict[str, int] = {}
    for record in records(harness, APPLIED):
        assert isinstance(record, StretchApplied)
        assert {p.topic: p.offset for p in record.from_} == {p.topic: at.get(p.topic, 0) for p in record.to}
        at |= {p.topic: p.offset for p in record.to}
    assert at == {"policies": 1, "membership-refreshes": 1, "observed-messages": 1, "turn-drafts": 6, "ticks": 1}


def a_little_of_everything() -> list[Input]:
    """Two tenants, a turn that is delivered and one that is not, a hold, a dead letter, a duplicate, and ticks."""
    return [
        *a_delivered_turn("acme"),
        *a_delivered_turn("bolt", 4000),
        draft(8000, "slack:T1/C9", "t2", (ref(ROOMS[0], 0),)),
        an("ContextRequested", 8100, room=ROOMS[0], request="r1", turn="t3", candidates=(ref(ROOMS[0], 0),)),
        Input("tool-results", b"bolt", b"\x00garbage", a_delivered_turn()[0].timestamp + 8200),
        an("MembershipChanged", 8300, room=ROOMS[0], reader=READERS[2], kind="member", change="joined"),
        draft(8400, ROOMS[0], "t4", (ref(ROOMS[0], 0),)),
        draft(8400, ROOMS[0], "t4", (ref(ROOMS[0], 0),)),
        listing(9000, "slack:T1/C9", READERS[:2]),
        tick(20_000),
    ]


Bytes = tuple[bytes | None, bytes | None, Headers]


def everything(harness: Harness) -> dict[str, list[Bytes]]:
    return {topic: [(m.key, m.value, m.headers) for m in harness.outputs(topic)] for topic in OUTPUT_TOPICS}


def on_the_embedded_runtime(given: Sequence[Input]) -> dict[str, list[Bytes]]:
    """What comes of the inputs on a log in memory, each waited for before the next."""
    with LocalLog() as log:
        runtime: Any = LocalRuntime(log)
        for i in given:
            runtime.feed(i.topic, i.key, i.value, i.timestamp, i.headers)
            runtime.flush()
        return {topic: [(m.key, m.value, m.headers) for m in log.scan(topic)] for topic in OUTPUT_TOPICS}


def test_the_same_inputs_waited_for_one_by_one_give_the_same_bytes_on_every_runtime(harness: Harness) -> None:
    """R-RUN-3, whatever stops in between: outputs, stretches, keys and headers."""
    given = a_little_of_everything()
    for n, i in enumerate(given):
        apply(harness, i)
        if n == 6:
            harness.restart()
        if n == 12:
            harness.crash()
    assert everything(harness) == on_the_embedded_runtime(given)
    verdicts = {v for vs in decided(harness).values() for v in vs}
    assert verdicts >= {Verdict.DELIVER.value, Verdict.DROP.value, Verdict.HOLD.value}
