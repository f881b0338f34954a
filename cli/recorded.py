"""Decides where the commands that look at the past find it: an embedded log, a broker, or an exported directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.errors import Impossible, extra
from turngate.cli.options import Connection

if TYPE_CHECKING:
    from turngate.schemas.codec import Codec
    from turngate.streams.recorded import Records


def of_tenant(records: Records, tenant: str) -> None:
    """Raises `Impossible` where nothing was recorded of the tenant: it is mistyped, or the place is another's."""
    from turngate.streams.recorded import has_tenant

    if not has_tenant(records, tenant):
        raise Impossible(f"nothing of a tenant {tenant} was recorded here; check --tenant")


@contextmanager
def recorded(connection: Connection, exported: Path | None = None) -> Iterator[tuple[Records, Codec]]:
    """What was recorded, and the codec that it was written with.

    Raises `Impossible` where more than one place is named, `turngate.streams.log.LogError` where it cannot be read.
    """
    from turngate.schemas.codec import Codec

    log = connection.log_file()
    if exported is not None:
        from turngate.streams.archive import Archive

        if log is not None or connection.values["bootstrap_servers"] is not None:
            raise Impossible("--exported, --log and --bootstrap-servers are three places: give one of them")
        archive = Archive(exported)
        yield archive, archive.codec()
    elif log is not None:
        from turngate.streams.local_log import LocalLog

        with LocalLog(log, read_only=True) as there:
            yield there, Codec()
    else:
        with extra("kafka"):
            from turngate.streams.kafka.records import BrokerRecords
        settings, codec = connection.kafka(), connection.codec()
        with BrokerRecords(settings) as broker:
            yield broker, codec
