"""Measures what looking for 10,000 remembered values costs in a draft of 4,000 characters (R-EGR-1, R-EGR-5).

    python -m benchmarks.matching [--values N] [--json FILE]

The text is Python's own manual. The same decision is timed in a room that has read nothing, so that the difference is
what the looking costs; `find` is the matcher alone, `links` the search for links in the same text.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

from turngate.processors.engine import Engine
from turngate.processors.fingerprints import Finder, fingerprints, tags
from turngate.processors.keys import TEST_KEYS
from turngate.processors.links import links
from turngate.schemas.inputs import MembershipPage, MessageObserved, PolicyPublished, Record, ToolReturned, TurnDrafted
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.schemas.shapes import Position

TENANT, AGENT, ROOM = "acme", "mesh", "slack:T1/P1"
EPOCH = 1_767_225_600_000
CHARACTERS = 4_000
#: As many values a tool call; a call is a record.
A_CALL = 100


def made_up(count: int) -> list[str]:
    """Names, addresses, amounts, keys and mail addresses of nobody."""
    chance = random.Random(5)
    names = ["".join(chance.choices("aeioulnrst", k=chance.randint(4, 8))).capitalize() for _ in range(2_000)]
    kinds: list[Callable[[], str]] = [
        lambda: f"{chance.choice(names)} {chance.choice(names)}",
        lambda: str(chance.randint(20_000, 200_000)),
        lambda: f"{chance.randint(2, 99)} {chance.choice(names)} Street",
        lambda: f"xk-{chance.randint(10, 99)}-{chance.choice(names)[:4]}",
        lambda: f"{chance.choice(names)}@example.com",
    ]
    return [kinds[n % len(kinds)]() for n in range(count)]


def pieces() -> list[str]:
    """The manual in pieces of 4,000 characters."""
    text = "\n".join(topics[name] for name in sorted(topics))
    return [text[at : at + CHARACTERS] for at in range(0, len(text) - CHARACTERS, CHARACTERS)]


class Room:
    """A partition in which one room has read some values, and drafts for it."""

    def __init__(self, values: list[str]) -> None:
        self._engine = Engine(TEST_KEYS)
        self._offsets: dict[str, int] = {}
        self._turn = 0
        document = json.dumps({"version": 1, "agents": {AGENT: {}}, "tools": {"hr": {"audience": "public"}}})
        self.apply("policies", PolicyPublished(tenant=TENANT, at=EPOCH, version="1", document=document))
        page = {"agent": AGENT, "room": ROOM, "refresh": "r", "page": 0, "last": True, "started_at": EPOCH}
        guests = [{"reader": "slack:T1/UA", "kind": "member"}, {"reader": "slack:T1/UG", "kind": "guest"}]
        info = {"kind": "channel", "visibility": "members"}
        fields = {"tenant": TENANT, "at": EPOCH, **page, "info": info, "members": guests}
        self.apply("membership-refreshes", MembershipPage.model_validate(fields))
        said = {"agent": AGENT, "room": ROOM, "message": f"{ROOM}/1", "author": "slack:T1/UA", "author_kind": "person"}
        self.apply(
            "observed-messages", MessageObserved.model_validate({"tenant": TENANT, "at": EPOCH, **said, "text": "?"})
        )
        for call in range(0, len(values), A_CALL):
            read = [{"name": "v", "value": v, "class": "confidential"} for v in values[call : call + A_CALL]]
            more = {
                "agent": AGENT,
                "room": ROOM,
                "call": f"c{call}",
                "server": "hr",
                "operation": "get",
                "fields": read,
            }
            self.apply("tool-results", ToolReturned.model_validate({"tenant": TENANT, "at": EPOCH, **more}))

    def apply(self, topic: str, record: Record) -> list[Record]:
        """Apply a record at the next offset of its topic."""
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        return self._engine.apply(record, Position(topic=topic, partition=0, offset=offset), EPOCH)

    def decide(self, text: str) -> Verdict:
        """Decide a draft that says this."""
        self._turn += 1
        draft = {"agent": AGENT, "turn": f"t{self._turn}", "room": ROOM, "trigger": f"message:{ROOM}/1"}
        record = TurnDrafted.model_validate({"tenant": TENANT, "at": EPOCH, **draft, "renderings": [{"text": text}]})
        out = self.apply("turn-drafts", record)
        return next(r.verdict for r in out if isinstance(r, TurnDecided))


def timed(work: Callable[[str], object], texts: list[str]) -> list[float]:
    """Milliseconds of CPU for each text."""
    spent = []
    for text in texts:
        began = time.process_time_ns()
        work(text)
        spent.append((time.process_time_ns() - began) / 1e6)
    return spent


def main() -> None:
    """Measure all in one run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    values, texts = made_up(options.values), pieces()
    _, key = TEST_KEYS.fingerprint_keys(TENANT)[0]
    remembered = {mark: None for value in values for mark in fingerprints(value, key)}
    beginnings, finder = tags(remembered), Finder(key)
    full, empty = Room(values), Room([])
    assert full.decide(f"we pay {values[1]} a year") is Verdict.DROP, "a remembered value is not found"
    full.decide(texts[0])  # the index is built with the first draft
    rows = {
        f"whole decision, {options.values:,} values": timed(full.decide, texts),
        "whole decision, no values": timed(empty.decide, texts),
        "find alone": timed(lambda text: finder.find(text, remembered, beginnings), texts),
        "links alone": timed(links, texts),
    }
    print("| contender | best, ms CPU | median, ms CPU |\n|---|---|---|")
    for name, spent in rows.items():
        print(f"| {name} | {min(spent):.2f} | {statistics.median(spent):.2f} |")
    if options.json is not None:
        options.json.write_text(json.dumps({n: statistics.median(s) for n, s in rows.items()}), "utf-8")


if __name__ == "__main__":
    main()
