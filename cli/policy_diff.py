"""Decides in which words `turngate policy diff` says what a newer policy tightens and what it loosens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from turngate.cli.errors import NO, Impossible
from turngate.cli.files import STDIN, policy_text

if TYPE_CHECKING:
    from turngate.processors.policy_diff import Change
    from turngate.schemas.policy import Policy

#: What stands over the changes of each effect (`turngate.processors.policy_diff.Effect`), in this order.
_TITLES = {
    "tightens": "tightens, at once and everywhere",
    "loosens": "loosens, for rooms that start after it",
    "both": "tightens and loosens: some of what was permitted is not, and the other way round",
    "neither": "neither tightens nor loosens",
}
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def diff(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="The document in force, YAML or JSON.", show_default=False)
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The one to be published.", show_default=False)],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for other programs.")] = False,
    fail_on_loosening: Annotated[
        bool, typer.Option("--fail-on-loosening", help="Exit code 1 where anything is loosened.")
    ] = False,
) -> None:
    """Say field by field what a newer policy document tightens and what it loosens.

    A tightening holds at once in every room, a loosening only in rooms that start after it (and at once where no room
    is concerned). Exit code 0 whatever differs, 2 where a document is invalid.

    Example:  turngate policy diff acme-7.yaml acme-8.yaml --fail-on-loosening
    """
    from turngate.processors.policy_diff import Effect, compare

    if (old, new) == (STDIN, STDIN):
        raise Impossible("only one of the two documents can be standard input")
    before, after = _read(old), _read(new)
    changes = compare(before, after)
    if as_json:
        typer.echo(json.dumps(_plain(before, after, changes), ensure_ascii=False))
    else:
        for line in _words(before, after, changes):
            typer.echo(line)
    if after.version <= before.version and changes:
        typer.echo(
            f"{new}: version {after.version} is not greater than {before.version}, so it would not be taken up",
            err=True,
        )
    if fail_on_loosening and any(change.effect in (Effect.LOOSENS, Effect.BOTH) for change in changes):
        raise typer.Exit(NO)


def _read(path: Path) -> Policy:
    from turngate.schemas.policy import PolicyInvalid, parse_policy

    try:
        return parse_policy(policy_text(path))
    except PolicyInvalid as error:
        raise Impossible(f"{path}: {error}") from None


def _words(before: Policy, after: Policy, changes: list[Change]) -> Iterator[str]:
    yield f"version {before.version} -> {after.version}: " + ("no other change" if not changes else _counts(changes))
    for effect, title in _TITLES.items():
        of_it = [change for change in changes if change.effect == effect]
        if of_it:
            yield f"{title}:"
            yield from (f"  {'.'.join(change.path)}: {_change(change)}" for change in of_it)


def _counts(changes: Iterable[Change]) -> str:
    effects = [change.effect for change in changes]
    said = (("tightens", "tightened"), ("loosens", "loosened"), ("both", "both"), ("neither", "neither"))
    return ", ".join(f"{effects.count(e)} {word}" for e, word in said if e in effects)  # type: ignore[arg-type]


def _change(change: Change) -> str:
    from turngate.processors.policy_diff import ABSENT

    if change.new is ABSENT:
        return "no longer named"
    new = said(change.path[-1], change.new)
    if change.old is ABSENT:
        return f"named now: {_short(new)}" if not isinstance(new, dict) else "named now"
    old = said(change.path[-1], change.old)
    if isinstance(old, list) and isinstance(new, list):
        gone = [f"- {x}" for x in old if x not in new]
        come = [f"+ {x}" for x in new if x not in old]
        return ", ".join([*gone, *come])
    return f"{_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(before: Policy, after: Policy, changes: list[Change]) -> dict[str, Any]:
    from turngate.processors.policy_diff import ABSENT

    listed = []
    for change in changes:
        told: dict[str, Any] = {"field": ".".join(change.path), "path": change.path, "effect": change.effect}
        for side in ("old", "new"):
            if getattr(change, side) is not ABSENT:  # what is not named is left out; null is a value
                told[side] = said(change.path[-1], getattr(change, side))
        listed.append(told)
    counts = {effect: sum(change.effect == effect for change in changes) for effect in _TITLES}
    return {"old": before.version, "new": after.version, "counts": counts, "changes": listed}


def said(name: str, value: Any) -> Any:
    """A value of the document's field `name` as the document writes it, in plain data."""
    from turngate.schemas.policy import Part
    from turngate.schemas.shapes import Audience, Scope

    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return duration(value) if name in _durations() else value
    if isinstance(value, tuple):
        return [said(name, item) for item in value]
    if isinstance(value, dict):
        return {key: said(key, item) for key, item in value.items()}
    if isinstance(value, Audience) and value.scope is not Scope.LISTED:
        return value.scope.value
    if isinstance(value, Audience):
        return {n: v for n, v in value.model_dump(mode="json", exclude={"scope"}).items() if v}
    if isinstance(value, Part):
        return {n: said(n, getattr(value, n)) for n in type(value).model_fields}
    return str(value)


@cache
def _durations() -> frozenset[str]:
    """The names of the document's fields that are lengths of time."""
    from turngate.processors.policy_diff import JUDGES
    from turngate.schemas.policy import Duration

    return frozenset(
        name
        for part in JUDGES
        for name, hint in get_type_hints(part, include_extras=True).items()
        if Duration in (hint, *get_args(hint))
    )


def duration(millis: int) -> str:
    """A length of time in the largest unit that says it exactly."""
    for unit, size in _UNITS:
        if millis % size == 0 and millis:
            return f"{millis // size}{unit}"
    return f"{millis}ms" if millis else "0s"
