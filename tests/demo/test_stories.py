"""The demo tells the stories of the seeds: what is refused, and beside it the twin that is delivered."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from turngate.connectors.slack_export import read_export
from turngate.demo import run_demo
from turngate.demo.run import SHIPPED, play
from turngate.demo.stories import STORIES
from turngate.demo.tally import Tally
from turngate.schemas.outputs import Verdict

DELIVER, DOWNGRADE, DROP = Verdict.DELIVER, Verdict.DOWNGRADE, Verdict.DROP

#: Each draft of each story: what became of it, and why.
EXPECTED = {
    "The travel plan": [
        (DROP, {"audience_not_subset"}),  # R-AUD-4: asking for it, even about oneself, is no permission
        (DELIVER, set()),
        (DROP, {"audience_not_subset"}),  # R-AUD-4: nor is being named in it
    ],
    "The office event": [
        (DELIVER, set()),  # R-AUD-1: a full member of the workspace
        (DROP, {"audience_not_subset"}),  # R-AUD-1: a guest is none
        (DELIVER, set()),
    ],
    "The room that grew": [
        (DELIVER, set()),
        (DROP, {"audience_not_subset", "trigger_not_subset"}),  # R-TURN-3
        (DROP, {"audience_not_subset"}),  # R-AUD-5
        (DELIVER, set()),
    ],
    "The duplicate delivery": [
        (DROP, {"trigger_not_subset"}),  # R-AUD-6, R-TURN-3
        (DELIVER, set()),  # R-TURN-8
    ],
    "The channel shared with another company": [
        (DOWNGRADE, {"destination_unknown", "source_unknown", "audience_not_subset"}),  # R-TURN-6: the notice
        (DOWNGRADE, set()),  # R-TURN-6: public evidence
        (DELIVER, set()),
    ],
    "The message that quotes another": [
        (DROP, {"audience_not_subset"}),  # R-AUD-6: quotes add the quoted message's leaves
        (DELIVER, set()),
    ],
}


def told(width: int = 120) -> tuple[str, Tally]:
    out = io.StringIO()
    tally = play(Console(file=out, width=width), None)
    return out.getvalue(), tally


@pytest.fixture(scope="module")
def run() -> tuple[str, Tally]:
    return told()


def test_every_draft_is_decided_as_the_rules_say_and_once(run: tuple[str, Tally]) -> None:
    decided = {t.turn.turn: (t.decided.verdict, {r.code for r in t.decided.reasons}) for t in run[1].taken}
    expected = {f"{title} {n + 1}": draft for title, drafts in EXPECTED.items() for n, draft in enumerate(drafts)}
    assert decided == expected
    assert len(run[1].taken) == len(expected)


def test_in_every_story_something_is_refused_and_something_delivered(run: tuple[str, Tally]) -> None:
    for story in STORIES:
        verdicts = {t.decided.verdict for t in run[1].taken if t.turn.turn.startswith(story.title)}
        assert DELIVER in verdicts, story.title
        assert verdicts & {DROP, DOWNGRADE}, story.title


def test_nothing_leaves_but_what_was_drafted_or_the_notice(run: tuple[str, Tally]) -> None:
    for taken in run[1].taken:
        if taken.decided.verdict is DROP:
            assert taken.sent is None
        elif taken.decided.reasons:
            assert taken.sent == "I can't check who can read this room right now."
        else:
            assert taken.sent == taken.turn.text


def test_every_decision_is_shown_with_its_reason_in_words(run: tuple[str, Tally]) -> None:
    text = re.sub(r"\s+", " ", run[0])
    assert text.count("✔ delivered") == 8
    assert text.count("✘ refused") == text.count("because somebody") == 7
    assert "somebody reads the room now who could not when the question was asked" in text
    for story in STORIES:
        assert story.title in text
        for draft in story.drafts:
            assert draft.shows in text
            assert draft.text in text


def test_it_ends_with_a_table_and_a_paragraph_of_what_happened(run: tuple[str, Tally]) -> None:
    table, _, paragraph = run[0].rpartition("What just happened.")
    assert re.search(r"delivered +│ +8 │", table)
    assert re.search(r"refused +│ +7 │", table)
    said = re.sub(r"\s+", " ", paragraph)
    assert "drafted 17 replies" in said
    assert "9 were let out" in said
    assert "8 were not" in said
    assert "simulated connector" in said


def test_it_says_the_same_every_time(run: tuple[str, Tally]) -> None:
    assert re.sub(r"[0-9.]+ seconds", "", told()[0]) == re.sub(r"[0-9.]+ seconds", "", run[0])


def test_it_can_be_shown_on_a_terminal_that_knows_only_ascii() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80)
    assert run_demo(console, None) == 0
    console.file.flush()
    assert b"delivered" in raw.getvalue()


def test_the_shipped_export_is_whole_and_establishes_every_room() -> None:
    with read_export(SHIPPED, tenant="acme", agent="mesh") as export:
        summary = export.summary
    assert (summary.rooms, summary.established, summary.problems) == (8, 8, [])
    assert not summary.skipped
