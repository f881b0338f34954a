"""Decides whether a name that a command was given is of the form that the contract says (contract section 1)."""

from __future__ import annotations

from typing import Any

from turngate.cli.errors import Impossible


def check_names(flag: str, form: Any, *names: str) -> None:
    """Raises `Impossible` where one of them is no `form`, or is a partition's number where a tenant is asked for."""
    from pydantic import TypeAdapter, ValidationError

    from turngate.schemas.shapes import Tenant

    try:
        TypeAdapter(list[form]).validate_python(names)
    except ValidationError:
        raise Impossible(f"{flag}: not of the form that the contract says") from None
    if form is Tenant and any(name.isdecimal() for name in names):
        raise Impossible(f"{flag}: is a partition's number, not a tenant's")
