"""`turngate store fill` for tests, on topics and in a schema of their own: `… BOOTSTRAP PREFIX DSN SCHEMA`."""

from __future__ import annotations

import asyncio
import sys

from turngate.schemas.codec import Codec
from turngate.sinks.store.postgres import PostgresStore
from turngate.sinks.store.service import StoreService
from turngate.streams.clock import now_ms
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings
from turngate.streams.stderr import log_to_stderr


async def main(bootstrap: str, prefix: str, dsn: str, schema: str) -> None:
    async with PostgresStore(PostgresSettings(dsn), Codec(), schema) as store:
        names = Names(prefix=prefix, group=f"{prefix}store")
        service = StoreService(KafkaSettings.read(bootstrap), store, now_ms, names, session=2)
        await service.run(asyncio.Event())


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(*sys.argv[1:]))
