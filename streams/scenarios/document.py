"""Decides what a scenario file says, before anything of it is run (contract section 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from turngate.schemas.catalog import RECORDS
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.streams.scenarios.errors import ScenarioError, Wrong
from turngate.streams.scenarios.expectations import NOTHING, Capture, Expected, captures, expectations
from turngate.streams.scenarios.policies import DEFAULT, document, merged
from turngate.streams.scenarios.shapes import filled
from turngate.streams.scenarios.times import span

_FILE_KEYS = {"scenario", "source", "rules", "policy", "steps"}
_STEP_KEYS = {"expect", "capture", "repeat"}
#: A step is sent so often at most, all at once.
_MOST_REPEATED = 100_000
_RULE = re.compile(r"R-[A-Z]+-\d+")
#: What the shorthand `room:` takes (contract section 8), and `broker_at`, which every step takes.
_ROOM_KEYS = {
    "room",
    "kind",
    "visibility",
    "members",
    "workspaces",
    "archived",
    "agent",
    "tenant",
    "at",
    "started_at",
    "broker_at",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is sent, how often, and what must come of it.

    `name` is a record's, `room` or `wait`; `fields` are as the file gives them, of a `wait` its milliseconds.
    """

    number: int
    name: str
    fields: Mapping[str, Any]
    wait_ms: int
    repeat: int
    expected: tuple[Expected, ...]
    captures: tuple[Capture, ...]

    @property
    def title(self) -> str:
        """How a message names the step."""
        return f"step {self.number} ({self.name})"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file. `policy` is the whole document that its tenants have, None where it says that there is none."""

    path: Path
    sentence: str
    rules: tuple[str, ...]
    source: str | None
    policy: Mapping[str, Any] | None
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    def shows(self, prefixes: Iterable[str]) -> bool:
        """Whether it is about one of these rules, each given whole (`R-AUD-2`) or by family (`R-AUD`)."""
        return any(rule == p or rule.startswith(f"{p.rstrip('-')}-") for p in prefixes for rule in self.rules)

    @property
    def tenants(self) -> tuple[str, ...]:
        """Every tenant that a step names, in order; `acme` where none is named."""
        named = [str(s.fields.get("tenant", "acme")) for s in self.steps if s.name not in ("wait", "Tick")]
        return tuple(dict.fromkeys(named))


def find(paths: Iterable[Path]) -> Iterator[Path]:
    """The scenario files of these files and folders, in order of name. Raises `ScenarioError` where there is none."""
    for path in paths:
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
            if not files:
                raise ScenarioError(path, "", "this folder has no .yaml file")
            yield from files
        elif path.is_file():
            yield path
        else:
            raise ScenarioError(path, "", "there is no such file or folder")


def load(path: Path) -> Scenario:
    """Read a scenario file. Raises `ScenarioError`, which names the file, the step and what is wrong there."""
    try:
        data = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(path, "", f"cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ScenarioError(path, f"line {mark.line + 1}" if mark else "", error.problem or "not YAML") from None
    except yaml.YAMLError:
        raise ScenarioError(path, "", "not YAML") from None
    where = ""
    try:
        _check_file(data)
        policy = _policy(data)
        steps = []
        for number, raw in enumerate(data["steps"], 1):
            where = f"step {number}"
            steps.append(_step(number, raw))
    except Wrong as error:
        raise ScenarioError(path, where, str(error)) from None
    return Scenario(path, data["scenario"], tuple(data["rules"]), data.get("source"), policy, tuple(steps))


class _Loader(yaml.CSafeLoader):
    """YAML without duplicate keys, of which the last would win in silence."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        if key_node.value in seen if isinstance(key_node, yaml.ScalarNode) else False:
            raise yaml.MarkedYAMLError(None, None, f"{key_node.value!r} is there twice", key_node.start_mark)
        seen.add(key_node.value if isinstance(key_node, yaml.ScalarNode) else id(key_node))
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _check_file(data: Any) -> None:
    if not isinstance(data, dict):
        raise Wrong("a scenario file is a map with scenario, rules and steps")
    _keys(data, _FILE_KEYS, "a scenario file")
    if not isinstance(data.get("scenario"), str):
        raise Wrong("scenario: one sentence is required")
    rules = data.get("rules")
    if not isinstance(rules, list) or not all(isinstance(r, str) and _RULE.fullmatch(r) for r in rules):
        raise Wrong("rules: a list of rule ids such as R-AUD-2 is required")
    if not isinstance(data.get("steps"), list) or not data["steps"]:
        raise Wrong("steps: a list of steps is required")


def _policy(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    own = data.get("policy", {})
    if own is None:
        return None
    if not isinstance(own, dict):
        raise Wrong("policy: a map, or null for a tenant without a policy")
    policy = merged(DEFAULT, own)
    try:
        parse_policy(document(policy))
    except PolicyInvalid as error:
        raise Wrong(f"policy: {str(error).split(': ', 1)[1]}") from None  # its line is of the JSON made here
    return policy


def _step(number: int, raw: Any) -> Step:
    if not isinstance(raw, dict):
        raise Wrong("a step is a map that names a record, room or wait")
    names = [key for key in raw if key not in _STEP_KEYS]
    if len(names) != 1:
        raise Wrong(f"a step has exactly one of a record, room and wait, and this one has {names or 'none'}")
    name = names[0]
    repeat = raw.get("repeat", 1)
    if not isinstance(repeat, int) or isinstance(repeat, bool) or not 1 <= repeat <= _MOST_REPEATED:
        raise Wrong(f"repeat: a number from 1 to {_MOST_REPEATED}")
    expected = NOTHING if raw.get("expect") == "nothing" else expectations(raw.get("expect", []))
    wait_ms = span(raw[name]) if name == "wait" else 0
    fields = {} if name == "wait" else raw[name]
    if not isinstance(fields, dict):
        raise Wrong(f"{name}: a map of fields is required")
    if name == "room":
        _keys(fields, _ROOM_KEYS, "room")
    elif name in RECORDS:
        own = {k: v for k, v in fields.items() if k not in ("broker_at", "topic")}
        if name == "PolicyPublished" and isinstance(own.get("document"), dict):
            own.pop("document")
        filled(name, own)
    elif name != "wait":
        raise Wrong(f"there is no record {name!r}")
    return Step(number, name, fields, wait_ms, repeat, expected, captures(raw.get("capture", {})))


def _keys(data: Mapping[str, Any], allowed: set[str], what: str) -> None:
    for key in data:
        if key not in allowed:
            raise Wrong(f"{what} has no {key!r}; it takes {', '.join(sorted(allowed))}")
