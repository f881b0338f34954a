"""What Slack does not tell, or tells in vain, is missed by no room: those concerned are listed anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.connectors.slack.conftest import APPS, Log, listed
from tests.connectors.slack.scene import installed
from tests.slack import Slack, Workspace
from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.events import ACCOUNT_CHANGED, MISSED
from turngate.connectors.slack.installations import Installations
from turngate.connectors.slack.intake import Intake, NotTaken
from turngate.connectors.slack.listing import Listing
from turngate.schemas.inputs import MembershipChanged, MessageDeleted, MessageObserved, RoomChanged
from turngate.schemas.shapes import Member, MemberKind
from turngate.streams.log import LogError

ALEX = Member(reader="slack:T1/UALEX", kind=MemberKind.MEMBER)


async def test_what_slack_gave_up_telling_is_owed(
    slack: Slack, acme: Workspace, taking: Intake, log: Log, message: dict[str, Any]
) -> None:
    room = slack.rooms["C1"]
    slack.delete(room, message["event"]["ts"])
    slack.convert(room, private=True)
    log.broken = LogError("no broker answers")
    for envelope in slack.queue:
        with pytest.raises(NotTaken):
            await taking.take("A1", envelope)
    log.broken = None
    for _ in range(2):  # and never again
        slack.say(room, "UALEX", "among us")
        await taking.take("A1", slack.queue[-1])
    deleted, void, *_ = log.records
    assert isinstance(deleted, MessageDeleted)
    assert isinstance(void, RoomChanged)
    assert (void.room, void.what, log.texts()) == ("slack:T1/C1", MISSED, ["among us", "among us"])


async def test_what_was_told_while_it_was_not_installed_was_missed(
    slack: Slack, acme: Workspace, directory: Directory, log: Log, message: dict[str, Any]
) -> None:
    listed(directory, installed(acme), "C2")
    installations = Installations(APPS, [])
    taking = Intake(installations, directory, log.append)
    slack.convert(slack.channel("C2", acme, ["UBOT"]), private=True)
    await taking.take("A1", slack.queue[-1])
    assert log.records == []
    installations.become(Installations(APPS, [installed(acme)]))
    await taking.take("A1", message)
    void, _ = log.records
    assert isinstance(void, RoomChanged)
    assert void.room == "slack:T1/C2"


async def test_an_organisations_channel_is_told_of_once_and_heard_of_in_each_of_its_workspaces(
    slack: Slack, log: Log, directory: Directory
) -> None:
    one, two = (slack.workspace(team, bot="UBOT", enterprise="E1", org_wide=True) for team in ("T1", "T2"))
    homes = [installed(one), installed(two)]
    taking = Intake(Installations(APPS, homes), directory, log.append)
    listed(directory, homes[1], "C1", "C2")
    room = slack.channel("C1", one, ["UBOT"], org=["T2"])
    slack.convert(room, private=True)
    await taking.take("A1", next(e for e in slack.queue if e["team_id"] == "T1"))  # the other one is never told
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C1", "slack:T2/C1"]
    log.records = []
    await taking.take("A1", slack.tell(one, {"type": "channel_archive", "channel": "C9"}))
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C9"]
    log.records = []
    await taking.take("A1", slack.tell(one, {"type": "tokens_revoked", "tokens": {}}))
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T2/C1", "slack:T2/C2"]


@pytest.mark.parametrize("told", ["T1", "T2", "T9"])
async def test_a_workspace_that_left_an_organisations_app_has_no_known_room_any_more_whoever_is_told(
    slack: Slack, log: Log, directory: Directory, told: str
) -> None:
    """R-ROOM-5. It may be another tenant's than the one that is told, or one without an entry here may be told."""
    of = {team: slack.workspace(team, bot="UBOT", enterprise="E1", org_wide=True) for team in ("T1", "T2", "T3", "T9")}
    tenants = {"T1": "acme", "T2": "globex", "T3": "initech"}
    homes = [replace(installed(of[team]), tenant=tenant) for team, tenant in tenants.items()]
    taking = Intake(Installations(APPS, homes), directory, log.append)
    for home in homes:
        listed(directory, home, "C1")
    slack.take_access(of["T2"], of[told])
    await taking.take("A1", slack.queue[-1])
    void = {r.room for r in log.records if isinstance(r, RoomChanged)}
    assert void == {"slack:T2/C1"} | ({"slack:T1/C1"} if told == "T1" else set())


async def test_a_listing_that_was_under_way_when_an_account_changed_is_void(
    slack: Slack, acme: Workspace, taking: Intake, log: Log
) -> None:
    home = installed(acme)
    user = acme.user("UALEX", guest=True).json("T1", None)
    await taking.take("A1", slack.tell(acme, {"type": "user_change", "user": user}))
    assert log.records == []  # no listing has named the account yet
    for kind, void in (("member", ["slack:T1/C1"]), ("member", []), ("guest", [])):
        member = Member(reader="slack:T1/UALEX", kind=MemberKind(kind))
        for page in Listing(home, "C1", 1, members=(member,)).pages(1):
            await taking.listed(page)
        assert [(r.room, r.what) for r in log.records if isinstance(r, RoomChanged)] == [
            (room, ACCOUNT_CHANGED) for room in void
        ]
        log.records = []
    for page in Listing(home, "C2", 1, members=(Member(reader="slack:T1/UALEX", kind=MemberKind.GUEST),)).pages(1):
        await taking.listed(page)
    assert log.records == []


async def test_an_account_of_which_nothing_can_be_read_is_doubted_in_what_was_listed_before(
    slack: Slack, acme: Workspace, taking: Intake, log: Log
) -> None:
    user = acme.user("UALEX", deleted=True).json("T1", None)
    await taking.take("A1", slack.tell(acme, {"type": "user_change", "user": user}))
    for room, started_at in (("C1", 1), ("C2", 4_000_000_000_000)):
        for page in Listing(installed(acme), room, started_at, members=(ALEX,)).pages(1):
            await taking.listed(page)
    assert [r.room for r in log.records if isinstance(r, RoomChanged)] == ["slack:T1/C1"]


async def test_who_joins_and_what_is_said_in_an_organisations_channel_counts_in_each_of_its_rooms(
    slack: Slack, log: Log, directory: Directory
) -> None:
    one, two = (slack.workspace(team, bot="UBOT", enterprise="E1") for team in ("T1", "T2"))
    one.user("UALEX")
    homes = [installed(one), installed(two)]
    taking = Intake(Installations(APPS, homes), directory, log.append)
    for home in homes:
        for page in Listing(home, "C1", 1, members=(ALEX,)).pages(1):
            directory.learn(page)
    room = slack.channel("C1", one, ["UBOT"], org=["T2"])
    slack.join(room, "UALEX")
    slack.say(room, "UALEX", "hello")
    for envelope in slack.queue:
        if envelope["team_id"] == "T2":  # and the other one is never told
            await taking.take("A1", envelope)
    joined = [(r.room, r.reader) for r in log.records if isinstance(r, MembershipChanged)]
    said = [(r.room, r.author) for r in log.records if isinstance(r, MessageObserved)]
    assert joined == said == [("slack:T2/C1", "slack:T1/UALEX"), ("slack:T1/C1", "slack:T1/UALEX")]
