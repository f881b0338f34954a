"""Decides what the turns, listings and policies of these tests look like."""

from __future__ import annotations

import json
from typing import Any

from turngate.schemas import inputs, outputs
from turngate.schemas.inputs import MembershipPage, PolicyPublished
from turngate.schemas.outputs import TurnAuthorized

#: 2026-01-01T00:00:00Z.
AT = 1_767_225_600_000
ALEX, KIM, GUEST, OTHER = "slack:T1/UALEX", "slack:T1/UKIM", "slack:T1/UGUEST", "slack:T2/UOTHER"
SELF, BOT = "slack:T1/UBOT", "slack:T1/UAPP"
ROOM, DIRECT = "slack:T1/C1", "slack:T1/D1"
POLICY: dict[str, Any] = {"version": 1, "agents": {"mesh": {"accounts": [SELF]}}}


def authorized(destination: Any = None, **more: Any) -> TurnAuthorized:
    """A turn that may be heard by Alex and Kim, unless it is said who."""
    fields = {
        "tenant": "acme",
        "at": AT,
        "turn": "t1",
        "agent": "mesh",
        "room": ROOM,
        "text": "hello",
        "decision": "d1",
    }
    heard_by = {"readers": [ALEX, KIM]} if destination is None else destination
    return TurnAuthorized.model_validate(fields | {"decision": "d1", "destination": heard_by} | more)


def page(*members: Any, info: dict[str, Any] | None = None, **more: Any) -> MembershipPage:
    """A listing of a private channel in one page; a member given by its id is a full member."""
    listed = [{"reader": m, "kind": "member"} if isinstance(m, str) else m for m in members]
    fields = {"tenant": "acme", "at": AT, "agent": "mesh", "room": ROOM, "refresh": "r1", "page": 0, "last": True}
    shown = {"kind": "channel", "visibility": "members"} | (info or {})
    return MembershipPage.model_validate(fields | {"started_at": AT, "info": shown, "members": listed} | more)


def policy(version: int = 1, at: int = AT, **more: Any) -> PolicyPublished:
    document = json.dumps(POLICY | {"version": version} | more)
    return PolicyPublished(tenant="acme", at=at, version=str(version), document=document)


def made(kind: type[inputs.Record], /, **fields: Any) -> inputs.Record:
    """A record of the tenant."""
    return kind.model_validate({"tenant": "acme", "at": AT} | fields)


def decided(label: str, **more: Any) -> inputs.Record:
    """That the turn was decided by these versions of the policy."""
    fields = {"turn": "t1", "agent": "mesh", "room": ROOM, "verdict": "deliver", "leaves_digest": "", "decision": "d1"}
    return made(outputs.TurnDecided, policy=label, **(fields | more))
