"""The demo on any other export: every message is answered, and every answer decided."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.connectors.slack_export.workspace import UNSHARED, archive, folder, said, user, workspace
from turngate.connectors.slack_export import ExportError
from turngate.demo.run import SHIPPED, play
from turngate.demo.tally import Tally
from turngate.schemas.outputs import Verdict


def run(export: Path) -> tuple[str, Tally]:
    out = io.StringIO()
    tally = play(Console(file=out, width=160), export)
    return out.getvalue(), tally


def answers(tally: Tally) -> dict[str, tuple[Verdict, set[str]]]:
    return {t.turn.turn: (t.decided.verdict, {r.code for r in t.decided.reasons}) for t in tally.taken}


def busy(*, private: bool) -> dict[str, Any]:
    """Seven messages, so that words are carried along: from a room that Morgan does not read, or may."""
    entry = {"id": "C2", "name": "other", "members": ["UALEX"], **UNSHARED}
    channels = workspace()["channels.json"]
    return {
        "users.json": [user("UALEX"), user("UMORGAN"), user("UGUEST", is_restricted=True)],
        "channels.json": channels + ([] if private else [entry]),
        "groups.json": [entry] if private else [],
        "dms.json": [{"id": "D1", "members": ["UALEX"]}],
        "other/2026-01-05.json": [said("1767600000.000000")],
        "general/2026-01-05.json": [said(f"17676000{n}0.000000") for n in range(1, 7)],
    }


@pytest.mark.parametrize("private", [True, False])
def test_words_are_carried_along_only_where_everybody_could_have_read_them(tmp_path: Path, private: bool) -> None:
    out, tally = run(folder(tmp_path, busy(private=private)))
    decided = answers(tally)
    assert all(decided[str(n)] == (Verdict.DELIVER, set()) for n in range(1, 8))
    refused = (Verdict.DROP, {"audience_not_subset"})
    assert decided["7 carrying"] == (refused if private else (Verdict.DELIVER, set()))
    assert "carries words of #other" in out


def test_an_answer_that_waits_for_a_join_is_refused(tmp_path: Path) -> None:
    tree = busy(private=True)
    tree["general/2026-01-05.json"] += [said(f"17676001{n}0.000000") for n in range(4)]
    tree["general/2026-01-06.json"] = [said("1767690000.000000", "UGUEST", subtype="channel_join")]
    decided = answers(run(archive(tmp_path / "export.zip", tree))[1])
    assert decided["11"] == (Verdict.DELIVER, set())
    assert decided["11 late"] == (Verdict.DROP, {"trigger_not_subset"})


def test_in_a_room_that_cannot_be_listed_the_notice_is_sent(tmp_path: Path) -> None:
    tree = busy(private=True)
    tree["channels.json"][0]["is_private"] = True  # which contradicts the list it is in
    decided = answers(run(folder(tmp_path, tree))[1])
    assert decided["1"] == (Verdict.DELIVER, set())
    assert {decided[str(n)][0] for n in range(2, 8)} == {Verdict.DOWNGRADE}
    assert all("destination_unknown" in decided[str(n)][1] for n in range(2, 8))


def test_the_shipped_export_can_be_played_as_any_other() -> None:
    out, tally = run(SHIPPED)
    assert {t.turn.turn for t in tally.taken} >= {str(n) for n in range(1, 25)}
    assert "mpdm-alex" not in out  # a group's name is made of people's


def test_texts_and_accounts_of_an_export_are_not_shown(tmp_path: Path) -> None:
    tree = busy(private=True)
    tree["other/2026-01-05.json"][0]["text"] = "a private word"
    out = run(folder(tmp_path, tree))[0]
    assert "a private word" not in out
    assert "UALEX" not in out


def test_an_export_without_messages_is_played_to_its_end(tmp_path: Path) -> None:
    out, tally = run(folder(tmp_path, workspace() | {"general/2026-01-05.json": []}))
    assert tally.drafts == 0
    assert "drafted 0 replies" in " ".join(out.split())


def test_a_broken_export_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"users\.json: no list"):
        run(folder(tmp_path, workspace() | {"users.json": {}}))
