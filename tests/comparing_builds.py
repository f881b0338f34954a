"""Decides what two builds of one engine are compared by: `python -m tests.comparing_builds`, once with each.

It prints which build it is, for each of many random streams what came of every record and the digest of the state, and
how often what was decided. The streams are the same in every run. In every third the writer of records fails or refuses
now and then (R-RUN-6), and two of five are tried under another policy too, of which one says so beside the rest.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

from tests.processors.feed import POLICY
from tests.processors.streams import Player, Step, placed, sent, told, with_ticks
from turngate.processors import engine
from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.processors.shadow import Shadowing
from turngate.processors.trying import Tried, Trying
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import TurnDecided

STREAMS = 300
#: What is put behind a policy: nothing, a listing that is soon too old, and much that is soon forgotten.
POLICIES = ("", "freshness: {destination: 2s}\n", "retention: {messages: 20s, log: 9s, room_inactive: 30s}\n")
CODEC = Codec()


class Writer:
    """Says of every seventh record that it is too large, and fails at every eleventh."""

    def __init__(self) -> None:
        self.asked = 0

    def fits(self, _: Record) -> bool:
        self.asked += 1
        if self.asked % 11 == 0:
            raise OSError
        return self.asked % 7 != 0


def came_of(player: Player, chosen: list[Step], verdicts: Counter[str]) -> str:
    """Every byte that came of a stream, and the state after it, digested; `verdicts` counts what was decided."""
    sha = hashlib.sha256()
    for out in player.play(with_ticks(sent(chosen))):
        sha.update(b"|".join(CODEC.encode(record) for record in out) + b"\n")
        for record in out:
            if isinstance(record, TurnDecided):
                verdicts.update([record.verdict.value, *(reason.code for reason in record.reasons)])
    return f"{sha.hexdigest()} {player.engine.state.digest()}"


def shown(tried: Tried) -> list[object]:
    """What was tried, in an order that no hash decides."""
    return [
        tried.kind,
        tried.name,
        *((o.verdict, sorted(map(str, o.reasons)), o.passes) for o in (tried.was, tried.now)),
    ]


def main() -> None:
    """Print one line a stream."""
    sys.stdout.write(f"{Path(engine.__file__).suffix}\n")
    verdicts: Counter[str] = Counter()
    for number in range(STREAMS):
        chance = Random(number)
        chosen = told(chance.randrange(2**24) for _ in range(chance.randrange(10, 40)))
        document = POLICY + chance.choice(POLICIES)
        stream = [placed(chosen[0], document=document), *chosen[1:]]
        player = Player(Engine(TEST_KEYS))
        if number % 3 == 0:
            player.engine.fits = Writer().fits
        line = came_of(player, stream, verdicts)
        if number % 5 == 0:
            trying = Trying.under(POLICY + chance.choice(POLICIES), None, (), Engine.version, TEST_KEYS)
            line += f" {came_of(Player(trying), stream, verdicts)} {[shown(tried) for tried in trying.take_tried()]}"
        if number % 5 == 1:
            shadowing = Shadowing.under(POLICY + chance.choice(POLICIES), None, (), Engine.version, TEST_KEYS)
            line += f" {came_of(Player(shadowing), stream, verdicts)}"
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{json.dumps(verdicts)}\n")


if __name__ == "__main__":
    main()
