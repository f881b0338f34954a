"""Decides what `turngate demo` does: an export is imported, an agent drafts, and every decision is shown."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

from rich.console import Console

from turngate.connectors.slack_export import read_export
from turngate.demo.any_export import Everyday
from turngate.demo.guards import Guards
from turngate.demo.listings import Listings, all_public
from turngate.demo.narrator import Narrator
from turngate.demo.stories import ACCOUNT
from turngate.demo.tally import Tally
from turngate.demo.world import AGENT, TENANT, World

SHIPPED = Path(__file__).parent / "export"
#: The account of an agent that an export does not have.
NOBODY = "TURNGATE-DEMO"


def run_demo(console: Console, export: Path | None) -> int:
    """Run the demo on an export, or on the one that the project ships, and print it; 0 when it has run.

    Raises `ExportError` where the export cannot be read.
    """
    play(console, export)
    return 0


def play(console: Console, export: Path | None) -> Tally:
    """As `run_demo`; returns what became of every draft."""
    began = time.monotonic()
    if isinstance(console.file, io.TextIOWrapper):
        console.file.reconfigure(errors="replace")  # a terminal that cannot show a mark shows another one
    account = ACCOUNT if export is None else NOBODY
    with read_export(
        SHIPPED if export is None else export, tenant=TENANT, agent=AGENT, accounts=[account], not_shared=True
    ) as read:
        events = list(read)
    tally = Tally()
    as_private = all_public(events)
    listings = Listings(events, read.scene.accounts, as_private)
    with World(listings) as world:
        world.now = events[0].at if events else 0
        _publish_policy(world, read.scene.accounts.reader(account))
        if export is None:
            _introduce_stories(console)
            Narrator(world, console, tally).play(events)
        else:
            everyday = Everyday(world, console, tally, read.rooms, read.scene.room)
            everyday.introduce(read.summary, as_private)
            everyday.play(events)
        world.run()
        console.print()
        console.print(tally.table())
        console.print()
        console.print(_summary(world, tally, time.monotonic() - began, export is None, as_private), highlight=False)
    return tally


def _publish_policy(world: World, account: str) -> None:
    """The tenant's policy: the agent's own account, and one tool whose pages anybody may read."""
    document = {
        "version": 1,
        "agents": {AGENT: {"accounts": [account]}},
        "tools": {"pages": {"adapter": "mcp", "audience": "public"}},
    }
    fields = {"tenant": TENANT, "at": world.now, "version": "1", "document": json.dumps(document)}
    world.feed("PolicyPublished", "policies", fields)


def _introduce_stories(console: Console) -> None:
    console.print(
        "[bold]A day at Harbor[/], a small company whose agent, Mesh, is in several rooms. Mesh is simulated and "
        "careless: it answers with whatever it knows. Who reads which room at a moment is told by a simulated "
        "connector, worked out from the export's joins and leaves. The decisions are real: Turngate's engine makes "
        "them on an embedded log.",
        highlight=False,
    )


def _summary(world: World, tally: Tally, seconds: float, stories: bool, as_private: bool) -> str:
    """What just happened, in a paragraph."""
    withheld = tally.drafts - tally.let_out
    whose = "a made-up workspace" if stories else "the workspace"
    private = (
        " Its channels are public, so that in truth nothing could have been out of place; to show the rules at work on "
        "real comings and goings, the simulated connector listed them as if only their members could read them."
        if as_private
        else ""
    )
    return (
        f"[bold]What just happened.[/] The history of {whose} was replayed at its own times, and a simulated agent "
        f"drafted {tally.drafts:,} replies to it. For each, Turngate looked up who could read every source when it was "
        f"said and who could read the destination now, asking a simulated connector {world.listed:,} times for a fresh "
        f"list. {tally.let_out:,} were let out because every reader of the destination could have read every source, "
        f"or anybody may; {withheld:,} were not, since somebody would have read what they could not read before, or "
        f"because nobody could say who reads.{private} No model was asked to keep a secret. "
        f"({world.records:,} records, {seconds:.1f} seconds, no server.)"
    )


def run_guards(console: Console) -> int:
    """Show what leaves the house and what does not (rules EGR, ACT, TNT), and print it; 0 when it has run."""
    Guards(console).play()
    return 0
