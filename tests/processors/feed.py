"""Decides how the tests here hand records to an engine: one topic, offset and broker time each, as a runtime would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turngate.processors.engine import Engine
from turngate.schemas import inputs
from turngate.schemas.catalog import topic_of
from turngate.schemas.inputs import Change, Record
from turngate.schemas.outputs import DecisionTraced, TurnAuthorized, TurnDecided, Verdict
from turngate.schemas.shapes import AuthorKind, Member, MemberKind, Position, Rendering, RoomInfo

EPOCH = 1_767_225_600_000
ALEX, KIM, MORGAN = "slack:T1/UALEX", "slack:T1/UKIM", "slack:T1/UMORGAN"
GUEST, OTHER, GRID = "slack:T1/UGUEST", "slack:T2/UOTHER", "slack:T2/UGRID"
BOT, SELF = "slack:T1/UAPP", "slack:T1/UBOT"
D1, C1, C2 = "slack:T1/D1", "slack:T1/C1", "slack:T1/C2"
FINAL = (Verdict.DELIVER, Verdict.DOWNGRADE, Verdict.DROP)
POLICY = """
version: 1
agents: {mesh: {accounts: ["slack:T1/UBOT"]}, scout: {accounts: ["slack:T1/USCOUT"]}}
tools:
  wiki: {audience: {workspace: "slack:T1"}}
  web: {audience: public}
  drive: {audience: result}
"""


@dataclass
class Feed:
    """An engine that is fed. `now` is the broker's clock; a record is sent `after` ms, else a second, later."""

    engine: Engine = field(default_factory=Engine)
    now: int = EPOCH
    tenant: str = "acme"
    offsets: dict[str, int] = field(default_factory=dict)
    out: list[Record] = field(default_factory=list)

    def send(self, record: Record, after: int = 1000, topic: str | None = None) -> list[Record]:
        """Apply a record; everything that came of it."""
        self.now += after
        name = type(record).__name__
        topic = topic_of(name, record.model_dump(mode="json")) if topic is None else topic
        offset = self.offsets.get(topic, 0)
        self.offsets[topic] = offset + 1
        out = self.engine.apply(record, Position(topic=topic, partition=0, offset=offset), self.now, b"raw")
        self.out += out
        return out

    def restart(self) -> None:
        """Go on with an engine made of the checkpoint of this one."""
        self.engine = Engine.restore(list(self.engine.state.entries()), Engine.version)

    def tick(self, after: int = 1000) -> list[Record]:
        return self.send(inputs.Tick(tenant="0", at=self.now + after), after)

    def make(self, record: type[Record], /, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"tenant": self.tenant, "at": self.now + after} | fields
        return self.send(record.model_validate(fields), after)

    def policy(self, text: str = POLICY, version: int = 1, after: int = 1000) -> list[Record]:
        text = text.replace("version: 1\n", f"version: {version}\n")
        return self.make(inputs.PolicyPublished, after, version=str(version), document=text)

    def listing(self, room: str, members: list[Any], after: int = 1000, **fields: Any) -> list[Record]:
        """A complete listing of one page, begun as it is sent unless `started_at` says otherwise."""
        fields = {"agent": "mesh", "refresh": f"r{self.now}", "page": 0, "last": True, "room": room} | fields
        info = {"kind": "channel", "visibility": "members"} | fields.pop("info", {})
        fields.setdefault("started_at", self.now + after)
        return self.make(inputs.MembershipPage, after, info=RoomInfo(**info), members=as_members(members), **fields)

    def joined(self, room: str, reader: str, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"kind": MemberKind.MEMBER, "change": Change.JOINED} | fields
        return self.make(inputs.MembershipChanged, after, room=room, reader=reader, **fields)

    def left(self, room: str, reader: str, after: int = 1000, **fields: Any) -> list[Record]:
        return self.joined(room, reader, after, change=Change.LEFT, **fields)

    def changed(self, room: str, after: int = 1000, **fields: Any) -> list[Record]:
        return self.make(inputs.RoomChanged, after, room=room, what="converted", **fields)

    def message(self, room: str, number: int | str, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"agent": "mesh", "author": ALEX, "author_kind": AuthorKind.PERSON, "text": "hi"} | fields
        return self.make(inputs.MessageObserved, after, room=room, message=f"{room}/{number}", **fields)

    def tool(self, room: str, call: str, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"agent": "mesh", "server": "web", "operation": "get"} | fields
        return self.make(inputs.ToolReturned, after, room=room, call=call, **fields)

    def context(self, room: str, request: str, turn: str, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"agent": "mesh", "candidates": ()} | fields
        return self.make(inputs.ContextRequested, after, room=room, request=request, turn=turn, **fields)

    def draft(self, room: str, turn: str, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"agent": "mesh", "renderings": (Rendering(text="so"),)} | fields
        return self.make(inputs.TurnDrafted, after, room=room, turn=turn, **fields)

    def pause(self, command: str, paused: bool, after: int = 1000, **fields: Any) -> list[Record]:
        fields = {"agent": "mesh", "operator": "ops"} | fields
        return self.make(inputs.AgentPaused, after, command=command, paused=paused, **fields)


def as_members(members: list[Any]) -> tuple[Member, ...]:
    return tuple(
        Member(reader=m, kind=MemberKind.MEMBER) if isinstance(m, str) else Member.model_validate(m) for m in members
    )


def ref(room: str, number: int | str) -> str:
    """The source ref of a message of a room."""
    return f"message:{room}/{number}"


def verdicts(out: list[Record]) -> list[tuple[str, str]]:
    """Each decision of a turn in these records: the turn and its verdict."""
    return [(r.turn, r.verdict.value) for r in out if isinstance(r, TurnDecided)]


def codes(out: list[Record]) -> set[str]:
    """The codes of all decisions of turns in these records."""
    return {reason.code for r in out if isinstance(r, TurnDecided) for reason in r.reasons}


def untraced(out: list[Record]) -> list[Record]:
    """All of these records but the traces of decisions, which name what came before them."""
    return [r for r in out if not isinstance(r, DecisionTraced)]


def authorized(out: list[Record]) -> list[TurnAuthorized]:
    return [r for r in out if isinstance(r, TurnAuthorized)]


def ready(room: str, members: list[Any], **fields: Any) -> Feed:
    """A feed with a policy and a room that was just listed."""
    feed = Feed()
    feed.policy()
    feed.listing(room, members, **fields)
    return feed
