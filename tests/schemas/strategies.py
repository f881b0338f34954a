"""Decides what a random valid record is: built from its model's own types, so that nothing has to be filtered away."""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from turngate.schemas import inputs, shapes
from turngate.schemas.catalog import RECORDS

Build = st.SearchStrategy[Any]

#: Parts of ids: no space, and now and then not ASCII.
_WORDS = st.text("abcXYZ019.-_@é漢", min_size=1, max_size=12)
_IDS = st.text(min_size=1, max_size=20)
_NAMESPACES = st.builds(
    "{}:{}".format, st.sampled_from(["slack", "matrix", "é"]), st.sampled_from(["T1", "T2", "corp"])
)
_UNDER = st.builds("{}/{}".format, _NAMESPACES, _WORDS)
_MILLIS = st.integers(min_value=-(2**47), max_value=253_402_300_799_999)
_LONGS = st.integers(min_value=-(2**63), max_value=2**63 - 1)

#: Constrained texts and numbers by their annotation.
_NAMED: dict[Any, Build] = {
    shapes.Tenant: st.one_of(st.from_regex(r"[a-z][a-z0-9-]{0,62}", fullmatch=True), st.integers(0, 999).map(str)),
    shapes.Namespace: _NAMESPACES,
    shapes.ReaderId: _UNDER,
    shapes.RoomId: _UNDER,
    shapes.MessageId: st.builds("{}/{}".format, _UNDER, _WORDS),
    shapes.Ref: st.builds("{}:{}".format, st.sampled_from(["message", "revision", "tool"]), _IDS.map("x{}".format)),
    shapes.Id: _IDS,
    shapes.CommandId: _IDS,
    shapes.Millis: _MILLIS,
}


@st.composite
def audiences(draw: st.DrawFn) -> shapes.Audience:
    """Any audience: the guests and the memberships are among its readers."""
    scope = draw(st.sampled_from(shapes.Scope))
    if scope is not shapes.Scope.LISTED:
        return shapes.Audience(scope=scope)
    readers = draw(st.lists(_UNDER, max_size=5, unique=True))
    some = st.lists(st.sampled_from(readers), max_size=5) if readers else st.just([])
    return shapes.Audience(
        workspaces=tuple(draw(st.lists(_NAMESPACES, max_size=3))),
        readers=tuple(readers),
        guests=tuple(draw(some)),
        memberships={reader: tuple(draw(st.lists(_NAMESPACES, max_size=2))) for reader in draw(some)},
    )


def _in_room(fields: dict[str, Any]) -> dict[str, Any]:
    return fields | {"message": fields["room"] + "/" + fields["message"].rpartition("/")[2]}


def _erasure(fields: dict[str, Any]) -> dict[str, Any]:
    kept = next((k for k in ("memory", "reader", "room") if fields[k] is not None), None)
    one = {"memory": "m1"} if kept is None else {kept: fields[kept]}
    return {k: v for k, v in fields.items() if k not in ("memory", "reader", "room")} | one


#: What a model asks of its fields together.
_TOGETHER: dict[type[shapes.Shape], Callable[[dict[str, Any]], dict[str, Any]]] = {
    inputs.MembershipPage: lambda fields: fields | {"page": abs(fields["page"]) % 1_000_000},
    inputs.MessageObserved: _in_room,
    inputs.MessageDeleted: _in_room,
    inputs.ErasureCommanded: _erasure,
}


def of_model(model: type[shapes.Shape]) -> Build:
    """Any valid instance of a record or a shape."""
    if model is shapes.Audience:
        return audiences()
    hints = get_type_hints(model, include_extras=True)
    build = st.fixed_dictionaries({name: _of(hints[name]) for name in model.model_fields})
    return build.map(lambda fields: model(**_TOGETHER.get(model, lambda f: f)(fields)))


def _of(hint: Any) -> Build:
    if hint in _NAMED:
        return _NAMED[hint]
    if get_origin(hint) is Annotated:
        base, *metadata = get_args(hint)
        assert all(isinstance(m, FieldInfo) for m in metadata), f"a strategy for {hint} is missing"
        return _of(base)
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of([st.none() if arg is type(None) else _of(arg) for arg in get_args(hint)])
    if get_origin(hint) is tuple:
        return st.lists(_of(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is dict:
        return st.dictionaries(*(_of(arg) for arg in get_args(hint)), max_size=3)
    if issubclass(hint, StrEnum):
        return st.sampled_from(hint)
    if issubclass(hint, shapes.Shape):
        return of_model(hint)
    return {str: st.text(max_size=40), bool: st.booleans(), int: _LONGS}[hint]


#: Any valid instance of each record, by name.
BY_RECORD: dict[str, Build] = {name: of_model(model) for name, model in RECORDS.items()}
#: Any valid record.
ANY_RECORD: Build = st.one_of(list(BY_RECORD.values()))
