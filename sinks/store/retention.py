"""Decides when rows end: a tenant's, `retention.log` after their records lay on the log (R-RET-2)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.sql.dml import Delete

from turngate.schemas.policy import Retention
from turngate.sinks.store.tables import AUDIENCES, BY_MONTH, POLICIES

#: What is kept of a tenant without a policy (contract section 5).
DEFAULT = Retention().log
_newest = select(POLICIES.c.tenant, func.max(POLICIES.c.offset).label("offset")).group_by(POLICIES.c.tenant).subquery()
#: Each tenant's newest policy is the one that counts (R-POL-1: no room is concerned).
KEPT = select(POLICIES.c.tenant, POLICIES.c.log).join(
    _newest, (POLICIES.c.tenant == _newest.c.tenant) & (POLICIES.c.offset == _newest.c.offset)
)


def ended(kept: Mapping[str, int], now: int) -> list[Delete]:
    """What removes the rows that have ended, `kept` being how long, in milliseconds, by tenant."""
    made = []
    for table, time in [*((table, table.c.time) for table in BY_MONTH.values()), (AUDIENCES, AUDIENCES.c.until)]:
        tenant: ColumnElement[str] = table.c.tenant
        made += [delete(table).where(tenant == name, time < now - log) for name, log in sorted(kept.items())]
        made.append(delete(table).where(tenant.not_in(sorted(kept)), time < now - DEFAULT))
    return made
