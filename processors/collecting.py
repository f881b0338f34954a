"""Decides which leaves and audiences are kept: those that something names. Membership changes, and both would pile up.

A leaf or an audience is named by its content, so that one that is removed and needed again is the same as before.
"""

from __future__ import annotations

from collections.abc import Iterator

from turngate.processors.ledger import Ledger
from turngate.processors.tables import Tables

#: A tenant's leaves are looked through when there are so many, and then whenever they have doubled since the last time,
#: so that each new one costs a bounded share of that.
LEAST = 2_000


def collect(ledger: Ledger) -> None:
    """Remove what nothing names, if enough has come since that was done last."""
    tables, tenant = ledger.tables, ledger.tenant
    count = tables.leaf_rows.count(tenant)
    if count < (tables.looked_through.get((tenant,)) or LEAST):
        return
    unused = sorted(tables.leaf_rows.unused(tenant))
    for leaf in unused:
        tables.leaves.drop((tenant, leaf))
    named = set(_audiences(tables, tenant))
    for key in sorted(key for key in tables.audiences.rows if key[0] == tenant and key[1] not in named):
        tables.audiences.drop(key)
    ledger.forget_leaves()
    tables.looked_through.put((tenant,), max(LEAST, 2 * (count - len(unused))))


def _audiences(tables: Tables, tenant: str) -> Iterator[str]:
    """Every audience that a leaf, a message that waits for a listing, a grant or an offer names."""
    yield from tables.leaf_rows.audiences(tenant)
    for (of, _, _), room in tables.rooms.rows.items():
        if of == tenant:
            yield from (pending.audience for pending in room.pending if pending.audience is not None)
    for table in (tables.grants, tables.offers):
        yield from (row.audience for key, row in table.rows.items() if key[0] == tenant)
