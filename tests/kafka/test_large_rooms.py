"""A room of fifty thousand readers, on a broker: every record that names them all is written, read back and loaded."""

from __future__ import annotations

import pytest

from turngate.schemas.codec import Codec
from turngate.schemas.inputs import MembershipPage, MessageObserved, PolicyPublished, Record, TurnDrafted
from turngate.schemas.outputs import EvidenceRecorded, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Member, MemberKind, Rendering, RoomInfo
from turngate.streams.kafka.driver import KafkaDriver, make_topics
from turngate.streams.kafka.settings import KafkaSettings

pytestmark = pytest.mark.kafka

CODEC = Codec()
AT = 1_767_225_600_000
ROOM = "slack:T024BE7LD/C024BE7LR"
READERS = [f"slack:T024BE7LD/U{n:010}" for n in range(50_000)]
PAGE = 10_000


def beginning() -> list[tuple[str, Record]]:
    """A policy, the room's listing in pages, and what one of its readers says."""
    of = {"tenant": "acme", "at": AT}
    document = '{"version": 1, "agents": {"mesh": {"accounts": ["slack:T024BE7LD/UBOT"]}}}'
    said = {"room": ROOM, "message": f"{ROOM}/1", "author": READERS[7], "author_kind": "person", "text": "hello"}
    pages = [
        MembershipPage(
            **of,
            agent="mesh",
            room=ROOM,
            refresh="r",
            page=at // PAGE,
            last=at + PAGE == len(READERS),
            started_at=AT,
            info=RoomInfo(kind="channel", visibility="members") if at == 0 else None,
            members=tuple(Member(reader=reader, kind=MemberKind.MEMBER) for reader in READERS[at : at + PAGE]),
        )
        for at in range(0, len(READERS), PAGE)
    ]
    return [
        ("policies", PolicyPublished(**of, version="1", document=document)),
        *(("membership-refreshes", page) for page in pages),
        ("observed-messages", MessageObserved(**of, agent="mesh", **said)),
    ]


def draft(turn: str) -> tuple[str, Record]:
    words = (Rendering(text="hello all"),)
    asked = {"tenant": "acme", "at": AT, "agent": "mesh", "turn": turn, "room": ROOM, "trigger": f"message:{ROOM}/1"}
    return "turn-drafts", TurnDrafted(**asked, renderings=words)


async def came_of(driver: KafkaDriver, *records: tuple[str, Record]) -> list[Record]:
    for topic, record in records:
        await driver.send(topic, b"acme", CODEC.encode(record), AT)
        await driver.applied()
    return [CODEC.decode(message.value) for message in await driver.outputs()]


async def test_what_is_said_there_is_delivered_there_and_survives_a_restart(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    settings = KafkaSettings(kafka)
    await make_topics(settings, f"{unique}-", 1, create_time=True)
    async with KafkaDriver(settings, prefix=f"{unique}-") as driver:
        out = await came_of(driver, *beginning(), draft("t1"))
        (evidence,) = (record for record in out if isinstance(record, EvidenceRecorded))
        assert list(evidence.leaves[0].audience.readers) == READERS
        (authorized,) = (record for record in out if isinstance(record, TurnAuthorized))
        assert list(authorized.destination.readers) == READERS
        assert len(CODEC.encode(authorized)) > 1_048_576  # a broker takes no more by itself
    async with KafkaDriver(settings, prefix=f"{unique}-") as driver:  # loads the state that the first one left
        out = await came_of(driver, draft("t2"))
        verdicts = {record.turn: record.verdict.value for record in out if isinstance(record, TurnDecided)}
        assert verdicts == {"t1": "deliver", "t2": "deliver"}
