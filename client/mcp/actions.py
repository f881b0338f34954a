"""Decides how a call is drafted as an action: under which id and skill, and where each parameter is said to come from.

What is said here is a claim; the engine proves it, or takes the value for the model's own (R-ACT-1).
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from turngate.client.acting import Acting
from turngate.schemas.canonical import digest
from turngate.schemas.shapes import Action, Origin, Param, ValueField
from turngate.schemas.tooling import ParamTerms, ServerTerms, SkillTerms

#: Turns whose results are remembered, and results of each.
_TURNS, _RESULTS = 1_000, 200


class Returned:
    """What this proxy has handed over in each turn: refs, and the values behind them, to say where a value was read."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, dict[str, tuple[str, ...]]] = OrderedDict()

    def add(self, turn: str, ref: str, fields: list[ValueField]) -> None:
        """A result was recorded. Values about somebody's health are not kept (R-MEM-6)."""
        results = self._turns.setdefault(turn, {})
        results[ref] = tuple(field.value for field in fields if not field.health)
        if len(results) > _RESULTS:  # the ref still counts
            results[list(results)[-_RESULTS - 1]] = ()
        self._turns.move_to_end(turn)
        if len(self._turns) > _TURNS:
            self._turns.popitem(last=False)

    def refs(self, turn: str) -> tuple[str, ...]:
        """All refs of a turn, in order."""
        return tuple(self._turns.get(turn, ()))

    def holding(self, turn: str, value: str) -> str | None:
        """The newest result that has just this value in it."""
        whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
        return self._newest(turn, lambda one: whole.search(one) is not None)

    def near(self, turn: str, value: str) -> str | None:
        """The newest result that may have it in another spelling (120 is 120.00), else the newest."""
        return self._newest(turn, lambda one: value in one) or self._newest(turn, lambda _: True)

    def _newest(self, turn: str, good: Callable[[str], bool]) -> str | None:
        results = self._turns.get(turn, {})
        return next((ref for ref, values in reversed(results.items()) if any(map(good, values))), None)


def action_id(acting: Acting, operation: str, arguments: Mapping[str, Any], attempt: int) -> str:
    """The id of a call's own turn: the same call of the same turn has the same, also after a restart (R-DLV-2)."""
    asked = [acting.room, acting.turn, acting.call, operation, said(arguments), str(attempt)]
    return f"action-{digest(asked)[:40]}"


def drafted(acting: Acting, operation: str, arguments: Mapping[str, Any], terms: ServerTerms, own: Returned) -> Action:
    """The action that a call is. Raises pydantic's `ValidationError` where no record can hold it."""
    name, skill = _skill(operation, arguments, terms)
    wanted = {} if skill is None else skill.params
    params = [_param(acting, key, said(value), wanted.get(key, ParamTerms()), own) for key, value in arguments.items()]
    return Action(operation=operation, skill=name, params=tuple(params), valid_from=acting.valid_from)


def said(value: Any) -> str:
    """A parameter as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _skill(operation: str, arguments: Mapping[str, Any], terms: ServerTerms) -> tuple[str | None, SkillTerms | None]:
    """The one skill that these arguments fit; none where there are several, since nobody says which is meant."""
    fitting = [
        (name, skill)
        for name, skill in terms.skills.items()
        if skill.operation == operation
        and set(arguments) <= set(skill.params)
        and all(param.optional or key in arguments for key, param in skill.params.items())
    ]
    of_operation = [(name, skill) for name, skill in terms.skills.items() if skill.operation == operation]
    for found in (fitting, of_operation):  # one that does not fit is refused by the engine, which says what is missing
        if len(found) == 1:
            return found[0]
    return None, None


def _param(acting: Acting, name: str, value: str, wanted: ParamTerms, own: Returned) -> Param:
    if Origin.LLM in wanted.set_by:
        return Param(name=name, value=value)  # whoever set it may
    named = acting.evidence.get(name)
    read = next((origin for origin in (Origin.READ, Origin.IDENTITY) if origin in wanted.set_by), None)
    ref = own.holding(acting.turn, value) if named is None else named
    if ref is None and Origin.PERSON not in wanted.set_by:
        ref = own.near(acting.turn, value)
    if read is not None and ref is not None and ref.startswith("tool:"):
        return Param(name=name, value=value, origin=read, evidence=ref)
    if Origin.PERSON in wanted.set_by:
        message = named if named is not None and named.startswith("message:") else acting.trigger
        return Param(name=name, value=value, origin=Origin.PERSON, evidence=message)
    return Param(name=name, value=value)
