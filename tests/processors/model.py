"""The audience rules once more, as plainly as they can be said: sets, no caches, all of it worked out from the history.

It holds for one policy; for listings of one page; for messages, tool results and drafts of one rendering. What it
remembers between records is what the rules say is immutable or waits: evidence, unsettled messages, held drafts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from turngate.schemas.inputs import (
    Change,
    MembershipChanged,
    MembershipPage,
    MessageDeleted,
    MessageObserved,
    Record,
    RoomChanged,
    ToolReturned,
    TurnDrafted,
)
from turngate.schemas.shapes import AuthorKind, MemberKind, Visibility

DESTINATION, OBSERVATION, SETTLE, SKEW, HOLD = 60_000, 3_600_000, 30_000, 5_000, 5_000
TENANT_AGENTS = {"mesh": {"slack:T1/UBOT"}, "scout": {"slack:T1/USCOUT"}}
#: What each reader is a full member of; of a guest, nothing.
People = dict[str, frozenset[str]]


@dataclass(frozen=True)
class Who:
    """An audience: everyone, nobody knows, or all full members of some workspaces and some people."""

    scope: str = "listed"
    workspaces: frozenset[str] = frozenset()
    people: People = field(default_factory=dict, hash=False)
    guests: frozenset[str] = frozenset()

    def covers(self, reader: str, full: frozenset[str]) -> bool:
        return reader in self.people or bool(full & self.workspaces)

    def has(self, reader: str, full: frozenset[str], guest: bool) -> bool:
        """R-ROOM-6: is this account there already, as what it joins as?"""
        if reader in self.people:
            return guest == (reader in self.guests) and self.people[reader] <= full
        return bool(full & self.workspaces)

    def without(self, gone: set[str]) -> Who:
        return replace(self, people={r: f for r, f in self.people.items() if r not in gone}, guests=self.guests - gone)

    def adding(self, reader: str, full: frozenset[str], guest: bool) -> Who:
        full = self.people.get(reader, full) & full
        guest = guest or reader in self.guests
        people = {**self.people, reader: frozenset() if guest else full}
        return replace(self, people=people, guests=self.guests | ({reader} if guest else set()))


PUBLIC, UNKNOWN = Who("public"), Who("unknown")


def within(d: Who, s: Who) -> bool:  # R-AUD-1
    if s.scope == "public":
        return True
    if s.scope == "unknown" or d.scope != "listed":
        return False
    return d.workspaces <= s.workspaces and all(s.covers(reader, full) for reader, full in d.people.items())


def both(a: Who, b: Who) -> Who:  # R-AUD-9
    if "unknown" in (a.scope, b.scope):
        return UNKNOWN
    people = {r: f for r, f in a.people.items() if b.covers(r, f)} | {
        r: f for r, f in b.people.items() if a.covers(r, f)
    }
    return Who("listed", a.workspaces & b.workspaces, people, frozenset((a.guests | b.guests) & people.keys()))


def account(agent: str, reader: str, kind: MemberKind, further: tuple[str, ...]) -> tuple[frozenset[str], bool] | None:
    """What an account is full member of, and whether it is a guest; None: no reader (R-ROOM-7)."""
    if kind is MemberKind.SELF and reader in TENANT_AGENTS[agent]:
        return None
    if kind is MemberKind.MEMBER:
        return frozenset({reader.split("/")[0], *further}), False
    return frozenset(), True


@dataclass(frozen=True)
class Leaf:
    agent: str
    who: Who
    open_in: str | None = None  # the room in which it was said while that was open


@dataclass
class Unsettled:
    ref: str
    agent: str
    room: str
    at: int
    place: int
    before: tuple[int, MembershipPage] | None


class Model:
    """What the rules say of a history. `apply` gives the decisions and the evidence that come of a record."""

    def __init__(self) -> None:
        self.now = 0
        self.history: list[tuple[int, Record]] = []  # stream time at arrival; the place in the list is the arrival
        self.evidence: dict[tuple[str, str], list[Leaf]] = {}
        self.texts: dict[tuple[str, str], set[object]] = {}
        self.deleted: set[str] = set()
        self.unsettled: list[Unsettled] = []
        self.held: list[tuple[int, TurnDrafted]] = []
        self.sent: dict[str, tuple[str, str, set[Leaf]]] = {}
        self.decided: list[tuple[str, str, frozenset[tuple[str, str | None]]]] = []
        self.recorded: list[tuple[str, str, frozenset[Leaf]]] = []

    def apply(self, record: Record, timestamp: int) -> None:
        self.now = max(self.now, timestamp)
        self.decided, self.recorded = [], []
        for until, draft in [h for h in self.held if h[0] <= self.now]:
            self.held.remove((until, draft))
            self.unreachable(draft)
        before = self.listing(record.agent, record.room) if isinstance(record, MembershipPage) else None
        self.history.append((self.now, record))
        match record:
            case MembershipPage():
                self.listed(record, before)
            case MessageObserved():
                self.observed(record)
            case MessageDeleted():
                self.deleted.add(f"message:{record.message}")
            case ToolReturned():
                self.returned(record)
            case TurnDrafted():
                self.drafted(record)

    # Rooms

    def listing(self, agent: str, room: str) -> tuple[int, MembershipPage] | None:
        """The current listing with its arrival, whether or not a change has made it void (R-ROOM-3, R-TIME-2)."""
        found: tuple[int, MembershipPage] | None = None
        for arrival, (now, r) in enumerate(self.history):
            if not isinstance(r, MembershipPage) or (r.agent, r.room) != (agent, room) or r.started_at > now + SKEW:
                continue
            if found is None or r.started_at >= found[1].started_at:
                found = (arrival, r)
        return found

    def changes(self, agent: str, room: str) -> list[int]:
        of = [r for _, r in self.history if isinstance(r, RoomChanged) and r.room == room]
        return [r.at for r in of if r.agent in (None, agent)]

    def known(self, agent: str, room: str) -> tuple[int, MembershipPage] | None:  # R-ROOM-5
        found = self.listing(agent, room)
        return None if found is None or any(at >= found[1].started_at for at in self.changes(agent, room)) else found

    def skewed(self, agent: str, room: str) -> bool:
        of = [
            (now, r) for now, r in self.history if isinstance(r, MembershipPage) and (r.agent, r.room) == (agent, room)
        ]
        usable = [arrival for arrival, (now, r) in enumerate(of) if r.started_at <= now + SKEW]
        counted, newest = -1, -(10**18)
        for arrival in usable:
            if of[arrival][1].started_at >= newest:
                counted, newest = arrival, of[arrival][1].started_at
        return any(r.started_at > now + SKEW for now, r in of[counted + 1 :])

    def base(self, agent: str, page: MembershipPage) -> Who:  # R-ROOM-6
        info = page.info
        assert info is not None
        who = Who()
        for member in page.members:
            found = account(agent, member.reader, member.kind, member.workspaces)
            if found is not None:
                who = who.adding(member.reader, *found)
        if info.visibility is Visibility.WORKSPACE:
            inside = frozenset(info.workspaces or ())
            who = replace(who.without({r for r, f in who.people.items() if f & inside}), workspaces=inside)
        return who

    def events(self, agent: str, room: str) -> list[tuple[int, int, MembershipChanged]]:
        """First and last arrival of each event."""
        found: dict[MembershipChanged, tuple[int, int, MembershipChanged]] = {}
        for arrival, (_, r) in enumerate(self.history):
            if isinstance(r, MembershipChanged) and r.room == room and r.agent in (None, agent):
                first = found[r][0] if r in found else arrival
                found[r] = (first, arrival, r)
        return sorted(found.values(), key=lambda e: e[0])

    def bounds(self, agent: str, room: str, arrival: int, page: MembershipPage) -> tuple[Who, Who, bool]:
        """Lower, upper, and whether somebody joined since (R-ROOM-4)."""
        base = upper = self.base(agent, page)
        left: set[str] = set()
        joined = False
        applying = [(f, r) for f, last, r in self.events(agent, room) if last > arrival or r.at >= page.started_at]
        gone = {r.reader for f, r in applying if r.change is Change.LEFT and (f > arrival or r.at >= page.started_at)}
        for first, r in applying:
            found = account(agent, r.reader, r.kind, r.workspaces)
            if r.change is Change.LEFT:
                left.add(r.reader)
            elif found is not None:
                if not base.has(r.reader, *found):
                    upper = upper.adding(r.reader, *found)
                certain = r.reader in base.people and r.reader not in gone
                inside = certain or bool(found[0] & base.workspaces)
                joined = joined or (not inside and (first > arrival or r.at >= page.started_at))
        return base.without(left), upper, joined

    def listed(self, page: MembershipPage, before: tuple[int, MembershipPage] | None) -> None:
        now = self.listing(page.agent, page.room)
        if now is None or now == before or now[1] is not page:
            return
        self.settle(page)
        for until, draft in [h for h in self.held if (h[1].agent, h[1].room) == (page.agent, page.room)]:
            if self.destination(draft)[0] is not None or self.is_open(draft):
                self.held.remove((until, draft))
                self.decide(draft)

    def settle(self, page: MembershipPage) -> None:  # R-AUD-9
        for one in [u for u in self.unsettled if (u.agent, u.room) == (page.agent, page.room)]:
            changes = self.changes(one.agent, one.room)
            stands = one.before is not None and not any(at >= one.before[1].started_at for at in changes)
            if any(at >= one.at for at in changes):
                self.unsettled.remove(one)
            elif page.started_at <= one.at:
                if not stands:
                    one.before = (len(self.history) - 1, page)
            else:
                self.unsettled.remove(one)
                if page.started_at < one.at + SETTLE:
                    self.settle_one(one, page, one.before if stands else None)

    def settle_one(self, one: Unsettled, page: MembershipPage, before: tuple[int, MembershipPage] | None) -> None:
        leaves = self.evidence[one.agent, one.ref]
        open_now, open_then = is_open(page), before is not None and is_open(before[1])
        events = self.events(one.agent, one.room)
        came = {r.reader for _, _, r in events if r.change is Change.JOINED and r.at >= one.at}
        who = UNKNOWN if open_now or open_then else self.base(one.agent, page).without(came)
        if before is not None and not open_now and not open_then:
            then = self.base(one.agent, before[1])
            for first, _, r in events:
                found = account(one.agent, r.reader, r.kind, r.workspaces)
                if not (first > before[0] or r.at >= before[1].started_at):
                    continue
                if r.change is Change.LEFT:
                    then = then.without({r.reader})
                elif found is not None and not then.has(r.reader, *found):
                    then = then.adding(r.reader, *found)
            who = both(who, then)
        said_open = open_now and (before is None or open_then)
        leaves[one.place] = Leaf(one.agent, who, one.room if said_open else None)
        self.record(one.agent, one.ref)

    # Evidence

    def record(self, agent: str, ref: str) -> None:
        self.recorded.append((agent, ref, frozenset(self.evidence[agent, ref])))

    def observed(self, m: MessageObserved) -> None:  # R-AUD-5, R-AUD-6
        key = (m.agent, f"message:{m.message}")
        content = (m.text, m.quotes)
        if key in self.evidence and (not m.edited or content in self.texts[key]):
            return
        leaves = self.evidence.setdefault(key, [])
        self.texts.setdefault(key, set()).add(content)
        place = len(leaves)
        if m.author_kind is AuthorKind.SELF:  # R-AUD-7
            turn = self.sent.get(m.turn or "")
            proven = turn is not None and turn[:2] == (m.agent, m.room)
            leaves += sorted(turn[2], key=repr) if turn is not None and proven else [Leaf(m.agent, UNKNOWN)]
        else:
            found = self.known(m.agent, m.room)
            fresh = found is not None and self.now - found[1].started_at < OBSERVATION
            opened = found is not None and is_open(found[1])
            bounds = None if found is None or opened else self.bounds(m.agent, m.room, *found)
            lower = bounds[0] if bounds is not None and fresh else UNKNOWN
            leaves.append(Leaf(m.agent, lower, m.room if fresh and opened else None))
            if not fresh or (bounds is not None and bounds[2]):
                self.unsettled.append(Unsettled(key[1], m.agent, m.room, m.at, place, found))
        for quoted in m.quotes:
            leaves += self.evidence.get((m.agent, quoted), [Leaf(m.agent, UNKNOWN)])
        self.record(*key)

    def returned(self, t: ToolReturned) -> None:  # R-AUD-8
        key = (t.agent, f"tool:{t.call}")
        who = {"web": PUBLIC, "wiki": Who(workspaces=frozenset({"slack:T1"}))}.get(t.server, UNKNOWN)
        if t.server == "drive" and t.audience is not None:
            who = Who(people={r: frozenset({r.split("/")[0]}) for r in t.audience.readers})
        if key not in self.evidence:
            self.evidence[key] = [Leaf(t.agent, who)]
            self.record(*key)

    # Turns

    def is_open(self, draft: TurnDrafted) -> bool:
        found = self.known(draft.agent, draft.room)
        return found is not None and is_open(found[1])

    def destination(self, draft: TurnDrafted) -> tuple[Who | None, set[tuple[str, str | None]]]:
        found = self.known(draft.agent, draft.room)
        upper = None if found is None or is_open(found[1]) else self.bounds(draft.agent, draft.room, *found)[1]
        code = "destination_unknown"
        if found is not None and upper is not None and (upper.people or upper.workspaces):
            if self.now - found[1].started_at < DESTINATION:
                return upper, set()
            code = "destination_stale"
        skew = {("clock_skew", draft.room)} if self.skewed(draft.agent, draft.room) else set()
        return None, {(code, draft.room)} | skew

    def drafted(self, draft: TurnDrafted) -> None:
        if self.destination(draft)[0] is None and not self.is_open(draft):
            self.held.append((self.now + HOLD, draft))
            self.decided.append((draft.turn, "hold", frozenset(self.destination(draft)[1])))
        else:
            self.decide(draft)

    def decide(self, draft: TurnDrafted) -> None:
        to = self.destination(draft)[0]
        if to is None:
            self.unreachable(draft)
            return
        against = self.against(draft, to, own_words=False)
        self.finish(draft, "drop" if against else "deliver", against)

    def unreachable(self, draft: TurnDrafted) -> None:  # R-TURN-6: public evidence, else the notice
        against = self.against(draft, UNKNOWN, own_words=self.is_open(draft))
        codes = self.destination(draft)[1] or {("destination_unknown", draft.room)}
        self.finish(draft, "downgrade", against | codes if against else against)

    def finish(self, draft: TurnDrafted, verdict: str, against: set[tuple[str, str | None]]) -> None:
        self.decided.append((draft.turn, verdict, frozenset(against)))
        if verdict != "drop":
            leaves = {leaf for ref in refs(draft) for leaf in self.evidence.get((draft.agent, ref), [])}
            self.sent[draft.turn] = (draft.agent, draft.room, set() if against else leaves)

    def against(self, draft: TurnDrafted, to: Who, *, own_words: bool) -> set[tuple[str, str | None]]:
        found: set[tuple[str, str | None]] = set() if refs(draft) else {("source_missing", None)}
        for ref in refs(draft):
            if (draft.agent, ref) not in self.evidence:
                others = any((agent, ref) in self.evidence for agent in TENANT_AGENTS)
                found.add(("other_agent" if others else "source_missing", ref))
                continue
            leaves = self.evidence[draft.agent, ref]
            codes = {"source_deleted"} if ref in self.deleted else set()
            codes |= set() if leaves else {"source_unknown"}
            for leaf in leaves:
                if leaf.who.scope == "unknown":
                    own = own_words and leaf.open_in == draft.room  # R-AUD-10
                    codes |= set() if own else {"source_unknown"}
                elif not within(to, leaf.who):
                    codes.add("trigger_not_subset" if ref == draft.trigger else "audience_not_subset")
            found |= {(code, ref) for code in codes}
        return found


def is_open(page: MembershipPage) -> bool:
    return page.info is not None and page.info.visibility is Visibility.OPEN


def refs(draft: TurnDrafted) -> list[str]:
    return [*([] if draft.trigger is None else [draft.trigger]), *draft.exposed]
