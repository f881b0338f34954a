"""Decides what the memory writes and policies of these tests look like."""

from __future__ import annotations

from typing import Any

from turngate.schemas.inputs import MemoryWrite, PolicyPublished

ENABLED = '{"version": 1, "agents": {"mesh": {}}, "sensitivity": {"enabled": true}}'
DISABLED = '{"version": 2, "agents": {"mesh": {}}, "sensitivity": {"enabled": false, "deadline": "1s"}}'


def a_write(text: str | None = "a plan", **more: Any) -> MemoryWrite:
    fields = {"tenant": "acme", "at": 1, "agent": "mesh", "write": "w1", "memory": "m", "revision": "m@1"}
    kinds = {"op": "create", "by": "dream", "kind": "note", "sources": ["message:slack:T1/D1/1"]}
    return MemoryWrite.model_validate(fields | kinds | {"text": text} | more)


def a_policy(document: str, tenant: str = "acme") -> PolicyPublished:
    return PolicyPublished(tenant=tenant, at=1, version="1", document=document)
