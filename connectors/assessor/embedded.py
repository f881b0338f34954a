"""Decides how memory writes are labelled by the rules on an embedded log, as they are fed to it."""

from __future__ import annotations

import contextlib

from turngate.connectors.assessor.assessment import Wanted
from turngate.connectors.assessor.rules import assess_text
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record
from turngate.streams.local_log import LocalLog

#: Where writes lie, and their assessments.
WRITES, POLICIES = "memory-writes", "policies"


class EmbeddedAssessor:
    """Labels the writes of tenants whose policy enables `sensitivity`, from those that lie on the log on."""

    def __init__(self, log: LocalLog, codec: Codec) -> None:
        self._codec = codec
        self._wanted = Wanted()
        for partition in range(log.partitions):
            for message in log.scan(POLICIES, partition):
                self._decoded(message.value)

    def answer(self, value: bytes | None, at: int) -> bytes | None:
        """The assessment to be fed after this record (on `WRITES`, with its key), if the engine waits for one."""
        record = self._decoded(value)
        write = None if record is None else self._wanted.wants(record)
        return None if write is None else self._codec.encode(assess_text(write.text or "").record(write, at))

    def _decoded(self, value: bytes | None) -> Record | None:
        with contextlib.suppress(Undecodable):
            record = self._codec.decode(value)
            self._wanted.learn(record)
            return record
        return None
