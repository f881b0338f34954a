"""Two accounts are one person's once somebody has answered in both of them (R-IDN-1), and for nobody else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.connectors.slack.conftest import Log
from tests.connectors.slack.scene import installed
from tests.connectors.slack.test_intake import served
from tests.connectors.slack.test_socket import socket_of
from tests.slack import Slack, Workspace
from tests.slack.server import APP_TOKEN, SIGNING_SECRET
from turngate.connectors.slack.answers import Answers
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.http import COMMANDS, EventsServer
from turngate.connectors.slack.installations import App, Installation, Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.linking import GOOD_FOR, HELP, NOT_GOOD, NOT_KNOWN, PROVEN_FOR, Linking, Step
from turngate.connectors.slack.listing import Listing
from turngate.schemas.inputs import AccountProven, ProofRevoked
from turngate.schemas.shapes import Member, MemberKind
from turngate.sinks.presses import Presses

NOW = 1_800_000_000_000


class Two:
    """Alex' accounts in two workspaces of one tenant, and Eve's in the second."""

    def __init__(self, **more: Any) -> None:
        self.homes = {team: installed(Workspace(team, more.get("enterprise"), "UBOT")) for team in ("T1", "T2")}
        other = installed(Workspace("T3", None, "UBOT"))
        self.homes["T3"] = Installation(**{**_fields(other), "tenant": "other"})
        self.installations = Installations([App("A1", SIGNING_SECRET, APP_TOKEN)], self.homes.values())
        self.directory = Directory()
        self.now = NOW

    def types(self, team: str, user: str, text: str) -> Step:
        linking = Linking(self.installations, self.directory)  # another process each time
        return linking.answer({"user_id": user, "text": text}, self.homes[team], self.now)


@pytest.fixture
def two() -> Two:
    return Two()


def _fields(home: Installation) -> dict[str, Any]:
    return {name: getattr(home, name) for name in home.__slots__}


def told(step: Step) -> str:
    """What is to be typed next."""
    found = re.search(r"`/turngate (.*?)`", step.reply)
    assert found is not None, step.reply
    return found[1]


def linked(two: Two) -> Step:
    first = two.types("T1", "UALEX", "link")
    second = two.types("T2", "UALEX2", told(first))
    return two.types("T1", "UALEX", told(second))


def test_answering_in_both_accounts_proves_that_they_are_one_persons(two: Two) -> None:
    step = linked(two)
    first, second = step.records
    assert isinstance(first, AccountProven)
    assert isinstance(second, AccountProven)
    assert (first.reader, second.reader) == ("slack:T1/UALEX", "slack:T2/UALEX2")
    assert (first.subject, first.agent, first.expires_at) == (second.subject, second.agent, NOW + PROVEN_FOR)
    assert first.proof != second.proof
    assert "UALEX" not in first.subject


def test_nothing_is_proven_on_the_way(two: Two) -> None:
    first = two.types("T1", "UALEX", "link")
    second = two.types("T2", "UALEX2", told(first))
    assert (first.records, second.records) == ((), ())
    assert "Only if that account is yours" in second.reply


def test_whom_it_was_not_shown_to_it_is_no_good_for(two: Two) -> None:
    first = two.types("T1", "UALEX", "link")
    second = two.types("T2", "UALEX2", told(first))
    for team, user in (("T1", "UBO"), ("T2", "UALEX2"), ("T2", "UALEX"), ("T3", "UALEX")):
        assert two.types(team, user, told(second)) == NOT_GOOD
    assert two.types("T3", "UALEX2", told(first)) == NOT_GOOD  # another tenant's
    assert two.types("T1", "UALEX", told(first)).records == ()  # the same account
    two.installations = Installations([App("A1", "another secret")], two.homes.values())
    assert two.types("T1", "UALEX", told(second)) == NOT_GOOD


@pytest.mark.parametrize(
    "change", [lambda c: c[:-1] + ("0" if c[-1] != "0" else "1"), lambda c: c.replace("UALEX", "UEVE")]
)
def test_a_code_cannot_be_made(two: Two, change: Any) -> None:
    second = told(two.types("T2", "UALEX2", told(two.types("T1", "UALEX", "link"))))
    for user in ("UALEX", "UELEX"):
        assert two.types("T1", user, change(second)) == NOT_GOOD
    for text in ("link .", "link 2.A1.T1.UALEX.A1.T2.UEVE.0.-", "link " + "." * 50, "link 1.A9.T1.UALEX.0.x"):
        assert two.types("T1", "UALEX", text) == NOT_GOOD


def test_a_code_is_good_for_ten_minutes(two: Two) -> None:
    first = told(two.types("T1", "UALEX", "link"))
    two.now += GOOD_FOR - 1
    second = told(two.types("T2", "UALEX2", first))
    two.now += 1
    assert two.types("T2", "UALEX2", first) == NOT_GOOD
    two.now += GOOD_FOR - 2
    assert len(two.types("T1", "UALEX", second).records) == 2
    two.now += 1
    assert two.types("T1", "UALEX", second) == NOT_GOOD


def test_the_same_answer_again_is_the_same_proof(two: Two) -> None:
    second = told(two.types("T2", "UALEX2", told(two.types("T1", "UALEX", "link"))))
    assert two.types("T1", "UALEX", second).records == two.types("T1", "UALEX", second).records


def test_it_ends_when_somebody_says_so(two: Two) -> None:
    step = linked(two)
    ended = two.types("T1", "UALEX", told(step))
    assert [r.proof for r in ended.records if isinstance(r, ProofRevoked)] == [
        r.proof for r in step.records if isinstance(r, AccountProven)
    ]
    assert two.types("T1", "UALEX", told(step).replace("unlink", "link")) == NOT_GOOD
    assert two.types("T1", "UALEX", "unlink 3.A1.x.0.y") == NOT_GOOD


def test_a_person_who_links_several_accounts_is_one_subject(two: Two) -> None:
    both = [linked(two)]
    two.now += 1
    both.append(linked(two))
    assert len({r.subject for step in both for r in step.records if isinstance(r, AccountProven)}) == 1
    assert len({r.proof for step in both for r in step.records if isinstance(r, AccountProven)}) == 4


def test_an_organisations_account_is_proven_under_the_id_that_listings_have() -> None:
    two = Two(enterprise="E1")
    assert two.types("T2", "UALEX2", told(two.types("T1", "UALEX", "link"))) == NOT_KNOWN
    for team, user, reader in (("T1", "UALEX", "slack:T0/UALEX"), ("T2", "UALEX2", "slack:T2/UALEX2")):
        member = Member(reader=reader, kind=MemberKind.MEMBER)
        for page in Listing(two.homes[team], "C1", 1, members=(member,)).pages(1):
            two.directory.learn(page)
        assert user in reader
    assert [r.reader for r in linked(two).records if isinstance(r, AccountProven)] == [
        "slack:T0/UALEX",
        "slack:T2/UALEX2",
    ]


@pytest.mark.parametrize("text", ["", "help", "link a b", "unlink"])
def test_anything_else_is_answered_with_what_there_is(two: Two, text: str) -> None:
    assert two.types("T1", "UALEX", text) == HELP
    assert Linking(two.installations, two.directory).answer({}, two.homes["T1"], NOW) == HELP


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    with Slack() as running:
        yield running


COMMAND = {"command": "/turngate", "api_app_id": "A1", "team_id": "T1", "user_id": "UALEX", "text": "link"}


async def test_over_http_and_socket_mode(slack: Slack, two: Two) -> None:
    log = Log()
    intake = Intake(two.installations, two.directory, log.append)
    answers = Answers(two.installations, two.directory, log.append, Presses())
    async with served(EventsServer(two.installations, intake, answers.take)) as url:

        async def typed(team: str, user: str, text: str) -> dict[str, str]:
            body = urlencode({**COMMAND, "team_id": team, "user_id": user, "text": text}).encode()
            kind = "application/x-www-form-urlencoded"
            answer = await asyncio.to_thread(slack.post, body, url + COMMANDS, kind=kind)
            assert answer.status == 200
            found: dict[str, str] = json.loads(answer.body)
            assert found["response_type"] == "ephemeral"
            return found

        first = await typed("T1", "UALEX", "link")
        second = await typed("T2", "UALEX2", told(Step(first["text"])))
        assert log.records == []
        third = await typed("T1", "UALEX", told(Step(second["text"])))
        assert third["text"].startswith("Both accounts are yours")
        assert [type(r) for r in log.records] == [AccountProven, AccountProven]
    async with socket_of(slack, intake, answer=answers.take):
        envelope = await asyncio.to_thread(slack.push, COMMAND, "slash_commands")
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
    assert "within ten minutes" in slack.answers[envelope]["text"]
