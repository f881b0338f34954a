"""Deliveries beside a broker: what is acknowledged counts, and no crash or rebalance sends twice or loses a turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.connectors.slack.scene import installed
from tests.kafka.cluster import CODEC, Cluster, Sent, until
from tests.sinks.records import ALEX, KIM, POLICY, ROOM, SELF, authorized, made, page
from tests.sinks.stage import BOTH, QUICK, once
from tests.slack import Conversation, Slack
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.installations import App, Installations
from turngate.connectors.slack.resolving import People
from turngate.processors.approvals import turn_fingerprint
from turngate.schemas.inputs import (
    ErasureCommanded,
    GrantCommanded,
    MembershipPage,
    MessageObserved,
    PolicyPublished,
    Record,
    TurnDelivered,
    TurnDrafted,
)
from turngate.schemas.outputs import ErasureApplied, GrantChanged, StretchApplied, TurnDecided
from turngate.sinks.postgres_claims import PostgresClaims
from turngate.sinks.service import DeliveryService
from turngate.sinks.slack import SlackConnector
from turngate.streams.clock import now_ms
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.settings import KafkaSettings, PostgresSettings

pytestmark = pytest.mark.kafka

ROOMS = [f"C{n}" for n in range(6)]
#: How far the log had been applied when a draft was judged.
DRAFTED = {"membership-refreshes": 1, "turn-drafts": 2}


class World:
    """Topics of two partitions, a Slack with a few private rooms of Alex and Kim, and a database."""

    def __init__(self, cluster: Cluster, slack: Slack, postgres: str, tenant: str) -> None:
        self.cluster = cluster
        self.slack = slack
        self.tenant = tenant
        self.acme = slack.workspace("T1", bot="UBOT")
        for user in ("UALEX", "UKIM", "UEVE"):
            self.acme.user(user)
        self.rooms: dict[str, Conversation] = {
            room: slack.channel(room, self.acme, ["UBOT", "UALEX", "UKIM"], private=True) for room in ROOMS
        }
        self._postgres = PostgresSettings(postgres)

    async def put(self, topic: str, *records: Record) -> None:
        fields = [record.model_copy(update={"tenant": self.tenant}) for record in records]
        await self.cluster.send([Sent(topic, 1, self.tenant.encode(), CODEC.encode(r)) for r in fields])

    async def applied(self, positions: dict[str, int]) -> None:
        """Say as a worker does how far it has applied the inputs of the tenant's partition."""
        to = [{"topic": topic, "partition": 1, "offset": offset} for topic, offset in positions.items()]
        record = StretchApplied.model_validate({"tenant": "1", "at": now_ms(), "partition": 1, "to": to, "engine": "1"})
        await self.cluster.send([Sent("applied", 1, b"1", CODEC.encode(record))])

    async def authorize(self, *turns: str, **more: Any) -> None:
        at = now_ms()
        given = {"destination": BOTH, "at": at, "valid_until": at + 60_000} | more
        rooms = [f"slack:T1/{ROOMS[n % len(ROOMS)]}" for n in range(len(turns))]
        await self.put(
            "outbound",
            *(authorized(turn=t, text=t, **({"room": r} | given)) for t, r in zip(turns, rooms, strict=True)),
        )

    async def recorded(self) -> list[TurnDelivered]:
        read = await self.cluster.read("deliveries")
        found = [CODEC.decode(message.value) for messages in read.values() for message in messages]
        return [record for record in found if isinstance(record, TurnDelivered)]

    async def outcomes(self) -> dict[str, str]:
        return {record.turn: record.status.value for record in await self.recorded()}

    def said(self) -> list[str]:
        return [post.args["text"] for post in self.slack.posts]

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[asyncio.Event]:
        """A process that delivers; the event stops it in good order, the end of the block as a crash would."""
        home = installed(self.acme)
        installations = Installations(
            [App(self.acme.app)],
            [type(home)(home.app, home.team, self.tenant, home.agent, home.bot_user, home.token)],
        )
        stop = asyncio.Event()
        names = Names(prefix=self.cluster.prefix, group=f"{self.cluster.prefix}sinks")
        async with SlackApi(self.slack.url, patience=2) as api, PostgresClaims(self._postgres) as claims:
            connector = SlackConnector(api, People(api), installations, now_ms)
            service = DeliveryService(self.cluster.settings, CODEC, claims, connector, names=names, patience=QUICK)
            running = asyncio.create_task(service.run(stop))
            try:
                begun = asyncio.create_task(service.ready.wait())
                await asyncio.wait([begun, running], timeout=60, return_when=asyncio.FIRST_COMPLETED)
                assert service.ready.is_set(), running
                yield stop
                if stop.is_set():
                    await asyncio.wait_for(running, 30)
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running


@asynccontextmanager
async def staged(kafka: str, postgres: str, name: str) -> AsyncIterator[World]:
    cluster = Cluster(KafkaSettings.read(kafka, environment={}), f"{name}-", 2)
    await cluster.make_topics()
    with Slack() as slack:
        made_of = World(cluster, slack, postgres, name)
        document = str(POLICY).replace("'", '"')
        await made_of.put("policies", PolicyPublished(tenant="acme", at=now_ms(), version="1", document=document))
        yield made_of


@pytest.fixture
async def world(kafka: str, postgres: str, unique: str) -> AsyncIterator[World]:
    async with staged(kafka, postgres, unique) as made_of:
        yield made_of


async def test_turns_are_said_once_and_recorded_and_listings_published(world: World) -> None:
    turns = [f"t{n}" for n in range(12)]
    await world.authorize(*turns)  # before anybody delivers: nothing is lost

    async def done() -> bool:
        return set(await world.outcomes()) == set(turns)

    async with world.delivering() as stop:
        await until(done)
        stop.set()
    assert set((await world.outcomes()).values()) == {"sent"}
    assert sorted(world.said()) == sorted(turns)
    pages = [CODEC.decode(m.value) for ms in (await world.cluster.read("membership-refreshes")).values() for m in ms]
    assert {page.room for page in pages if isinstance(page, MembershipPage)} == {f"slack:T1/{room}" for room in ROOMS}
    async with world.delivering() as stop:  # nothing is taken up again
        await world.authorize("t99")

        async def last_done() -> bool:
            return "t99" in await world.outcomes()

        await until(last_done)
        stop.set()
    assert len(await world.recorded()) == len(turns) + 1


async def test_a_revocation_that_is_acknowledged_counts_before_any_worker_has_seen_it(world: World) -> None:  # R-POL-2
    revoke = {"command": "c", "operator": "o", "op": "revoke", "agent": "mesh", "grant": "g"}

    async def done() -> bool:
        return set(await world.outcomes()) == {"t1", "t2"}

    async with world.delivering():
        await world.authorize("t1", grants=["g"])

        async def first() -> bool:
            return "t1" in await world.outcomes()

        await until(first)
        await world.put("operator-commands", made(GrantCommanded, **revoke))
        await world.authorize("t2", grants=["g"])
        await until(done)
    assert await world.outcomes() == {"t1": "sent", "t2": "withheld"}
    assert world.said() == ["t1"]


async def test_what_only_a_worker_can_tell_is_waited_for(world: World) -> None:  # R-GRT-9, R-RET-3
    """Somebody types something, which may take back a grant, and something is erased; the worker is this test."""
    hello = made(MessageObserved, at=now_ms(), agent="mesh", room=ROOM, message=f"{ROOM}/1", author_kind="person")
    grant = {"agent": "mesh", "memory": "m", "revision": "m@1", "audience": "public", "by": ALEX}

    async def done() -> bool:
        return set(await world.outcomes()) == {"t1", "t2", "t3", "t4"}

    async def first() -> bool:
        return "t1" in await world.outcomes()

    async with world.delivering():
        await world.put("observed-messages", hello)
        await world.authorize("t1", valid_until=now_ms() + 300, grants=["g1"])  # nobody applies anything in time
        await until(first)
        await world.put("operator-commands", made(ErasureCommanded, command="e", operator="o", memory="m"))
        await world.authorize("t2", "t3", grants=["g2"], provenance=["revision:m@1"])
        await world.authorize("t4", grants=["g4"])
        ended = made(GrantChanged, grant="g2", state="revoked", **grant)
        await world.put("grants", ended)
        await world.put("room-lifecycle", made(ErasureApplied, command="e", refs=["revision:m@1"]))
        await world.applied({"observed-messages": 1, "operator-commands": 1})
        await until(done)
    codes = {r.turn: {reason.code for reason in r.reasons} for r in await world.recorded()}
    assert codes["t1"] == {"barrier_late"}
    assert codes["t2"] == codes["t3"] == {"grant_revoked", "source_deleted"}
    assert (codes["t4"], world.said()) == (set(), ["t4"])


async def test_processes_that_come_go_and_crash_say_everything_once(world: World) -> None:  # R-DLV-2, R-RUN-4
    turns = [f"t{n}" for n in range(120)]

    async def done() -> bool:
        return set(await world.outcomes()) == set(turns)

    async with world.delivering():
        await world.authorize(*turns[:60])
        async with world.delivering():
            await world.authorize(*turns[60:])
        # the second has crashed in the middle of whatever it was doing
    async with world.delivering() as stop:
        await until(done, 60)
        stop.set()
    assert once(world.said())
    outcomes = await world.outcomes()
    assert {turn for turn, status in outcomes.items() if status == "sent"} == set(world.said())
    assert set(outcomes.values()) <= {"sent", "uncertain"}
    uncertain = [turn for turn, status in outcomes.items() if status == "uncertain"]
    assert len(uncertain) <= len(turns) // 4, "most of what was under way is found again"


async def test_what_asks_is_asked_with_the_draft_and_the_listing_that_lie_farther_back(world: World) -> None:  # R-TNT-6
    at = now_ms()
    draft = made(TurnDrafted, at=at, agent="mesh", turn="t1", room=ROOM, renderings=[{"text": "is this fine?"}])
    assert isinstance(draft, TurnDrafted)
    await world.put("membership-refreshes", page(ALEX, KIM, {"reader": SELF, "kind": "self"}, at=at, started_at=at))
    await world.put("turn-drafts", draft.model_copy(update={"turn": "t0"}), draft)
    as_of = [{"topic": topic, "partition": 1, "offset": end} for topic, end in DRAFTED.items()]
    fields = {"turn": "t1", "agent": "mesh", "room": ROOM, "verdict": "ask", "leaves_digest": "", "policy": "1"}
    asks = made(TurnDecided, at=at, decision="d1", as_of=as_of, fingerprint=turn_fingerprint(draft, "is this fine?"),
                **fields)  # fmt: skip

    async def asked() -> bool:
        return len(world.slack.posts) == 1

    async with world.delivering() as stop:
        await world.put("turn-verdicts", asks)
        await until(asked)
        await world.put("turn-verdicts", asks)  # it is told again
        await world.authorize("t2")

        async def last() -> bool:
            return "t2" in await world.outcomes()

        await until(last)
        stop.set()
    question, turn = world.slack.posts
    assert question.room == "C1"
    assert "is this fine?" in [b["text"]["text"] for b in question.args["blocks"] if b["type"] == "section"]
    assert turn.args["text"] == "t2"


async def test_a_turn_of_a_room_that_nobody_of_ours_serves_holds_up_nothing(world: World) -> None:
    async def done() -> bool:
        return "t2" in await world.outcomes()

    async with world.delivering():
        await world.authorize("t1", room="discord:G1/C1")
        await world.authorize("t2", room=ROOM)
        await until(done)
    assert await world.outcomes() == {"t2": "sent"}


async def test_while_the_database_lets_nobody_in_nothing_is_said_and_then_everything_once(
    kafka: str, postgres: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unique)))
        async with staged(kafka, make_conninfo(postgres, dbname=unique), unique) as world, world.delivering() as stop:
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(unique)))
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (unique,))
            await world.authorize("t1", "t2", "t3")

            async def refused() -> bool:
                return any("nothing is sent" in line for line in caplog.messages)

            await until(refused)
            assert world.said() == []
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(unique)))

            async def done() -> bool:
                return set(await world.outcomes()) == {"t1", "t2", "t3"}

            await until(done)
            stop.set()
        assert sorted(world.said()) == ["t1", "t2", "t3"]
        assert set((await world.outcomes()).values()) == {"sent"}
