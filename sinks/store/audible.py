"""Decides what is told of a source: who may hear it, by everything that is recorded of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from sqlalchemy import Connection

from turngate.processors.audience import UNKNOWN, intersection
from turngate.schemas.shapes import Audience
from turngate.sinks.store.asking import Asked, Source


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant in force: it lets these hear this exact revision too."""

    grant: str
    audience: Audience | None
    by: str | None
    since: int


@dataclass(frozen=True, slots=True)
class Audible:
    """Who may hear a ref, as one agent has it.

    `audience` is what all its leaves have in common; unknown where one of them is, or is not in the store.
    """

    source: Source
    audience: Audience
    grants: tuple[Grant, ...]


def who_can_see(connection: Connection, tenant: str, ref: str) -> tuple[list[Audible], str | None]:
    """Who may hear a ref, for each agent that has it, and whether it was erased or deleted: then nobody may."""
    asked = Asked(connection, tenant)
    kind, _, name = ref.partition(":")
    rows = asked.grants(name) if kind == "revision" else []
    found = []
    for source in asked.sources(ref):
        live = [row for row in rows if row.state == "active" and row.agent == source.agent]
        given = tuple(Grant(row.grant_id, asked.audience(row.audience), row.by, row.time) for row in live)
        found.append(Audible(source, _common(source), given))
    return found, asked.ended(ref)


def _common(source: Source) -> Audience:
    """R-EVI-2, R-AUD-3: every leaf must permit; evidence without leaves is unknown."""
    audiences = [UNKNOWN if leaf.audience is None else leaf.audience for leaf in source.leaves]
    return reduce(intersection, audiences) if audiences else UNKNOWN
