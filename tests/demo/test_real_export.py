"""The demo on a real workspace's export, where it is at hand: every message is decided as a possible trigger."""

from __future__ import annotations

import io
import time
from collections import Counter

from rich.console import Console

from tests.others import SLACK_EXPORT
from turngate.demo.run import play
from turngate.schemas.outputs import Verdict


def test_every_message_of_a_real_workspace_is_decided_in_half_a_minute() -> None:
    out = io.StringIO()
    began = time.monotonic()
    tally = play(Console(file=out, width=160), SLACK_EXPORT)
    assert time.monotonic() - began < 30
    turns = [t.turn.turn for t in tally.taken]
    assert {str(n) for n in range(1, 1383)} <= set(turns)
    assert Counter(turns).most_common(1)[0][1] == 1
    shares = {v: n / tally.drafts for v, n in tally.verdicts.items()}
    assert shares[Verdict.DELIVER] > 0.5
    assert shares[Verdict.DROP] > 0.1
    assert out.getvalue().count("\n20") == tally.drafts
    assert "listed them as if only their members could read them" in " ".join(out.getvalue().split())
