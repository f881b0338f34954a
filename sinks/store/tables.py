"""Decides which tables the store has, the same in Postgres and in SQLite.

Every row names the record that it is made of by (topic, partition, offset), and by `number` where a record comes to
several rows; `time` is when that lay on the log, in milliseconds since 1970, as all times here. Lists are JSON arrays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def written(text: str) -> str:
    """A text as Postgres takes it, which holds no U+0000: a backslash stands before what stands for that."""
    return text.replace("\\", r"\\").replace("\0", r"\0") if "\\" in text or "\0" in text else text


def read(text: str) -> str:
    """What was written so."""
    return re.sub(r"\\(.)", lambda m: "\0" if m[1] == "0" else m[1], text) if "\\" in text else text


class Words(TypeDecorator[str]):
    """A text that others chose, with any character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """See `written`."""
        return value if value is None or dialect.name != "postgresql" else written(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """See `read`."""
        return value if value is None or dialect.name != "postgresql" else read(value)


class Listing(TypeDecorator[Any]):
    """A list, or whatever else is JSON."""

    impl = JSON().with_variant(JSONB(), "postgresql")
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """See `read`."""
        return value if dialect.name != "postgresql" else _each(value)


def _each(value: Any) -> Any:
    if isinstance(value, list):
        return [_each(one) for one in value]
    if isinstance(value, dict):
        return {name: _each(one) for name, one in value.items()}
    return read(value) if isinstance(value, str) else value


TABLES = MetaData()


def _place() -> list[Column[Any]]:
    """What a row begins with: whose it is, and of which record."""
    return [
        Column("tenant", Text, nullable=False),
        Column("topic", Text, nullable=False),
        Column("partition", Integer, nullable=False),
        Column("offset", BigInteger, nullable=False),
        Column("time", BigInteger, nullable=False),
    ]


def _words(*names: str) -> list[Column[Any]]:
    return [Column(name, Words) for name in names]


def _lists(*names: str) -> list[Column[Any]]:
    return [Column(name, Listing) for name in names]


def _flags(*names: str) -> list[Column[Any]]:
    return [Column(name, Boolean) for name in names]


def _numbers(*names: str) -> list[Column[Any]]:
    return [Column(name, BigInteger) for name in names]


def _records(
    name: str,
    *columns: Sequence[Column[Any]],
    several: bool = False,
    find: Sequence[str] = (),
    long: Sequence[str] = (),
) -> Table:
    """A table of what records say, by the month of `time`. `find`: what rows are looked for by, beside the tenant.

    `long`: the same of refs, which may be longer than a row of Postgres' ordinary index.
    """
    place = _place()
    key = ["topic", "partition", "offset", "time"]
    if several:
        place.append(Column("number", Integer, nullable=False))
        key.insert(3, "number")
    table = Table(
        name,
        TABLES,
        *place,
        *(column for part in columns for column in part),
        PrimaryKeyConstraint(*key, name=f"{name}_pkey"),
        postgresql_partition_by="RANGE (time)",
    )
    for column in find:
        Index(f"{name}_{column}", table.c.tenant, table.c[column])
    for column in long:
        Index(f"{name}_{column}", table.c[column], postgresql_using="hash")
    return table


#: What was decided of each draft (`kind` turn; `hold` and `ask` too) and of each context request (`kind` context).
DECISIONS = _records(
    "decisions",
    _words("kind", "turn", "request", "agent", "room", "verdict", "fingerprint", "leaves_digest", "policy", "decision"),
    _numbers("rendering", "at"),
    _lists("provenance", "as_of", "questions"),
    find=("turn",),
)
#: Why not: of a decision, a context answer's candidate, a write, a command or a delivery (`kind`), by its id.
REASONS = _records(
    "reasons",
    _words("kind", "id", "candidate", "code", "ref", "detail"),
    several=True,
    find=("id",),
)
#: What a context answer permitted and withheld.
CANDIDATES = _records(
    "candidates",
    _words("request", "turn", "ref", "attribution", "grant_id"),
    _flags("permitted"),
    _lists("redact"),
    several=True,
    find=("turn",),
)
#: What was let out, without its text.
AUTHORIZATIONS = _records(
    "authorizations",
    _words("turn", "agent", "room", "thread", "operation", "destination", "decision"),
    _flags("broadcast", "says"),
    _lists("provenance", "grants", "proofs"),
    _numbers("valid_until", "at"),
    find=("turn", "destination"),
)
#: What was compared for each decision: the whole record, without the fields that have their default, and what is asked
#: of it. One with a `call` reports a tool call.
TRACES = _records(
    "traces",
    _words("decision", "turn", "request", "call", "agent", "room"),
    _numbers("sequence"),
    _lists("trace"),
    find=("turn",),
)
#: The evidence of each message and tool result, and of each revision; `leaves` says how many it has.
EVIDENCE = _records(
    "evidence",
    _words("ref", "agent", "status"),
    _flags("private", "untrusted"),
    _lists("restrictions"),
    _numbers("leaves"),
    long=("ref",),
)
#: Who could hear each piece of it.
LEAVES = _records(
    "leaves",
    _words("ref", "agent", "leaf_agent", "author", "room", "call", "audience", "via"),
    _flags("open", "private", "untrusted"),
    _lists("restrictions"),
    several=True,
    long=("ref",),
)
REVISIONS = _records(
    "revisions",
    _words("write", "agent", "memory", "revision", "kind", "state", "base"),
    _lists("notes"),
    find=("write", "revision", "memory"),
)
#: The texts of memories: none where it was refused, erased or about health, which `gone` says then.
MEMORIES = _records(
    "memories",
    _words("agent", "write", "memory", "revision", "op", "by", "kind", "base", "room", "turn", "text", "gone"),
    _flags("restrict"),
    _lists("sources"),
    find=("write", "revision", "memory"),
)
#: Grants that began or ended, and offers to share (`state` offered), without their text and code.
GRANTS = _records(
    "grants",
    _words("grant_id", "agent", "memory", "revision", "audience", "state", "by", "room"),
    _numbers("expires_at"),
    find=("grant_id", "revision"),
)
DELIVERIES = _records(
    "deliveries",
    _words("turn", "room", "status", "message"),
    find=("turn",),
    long=("message",),
)
#: What happened to rooms: `event` is listed (a page of a listing, in `audience`), joined, left, changed or forgotten.
ROOMS = _records(
    "rooms",
    _words("event", "agent", "room", "refresh", "room_kind", "visibility", "audience", "reader", "reader_kind", "what"),
    _lists("workspaces"),
    _numbers("page", "started_at"),
    _flags("last", "failed"),
    find=("room",),
)
#: Of messages, what derivation needs: those that quote others, are an agent's own, or were deleted. No texts.
MESSAGES = _records(
    "messages",
    _words("message", "agent", "room", "author", "turn"),
    _lists("quotes"),
    _flags("deleted"),
    long=("message",),
)
#: What was erased: by command a room, a reader or a memory, and by what came of it each ref.
ERASURES = _records(
    "erasures",
    _words("command", "ref", "room", "reader", "memory"),
    several=True,
    find=("memory",),
    long=("ref",),
)

#: Sets of readers by the SHA-256 of their canonical JSON. `own`: an agent's accounts, in a page of a listing. `until`
#: is the end of the last month in which one was named.
AUDIENCES = Table(
    "audiences",
    TABLES,
    Column("tenant", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("scope", Text, nullable=False),
    *_lists("workspaces", "readers", "guests", "memberships", "own"),
    Column("until", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "digest", name="audiences_pkey"),
)
#: The newest policy's `retention.log` of each tenant, in milliseconds.
POLICIES = Table(
    "policies",
    TABLES,
    *_place(),
    Column("version", Words, nullable=False),
    Column("log", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "partition", "offset", name="policies_pkey"),
)
#: How far each topic was taken in: the next offset, the greatest time of a record, how many were gone before they were
#: read, and what the last record was like, by which another log is told from this one.
POSITIONS = Table(
    "positions",
    TABLES,
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("next", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("missed", BigInteger, nullable=False),
    Column("mark", Text),
    PrimaryKeyConstraint("topic", "partition", name="positions_pkey"),
)

#: Tables of records, which retention empties by `time`.
BY_MONTH: MappingProxyType[str, Table] = MappingProxyType(
    {name: table for name, table in TABLES.tables.items() if name not in ("audiences", "policies", "positions")}
)


class names(FunctionElement[bool]):
    """Whether a list names a text: `names(column, text)`."""

    type = Boolean()
    inherit_cache = True


@compiles(names, "postgresql")
def _names_in_postgres(element: names, compiler: SQLCompiler, **more: Any) -> str:
    listing, text = (compiler.process(clause, **more) for clause in element.clauses)
    return f"{listing} @> jsonb_build_array(CAST({text} AS text))"


@compiles(names, "sqlite")
def _names_in_sqlite(element: names, compiler: SQLCompiler, **more: Any) -> str:
    listing, text = (compiler.process(clause, **more) for clause in element.clauses)
    return f"EXISTS (SELECT 1 FROM json_each({listing}) WHERE value = {text})"
