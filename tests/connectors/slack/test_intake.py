"""What Slack delivers is on the log once, and acknowledged when it is, over HTTP."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web

from tests.connectors.slack.conftest import APPS, BUTTON, Log, answers, listed
from tests.connectors.slack.scene import installed
from tests.slack import Slack, Workspace
from tests.slack.server import Answer, signed
from turngate.connectors.slack import intake
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import MISSED, UNREADABLE
from turngate.connectors.slack.http import EVENTS, INTERACTIONS, LARGEST, EventsServer
from turngate.connectors.slack.installations import Installations
from turngate.connectors.slack.intake import Intake, NotTaken
from turngate.connectors.slack.listing import Listing
from turngate.connectors.slack.taken import REMEMBERED
from turngate.schemas.inputs import ActionApproved, MessageObserved, Record, RoomChanged
from turngate.schemas.shapes import Member, MemberKind
from turngate.streams.log import LogError

Post = Callable[..., Any]


@asynccontextmanager
async def served(server: EventsServer) -> AsyncIterator[str]:
    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def post(slack: Slack, installations: Installations, taking: Intake) -> AsyncIterator[Post]:
    async with served(EventsServer(installations, taking)) as url:

        async def posted(envelope: Any, path: str = EVENTS, **more: Any) -> Answer:
            return await asyncio.to_thread(slack.post, envelope, url + path, **more)

        yield posted


async def test_an_event_is_on_the_log_when_it_is_acknowledged(post: Post, log: Log, message: dict[str, Any]) -> None:
    answer = await post(message)
    assert (answer.status, answer.body, log.texts()) == (200, "", ["hello"])


async def test_the_url_is_verified(post: Post) -> None:
    answer = await post({"type": "url_verification", "challenge": "3eZbrw1a", "token": "x"})
    assert (answer.status, answer.body) == (200, "3eZbrw1a")


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Slack_Signature": "v0=00"},
        {"X_Slack_Signature": ""},
        {"X_Slack_Signature": "v0=\xe9"},
        {"X_Slack_Request_Timestamp": ""},
        {"X_Slack_Request_Timestamp": "soon"},
        {"X_Slack_Request_Timestamp": "-1"},
        {"X_Slack_Request_Timestamp": "9" * 30},
    ],
)
async def test_a_request_that_is_not_slacks_is_refused(
    post: Post, log: Log, message: dict[str, Any], headers: dict[str, str]
) -> None:
    assert (await post(message, **headers)).status == 401
    assert (await post({"type": "url_verification", "challenge": "x"}, **headers)).status == 401
    assert log.records == []
    assert (await post(message)).status == 200  # the twin that is


@pytest.mark.parametrize(("late", "status"), [(-299, 200), (299, 200), (-310, 401), (310, 401)])
async def test_a_request_is_good_for_five_minutes(post: Post, message: dict[str, Any], late: int, status: int) -> None:
    headers = signed(json.dumps(message).encode(), at=time.time() + late)
    answer = await post(message, **{name.replace("-", "_"): value for name, value in headers.items()})
    assert answer.status == status


async def test_a_body_that_is_not_utf_8_and_another_secret(post: Post) -> None:
    assert (await post(b"\xff\xfe", X_Slack_Signature="v0=1")).status == 401
    assert (await post(b"x" * (LARGEST + 1))).status == 413


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[]", b"[" * 100_000])
async def test_what_slack_signed_and_nobody_can_read_makes_every_room_of_the_app_unknown(
    post: Post, log: Log, directory: Directory, acme: Workspace, body: bytes
) -> None:
    listed(directory, installed(acme), "C1", "C2")
    assert (await post(body, X_Slack_Signature="v0=1")).status == 401
    assert log.records == []
    log.broken = LogError("no broker answers")
    assert (await post(body)).status == 503
    log.broken = None
    assert (await post(body)).status == 200
    assert [(r.room, r.what) for r in log.records if isinstance(r, RoomChanged)] == [
        ("slack:T1/C1", MISSED),
        ("slack:T1/C2", MISSED),
    ]


async def test_an_event_of_megabytes_is_taken_as_any_other(
    slack: Slack, acme: Workspace, post: Post, log: Log, message: dict[str, Any]
) -> None:
    message["event"]["blocks"] = [{"type": "section", "text": "x" * 3_000} for _ in range(1_000)]
    assert (await post(message)).status == 200
    assert log.texts() == ["hello"]
    slack.say(slack.rooms["C1"], "UALEX", "x" * 300_000)
    assert (await post(slack.queue.pop())).status == 200
    void = log.records[1]
    assert isinstance(void, RoomChanged)
    assert (void.room, void.what) == ("slack:T1/C1", UNREADABLE)  # no record holds that


async def test_an_app_speaks_for_itself_alone(post: Post, log: Log, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    by_another = {n.replace("-", "_"): v for n, v in signed(body, "another secret").items()}
    assert (await post(message, **by_another)).status == 401
    assert log.records == []


async def test_what_is_not_on_the_log_is_not_acknowledged(post: Post, log: Log, message: dict[str, Any]) -> None:
    log.broken = LogError("no broker answers")
    assert (await post(message)).status == 503
    log.broken = None
    answers = [await post(message, X_Slack_Retry_Num=str(n), X_Slack_Retry_Reason="http_error") for n in (1, 2)]
    assert ([a.status for a in answers], log.texts()) == ([200, 200], ["hello"])


async def test_slack_is_answered_within_three_seconds(
    post: Post, log: Log, message: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert intake.ACKNOWLEDGED_WITHIN < 3
    monkeypatch.setattr(intake, "ACKNOWLEDGED_WITHIN", 0.1)
    log.held = asyncio.Event()
    answer = await post(message)
    assert (answer.status, answer.seconds < 3, log.records) == (503, True, [])
    log.held.set()
    assert (await post(message)).status == 200  # the one under way is this one
    assert log.texts() == ["hello"]


async def test_an_event_is_taken_once(taking: Intake, log: Log, message: dict[str, Any]) -> None:
    other = copy.deepcopy(message) | {"event_id": "Ev-other"}
    log.held = asyncio.Event()
    all_of_them = asyncio.gather(*(taking.take("A1", e) for e in (message, message, other)))
    log.held.set()
    await all_of_them
    await taking.take("A1", other)
    assert log.texts() == ["hello"]


async def test_two_apps_may_see_the_same_event_id(acme: Workspace, log: Log, message: dict[str, Any]) -> None:
    mine, other = installed(acme), installed(acme, "scout")
    installations = Installations(APPS, [mine, type(other)(**{**_fields(other), "app": "A2"})])
    taking = Intake(installations, Directory(), log.append)
    await taking.take("A1", message)
    await taking.take("A2", message)
    assert [getattr(r, "agent", None) for r in log.records] == ["mesh", "scout"]


async def test_edits_and_deletions_are_not_taken_for_their_message(
    slack: Slack, acme: Workspace, taking: Intake, log: Log
) -> None:
    room = slack.channel("C1", acme, ["UBOT", "UALEX"])
    ts = slack.say(room, "UALEX", "one")
    slack.edit(room, ts, "two")
    slack.edit(room, ts, "three")
    slack.delete(room, ts)
    for envelope in [*slack.queue, *reversed(slack.queue)]:
        await taking.take("A1", envelope)
    assert [type(r).__name__ for r in log.records] == [*["MessageObserved"] * 3, "MessageDeleted"]


@pytest.mark.parametrize("about", [{"subtype": "tombstone"}, {"hidden": True}, {"subtype": "message_replied"}])
async def test_what_tells_of_a_message_under_its_own_timestamp_is_not_taken_for_it(
    taking: Intake, log: Log, message: dict[str, Any], about: dict[str, Any]
) -> None:
    of_it = message | {"event_id": "Ev9", "event": message["event"] | about}
    for envelope in (of_it, message, of_it) if "message_replied" in about.values() else (message, of_it, of_it):
        await taking.take("A1", envelope)
    gone = [] if "message_replied" in about.values() else ["MessageDeleted"]
    assert [type(r).__name__ for r in log.records] == ["MessageObserved", *gone]


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_the_order_the_repetitions_and_the_faults_the_records_are_the_same(
    slack: Slack, acme: Workspace, installations: Installations, seed: int
) -> None:
    chance = random.Random(seed)
    room = slack.channel("C1", acme, ["UBOT", "UALEX"])
    said = [slack.say(room, "UALEX", str(number)) for number in range(30)]
    for ts in chance.sample(said, 10):
        slack.edit(room, ts, "edited")
    for user in ("UBO", "UCY", "UGUEST"):
        slack.join(room, user)
        slack.leave(room, user)
    slack.archive(room)
    plain, disturbed, clock = Log(), Log(), lambda: 1_900_000_000.0
    for envelope in slack.queue:
        await Intake(installations, Directory(), plain.append, clock).take("A1", envelope)

    async def unreliable(records: Sequence[Record]) -> None:
        await asyncio.sleep(0)
        if chance.random() < 0.3:
            raise LogError("no broker answers")
        await disturbed.append(records)

    taking = Intake(installations, Directory(), unreliable, clock)
    waiting = [envelope for envelope in slack.queue for _ in range(chance.randint(1, 4))]
    while waiting:
        chance.shuffle(waiting)
        answers = await asyncio.gather(*(taking.take("A1", e) for e in waiting), return_exceptions=True)
        assert all(isinstance(answer, NotTaken | None) for answer in answers)
        waiting = [e for e, answer in zip(waiting, answers, strict=True) if answer is not None]
    # What was owed, or followed what came after it, is told again, which only restricts.
    again = [r for r in disturbed.records if isinstance(r, MessageObserved) and r.edited and r.text is None]
    told = [r for r in disturbed.records if r not in again and getattr(r, "what", None) != MISSED]
    assert set(map(str, told)) == set(map(str, plain.records))
    assert len(plain.records) == 47


async def test_what_is_remembered_is_forgotten_after_slack_has_given_up(
    installations: Installations, log: Log, message: dict[str, Any]
) -> None:
    now = [0.0]
    taking = Intake(installations, Directory(), log.append, clock=lambda: now[0])
    for now[0], said in ((0.0, 1), (REMEMBERED - 1, 1), (REMEMBERED, 2)):
        await taking.take("A1", message)
        assert len(log.texts()) == said
    assert REMEMBERED > 6 * 60


async def test_an_event_of_a_workspace_that_is_not_installed_is_acknowledged_and_left(
    slack: Slack, taking: Intake, log: Log
) -> None:
    other = slack.workspace("T2", bot="UBOT2")
    await taking.take("A1", slack.tell(other, {"type": "channel_archive", "channel": "C9"}))
    assert log.records == []


async def test_an_event_of_a_shared_channel_is_for_whom_it_was_sent(
    slack: Slack, acme: Workspace, taking: Intake, log: Log, message: dict[str, Any]
) -> None:
    await taking.take("A1", message | {"team_id": "T9", "context_team_id": "T9"})
    assert [getattr(r, "room", None) for r in log.records] == ["slack:T1/C1"]


async def test_an_account_that_changed_is_no_longer_taken_for_what_it_was(
    slack: Slack, acme: Workspace, taking: Intake, directory: Directory, log: Log
) -> None:
    room = slack.channel("C1", acme, ["UBOT"])
    alex = Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER)
    for page in Listing(installed(acme), "C2", 1, members=(alex,)).pages(1):
        directory.learn(page)
    user = acme.user("UALEX", guest=True).json("T1", None)
    await taking.take("A1", slack.tell(acme, {"type": "user_change", "user": user}))
    slack.join(room, "UALEX")
    await taking.take("A1", slack.queue[-1])
    changed, joined = log.records
    assert isinstance(changed, RoomChanged)
    assert (changed.room, getattr(joined, "kind", None)) == ("slack:T1/C2", "guest")


async def test_a_button_is_on_the_log_when_it_is_acknowledged(
    slack: Slack, installations: Installations, taking: Intake, log: Log
) -> None:
    async with served(EventsServer(installations, taking, answers(installations, log).take)) as url:

        async def posted(payload: object, **more: Any) -> int:
            body = urlencode({"payload": json.dumps(payload)}).encode()
            kind = "application/x-www-form-urlencoded"
            return (await asyncio.to_thread(slack.post, body, url + INTERACTIONS, kind=kind, **more)).status

        assert await posted(BUTTON, X_Slack_Signature="v0=00") == 401
        assert await posted(BUTTON | {"api_app_id": "A2"}) == 401
        assert await posted([]) == 400
        assert await posted(BUTTON | {"team": {"id": "T9"}}) == 200
        assert log.records == []
        log.broken = LogError("no broker answers")
        assert await posted(BUTTON) == 503
        log.broken = None
        assert await posted(BUTTON) == 200
    (approved,) = log.records
    assert isinstance(approved, ActionApproved)
    assert (approved.by, approved.room) == ("slack:T1/UALEX", "slack:T1/C1")


async def test_an_organisations_account_approves_as_what_listings_name_it(slack: Slack, log: Log) -> None:
    home, directory = installed(slack.workspace("T1", bot="UBOT", enterprise="E1")), Directory()
    installations = Installations(APPS, [home])
    pressing = answers(installations, log, directory)
    await pressing.take("A1", BUTTON)
    assert log.records == []  # nothing says yet who that is
    for page in Listing(home, "C1", 1, members=(Member(reader="slack:T0/UALEX", kind=MemberKind.GUEST),)).pages(1):
        directory.learn(page)
    await pressing.take("A1", BUTTON)
    assert [r.by for r in log.records if isinstance(r, ActionApproved)] == ["slack:T0/UALEX"]


def _fields(home: Any) -> dict[str, Any]:
    return {name: getattr(home, name) for name in home.__slots__}
