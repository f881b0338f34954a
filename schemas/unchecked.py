"""Decides how a record is made of what was validated before: at once, without looking at its fields again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from pydantic import BaseModel

from turngate.schemas.shapes import Shape

P = ParamSpec("P")
S = TypeVar("S", bound=Shape)
#: Of a kind its fields with their defaults, their names, and these in their order.
_Fields = tuple[dict[str, Any], set[str], tuple[str, ...]]


def unchecked(_kind: Callable[P, S], /, *_: P.args, **given: P.kwargs) -> S:
    """The record or shape of a kind with these fields, all of them valid, and the defaults of the others.

    It equals what the kind makes of them, in half the time. Whoever calls it answers for every field.
    """
    # No field's name begins as `_kind` does, and some field is named `kind`: as C, `/` does not keep the two apart.
    made: S = _new(_kind)
    known = _FIELDS.get(_kind)
    if known is None:
        known = _FIELDS[_kind] = _fields(type(made))
    defaults, names, order = known
    _set_fields(made, given if tuple(given) == order else defaults | given)
    _set_names(made, names)
    _set_extra(made, None)
    _set_private(made, None)
    return made


def _fields(kind: type[Shape]) -> _Fields:
    """The fields with their defaults, their names, since what is made so has set them all, and these in their order."""
    fields = {name: None if f.is_required() else f.get_default() for name, f in kind.model_fields.items()}
    return fields, set(fields), tuple(fields)


def _setter(slot: str) -> Callable[[Any, Any], None]:
    """Sets what pydantic keeps of a model, of a frozen one too, in half the time of `object.__setattr__`."""
    setter: Callable[[Any, Any], None] = vars(BaseModel)[slot].__set__
    return setter


_new: Final[Callable[[Any], Any]] = object.__new__
_set_fields: Final = _setter("__dict__")
_set_names: Final = _setter("__pydantic_fields_set__")
_set_extra: Final = _setter("__pydantic_extra__")
_set_private: Final = _setter("__pydantic_private__")
_FIELDS: Final[dict[Any, _Fields]] = {}
