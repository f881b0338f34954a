"""Decides whether the records that came of a step are those that a scenario expects (contract section 8)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from turngate.schemas.catalog import APPLIED, OUTPUT_TOPIC
from turngate.streams.scenarios.errors import Wrong
from turngate.streams.scenarios.patterns import compiled, matches, substituted

#: Topics whose records `nothing` does not speak of.
_ASIDE = frozenset({APPLIED, "audit"})
_CAPTURE = re.compile(r"(\w+)\.(\w+)")


@dataclass(frozen=True, slots=True)
class Emitted:
    """A record that the pipeline wrote, with its fields as JSON has them."""

    record: str
    value: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.record} {json.dumps(self.value, ensure_ascii=False, sort_keys=True)}"


class Demand(StrEnum):
    """What an expectation asks."""

    COMES = "comes"
    NOT = "not"
    COUNT = "count"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Expected:
    """One expectation: that a record matching `pattern` comes, or does not, or that `count` of a name come."""

    demand: Demand
    record: str = ""
    pattern: Any = None
    count: int = 0

    def __str__(self) -> str:
        shown = f"{self.record}: {json.dumps(self.pattern, ensure_ascii=False, default=str)}"
        return {
            Demand.COMES: shown,
            Demand.NOT: f"not: {{{shown}}}",
            Demand.COUNT: f"count: {{{self.record}: {self.count}}}",
            Demand.NOTHING: "nothing",
        }[self.demand]

    def holds(self, came: Sequence[Emitted], captured: Mapping[str, Any]) -> bool:
        """Whether it holds of the records that came, `$name` standing for what was captured."""
        if self.demand is Demand.NOTHING:
            return all(OUTPUT_TOPIC[e.record] in _ASIDE for e in came)
        named = [e for e in came if e.record == self.record]
        if self.demand is Demand.COUNT:
            return len(named) == self.count
        pattern = compiled(self.record, substituted(self.pattern, captured))
        found = any(matches(pattern, e.value) for e in named)
        return found is (self.demand is Demand.COMES)


#: `expect: nothing`.
NOTHING = (Expected(Demand.NOTHING),)


@dataclass(frozen=True, slots=True)
class Capture:
    """`name: record.field`: keep a field of a record that a step emits."""

    name: str
    record: str
    field: str

    def take(self, came: Sequence[Emitted]) -> Any:
        """The first value of the field that is not null, None where no such record came."""
        values = (e.value.get(self.field) for e in came if e.record == self.record)
        return next((v for v in values if v is not None), None)


def expectations(raw: Any) -> tuple[Expected, ...]:
    """The expectations of a step, checked against the schemas. Raises `Wrong`."""
    if not isinstance(raw, list):
        raise Wrong("expect: a list of patterns, or nothing")
    out: list[Expected] = []
    for item in raw:
        if not isinstance(item, dict) or not item:
            raise Wrong("expect: each item is a map such as {TurnDecided: {verdict: deliver}}")
        for key, value in item.items():
            out += _expected(key, value)
    return tuple(out)


def _expected(key: Any, value: Any) -> list[Expected]:
    if key == "not":
        if not isinstance(value, dict) or not value:
            raise Wrong("not: a map such as {TurnAuthorized: {}}")
        return [_pattern(Demand.NOT, record, pattern) for record, pattern in value.items()]
    if key == "count":
        if not isinstance(value, dict) or not value:
            raise Wrong("count: a map such as {TurnAuthorized: 1}")
        return [_count(record, number) for record, number in value.items()]
    return [_pattern(Demand.COMES, key, value)]


def _count(record: Any, number: Any) -> Expected:
    _emitted_record(record)
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Wrong(f"count: {record}: a number from 0")
    return Expected(Demand.COUNT, record, count=number)


def _pattern(demand: Demand, record: Any, pattern: Any) -> Expected:
    _emitted_record(record)
    pattern = {} if pattern is None else pattern
    if not isinstance(pattern, dict):
        raise Wrong(f"expect: {record}: a map of fields")
    compiled(record, pattern)
    return Expected(demand, record, pattern)


def _emitted_record(record: Any) -> None:
    if record not in OUTPUT_TOPIC:
        raise Wrong(f"expect: the pipeline writes no record {record!r}")


def captures(raw: Any) -> tuple[Capture, ...]:
    """What a step keeps for later steps. Raises `Wrong`."""
    if not isinstance(raw, dict):
        raise Wrong("capture: a map such as {code: SharingOffered.code}")
    out = []
    for name, place in raw.items():
        match = _CAPTURE.fullmatch(place) if isinstance(place, str) else None
        if match is None or match[1] not in OUTPUT_TOPIC or not re.fullmatch(r"[A-Za-z_]\w*", str(name)):
            raise Wrong(f"capture: {name}: write a record that the pipeline writes and its field, SharingOffered.code")
        compiled(match[1], {match[2]: None})
        out.append(Capture(name, match[1], match[2]))
    return tuple(out)
