"""A store in which anything was altered, dropped or added after it was filled is found; an erasure breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, Table, delete, insert, select, update

from tests.sinks.store.story import MINE
from tests.streams.telling import KIM
from turngate.sinks.store.audible import who_can_see
from turngate.sinks.store.explaining import explain
from turngate.sinks.store.reaching import blast_radius
from turngate.sinks.store.tables import AUDIENCES, AUTHORIZATIONS, CANDIDATES, DECISIONS, POSITIONS, REASONS, TRACES
from turngate.sinks.store.verifying import Verified, verify
from turngate.streams.chain import BOUND, Link


def checked(store: Connection, **more: Any) -> Verified:
    (found,) = verify(store, **more)
    return found


def whys(store: Connection, **more: Any) -> list[str]:
    return [f"{one.topic}@{one.offset} {one.why}" for one in checked(store, settle=None, **more).breaks]


def rows_of(store: Connection, table: Table) -> list[Any]:
    order = [table.c.topic, table.c.offset, *([table.c.number] if "number" in table.c else [])]
    bound = select(table).where(table.c.topic.in_(["turn-verdicts", "outbound", "audit"])).order_by(*order)
    return [row for row in store.execute(bound) if getattr(row, "kind", "turn") == "turn"]


def test_what_was_decided_is_what_is_there(store: Connection) -> None:  # R-RET-3: over an erasure, too
    found = checked(store)
    assert (found.tenant, found.breaks, found.waiting) == ("acme", [], False)
    decisions, let_out = len(rows_of(store, DECISIONS)) + 1, len(rows_of(store, AUTHORIZATIONS))  # and a context's
    assert found.chains.decisions == decisions + let_out
    assert found.chains.traces == decisions
    assert let_out > 2


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (DECISIONS, "verdict", "deliver"),
        (DECISIONS, "turn", "t100"),
        (DECISIONS, "policy", "2"),
        (DECISIONS, "provenance", []),
        (DECISIONS, "at", 0),
        (DECISIONS, "request", "r9"),
        (DECISIONS, "kind", "context"),
        (REASONS, "code", "paused"),
        (REASONS, "ref", "message:slack:T1/C1/77"),
        (AUTHORIZATIONS, "room", "slack:T1/C9"),
        (AUTHORIZATIONS, "grants", ["g9"]),
        (AUTHORIZATIONS, "valid_until", 0),
        (TRACES, "trace", {}),
        *((TRACES, column, "other") for column in ("decision", "turn", "request", "call", "agent", "room")),
        (TRACES, "sequence", 7),
        (CANDIDATES, "permitted", None),
        (AUDIENCES, "readers", [KIM]),
    ],
)
def test_any_value_that_was_altered_is_found(store: Connection, table: Table, column: str, value: Any) -> None:
    if table is CANDIDATES:
        store.execute(update(table).where(table.c.permitted.is_(True)).values(permitted=False))
    elif table is AUDIENCES:
        store.execute(update(table).where(table.c.digest == rows_of(store, AUTHORIZATIONS)[0].destination).values(
            {column: value}))  # fmt: skip
    else:
        first = rows_of(store, table)[0]
        here = (table.c.topic == first.topic, table.c.offset == first.offset)
        store.execute(update(table).where(*here).values({column: value}))
    assert len(whys(store)) == 1
    store.rollback()
    assert whys(store) == []


@pytest.mark.parametrize("table", [DECISIONS, REASONS, CANDIDATES, AUTHORIZATIONS, TRACES])
def test_any_row_that_was_dropped_or_added_is_found(store: Connection, table: Table) -> None:
    rows = rows_of(store, table)
    for row in (rows[0], rows[-1]):
        here = [table.c.topic == row.topic, table.c.offset == row.offset]
        here += [table.c.number == row.number] if "number" in table.c else []
        savepoint = store.begin_nested()
        store.execute(delete(table).where(*here))
        # a chain whose beginning is gone begins later, which is said; nothing shows that its end was cut off
        if table is not TRACES or row is not rows[0]:
            assert len(whys(store)) == 1
        else:
            assert checked(store).chains.begun == {"acme": 2}
        savepoint.rollback()
    store.execute(insert(table).values(dict(rows[0]._mapping) | {"offset": 9_999}))
    expected = 0 if table in (REASONS, CANDIDATES) else 1  # of no decision, so that it says nothing of any
    assert len(whys(store)) == expected
    store.rollback()


def test_what_is_new_may_lack_its_counterpart_and_is_no_break_until_it_is_older(store: Connection) -> None:
    last = rows_of(store, TRACES)[-1]
    store.execute(delete(TRACES).where(TRACES.c.offset == last.offset))
    found = checked(store)
    assert (found.breaks, found.waiting) == ([], True)
    assert whys(store) == [f"turn-verdicts@{rows_of(store, DECISIONS)[-1].offset} has no trace"]
    assert checked(store, settle=None).waiting is False
    store.rollback()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (AUDIENCES, "readers", [7]),
        (AUDIENCES, "memberships", {"a": 1}),
        (AUDIENCES, "scope", "other"),
        (DECISIONS, "as_of", [7]),
        (DECISIONS, "provenance", {}),
        (DECISIONS, "provenance", 7),
        (AUTHORIZATIONS, "grants", 7),
        (AUTHORIZATIONS, "proofs", [[7]]),
        (AUTHORIZATIONS, "provenance", [7]),
        (REASONS, "code", None),
        (TRACES, "trace", [7]),
    ],
)
def test_what_is_no_record_any_more_is_a_break_and_is_told_as_unknown(
    store: Connection, table: Table, column: str, value: Any
) -> None:
    store.execute(update(table).values({column: value}))
    assert len(whys(store)) == 1
    told = explain(store, "acme", "t2")
    assert told is not None
    own = ((DECISIONS, "provenance"), (AUTHORIZATIONS, "grants"), (AUTHORIZATIONS, "proofs"))
    said = table in (AUDIENCES, TRACES) or (table, column) in own
    assert bool(told.unknown) == said
    who_can_see(store, "acme", "revision:d@1")
    blast_radius(store, "acme", KIM, MINE)


def test_what_may_yet_come_hides_nothing_else(store: Connection) -> None:
    last = rows_of(store, TRACES)[-1]
    head = checked(store).chains.heads["acme"]
    store.execute(delete(TRACES).where(TRACES.c.offset == last.offset))
    found = checked(store, settle=5_000)
    assert (found.breaks, found.waiting) == ([], True)  # the last decision may wait for its trace
    (cut,) = checked(store, settle=5_000, signed={0: {"acme": [head]}}).breaks
    assert "its end is missing" in cut.why
    first = rows_of(store, AUTHORIZATIONS)[0]
    store.execute(insert(AUTHORIZATIONS).values(dict(first._mapping) | {"offset": 9_999, "turn": "never"}))
    assert [(one.topic, one.offset) for one in checked(store, settle=5_000).breaks] == [("outbound", 9_999)]


def test_how_far_the_store_is_said_to_be_hides_nothing(store: Connection) -> None:
    store.execute(update(POSITIONS).values(time=0))
    store.execute(delete(AUTHORIZATIONS))
    assert len(whys(store)) == 1
    assert len(checked(store, settle=5_000).breaks) == 1


def test_what_a_checkpoint_signed_must_be_there(store: Connection) -> None:
    head = checked(store).chains.heads["acme"]
    assert whys(store, signed={0: {"acme": [head]}}) == []
    (cut,) = whys(store, signed={0: {"acme": [Link(head.number + 1, head.digest)]}})
    assert "its end is missing" in cut
    (other,) = whys(store, signed={0: {"acme": [Link(head.number, "0" * 64)]}})
    assert "is not the trace that was signed" in other
    gone = {one.tenant: one.breaks for one in verify(store, {0: {"bolt": [head]}}, BOUND, -1)}
    assert (gone["acme"], len(gone["bolt"])) == ([], 1)
