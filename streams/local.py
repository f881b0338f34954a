"""Decides how the product's engine runs on an embedded log."""

from __future__ import annotations

from functools import partial

from turngate.processors.engine import Engine
from turngate.processors.keys import NO_KEYS, Keys
from turngate.schemas.codec import Codec
from turngate.streams.local_log import LocalLog
from turngate.streams.local_runtime import Runtime


class LocalRuntime(Runtime[Engine]):
    """The product's engine on an embedded log."""

    def __init__(self, log: LocalLog, codec: Codec | None = None, partition: int = 0, *, keys: Keys = NO_KEYS) -> None:
        super().__init__(log, partial(Engine.restore, keys=keys), codec, partition)
