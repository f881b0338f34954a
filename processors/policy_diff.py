"""Decides what a newer policy document tightens and what it loosens, field by field, by the same meets that rooms have.

A tightening holds at once, a loosening for rooms that start after it (R-POL-1), so whoever publishes needs to know
which is which. A field tightens where the meet of both documents is the newer one, loosens where it is the older one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Literal

from turngate.processors.policy import MEETS
from turngate.schemas.policy import Adapter, Interlock, Operation, Part, Policy, RecentRead, Skill, SkillParam, Tool
from turngate.schemas.shapes import Audience, FieldClass, Scope


class Effect(StrEnum):
    """What a change does to what may be said or done."""

    TIGHTENS = "tightens"
    LOOSENS = "loosens"
    #: Some of what was permitted no longer is, and the other way round.
    BOTH = "both"
    #: It permits and forbids the same as before.
    NEITHER = "neither"


class Absent(Enum):
    """Stands for what one of the documents does not name, which is something else than null."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Change:
    """One field, or one named thing, in which the documents differ. `old`, `new`: `ABSENT` where it is not named."""

    path: tuple[str, ...]
    effect: Effect
    old: Any
    new: Any


#: What a field's change does, from its older and its newer value, which differ.
Judge = Callable[[Any, Any], Effect]


def compare(old: Policy, new: Policy) -> list[Change]:
    """Every field in which two documents differ, in the document's order; the version itself is not among them."""
    return list(_part((), old, new, {"version": None, "operations": _operations(old.interlock, new.interlock)}))


Walk = Callable[[tuple[str, ...], Any, Any], Iterator[Change]]


def _part(
    path: tuple[str, ...], old: Part, new: Part, special: Mapping[str, Walk | None] | None = None
) -> Iterator[Change]:
    """The changes of one part. `special`: fields that are walked in their own way, or (None) not at all."""
    kind = type(old)
    walks = WALKS.get(kind, {}) | dict(special or {})
    for name in kind.model_fields:
        a, b, at = getattr(old, name), getattr(new, name), (*path, name)
        if name in walks:
            walk = walks[name]
            yield from () if walk is None else walk(at, a, b)
        elif isinstance(a, Part):
            yield from _part(at, a, b)
        elif not _same(a, b):
            yield Change(at, JUDGES[kind][name](a, b), a, b)


def _met(meet: Callable[[Any, Any], Any]) -> Judge:
    """What a field's meet says of a change (R-POL-1)."""

    def judge(old: Any, new: Any) -> Effect:
        met = meet(old, new)
        if _same(met, new):
            return Effect.TIGHTENS
        return Effect.LOOSENS if _same(met, old) else Effect.BOTH

    return judge


def _same(a: Any, b: Any) -> bool:
    """Lists of names mean the same in any order."""
    return set(a) == set(b) if isinstance(a, tuple) and isinstance(b, tuple) else bool(a == b)


def _neither(old: Any, new: Any) -> Effect:
    return Effect.NEITHER


def _both(old: Any, new: Any) -> Effect:
    return Effect.BOTH


def _limit(old: Any, new: Any) -> Effect:
    """A smaller limit is stricter, and none at all (null) is the loosest."""
    return Effect.TIGHTENS if old is None or (new is not None and new < old) else Effect.LOOSENS


def _demand(old: Any, new: Any) -> Effect:
    """Nothing demanded (null) is the loosest; of two different demands each must be met (R-POL-1)."""
    if old is None:
        return Effect.TIGHTENS
    return Effect.LOOSENS if new is None else Effect.BOTH


def _class(old: FieldClass, new: FieldClass) -> Effect:
    """A higher class is stricter, but `personal` binds inside too, and not in its subject's own room (R-EGR-3)."""
    if FieldClass.PERSONAL in (old, new) and {old, new} & {FieldClass.INTERNAL, FieldClass.CONFIDENTIAL}:
        return Effect.BOTH
    classes = list(FieldClass)  # in the contract's order (section 2)
    return Effect.TIGHTENS if classes.index(new) > classes.index(old) else Effect.LOOSENS


def _tool_audience(old: Any, new: Any) -> Effect:
    """Who may hear a tool's results: absent and unknown permit nobody; what each result names lies within anyone."""
    a, b = _reach(old), _reach(new)
    if a == b:
        return Effect.NEITHER
    return Effect.LOOSENS if _covers(b, a) else Effect.TIGHTENS if _covers(a, b) else Effect.BOTH


#: Who may hear: nobody, anyone, whomever the result names, or these readers and workspaces.
_Reach = Literal["nobody", "anyone", "named"] | tuple[frozenset[str], frozenset[str]]


def _reach(audience: Audience | Literal["result"] | None) -> _Reach:
    if audience == "result":
        return "named"
    if audience is None or audience.scope is Scope.UNKNOWN:
        return "nobody"
    return "anyone" if audience.scope is Scope.PUBLIC else (frozenset(audience.readers), frozenset(audience.workspaces))


def _covers(a: _Reach, b: _Reach) -> bool:
    """Whether everyone whom `b` reaches `a` reaches too. A reader is no part of a workspace: they may be a guest."""
    if a in (b, "anyone") or b == "nobody":
        return True
    return isinstance(a, tuple) and isinstance(b, tuple) and b[0] <= a[0] and b[1] <= a[1]


def _within(old: Audience | None, new: Audience | None) -> Effect:
    """Within which audience a result may name its own; without one anything but `public` (R-AUD-8)."""
    a, b = ("named" if w is None else _reach(w) for w in (old, new))
    if a == "named" or b == "named":
        wider = a == "anyone" or (a == "named" and b != "anyone")
        return Effect.TIGHTENS if wider else Effect.LOOSENS
    return Effect.NEITHER if a == b else _tool_audience(old, new)


def _named(added: Callable[[Any], Effect], removed: Callable[[Any], Effect], inside: Walk) -> Walk:
    """Things by their names: what one document alone names is one change, what both name is walked."""

    def walk(path: tuple[str, ...], old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
        for name in sorted(old.keys() | new.keys()):
            at = (*path, name)
            if name not in new:
                yield Change(at, removed(old[name]), old[name], ABSENT)
            elif name not in old:
                yield Change(at, added(new[name]), ABSENT, new[name])
            else:
                yield from inside(at, old[name], new[name])

    return walk


def _may(inside: Walk) -> Walk:
    """What a document does not name may do nothing (R-POL-1), so naming something loosens."""
    return _named(lambda _: Effect.LOOSENS, lambda _: Effect.TIGHTENS, inside)


def _operations(old: Interlock, new: Interlock) -> Walk:
    """An operation without an `outward` of its own has the interlock's (rule R-TNT-7)."""

    def outward(path: tuple[str, ...], a: Any, b: Any) -> Iterator[Change]:
        if a != b:
            held = (old.outward if a is None else a, new.outward if b is None else b)
            effect = Effect.NEITHER if held[0] == held[1] else _met(MEETS[Operation]["outward"])(*held)
            yield Change(path, effect, a, b)

    return _may(lambda path, a, b: _part(path, a, b, {"outward": outward}))


def _tool(path: tuple[str, ...], old: Tool, new: Tool) -> Iterator[Change]:
    """`within` is looked at only where the audience is the result's own."""

    def within(at: tuple[str, ...], a: Any, b: Any) -> Iterator[Change]:
        if a != b:
            used = old.audience == "result" and new.audience == "result"
            yield Change(at, _within(a, b) if used else Effect.NEITHER, a, b)

    return _part(path, old, new, {"within": within})


def _recent_read(path: tuple[str, ...], old: RecentRead | None, new: RecentRead | None) -> Iterator[Change]:
    if old is not None and new is not None:
        yield from _part(path, old, new)
    elif old != new:
        yield Change(path, _demand(old, new), old, new)


def _field(path: tuple[str, ...], old: FieldClass, new: FieldClass) -> Iterator[Change]:
    if old != new:
        yield Change(path, _class(old, new), old, new)


#: A parameter that must be there is refused without it (`param_missing`), one that is not named with it.
_params = _named(
    lambda p: Effect.LOOSENS if p.optional else Effect.BOTH,
    lambda p: Effect.TIGHTENS if p.optional else Effect.BOTH,
    _part,
)

#: Fields that are no single value. A field of the document is here, in `JUDGES`, or a part of its own.
WALKS: Mapping[type[Part], dict[str, Walk | None]] = {
    Policy: {
        "agents": _may(_part),
        "tools": _may(_tool),
        "operations": _operations(Interlock(), Interlock()),
        "skills": _may(_part),
    },
    Tool: {"fields": _named(lambda _: Effect.TIGHTENS, lambda _: Effect.LOOSENS, _field)},
    Skill: {"params": _params, "recent_read": _recent_read},
}

_DIFFERING_ADAPTERS = _met(lambda a, b: a if a is b else Adapter.LEGACY)
_EITHER = _met(lambda a, b: a or b)
_EACH = _met(lambda a, b: a and b)
_EITHER_NAMES = _met(lambda a, b: (*a, *b))
_NAMED_BY_BOTH = _met(lambda a, b: tuple(x for x in a if x in b))

#: What a change of each other field does. Tools and skills have no meet, since every version of them is asked; theirs
#: stand here as R-POL-1 has them.
JUDGES: Mapping[type[Part], Mapping[str, Judge]] = {
    **{part: {name: _met(meet) for name, meet in fields.items()} for part, fields in MEETS.items()},
    Policy: {name: _met(meet) for name, meet in MEETS[Policy].items()} | {"notice": _neither},
    Tool: {
        "adapter": _DIFFERING_ADAPTERS,
        "audience": _tool_audience,
        "within": _within,
        "restrict": _demand,
        "private": _EITHER,
        "untrusted": _EITHER,
        "mask": _EITHER_NAMES,
        "health": _EITHER_NAMES,
    },
    Skill: {"operation": _both, "unique": _demand, "valid_for": _limit, "approval": _demand},
    SkillParam: {
        "type": _both,
        "max": _limit,
        "set_by": _NAMED_BY_BOTH,
        "optional": _EACH,
        "from_untrusted": _EACH,
    },
    RecentRead: {"operation": _both, "within": _limit},
}
