"""What the listings so far tell reaches back as far as any of them may still count."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from turngate.connectors.slack.directory import DAY, looked_back
from turngate.connectors.slack.installations import Installation
from turngate.connectors.slack.listing import Listing
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import PolicyPublished, Record
from turngate.streams.local_feed import LocalFeed
from turngate.streams.local_log import Append, LocalLog

NOW = 1_800_000_000_000
HOME = Installation(app="A1", team="T1", tenant="acme", agent="mesh", bot_user="UBOT", token="xoxb-1")


@pytest.fixture
def log() -> Iterator[LocalLog]:
    with LocalLog() as running:
        yield running


def put(log: LocalLog, topic: str, record: Record, at: int) -> None:
    log.append_many([Append(topic, record.tenant.encode(), Codec().encode(record), at)])


@pytest.mark.parametrize(("observation", "rooms"), [("1h", ["C2"]), ("3d", ["C1", "C2"])])
async def test_a_listing_is_looked_at_for_as_long_as_observations_are_good(
    log: LocalLog, observation: str, rooms: list[str]
) -> None:
    document = json.dumps({"version": 1, "freshness": {"observation": observation}})
    policy = PolicyPublished(tenant="acme", at=NOW, version="1", document=document)
    put(log, "policies", policy, NOW - 30 * DAY)
    for room, at in (("C0", NOW - 4 * DAY), ("C1", NOW - 2 * DAY), ("C2", NOW - DAY // 2)):
        (page,) = Listing(HOME, room, at).pages(at)
        put(log, "membership-refreshes", page, at)
    directory = await looked_back(LocalFeed(log), NOW)
    assert directory.rooms(HOME) == [HOME.room(room) for room in rooms]
