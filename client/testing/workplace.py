"""Decides what a test's workplace is: rooms that are listed when asked for, what is said there, and time that is told.

The engine, its log and its answers are the product's; only the chat system is simulated, and the clock. Time passes by
a millisecond with each record, by `wait`, and while an agent waits for an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from turngate.client.answers import TOPICS, Answers
from turngate.client.gate import Gate, Mode
from turngate.client.verdict import Verdict
from turngate.schemas.catalog import OUTPUT_TOPIC, RECORDS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import Record
from turngate.schemas.outputs import RefreshRequested, TurnAuthorized
from turngate.schemas.shapes import Action, RoomInfo
from turngate.streams.keys import read_keys
from turngate.streams.local import LocalRuntime
from turngate.streams.local_log import LocalLog

#: 2026-01-01T00:00:00Z in milliseconds.
EPOCH = 1_767_225_600_000
#: Milliseconds between two ticks (contract section 3).
_TICK = 1_000
#: A key that everybody knows, so that values are found and codes are made.
_KEYS = {"TURNGATE_KEYS": json.dumps({"current": "1", "keys": {"1": {"*": "00" * 32}}})}

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Sent:
    """What was authorized, so what would be said, or done."""

    turn: str
    agent: str
    room: str
    text: str | None
    action: Action | None


class Workplace:
    """One tenant, its rooms and people, and its agents' gate; for `with`, and one event loop.

    `policy` is laid over the default one of the contract (section 5), in which `agents` have the accounts `U` and their
    names in capitals, such as `slack:T1/UMESH`. `log`: a new file to keep everything in, so that the commands that look
    at a log can be tried on it.
    """

    def __init__(
        self,
        *agents: str,
        tenant: str = "acme",
        workspace: str = "slack:T1",
        policy: Mapping[str, Any] | None = None,
        log: Path | None = None,
    ) -> None:
        self.tenant = tenant
        self._agents = agents or ("mesh",)
        self._accounts = {name: f"{workspace}/U{name.upper()}" for name in self._agents}
        self._now = EPOCH
        self._number = 0
        self._codec = Codec()
        self._log = LocalLog(log)
        self._runtime = LocalRuntime(self._log, self._codec, keys=read_keys(environment=_KEYS))
        self._rooms: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, Answers] = {}
        self._came: list[Record] = []
        self.publish(policy or {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._log.close()

    def gate(self, agent: str | None = None, *, mode: Mode | str = Mode.ENFORCE, patience: float | None = None) -> Gate:
        """The gate as an agent sees it; None: the first agent."""
        return Gate(InProcess(self, self._agents[0] if agent is None else agent), mode=mode, patience=patience)

    def publish(self, policy: Mapping[str, Any]) -> None:
        """Publish a policy, laid over the default one."""
        self._number += 1
        agents = {name: {"accounts": [account]} for name, account in self._accounts.items()}
        document = {"version": self._number, "agents": agents, **policy}
        self.put("PolicyPublished", version=str(self._number), document=json.dumps(document))

    def room(
        self,
        room: str,
        *readers: str,
        guests: Iterable[str] = (),
        kind: str = "channel",
        visibility: str = "members",
        workspaces: Iterable[str] | None = None,
    ) -> None:
        """Who can read a room, from now on; it is listed now, and again whenever the engine asks."""
        members = [{"reader": r, "kind": "member"} for r in readers] + [{"reader": r, "kind": "guest"} for r in guests]
        info = RoomInfo.model_validate({"kind": kind, "visibility": visibility, "workspaces": workspaces})
        self._rooms[room] = {"info": info, "members": members}
        for agent in self._agents:
            self._list(agent, room)

    def joined(self, room: str, reader: str, *, kind: str = "member") -> None:
        """Somebody joins a room, and the chat system says so."""
        self._rooms[room]["members"] = [*self._rooms[room]["members"], {"reader": reader, "kind": kind}]
        self.put("MembershipChanged", room=room, reader=reader, kind=kind, change="joined")

    def unlisted(self, room: str) -> None:
        """From now on nobody can say who reads this room."""
        self._rooms.pop(room, None)
        self.put("RoomChanged", room=room, what="unlisted")

    def said(self, room: str, text: str, *, by: str, kind: str = "person", thread: str | None = None) -> str:
        """A message is seen by every agent; returns its ref."""
        self._number += 1
        message = f"{room}/{self._number}"
        for agent in self._agents:
            seen = {"room": room, "message": message, "author": by, "author_kind": kind, "text": text, "thread": thread}
            self.put("MessageObserved", agent=agent, **seen)
        return f"message:{message}"

    def approve(self, verdict: Verdict, *, by: str, room: str) -> None:
        """A person says yes to exactly what a turn asks."""
        self._number += 1
        self.put("ActionApproved", approval=f"a{self._number}", fingerprint=verdict.fingerprint, by=by, room=room)

    def wait(self, seconds: float) -> None:
        """Time passes, second by second, or in a hundred steps where that would be more."""
        end = self._now + round(seconds * 1_000)
        step = max(_TICK, round(seconds * 10))
        while self._now < end:
            self._now = min(end, self._now + step)
            self.append(RECORDS["Tick"].model_validate({"tenant": "0", "at": self._now}))

    @property
    def sent(self) -> list[Sent]:
        """What was authorized, in order."""
        return [Sent(r.turn, r.agent, r.room, r.text, r.action) for r in self.records(TurnAuthorized)]

    def records(self, kind: type[R]) -> list[R]:
        """All records of a kind, inputs or outputs, in order."""
        return [record for record in self._came if isinstance(record, kind)]

    def on(self, topic: str) -> list[Record]:
        """What lies on a topic, in order."""
        return [self._codec.decode(message.value) for message in self._log.scan(topic)]

    def put(self, record: str, **fields: Any) -> None:
        """Append any input record of the contract, by its name; `tenant` and `at` are filled in."""
        self.append(RECORDS[record].model_validate({"tenant": self.tenant, "at": self._now, **fields}))

    def append(self, record: Record) -> None:
        """Append an input record, apply it, and let whoever is asked by it answer."""
        self._now += 1
        topic = topic_of(type(record).__name__, record.model_dump(include={"by", "op"}))
        value = self._codec.encode(record)
        outputs = self._runtime.feed(topic, record.tenant.encode(), value, self._now) + self._runtime.flush()
        came = [self._codec.decode(message.value) for message in outputs]
        self._came += [record, *came]
        for answer in came:
            if OUTPUT_TOPIC[type(answer).__name__] in TOPICS:
                for answers in self._answers.values():
                    answers.take(answer)
        for asked in came:
            if isinstance(asked, RefreshRequested) and asked.room in self._rooms:
                self._list(asked.agent, asked.room)

    def answers_of(self, agent: str) -> Answers:
        """What is answered to an agent."""
        return self._answers.setdefault(agent, Answers(self.tenant, agent))

    def now(self) -> int:
        """The workplace's time."""
        return self._now

    def _list(self, agent: str, room: str) -> None:
        self._number += 1
        listing = {"refresh": f"l{self._number}", "page": 0, "last": True, "started_at": self._now}
        found = self._rooms[room]
        members = [*found["members"], {"reader": self._accounts[agent], "kind": "self"}]
        self.put("MembershipPage", agent=agent, room=room, info=found["info"], members=members, **listing)


class InProcess:
    """A workplace as an agent's transport (`turngate.client.transport.Transport`)."""

    def __init__(self, workplace: Workplace, agent: str) -> None:
        self.tenant = workplace.tenant
        self.agent = agent
        self._workplace = workplace
        self._answers = workplace.answers_of(agent)

    def now(self) -> int:
        """The workplace's time."""
        return self._workplace.now()

    def answers(self, record: Record, *, fresh: bool = True) -> AsyncGenerator[Record]:
        """Append the record, and let time pass until it is answered."""
        return self._answers.to(record, self._append, self._pass, fresh=fresh)

    def forget(self, record: Record) -> None:
        """Nobody asks for this record's answers any more."""
        self._answers.forget(record)

    async def _append(self, record: Record) -> None:
        self._workplace.append(record)

    async def _pass(self) -> None:
        await asyncio.sleep(0)  # whoever else can act now does so first
        self._workplace.wait(_TICK / 1_000)
