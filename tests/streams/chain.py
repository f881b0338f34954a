"""A small engine for tests of what carries an engine: it remembers everything it was given, in order.

Per tenant it keeps a chain of digests, so that its state after any two different histories differs; it answers every
draft, and notes every dead letter as the product's engine does. It decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from turngate.processors.state import State
from turngate.schemas.inputs import ContextRequested, Record, TurnDrafted
from turngate.schemas.outputs import RecordRefused, TurnDecided, Verdict, WriteRefused
from turngate.schemas.shapes import Position, Reason


class Chain:
    """An engine that can be told to break: `fail_at` is the number of the record at which it does, from 1."""

    version = "chain-1"

    def __init__(self, fail_at: int | None = None) -> None:
        self.now = 0
        self.applied: list[tuple[str, int]] = []
        self.fail_at = fail_at
        self.state = State()
        self._links = self.state.table("link", str)
        self._clock = self.state.table("clock", int)

    @classmethod
    def restore(cls, entries: Iterable[tuple[bytes, bytes | None]], version: str | None) -> Chain:
        engine = cls()
        assert version in (None, cls.version)
        engine.state.load(entries)
        engine.now = engine._clock.get(("now",)) or 0
        return engine

    def apply(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        link = self._add(record.tenant, position, timestamp, raw)
        if isinstance(record, TurnDrafted):
            return [self._decided(record, link, "no_rendering")]
        if isinstance(record, ContextRequested):
            return []
        return [WriteRefused(tenant=record.tenant, at=self.now, write=link)]

    def late(self, record: Record, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        link = self._add(record.tenant, position, timestamp, raw + b"late")
        return [self._decided(record, link, "barrier_late")] if isinstance(record, TurnDrafted) else []

    def refuse(self, tenant: str, schema: str | None, position: Position, timestamp: int, raw: bytes) -> list[Record]:
        self._add(tenant, position, timestamp, raw)
        return [
            RecordRefused(
                tenant=tenant,
                at=self.now,
                code="invalid",
                topic=position.topic,
                partition=position.partition,
                offset=position.offset,
                timestamp=timestamp,
                size=len(raw),
                sha256=hashlib.sha256(raw).hexdigest(),
                schema_=schema,
            )
        ]

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        return self.state.take_changes()

    def _add(self, tenant: str, position: Position, timestamp: int, raw: bytes) -> str:
        self.applied.append((position.topic, position.offset))
        self.now = max(self.now, timestamp)
        self._clock.put(("now",), self.now)
        before = self._links.get((tenant,)) or ""
        link = hashlib.sha256(f"{before} {position} {timestamp} {raw.hex()}".encode()).hexdigest()
        self._links.put((tenant,), link)
        if len(self.applied) == self.fail_at:  # after the write: what was half done must not be gone on with
            raise MemoryError("as if there were no memory left")
        self.state.keep()
        return link

    def _decided(self, draft: TurnDrafted, link: str, code: str) -> TurnDecided:
        return TurnDecided(
            tenant=draft.tenant,
            at=self.now,
            turn=draft.turn,
            agent=draft.agent,
            room=draft.room,
            verdict=Verdict.DROP,
            reasons=(Reason(code=code),),
            leaves_digest="",
            policy="",
            decision=link,
        )
