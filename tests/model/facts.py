"""Who may hear what, in plain sets: audiences, leaves, rooms (rules AUD and ROOM, as far as memory needs them)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

ALEX, KIM, MORGAN = "slack:T1/UALEX", "slack:T1/UKIM", "slack:T1/UMORGAN"
GUEST, MAIL = "slack:T1/UGUEST", "mail:acme/alex"
#: The defaults of contract section 5, in milliseconds; the machine's policy leaves them as they are.
DESTINATION, OBSERVATION, HOLD, CODE_TTL, DEADLINE = 60_000, 3_600_000, 5_000, 900_000, 2_000


@dataclass(frozen=True)
class Who:
    """An audience: everyone, nobody knows, or all full members of some workspaces and some people."""

    scope: str = "listed"
    workspaces: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()
    guests: frozenset[str] = frozenset()


PUBLIC, UNKNOWN = Who("public"), Who("unknown")
WORKSPACE = Who(workspaces=frozenset({"slack:T1"}))


def workspace(reader: str) -> str:
    return reader.split("/")[0]


def within(d: Who, s: Who) -> bool:  # R-AUD-1
    if s.scope == "public":
        return True
    if s.scope == "unknown" or d.scope != "listed" or not d.workspaces <= s.workspaces:
        return False
    return all(r in s.people or (r not in d.guests and workspace(r) in s.workspaces) for r in d.people)


@dataclass(frozen=True)
class Leaf:
    agent: str
    who: Who
    author: str | None = None
    room: str | None = None
    open: bool = False
    via: str | None = None
    restrictions: frozenset[str] = frozenset()
    private: bool = True
    untrusted: bool = True


def nobody_knows(agent: str, room: str | None = None) -> Leaf:
    return Leaf(agent, UNKNOWN, room=room)


@dataclass(frozen=True)
class Room:
    """A room as one agent knows it: its listing, and who joined and left since (R-ROOM-4)."""

    id: str
    kind: str
    visibility: str
    listed: frozenset[str]
    started_at: int
    joined: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()

    def _who(self, people: frozenset[str]) -> Who:
        """R-ROOM-6: of a workspace's room, named are those who are no full member of it."""
        guests = people & {GUEST}
        if self.visibility == "members":
            return Who(people=people, guests=guests)
        inside = {r for r in people if workspace(r) == "slack:T1" and r not in guests}
        return replace(WORKSPACE, people=people - inside, guests=guests)

    @property
    def lower(self) -> Who:
        return self._who(self.listed - self.left)

    @property
    def upper(self) -> Who:
        return self._who(self.listed | self.joined)

    @property
    def open(self) -> bool:
        return self.visibility == "open"

    def fresh(self, now: int, limit: int) -> bool:
        return now - self.started_at < limit

    @property
    def joined_new(self) -> bool:
        """Somebody joined whom the listing does not make a reader for certain."""
        by_workspace = self.visibility == "workspace"
        return any(
            not (r in self.listed or (by_workspace and r != GUEST and workspace(r) == "slack:T1")) for r in self.joined
        )


@dataclass(frozen=True)
class Destination:
    """Who would hear (R-AUD-1, R-ROOM-9); `until`: when its listing is too old."""

    room: str
    who: Who
    sole: str | None = None
    own_words: bool = False
    until: int | None = None


@dataclass(frozen=True)
class Judged:
    """What a ref comes to at a destination."""

    codes: frozenset[str]
    grants: frozenset[str] = frozenset()
    proofs: frozenset[str] = frozenset()
    own_words: bool = False


@dataclass
class Revision:
    agent: str
    memory: str
    kind: str
    state: str
    leaves: frozenset[Leaf]
    seen: frozenset[Leaf]
    over: bool
    restrictions: frozenset[str]
    sources: frozenset[str]
    base: str | None
    text: str | None
    turn: str | None
    notes: tuple[str, ...]
    retired_by: str | None = None


@dataclass
class Said:
    """What one agent has of a message or a tool's result."""

    leaves: frozenset[Leaf]
    room: str
    contents: set[object] = field(default_factory=set)
    made_of: set[str] = field(default_factory=set)
    author: str | None = None
    over: bool = False


@dataclass
class Turn:
    agent: str | None = None
    requests: list[str] = field(default_factory=list)
    results: list[tuple[str, str | None]] = field(default_factory=list)
    content: object = None
    draft_trigger: str | None = None
    conflicts: list[object] = field(default_factory=list)
    sent_to: str | None = None
    refs: frozenset[str] = frozenset()
    leaves: frozenset[Leaf] = frozenset()


@dataclass(frozen=True)
class Asked:
    """A context request and what was permitted."""

    agent: str
    turn: str
    room: str
    trigger: str | None
    permitted: tuple[str, ...]


@dataclass
class Grant:
    agent: str
    memory: str
    revision: str
    who: Who
    state: str
    expires_at: int | None


@dataclass
class Offer:
    agent: str
    room: str
    reader: str
    memory: str
    revision: str
    who: Who
    expires_at: int
    state: str  # open, granted, cancelled, expired


@dataclass
class Proof:
    agent: str
    reader: str
    subject: str
    expires_at: int
    revoked: bool = False
