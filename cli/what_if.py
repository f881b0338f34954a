"""Decides how another policy is named, and how `turngate replay` shows which decisions it would have made otherwise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.errors import Impossible
from turngate.cli.files import policy_text

if TYPE_CHECKING:
    from turngate.processors.keys import Keys
    from turngate.processors.shadow import Shadowing
    from turngate.processors.trying import Outcome, Tried, Trying
    from turngate.streams.local_runtime import Restore
    from turngate.streams.verifying import Checked, Verifying

#: Of the commands that decide live.
Shadow = Annotated[
    Path | None,
    typer.Option("--shadow", metavar="NEW.yaml", help="Say what this policy would decide otherwise; act on none."),
]
ShadowTenant = Annotated[
    str | None, typer.Option("--shadow-tenant", metavar="TENANT", help="With --shadow: whose it is; else all.")
]

#: A room, a verdict and what it would be, and a reason with `+` where it comes and `-` where it goes.
Row = tuple[str, str, str, str]


def proposed(policy: Path) -> str:
    """The document of a policy that is tried. Raises `Impossible` for a file that is none."""
    from turngate.schemas.policy import PolicyInvalid, parse_policy

    document = policy_text(policy)
    try:
        parse_policy(document)
    except PolicyInvalid as error:
        raise Impossible(f"{policy}: {error}") from None
    return document


def shadowing(policy: Path | None, tenant: str | None, keys: Keys) -> Restore[Shadowing] | None:
    """What makes engines that say what this policy would decide otherwise; None where none was named.

    Raises `Impossible` for a file that is none, and for a tenant alone.
    """
    if policy is None:
        if tenant is not None:
            raise Impossible("--shadow-tenant says whose the policy is: give --shadow too")
        return None
    from turngate.processors.shadow import Shadowing

    return partial(Shadowing.under, proposed(policy), tenant, keys=keys)


@dataclass(slots=True)
class Tally:
    """How many decisions there were, how many would be others, and how often each of these rows."""

    decided: int = 0
    changed: int = 0
    rows: Counter[Row] = field(default_factory=Counter)

    @classmethod
    def of(cls, kept: Any) -> Tally:
        """The one that `kept` made, as JSON; a new one of None."""
        if kept is None:
            return cls()
        return cls(kept["decided"], kept["changed"], Counter({(*row,): count for row, count in kept["rows"]}))

    def kept(self) -> dict[str, Any]:
        """What a replay keeps to go on with."""
        return {"decided": self.decided, "changed": self.changed, "rows": list(self.rows.items())}


def what_if(verifying: Verifying[Trying], steps: Iterable[Checked], tally: Tally, *, as_json: bool) -> None:
    """Go through these steps of it, and say what would be otherwise."""
    for checked in steps:
        tried = verifying.replay.engine.take_tried()
        for one in tried if checked.compared else ():
            tally.decided += 1
            if one.was != one.now:
                tally.changed += 1
                tally.rows.update(_rows(one))
                if as_json:
                    typer.echo(json.dumps(_plain(one), ensure_ascii=False))
    if verifying.differ:
        typer.echo(
            f"{verifying.differ} recorded decisions are not what this engine comes to again, and what would be is "
            "told of what it comes to: see `turngate replay` without --policy",
            err=True,
        )
    if as_json:
        listed = [
            dict(zip(("room", "was", "now", "reason"), row, strict=True)) | {"count": n} for row, n in _most(tally.rows)
        ]
        typer.echo(json.dumps({"decisions": tally.decided, "changed": tally.changed, "by": listed}, ensure_ascii=False))
        return
    if tally.rows:
        table([("room", "was", "would be", "reason", "decisions"), *((*row, str(n)) for row, n in _most(tally.rows))])
    typer.echo(f"{tally.decided} decisions, {tally.changed} would be others")


def _rows(tried: Tried) -> list[Row]:
    """A decision counts once for each reason that comes or goes, or once where it is none of these."""
    was, now = ({code for code, _ in outcome.reasons} for outcome in (tried.was, tried.now))
    reasons = [*(f"+{code}" for code in sorted(now - was)), *(f"-{code}" for code in sorted(was - now))]
    return [(tried.room, tried.was.verdict, tried.now.verdict, reason) for reason in reasons or [""]]


def _most(rows: Counter[Row]) -> list[tuple[Row, int]]:
    """The most frequent first."""
    return sorted(rows.items(), key=lambda row: (-row[1], row[0]))


def table(lines: list[tuple[str, ...]]) -> None:
    """Print lines in columns, whatever characters are in their cells."""
    from turngate.streams.stderr import one_line

    shown = [tuple(map(one_line, line)) for line in lines]
    widths = [max(len(line[n]) for line in shown) for n in range(len(shown[0]))]
    for line in shown:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _plain(tried: Tried) -> dict[str, Any]:
    named = {"tenant": tried.tenant, "room": tried.room, tried.kind: tried.name}
    return named | {"was": _outcome(tried.was), "now": _outcome(tried.now)}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    reasons = [{"code": code, "ref": ref} for code, ref in outcome.listed]
    return {"verdict": outcome.verdict, "reasons": reasons, "passes": list(outcome.passes)}
