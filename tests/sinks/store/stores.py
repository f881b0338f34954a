"""How these tests fill a store and look into it, whichever database it lies in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, select

from turngate.schemas.authority import STORED
from turngate.sinks.store.batch import Moved
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.tables import TABLES
from turngate.streams.recorded import Records

Content = Mapping[str, list[tuple[Any, ...]]]


def content(engine: Engine) -> Content:
    """Every row of every table, but for how far was read."""
    with engine.connect() as connection:
        return {
            name: sorted(map(tuple, map(_plain, connection.execute(select(table)))), key=repr)
            for name, table in TABLES.tables.items()
            if name != "positions"
        }


def _plain(row: Any) -> list[Any]:
    return [json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value for value in row]


async def pour(store: PostgresStore, records: Records, size: int = 500) -> None:
    """Write what was recorded, so many records of a place at once; what somebody else writes meanwhile, he has."""
    for partition in range(records.partitions):
        for topic in STORED:
            place = (topic, partition)
            at = (await store.begin({place: records.first(*place)}))[place]
            while at < records.end(*place):
                batch = store.batch()
                batch.begin(place, at)
                for message in records.scan(*place, at, min(at + size, records.end(*place))):
                    batch.add(message)
                try:
                    await store.write(batch)
                    at = batch.spans[place].end
                except Moved as elsewhere:
                    at = elsewhere.at[place]
