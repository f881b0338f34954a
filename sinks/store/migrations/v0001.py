"""The store's first tables. As they were made then: `sinks/store/tables.py` says what they are now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

_LIST = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Make them."""
    _records(
        "decisions",
        _columns(sa.Text(), "kind turn request agent room verdict fingerprint leaves_digest policy decision"),
        _columns(sa.BigInteger(), "rendering at"),
        _columns(_LIST, "provenance as_of questions"),
        find="turn",
    )
    _records("reasons", _columns(sa.Text(), "kind id candidate code ref detail"), several=True, find="id")
    _records(
        "candidates",
        _columns(sa.Text(), "request turn ref attribution grant_id"),
        _columns(sa.Boolean(), "permitted"),
        _columns(_LIST, "redact"),
        several=True,
        find="turn",
    )
    _records(
        "authorizations",
        _columns(sa.Text(), "turn agent room thread operation destination decision"),
        _columns(sa.Boolean(), "broadcast says"),
        _columns(_LIST, "provenance grants proofs"),
        _columns(sa.BigInteger(), "valid_until at"),
        find="turn destination",
    )
    _records(
        "traces",
        _columns(sa.Text(), "decision turn request call agent room"),
        _columns(sa.BigInteger(), "sequence"),
        _columns(_LIST, "trace"),
        find="turn",
    )
    _records(
        "evidence",
        _columns(sa.Text(), "ref agent status"),
        _columns(sa.Boolean(), "private untrusted"),
        _columns(_LIST, "restrictions"),
        _columns(sa.BigInteger(), "leaves"),
        long="ref",
    )
    _records(
        "leaves",
        _columns(sa.Text(), "ref agent leaf_agent author room call audience via"),
        _columns(sa.Boolean(), "open private untrusted"),
        _columns(_LIST, "restrictions"),
        several=True,
        long="ref",
    )
    _records(
        "revisions",
        _columns(sa.Text(), "write agent memory revision kind state base"),
        _columns(_LIST, "notes"),
        find="write revision memory",
    )
    _records(
        "memories",
        _columns(sa.Text(), "agent write memory revision op by kind base room turn text gone"),
        _columns(sa.Boolean(), "restrict"),
        _columns(_LIST, "sources"),
        find="write revision memory",
    )
    _records(
        "grants",
        _columns(sa.Text(), "grant_id agent memory revision audience state by room"),
        _columns(sa.BigInteger(), "expires_at"),
        find="grant_id revision",
    )
    _records("deliveries", _columns(sa.Text(), "turn room status message"), find="turn", long="message")
    _records(
        "rooms",
        _columns(sa.Text(), "event agent room refresh room_kind visibility audience reader reader_kind what"),
        _columns(_LIST, "workspaces"),
        _columns(sa.BigInteger(), "page started_at"),
        _columns(sa.Boolean(), "last failed"),
        find="room",
    )
    _records(
        "messages",
        _columns(sa.Text(), "message agent room author turn"),
        _columns(_LIST, "quotes"),
        _columns(sa.Boolean(), "deleted"),
        long="message",
    )
    _records("erasures", _columns(sa.Text(), "command ref room reader memory"), several=True, find="memory", long="ref")
    op.create_table(
        "audiences",
        *_needed(sa.Text(), "tenant digest scope"),
        *_columns(_LIST, "workspaces readers guests memberships own"),
        *_needed(sa.BigInteger(), "until"),
        sa.PrimaryKeyConstraint("tenant", "digest", name="audiences_pkey"),
    )
    op.create_table(
        "policies",
        *_needed(sa.Text(), "tenant topic"),
        *_needed(sa.Integer(), "partition"),
        *_needed(sa.BigInteger(), "offset time"),
        *_needed(sa.Text(), "version"),
        *_needed(sa.BigInteger(), "log"),
        sa.PrimaryKeyConstraint("tenant", "partition", "offset", name="policies_pkey"),
    )
    op.create_table(
        "positions",
        *_needed(sa.Text(), "topic"),
        *_needed(sa.Integer(), "partition"),
        *_needed(sa.BigInteger(), "next time missed"),
        *_columns(sa.Text(), "mark"),
        sa.PrimaryKeyConstraint("topic", "partition", name="positions_pkey"),
    )


def _columns(kind: Any, names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names.split()]


def _needed(kind: Any, names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names.split()]


def _records(
    name: str, *columns: Sequence[sa.Column[Any]], several: bool = False, find: str = "", long: str = ""
) -> None:
    number = ["number"] if several else []
    op.create_table(
        name,
        *_needed(sa.Text(), "tenant topic"),
        *_needed(sa.Integer(), "partition"),
        *_needed(sa.BigInteger(), "offset time"),
        *(sa.Column(n, sa.Integer(), nullable=False) for n in number),
        *(column for part in columns for column in part),
        sa.PrimaryKeyConstraint("topic", "partition", "offset", *number, "time", name=f"{name}_pkey"),
        postgresql_partition_by="RANGE (time)",
    )
    for column in find.split():
        op.create_index(f"{name}_{column}", name, ["tenant", column])
    for column in long.split():
        op.create_index(f"{name}_{column}", name, [column], postgresql_using="hash")
