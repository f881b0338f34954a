"""Whatever is done to a stored decision or to its trace is found, and where; and what nobody did is not (R-RET-2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from heapq import merge
from typing import Any

import pytest

from tests.processors.feed import ALEX, C1, D1, KIM, Feed, ref
from turngate.schemas.catalog import OUTPUT_TOPIC
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import Verdict
from turngate.schemas.shapes import Action, Audience, Rendering, Shape
from turngate.streams import chain
from turngate.streams.chain import AUDIT, BOUND, OUTBOUND, VERDICTS, Break, Chains, Link, Row

POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}}
tools: {wiki: {audience: {workspace: "slack:T1"}}}
operations: {crm.note: {access: write, audience: internal}}
skills: {note: {operation: crm.note, params: {}, approval: required}}
"""
Topics = dict[str, list[Row]]


def lived() -> Topics:
    """What comes of a day of two tenants: delivered, downgraded, held, asked, dropped; contexts; a reported call."""
    feed = Feed()
    for tenant in ("acme", "bolt"):
        feed.tenant = tenant
        feed.policy(POLICY)
        feed.listing(C1, [ALEX, KIM], refresh=f"{tenant}-c")
        feed.listing(D1, [ALEX], refresh=f"{tenant}-d")
        feed.message(C1, 1)
        feed.message(D1, 2)
        feed.tool(C1, "c", server="wiki", turn="t1")
    for tenant in ("acme", "bolt", "acme"):
        feed.tenant = tenant
        n = f"-{len(feed.out)}"
        feed.context(C1, f"q{n}", f"t1{n}", candidates=(ref(C1, 1), ref(D1, 2), "tool:gone"))
        said = (Rendering(text="first", exposed=(ref(D1, 2),)), Rendering(text="second"))
        feed.draft(C1, f"t1{n}", trigger=ref(C1, 1), renderings=said)
        feed.draft(C1, f"t2{n}", trigger=ref(D1, 2))
        noted = Action(operation="crm.note", skill="note")
        feed.draft(C1, f"t3{n}", trigger=ref(C1, 1), action=noted)
        feed.draft("slack:T1/C9", f"t4{n}", exposed=("tool:c",))
    feed.tick(6_000)
    return placed(feed.out)


def placed(records: Iterable[Record]) -> Topics:
    """Records as rows at the places that one partition's topics give them."""
    topics: Topics = {AUDIT: [], VERDICTS: [], OUTBOUND: []}
    for record in records:
        topic = OUTPUT_TOPIC.get(type(record).__name__, "")
        if topic in topics:
            topics[topic].append(Row(topic, 0, len(topics[topic]), record.tenant, record))
    return topics


LIVED = lived()


def rows(topics: Topics) -> Iterator[Row]:
    """As whoever checks reads them: by time, the decisions before the traces."""
    return merge(
        *(topics[topic] for topic in (*BOUND, AUDIT)), key=lambda row: 0 if row.record is None else row.record.at
    )


def checked(topics: Topics, tail: int | None = None, **known: Any) -> tuple[Chains, list[Break]]:
    chains = Chains(0, **known)
    found = [one for row in rows(topics) if (one := chains.take(row)) is not None]
    late = 1 << 62 if tail is None else tail
    return chains, [*found, *chains.finish(lambda one: one.topic == AUDIT and (one.offset or 0) >= late)]


#: What a checkpoint at the end of the day has.
SIGNED: Mapping[str, Collection[Link]] = {t: [link] for t, link in checked(LIVED)[0].heads.items()}


def breaks(topics: Topics) -> list[Break]:
    return checked(topics, signed=SIGNED)[1]


def but(topic: str, rows: list[Row]) -> Topics:
    return LIVED | {topic: rows}


def others(value: Any) -> Iterator[Any]:
    """Values that a field could be given instead of its own."""
    match value:
        case None:
            yield "x"
        case bool():
            yield not value
        case StrEnum():
            yield next(one for one in type(value) if one is not value)
        case int():
            yield value + 1
            yield 2**60
        case str():
            yield value + "x"
        case tuple() if value:
            yield value[1:]
            yield (*value, value[0])
            for inner in fields(value[0]) if isinstance(value[0], Shape) else ():
                yield (inner, *value[1:])
        case tuple():
            yield ("x",)
        case Audience() | Action():
            yield from fields(value)
        case dict():
            yield {"slack:T1/UALEX": ("slack:T2",)}


def fields(record: Any) -> Iterator[Any]:
    """The record with one field changed, in every way."""
    for name in type(record).model_fields:
        for value in others(getattr(record, name)):
            yield record.model_copy(update={name: value})


def test_what_was_written_is_whole() -> None:
    chains, found = checked(LIVED, signed=SIGNED)
    assert found == []
    assert (chains.traces, chains.apart, chains.begun, chains.unlinked) == (len(LIVED[AUDIT]), 0, {}, [])
    assert chains.decisions == len(LIVED[VERDICTS]) + len(LIVED[OUTBOUND])
    verdicts = {getattr(row.record, "verdict", None) for row in LIVED[VERDICTS]}
    assert verdicts == {None, *Verdict}
    assert any(row.record.call for row in LIVED[AUDIT])  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # a field is given what it cannot hold, too
@pytest.mark.parametrize("topic", [AUDIT, VERDICTS, OUTBOUND])
def test_a_field_that_is_altered_is_found_there(topic: str) -> None:
    tried = 0
    for at, row in enumerate(LIVED[topic]):
        assert row.record is not None
        for altered in fields(row.record):
            texts = {n for n in ("text", "action") if getattr(altered, n, None) != getattr(row.record, n, None)}
            now = but(topic, [*LIVED[topic][:at], replace(row, record=altered), *LIVED[topic][at + 1 :]])
            found = breaks(now)
            if topic == OUTBOUND and texts:
                assert found == []  # a text's digest could be guessed; a replay shows these
                continue
            assert found, (row.record, altered)
            tried += 1
    assert tried > 60


@pytest.mark.parametrize("topic", [AUDIT, VERDICTS, OUTBOUND])
@pytest.mark.parametrize("signed", [False, True])
def test_what_is_dropped_added_or_moved_is_found(topic: str, signed: bool) -> None:
    there = LIVED[topic]
    for at in range(len(there)):
        assert checked(but(topic, [*there[:at], *there[at + 1 :]]), signed=SIGNED if signed else None)[1], at
        assert checked(but(topic, [*there[: at + 1], *there[at:]]), signed=SIGNED if signed else None)[1], at
        later = next((n for n in range(at + 1, len(there)) if there[n].tenant == there[at].tenant), None)
        if later is not None:
            moved = list(there)
            moved[at], moved[later] = moved[later], moved[at]
            assert checked(but(topic, moved), signed=SIGNED if signed else None)[1], at


def test_an_end_that_is_cut_off_everywhere_is_found_with_a_checkpoint_alone() -> None:
    until = LIVED[AUDIT][-1].record.at - 1  # type: ignore[union-attr]
    now = {t: [row for row in of if row.record.at <= until] for t, of in LIVED.items()}  # type: ignore[union-attr]
    assert sum(map(len, now.values())) < sum(map(len, LIVED.values()))
    assert checked(now)[1] == []
    found = breaks(now)
    assert found
    assert all("its end is missing" in one.why and one.offset is None for one in found)


def test_a_history_that_was_written_anew_is_found_with_a_checkpoint_alone() -> None:
    feed = Feed()
    feed.tenant = "acme"
    feed.policy(POLICY)
    for number in range(40):
        feed.draft(C1, f"t{number}")
    now = placed(feed.out)
    assert checked(now)[1] == []
    last = SIGNED["acme"]
    (found, *_) = checked(now, signed={"acme": last})[1]
    assert "is not the trace that was signed" in found.why


def test_the_first_break_of_each_tenant_is_named_with_its_place() -> None:
    there = list(LIVED[AUDIT])
    spoilt = {}
    for at, row in enumerate(there):
        if row.record.number == 3:  # type: ignore[union-attr]
            there[at] = replace(row, record=row.record.model_copy(update={"policy": "9"}))  # type: ignore[union-attr]
            spoilt[row.tenant] = next(r.offset for r in LIVED[AUDIT][at + 1 :] if r.tenant == row.tenant)
    found = breaks(but(AUDIT, there))
    assert {one.tenant: (one.topic, one.partition, one.offset) for one in found} == {
        tenant: (AUDIT, 0, offset) for tenant, offset in spoilt.items()
    }
    assert set(spoilt) == {"acme", "bolt"}


def test_what_is_no_record_or_has_another_tenants_key_is_found() -> None:
    for topic, of in LIVED.items():
        for at, row in enumerate(of):
            (found, *_) = breaks(but(topic, [*of[:at], replace(row, record=None), *of[at + 1 :]]))
            assert (found.topic, found.offset, found.why[:12]) == (topic, row.offset, "is no record")


@pytest.mark.parametrize("cut", [AUDIT, VERDICTS, OUTBOUND])
@pytest.mark.parametrize("other", [AUDIT, VERDICTS, OUTBOUND])
def test_what_retention_has_removed_is_no_break_and_the_rest_is_checked(cut: str, other: str) -> None:
    for left in range(1, len(LIVED[cut])):
        now = but(cut, LIVED[cut][left:])
        if other != cut:
            now[other] = LIVED[other][left // 2 :]
        since = {t: now[t][0].record.at if now[t] else 1 << 62 for t in {cut, other}}  # type: ignore[union-attr]
        chains, found = checked(now, since=since, signed=SIGNED)
        assert found == []
        if cut == other:
            assert checked(now, signed=SIGNED)[1], "a topic that begins later though nothing says so"
        gone = [row.record for row in now[AUDIT] if row.record is not None]
        assert chains.traces == len(gone)
        last = now[VERDICTS][-1]
        assert last.record is not None
        turned = replace(last, record=last.record.model_copy(update={"at": last.record.at + 1}))
        if last.record.at > max(since.values()):
            assert checked(now | {VERDICTS: [*now[VERDICTS][:-1], turned]}, since=since)[1]


def test_a_chain_that_begins_after_what_was_signed_is_not_linked_to_it() -> None:
    at = next(n for n, row in enumerate(LIVED[AUDIT]) if row.record.number == 6)  # type: ignore[union-attr]
    tenant, first = LIVED[AUDIT][at].tenant, LIVED[AUDIT][at].record
    assert first is not None
    signed = {tenant: [Link(3, "0" * 64)]}
    chains, _ = checked(but(AUDIT, LIVED[AUDIT][at:]), since={AUDIT: first.at}, signed=signed)
    assert (chains.begun[tenant], chains.unlinked) == (6, [tenant])
    before = {tenant: [Link(5, "0" * 64)]}
    (found, *_) = checked(but(AUDIT, LIVED[AUDIT][at:]), since={AUDIT: first.at}, signed=before)[1]
    assert found.why == "does not follow the trace that was signed as number 5"


def test_a_chain_goes_on_from_where_it_was_checked() -> None:
    for at in range(len(LIVED[AUDIT])):
        first = Chains(0, bound=())
        assert [first.take(row) for row in LIVED[AUDIT][:at]] == [None] * at
        rest = LIVED[AUDIT][at:]
        second = Chains(0, after=first.heads, bound=())
        assert [one for row in rest if (one := second.take(row)) is not None] == []
        assert second.heads == checked(LIVED)[0].heads
        third = Chains(0, after=first.heads, bound=())
        assert (
            len(rest) == 1
            or any(third.take(row) is not None for row in rest[1:])
            or rest[0].tenant not in {row.tenant for row in rest[1:]}
        )


def test_decisions_that_were_read_before_their_end_are_waited_for_no_longer_than_they_can_come() -> None:
    seen = but(VERDICTS, LIVED[VERDICTS][:-1])  # the trace of the last one was read, and it was not
    last = LIVED[AUDIT][-1].offset
    assert checked(seen, tail=last)[1] == []
    assert checked(seen, tail=last + 1)[1]


def test_so_many_decisions_without_traces_are_not_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MOST_APART", 3)
    chains = Chains(0)
    found = [one for row in LIVED[VERDICTS] if (one := chains.take(row)) is not None]
    assert {one.why for one in found} == {"has no trace"}
    assert len(found) == 2
