"""A Slack with one workspace, the Web API asked there with its token, and a log that takes in what happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from tests.connectors.slack.scene import Scene, installed
from tests.slack import Slack, Workspace
from tests.slack.server import APP_TOKEN, SIGNING_SECRET
from turngate.connectors.slack.answers import Answers
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.installations import App, Installation, Installations
from turngate.connectors.slack.intake import Intake
from turngate.connectors.slack.listing import Listing, list_room
from turngate.connectors.slack.resolving import People
from turngate.schemas.inputs import MessageObserved, Record
from turngate.schemas.shapes import Member, MemberKind
from turngate.sinks.presses import Presses
from turngate.sinks.questions import APPROVE

APPS = [App("A1", SIGNING_SECRET, APP_TOKEN), App("A2", "another secret")]


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as running:
        yield running


@pytest.fixture
def acme(slack: Slack) -> Workspace:
    home = slack.workspace("T1", bot="UBOT")
    for user in ("UALEX", "UBO", "UCY"):
        home.user(user)
    home.user("UGUEST", guest=True)
    home.user("UAPP", bot=True)
    return home


@pytest.fixture
def home(acme: Workspace) -> Installation:
    return installed(acme)


@pytest.fixture
async def api(slack: Slack) -> AsyncIterator[SlackApi]:
    async with SlackApi(slack.url) as running:
        yield running


class Log:
    """What was appended; `broken` raises, `held` waits."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.broken: Exception | None = None
        self.held: asyncio.Event | None = None
        self.tried = asyncio.Event()

    async def append(self, records: Sequence[Record]) -> None:
        self.tried.set()
        if self.held is not None:
            await self.held.wait()
        if self.broken is not None:
            raise self.broken
        self.records += records

    def texts(self) -> list[str | None]:
        return [r.text for r in self.records if isinstance(r, MessageObserved)]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
def installations(acme: Workspace) -> Installations:
    return Installations(APPS, [installed(acme)])


@pytest.fixture
async def taking(installations: Installations, directory: Directory, log: Log) -> Intake:
    return Intake(installations, directory, log.append)


def listed(directory: Directory, home: Installation, *rooms: str) -> None:
    alex = Member(reader=f"{home.namespace}/UALEX", kind=MemberKind.MEMBER)
    for room in rooms:
        for page in Listing(home, room, 1, members=(alex,)).pages(1):
            directory.learn(page)


@pytest.fixture
def message(slack: Slack, acme: Workspace) -> dict[str, Any]:
    slack.say(slack.channel("C1", acme, ["UBOT", "UALEX"]), "UALEX", "hello")
    return slack.queue.pop()


def answers(installations: Installations, log: Log, directory: Directory | None = None) -> Answers:
    known = Directory() if directory is None else directory
    return Answers(installations, known, log.append, Presses())


BUTTON = {
    "type": "block_actions",
    "api_app_id": "A1",
    "team": {"id": "T1", "domain": "acme"},
    "user": {"id": "UALEX", "team_id": "T1"},
    "container": {"type": "message", "message_ts": "1700000000.000100", "channel_id": "C1"},
    "actions": [
        {
            "action_id": APPROVE,
            "value": json.dumps({"tenant": "acme", "room": "slack:T1/C1", "fingerprint": "0" * 64, "until": 1}),
        }
    ],
}


async def listing_of(api: SlackApi, home: Installation, room: str = "C1", people: People | None = None) -> Listing:
    return await list_room(api, People(api) if people is None else people, home, room, 1)


def members(listing: Listing) -> dict[str, str]:
    assert listing.error is None
    return {m.reader.partition("/")[2]: m.kind.value for m in listing.members}


def long(slack: Slack) -> None:
    """Let the workspace have so many accounts that nobody asks for all of them because of a few."""
    slack.fail("users.list", "limit_required", times=1_000)


@pytest.fixture
def scene() -> Scene:
    return Scene()
