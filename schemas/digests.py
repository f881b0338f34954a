"""Decides what of a record its digest covers: of audiences, of decisions, and of the links of their chain (R-RET-2).

A record's form is its canonical JSON (RFC 8785) without the fields that have their default, so that a field added later
changes no digest of what was written before it.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from turngate.schemas.canonical import canonical, digest
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Audience, Shape

#: What of a `TurnAuthorized` no digest covers: a short text, or a value, could be guessed from one. Both are the
#: draft's, whose digest is in `decision`.
TEXTS: Final = ("text", "action")
#: Fields whose JSON is at hand already: values, or `orjson.Fragment` with a form in it.
Ready = dict[str, Any]
_NOTHING: Final[Ready] = {}


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


def content_digest(record: Record) -> str:
    """What tells one content under an id from another (R-TURN-8): SHA-256 of all fields of a record but `at`."""
    content = dict(record.__dict__)
    del content["at"]
    return digest(content, vars)


def part(shape: Shape) -> orjson.Fragment:
    """The form of a shape inside a record, for `Ready`."""
    return orjson.Fragment(canonical(_form(shape), _form))


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
    form = _form(record)
    for name in without:
        form.pop(name, None)
    form.update(ready)
    return digest(form, _form)


def _form(shape: Any) -> dict[str, Any]:
    """The fields of a record, or of a shape inside one, that do not have their default."""
    kind = type(shape)
    defaults = _DEFAULTS.get(kind)
    if defaults is None:
        defaults = _DEFAULTS[kind] = _defaults(kind)
    form = dict(shape.__dict__)
    for name, default in defaults:
        value = form[name]
        if value is default or (default is not None and value == default):  # nothing else equals None
            del form[name]
    return form


def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """What the fields of a record or shape that need not be there are by default.

    Raises `TypeError` for what is neither.
    """
    if not issubclass(kind, Shape):
        raise TypeError(f"{kind.__name__} is no part of a record")
    assert all(field.alias is None for field in kind.model_fields.values()), "a form names fields as the contract does"
    return tuple((name, field.get_default()) for name, field in kind.model_fields.items() if not field.is_required())


_DEFAULTS: Final[dict[type[Any], tuple[tuple[str, Any], ...]]] = {}
