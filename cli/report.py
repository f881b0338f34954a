"""Decides how `turngate report` says what was, or would have been, refused, and what a policy could say about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.options import Connection, connects
from turngate.cli.pasted import as_yaml
from turngate.cli.progress import progress
from turngate.cli.recorded import of_tenant, recorded
from turngate.cli.replay import EXPORTED
from turngate.cli.what_if import table

if TYPE_CHECKING:
    from turngate.processors.keys import Keys
    from turngate.schemas.codec import Codec
    from turngate.streams.curing import Cure, Edit
    from turngate.streams.recorded import Records
    from turngate.streams.refusals import Ended

#: Week, room, rule, code.
Row = tuple[str, str, str, str]

#: Stands above a change that is proposed (R-POL-1).
_BEGINS = "# Published now, it holds in rooms that start after it: docs/agents.md says how to begin with it."


@connects(log=True, keys=True)
def report(
    connection: Connection,
    *,
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose agents.")],
    exported: Annotated[Path | None, EXPORTED] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for other programs.")] = False,
) -> None:
    """Say what was refused, by week, room and rule, and which change of the policy would let the ordinary part pass.

    It is for agents that observe first (docs/agents.md), who spoke regardless, and counts the same of those that do
    not. Ordinary is what is refused only because the policy does not name a tool, an agent, an open room or a link's
    host; the change proposed is the smallest, and is tried by deciding everything again under it, which needs the log
    from its beginning and the keys that the worker had. Whether it is right to say that is for you to know.

    Example:  turngate report --tenant acme --log turngate.db
    """
    from turngate.streams.refusals import recorded_ends

    keys = connection.keys()
    with recorded(connection, exported) as (records, codec):
        of_tenant(records, tenant)
        ends = recorded_ends(records, codec, tenant)
        refused = {turn: end for turn, end in ends.items() if not end.passed}
        if not as_json:
            _tell_refused(ends, refused)
        cure = _cure(records, codec, keys, tenant, refused) if refused else None
    if as_json:
        typer.echo(json.dumps(_plain(ends, refused, cure), ensure_ascii=False))
    elif cure is not None:
        _tell_cure(refused, cure)


def _cure(records: Records, codec: Codec, keys: Keys, tenant: str, refused: Mapping[str, Ended]) -> Cure:
    from turngate.streams.counterfactual import ends_under
    from turngate.streams.curing import changed, smallest
    from turngate.streams.recorded_facts import Facts

    facts = Facts(records, codec, tenant, refused)

    def under(edits: Sequence[Edit]) -> Mapping[str, Ended]:
        with progress("Deciding again") as told:
            return ends_under(records, codec, keys, tenant, lambda document: changed(edits, document), told)

    return smallest(refused, facts, under)


def _rows(ends: Mapping[str, Ended]) -> Counter[Row]:
    """A turn counts once for each of its codes."""
    from turngate.streams.refusals import RULES

    rules = {code.value: rule for code, rule in RULES.items()}
    counted: Counter[Row] = Counter()
    for end in ends.values():
        for code in {reason.code for reason in end.reasons} or {""}:
            counted[(end.week, end.room, rules.get(code, ""), code)] += 1
    return counted


def _of(ends: Mapping[str, Ended]) -> Counter[tuple[str, str]]:
    return Counter((end.week, end.room) for end in ends.values())


def _tell_refused(ends: Mapping[str, Ended], refused: Mapping[str, Ended]) -> None:
    of = _of(ends)
    rows = sorted(_rows(refused).items(), key=lambda row: (row[0][0], -row[1], row[0]))
    if rows:
        lines = [(*row, str(count), str(of[row[0], row[1]])) for row, count in rows]
        table([("week", "room", "rule", "reason", "refused", "of turns"), *lines])
    typer.echo(f"{len(ends)} turns were decided, {len(refused)} refused")


def _tell_cure(refused: Mapping[str, Ended], cure: Cure) -> None:
    from turngate.demo.words import words_of
    from turngate.streams.stderr import one_line

    if cure.edits:
        typer.echo(f"\n{len(cure.passing)} of them would have passed, if the policy had also said, where it is so:\n")
        typer.echo(_BEGINS)
        for edit in cure.edits:
            typer.echo(one_line(f"# {'.'.join(edit.path)}: for {len(edit.turns & cure.passing)} of them"))
        typer.echo(as_yaml(cure.into({})).rstrip())
    rest = {turn: end for turn, end in refused.items() if turn not in cure.passing}
    if rest:
        typer.echo(
            f"\n{len(rest)} need something else than another policy (docs/refusals.md has the way on from each):\n"
        )
        codes = Counter(code for end in rest.values() for code in {reason.code for reason in end.reasons} or {""})
        table([(code, str(count), words_of(code)) for code, count in codes.most_common()])


def _plain(ends: Mapping[str, Ended], refused: Mapping[str, Ended], cure: Cure | None) -> dict[str, Any]:
    of = _of(ends)
    names = ("week", "room", "rule", "reason")
    counted = sorted(_rows(refused).items())
    rows = [dict(zip(names, row, strict=True)) | {"refused": n, "of": of[row[0], row[1]]} for row, n in counted]
    return {
        "decided": len(ends),
        "refused": len(refused),
        "by": rows,
        "passing": 0 if cure is None else len(cure.passing),
        "change": {} if cure is None else cure.into({}),
    }
