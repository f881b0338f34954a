"""Decides how claims become rows of a table, the same in Postgres and in an embedded log's file, and which rows change.

Parameters are written `%(name)s`, as Postgres' driver takes them; SQLite's takes `:name`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turngate.schemas.shapes import Reason
from turngate.sinks.claims import Claim, Key, Kind, Place, State, turn_of

TABLE = """\
CREATE TABLE IF NOT EXISTS turngate_claim (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    agent TEXT NOT NULL, room TEXT NOT NULL, thread TEXT,
    state TEXT NOT NULL, owner TEXT NOT NULL, at BIGINT NOT NULL, message TEXT, reasons TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (tenant, kind, id)
)"""
TAKE = """\
INSERT INTO turngate_claim (tenant, kind, id, agent, room, thread, state, owner, at)
VALUES (%(tenant)s, %(kind)s, %(id)s, %(agent)s, %(room)s, %(thread)s, 'claimed', %(owner)s, %(at)s)
ON CONFLICT (tenant, kind, id) DO UPDATE SET owner = excluded.owner WHERE turngate_claim.state = 'claimed'"""
BEGIN = """\
UPDATE turngate_claim SET state = 'sending'
WHERE tenant = %(tenant)s AND kind = %(kind)s AND id = %(id)s
  AND owner = %(owner)s AND state IN ('claimed', 'sending')"""
RELEASE = """\
UPDATE turngate_claim SET state = 'claimed'
WHERE tenant = %(tenant)s AND kind = %(kind)s AND id = %(id)s AND owner = %(owner)s AND state = 'sending'"""
END = """\
UPDATE turngate_claim SET state = %(state)s, message = %(message)s, reasons = %(reasons)s
WHERE tenant = %(tenant)s AND kind = %(kind)s AND id = %(id)s AND (
    (%(state)s = 'sent' AND state IN ('sending', 'uncertain'))
    OR (%(state)s = 'uncertain' AND state = 'sending')
    OR (%(state)s IN ('failed', 'withheld') AND state IN ('claimed', 'sending') AND owner = %(owner)s)
)"""
READ = """\
SELECT tenant, kind, id, agent, room, thread, state, owner, at, message, reasons FROM turngate_claim
WHERE tenant = %(tenant)s AND kind = %(kind)s AND id = %(id)s"""
UNCERTAIN = """\
SELECT tenant, kind, id, agent, room, thread, state, owner, at, message, reasons FROM turngate_claim
WHERE state = 'uncertain' AND at >= %(since)s"""

QUESTIONS = """\
SELECT tenant, kind, id, agent, room, thread, state, owner, at, message, reasons FROM turngate_claim
WHERE tenant = %(tenant)s AND kind = 'question' AND state = 'sent'
  AND substr(id, 1, length(CAST(%(turn)s AS TEXT)) + 1) = CAST(%(turn)s AS TEXT) || ' '"""
PRUNE = "DELETE FROM turngate_claim WHERE at < %(before)s"


def named(key: Key, **more: Any) -> dict[str, Any]:
    """Parameters of a statement about one claim."""
    return {"tenant": key.tenant, "kind": str(key.kind), "id": key.id, **more}


def placed(key: Key, place: Place, owner: str, at: int) -> Mapping[str, Any]:
    """Parameters of `TAKE`."""
    return named(key, agent=place.agent, room=place.room, thread=place.thread, owner=owner, at=at)


def ended(key: Key, owner: str, state: State, message: str | None, reasons: Sequence[Reason]) -> Mapping[str, Any]:
    """Parameters of `END`."""
    said = json.dumps([reason.model_dump(mode="json", exclude_none=True) for reason in reasons])
    return named(key, owner=owner, state=str(state), message=message, reasons=said)


def about(turn: str, claims: Iterable[Claim]) -> list[Claim]:
    """Of the rows that `QUESTIONS` finds those about this turn: another's id may begin with the same words."""
    return [claim for claim in claims if turn_of(claim.key.id) == turn]


def claim_of(row: Sequence[Any] | None) -> Claim:
    """A claim of its row. Raises `LookupError` where there is none."""
    if row is None:
        raise LookupError("a claim that nobody took")
    tenant, kind, name, agent, room, thread, state, owner, at, message, reasons = row
    said = tuple(Reason.model_validate(reason) for reason in json.loads(reasons))
    return Claim(Key(tenant, Kind(kind), name), Place(agent, room, thread), State(state), owner, at, message, said)
