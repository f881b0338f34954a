"""Decides how `turngate scenarios` runs scenario files and says what came of them."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turngate.cli.errors import IMPOSSIBLE, NO, Impossible, extra
from turngate.cli.options import Connection, connects

if TYPE_CHECKING:
    from turngate.streams.scenarios.backend import Backend
    from turngate.streams.scenarios.document import Scenario


@connects(registry=False)
def scenarios(
    connection: Connection,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Scenario files, or folders of them.")],
    rules: Annotated[
        str | None, typer.Option("--rules", metavar="R-AUD,R-TURN-3,…", help="Only those about one of these rules.")
    ] = None,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="On a broker, through the worker, instead of the embedded log.")
    ] = False,
) -> None:
    """Run scenario files: executable examples of the rules, one line each, then `N passed, M failed`.

    A failure shows the step, what was expected and every record that came. The exit code is 1 if one failed, and 2 if
    a file cannot be run. `--kafka` needs a broker on this machine and TURNGATE_TEST_TIME=1, since time is simulated.

    Example:  turngate scenarios tests/scenarios --rules R-AUD,R-ROOM-4
    """
    from turngate.streams.scenarios.document import find, load
    from turngate.streams.scenarios.errors import ScenarioError
    from turngate.streams.scenarios.running import run_all

    asked = [] if rules is None else [rule.strip() for rule in rules.split(",")]
    found: set[str] = set()
    picked: list[Scenario] = []
    broken = passed = failed = 0
    for path in find(paths):
        try:
            scenario = load(path)
        except ScenarioError as error:
            broken += 1
            typer.echo(f"turngate: {error}", err=True)
            continue
        about = {rule for rule in asked if scenario.shows([rule])}
        found |= about
        if rules is None or about:
            picked.append(scenario)
    if not broken and not found.issuperset(asked):
        nowhere = ", ".join(rule for rule in asked if rule not in found)
        raise Impossible(f"no scenario there is about {nowhere}; rules are named R-AUD or R-AUD-2")
    with ExitStack() as stack:
        backend = _kafka(connection, stack) if kafka else _local()
        for scenario, failure in zip(picked, run_all(picked, backend), strict=True):
            passed, failed = passed + (failure is None), failed + (failure is not None)
            _say(scenario, failed=failure is not None)
            for line in () if failure is None else failure.lines():
                typer.echo(f"     {line}")
    typer.echo(f"{passed} passed, {failed} failed" + (f", {broken} could not be read" if broken else ""))
    if broken or failed:
        raise typer.Exit(IMPOSSIBLE if broken else NO)


def _say(scenario: Scenario, *, failed: bool) -> None:
    colour = typer.colors.RED if failed else typer.colors.GREEN
    mark = typer.style("FAIL" if failed else "ok  ", fg=colour) if sys.stdout.isatty() else "FAIL" if failed else "ok  "
    typer.echo(f"{mark} {scenario.name}: {scenario.sentence}")


def _local() -> Backend:
    from turngate.streams.scenarios.local import LocalBackend

    return LocalBackend()


def _kafka(connection: Connection, stack: ExitStack) -> Backend:
    with extra("kafka"):
        from turngate.streams.scenarios.kafka import KafkaBackend
    backend: Backend = stack.enter_context(KafkaBackend(connection.kafka()))
    return backend
