"""Decides how the product's engine runs on an embedded log, and how the stretches recorded there are read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from turngate.processors.engine import Engine
from turngate.processors.keys import NO_KEYS, Keys
from turngate.schemas.catalog import APPLIED
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import StretchApplied
from turngate.streams.local_log import LocalLog
from turngate.streams.local_runtime import Runtime
from turngate.streams.log import LogError


class LocalRuntime(Runtime[Engine]):
    """The product's engine on an embedded log."""

    def __init__(self, log: LocalLog, codec: Codec | None = None, partition: int = 0, *, keys: Keys = NO_KEYS) -> None:
        super().__init__(log, partial(Engine.restore, keys=keys), codec, partition)


def recorded_stretches(log: LocalLog, codec: Codec | None = None, partition: int = 0) -> Iterator[StretchApplied]:
    """What `applied` holds, in order: how to replay this log's inputs (R-RUN-3)."""
    codec = Codec() if codec is None else codec
    for message in log.scan(APPLIED, partition):
        record = codec.decode(message.value)
        if not isinstance(record, StretchApplied):
            raise LogError(f"{APPLIED}[{partition}]: the record at {message.offset} is no stretch")
        yield record
