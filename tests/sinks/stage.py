"""Decides how these tests set up a delivery: a Slack, an embedded log in a file, and turns authorized on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.connectors.slack.scene import installed
from tests.sinks.records import ALEX, KIM, POLICY, ROOM, authorized
from tests.slack import Conversation, Slack, Workspace
from turngate.connectors.slack.api import SlackApi
from turngate.connectors.slack.installations import App, Installations
from turngate.connectors.slack.resolving import People
from turngate.schemas.catalog import topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import PolicyPublished, Record, TurnDelivered
from turngate.sinks.asking import Asking
from turngate.sinks.courier import Courier
from turngate.sinks.delivery import Delivery
from turngate.sinks.embedded import AppendRecords, EmbeddedDelivery, LocalJournal
from turngate.sinks.errands import Patience
from turngate.sinks.local_claims import LocalClaims
from turngate.sinks.slack import SlackConnector
from turngate.streams.clock import now_ms
from turngate.streams.local_log import LocalLog

CODEC = Codec()
QUICK = Patience(looks=(0.05, 0.05), claims=0.05, retry=0.02, action=0.02, sending=0.05)
#: Heard by whoever is in the room C1 of `Stage`.
BOTH = {"readers": [ALEX, KIM]}


@dataclass
class Stage:
    """One workspace with a private room C1 of Alex and Kim, and a log with a policy."""

    path: Path
    slack: Slack
    acme: Workspace = field(init=False)
    room: Conversation = field(init=False)
    log: LocalLog = field(init=False)

    def __post_init__(self) -> None:
        self.acme = self.slack.workspace("T1", bot="UBOT")
        for user in ("UALEX", "UKIM", "UEVE"):
            self.acme.user(user)
        self.room = self.slack.channel("C1", self.acme, ["UBOT", "UALEX", "UKIM"], private=True)
        self.log = LocalLog(self.path)
        document = str(POLICY).replace("'", '"')
        self.write(PolicyPublished(tenant="acme", at=now_ms(), version="1", document=document))

    def write(self, *records: Record) -> None:
        for record in records:
            topic = topic_of(type(record).__name__, record.model_dump(mode="json"))
            self.log.append(topic, record.tenant.encode(), CODEC.encode(record), timestamp=now_ms())

    def hurry(self) -> None:
        """A policy by which clocks differ by 50 ms at the most."""
        document = json.dumps(POLICY | {"version": 2, "freshness": {"clock_skew": "50ms"}})
        self.write(PolicyPublished(tenant="acme", at=now_ms(), version="2", document=document))

    def authorize(self, *turns: str, **more: Any) -> None:
        """Turns that are authorized now, for the room unless it is said which."""
        at = now_ms()
        fields = {"destination": BOTH, "room": ROOM, "at": at, "valid_until": at + 60_000} | more
        self.write(*(authorized(turn=turn, **({"text": f"this is {turn}"} | fields)) for turn in turns))

    @asynccontextmanager
    async def delivery(
        self,
        patience: Patience = QUICK,
        call: float = 0.5,
        url: str | None = None,
        append: AppendRecords | None = None,
    ) -> AsyncIterator[EmbeddedDelivery]:
        """A delivery that has been started, and is broken off at the end of the block as a crash would do it."""
        async with self._connector(call, url) as connector:
            running = EmbeddedDelivery(self.log, CODEC, connector, patience=patience, append=append)
            await running.start()
            try:
                yield running
            finally:
                await running.stop(0)

    @asynccontextmanager
    async def courier(self) -> AsyncIterator[Courier]:
        """What carries turns to a delivery, by itself."""
        async with self._connector(0.5) as connector:
            journal = LocalJournal(self.log, CODEC, 0, None)
            delivery = Delivery(journal, LocalClaims(self.log), connector, now_ms, QUICK)
            carrying = Courier(delivery, Asking(delivery, journal, connector, CODEC), CODEC)
            try:
                yield carrying
            finally:
                await carrying.stop(0)

    @asynccontextmanager
    async def _connector(self, call: float, url: str | None = None) -> AsyncIterator[SlackConnector]:
        installations = Installations([App(self.acme.app)], [installed(w) for w in self.slack.workspaces.values()])
        async with SlackApi(self.slack.url if url is None else url, patience=call) as api:
            yield SlackConnector(api, People(api), installations, now_ms)

    async def deliver(self, **more: Any) -> None:
        """Deliver everything there is."""
        async with self.delivery(**more) as running:
            await running.look()
            await running.finish()

    def recorded(self) -> list[TurnDelivered]:
        found = [CODEC.decode(message.value) for message in self.log.scan("deliveries")]
        return [record for record in found if isinstance(record, TurnDelivered)]

    def outcomes(self) -> dict[str, tuple[str, ...]]:
        """The last status of each turn and its codes."""
        return {r.turn: (r.status.value, *(reason.code for reason in r.reasons)) for r in self.recorded()}

    def said(self) -> list[str]:
        """The texts of Slack's messages that are turns, in order."""
        return [post.args["text"] for post in self.slack.posts]

    def restarted(self) -> None:
        """The log is opened again, as by a new process."""
        self.log.close()
        self.log = LocalLog(self.path)


def once(texts: Iterable[str]) -> bool:
    """Whether nothing was said twice."""
    return all(count == 1 for count in Counter(texts).values())
