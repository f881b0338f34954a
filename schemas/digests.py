"""Decides what of a record its digest covers: of audiences, of decisions, and of the links of their chain (R-RET-2).

A record's form is its canonical JSON (RFC 8785) without the fields that have their default, so that a field added later
changes no digest of what was written before it.
"""

from __future__ import annotations

from typing import Any

from turngate.schemas.canonical import digest
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Audience

#: What of a `TurnAuthorized` no digest covers: a short text, or a value, could be guessed from one. Both are the
#: draft's, whose digest is in `decision`.
TEXTS = ("text", "action")
#: Fields whose JSON is at hand already: values, or `orjson.Fragment` with a form in it.
Ready = dict[str, Any]
_NOTHING: Ready = {}


def audience_digest(audience: Audience) -> str:
    """SHA-256 of the audience's canonical JSON, all its fields: its address."""
    return digest(
        {
            "scope": audience.scope,
            "workspaces": audience.workspaces,
            "readers": audience.readers,
            "guests": audience.guests,
            "memberships": audience.memberships,
        }
    )


def trace_digest(trace: DecisionTraced, ready: Ready = _NOTHING) -> str:
    """What the tenant's next trace names as `previous`: SHA-256 of the form of this one."""
    return _digest(trace, ready)


def decided_digest(record: TurnDecided | ContextDecided, ready: Ready = _NOTHING) -> str:
    """What a decision's trace names as `decided`: SHA-256 of the form of the decision."""
    return _digest(record, ready)


def authorized_digest(record: TurnAuthorized, destination: str | None = None) -> str:
    """What a decision's trace names as `authorized`: SHA-256 of the form of what was let out.

    Without its text and action, and with the digest of its destination, where it is at hand, in that one's place.
    """
    to = audience_digest(record.destination) if destination is None else destination
    return _digest(record, {"destination": to}, TEXTS)


def _digest(record: Record, ready: Ready, without: tuple[str, ...] = ()) -> str:
    form = record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={*ready, *without})
    return digest(form | ready)
