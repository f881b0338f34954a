"""Decides for which turn a tool is called. The runtime says so, in `_meta` or when it starts the proxy; no model can.

A model writes a call's name and arguments. `_meta` is the runtime's, and is not passed on to the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from turngate.schemas.shapes import Id, Millis, Ref, RoomId

#: Under this name of a call's `_meta` stands what `Acting` says.
META = "turngate/turn"


class Acting(BaseModel):
    """The turn that a call belongs to.

    `exposed`: every ref that the model saw beside the trigger and what this proxy handed it; None: nobody says, and
    then nothing is done that must be asked for. `request`: the context request of the inference that calls. `call`: the
    runtime's own name of the call, by which a call that is made again is known; without one, a call with the same
    arguments in the same turn is the same. `evidence`: which ref a parameter's value was taken from. `valid_from`: the
    date of what the call rests on, in milliseconds, without which a skill with `valid_for` is refused (R-ACT-5).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    room: RoomId
    turn: Id
    thread: Id | None = None
    trigger: Ref | None = None
    request: Id | None = None
    exposed: tuple[Ref, ...] | None = None
    call: Id | None = None
    evidence: Mapping[str, Ref] = {}
    valid_from: Millis | None = None


def acting_of(meta: Mapping[str, Any] | None) -> Acting | None:
    """What a call's `_meta` says; None where it says nothing that can be used."""
    said = None if meta is None else meta.get(META)
    try:
        return Acting.model_validate(said)
    except ValidationError:
        return None
