"""`docs/policy.md` names every field of the policy, its default and its meet as they are, with valid examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from turngate.processors.policy import MEETS
from turngate.processors.policy_diff import JUDGES, WALKS, Effect
from turngate.schemas.policy import Adapter, Part, Policy, parse_policy
from turngate.schemas.shapes import Audience, Scope

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)$\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
#: Field, default and meet of a row.
Row = tuple[str, str, str]


def parts(kind: type[Part] = Policy, path: str = "") -> Iterator[tuple[str, type[Part]]]:
    """Every part of the document by its place in it; `NAME` stands for a name that is the tenant's own."""
    yield path, kind
    for name, info in kind.model_fields.items():
        kinds = (info.annotation, *get_args(info.annotation))
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, Part)]
        at = f"{path}.{name}".lstrip(".")
        for part in inner:
            yield from parts(part, f"{at}.NAME" if _is_map(info) else at)


def _is_map(info: FieldInfo) -> bool:
    return str(info.annotation).startswith("dict")


PARTS = dict(parts())


def section(path: str) -> str:
    return SECTIONS[f"`{path}`" if path else "The document"]


def rows(path: str) -> list[Row]:
    found = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", section(path), flags=re.MULTILINE)
    return [(name, default.strip("`"), meet) for name, default, meet in found]


ROWS = [(path, *row) for path in PARTS for row in rows(path)]


def examples(text: str) -> list[str]:
    return re.findall(r"^```yaml\n(.+?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_it_has_a_section_for_every_part_and_no_other() -> None:
    assert {name for name in SECTIONS if name.startswith("`")} == {f"`{path}`" for path in PARTS if path}
    assert len(PARTS) == 14


@pytest.mark.parametrize("path", PARTS)
def test_every_field_is_named_once_and_in_the_models_order(path: str) -> None:
    assert [name for name, _, _ in rows(path)] == list(PARTS[path].model_fields)


@pytest.mark.parametrize(("path", "name", "default", "meet"), ROWS)
def test_a_default_is_the_models(path: str, name: str, default: str, meet: str) -> None:
    info = PARTS[path].model_fields[name]
    assert (default == "required") == info.is_required()
    assert (default == "below") == isinstance(info.default, Part)
    if default not in ("required", "below"):
        assert TypeAdapter(info.rebuild_annotation()).validate_python(yaml.safe_load(default)) == info.default


@pytest.mark.parametrize("document", examples(PAGE))
def test_an_example_is_a_valid_policy(document: str) -> None:
    parse_policy(document if document.startswith("version:") else f"version: 1\n{document}")


@pytest.mark.parametrize("path", PARTS)
def test_every_field_has_an_example(path: str) -> None:
    shown: set[str] = set()
    for document in examples(section(path)):
        shown |= _keys(yaml.safe_load(document), path.split(".") if path else [])
    assert shown == set(PARTS[path].model_fields)


def _keys(value: Any, path: list[str]) -> set[str]:
    """The keys at a place; at `NAME`, of everything there."""
    if not path:
        return set(value)
    inner = value.values() if path[0] == "NAME" else [value[path[0]]] if path[0] in value else []
    return {key for one in inner for key in _keys(one, path[1:])}


#: What the words of a meet mean: of a stricter and a looser value, what the newer one does (R-POL-1).
STRICTER: dict[str, tuple[Any, Any]] = {
    "the smaller": (1, 2),
    "the larger": (2, 1),
    "what both name": (("a",), ("a", "b")),
    "all that any names": (("a", "b"), ("a",)),
    "must permit in each": (Audience(readers=("slack:T1/UA",)), Audience(scope=Scope.PUBLIC)),
    "restrictions of both": ("slack:T1/C1", None),
    "those that differ are `legacy`": (Adapter.LEGACY, Adapter.MCP),
}


@pytest.mark.parametrize(("path", "name", "default", "meet"), ROWS)
def test_a_meet_is_what_the_engine_does(path: str, name: str, default: str, meet: str) -> None:
    kind = PARTS[path]
    if meet == "field by field":
        assert default == "below"
    elif meet == "the pinned one, null where any is":
        notice = MEETS[kind][name]
        assert (notice("a", "b"), notice(None, "b"), notice("a", None)) == ("a", None, None)
    elif name in WALKS.get(kind, {}):  # things by their names, each on its own
        assert meet in ("what both name", "each must hold")
    elif " before " in meet:
        for stricter, looser in _pairs(kind.model_fields[name], meet):
            _tightens(kind, name, stricter, looser)
    elif meet == "each must hold":
        effects = {JUDGES[kind][name](*pair) for pair in (("a", "b"), ("b", "a"))}
        assert effects == {Effect.BOTH}
    else:
        _tightens(kind, name, *STRICTER[meet])


def _pairs(info: FieldInfo, meet: str) -> Iterator[tuple[Any, Any]]:
    read = TypeAdapter(info.rebuild_annotation()).validate_python
    values = [read(yaml.safe_load(word)) for word in re.findall(r"`(\w+)`", meet)]
    assert len(values) > 1
    return pairwise(values)


def _tightens(kind: type[Part], name: str, stricter: Any, looser: Any) -> None:
    judge = JUDGES[kind][name]
    assert (judge(looser, stricter), judge(stricter, looser)) == (Effect.TIGHTENS, Effect.LOOSENS)
