"""Decides who can read a room: the bounds of its current listing and of what happened since (R-ROOM-1, 4 to 7, 10)."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from turngate.processors.audience import audience_digest, listed, namespace
from turngate.processors.ledger import Ledger
from turngate.processors.policy import Effective
from turngate.processors.rows import Event, Listing, Roster
from turngate.schemas.canonical import digest
from turngate.schemas.shapes import Audience, MemberKind, RoomKind, Visibility


@dataclass(frozen=True, slots=True)
class Bounds:
    """The readers certain to be permitted (`lower`) and all possible ones (`upper`), each with a key that names it.

    `listed`: whom the listing alone made readers. `joined`: somebody has joined since the listing whom the two do not
    both cover without that.
    """

    lower: Audience
    lower_key: str
    upper: Audience
    upper_key: str
    listed: Audience
    joined: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What an agent knows of a room now. `listing` is null where it is unknown; `bounds` also where it is `open`."""

    listing: Listing | None
    bounds: Bounds | None
    skewed: bool

    @property
    def open(self) -> bool:
        """An audience that cannot be enumerated (R-ROOM-6)."""
        return self.listing is not None and self.listing.visibility is Visibility.OPEN

    def fresh(self, now: int, limit: int) -> bool:
        """Known, and its listing began less than `limit` milliseconds ago (R-TIME-2, R-ROOM-10)."""
        return self.listing is not None and now - self.listing.started_at < limit

    @property
    def direct(self) -> bool:
        """Direct, of members, with exactly one reader (R-ROOM-9, but for its freshness)."""
        return (
            self.listing is not None
            and self.listing.kind is RoomKind.DIRECT
            and self.listing.visibility is Visibility.MEMBERS
            and self.bounds is not None
            and len(self.bounds.upper.readers) == 1
        )


@dataclass(frozen=True, slots=True)
class Joiner:
    """An account as it counts under a policy: a reader or not, a guest or a full member of `full`."""

    reader: str
    guest: bool
    full: tuple[str, ...]

    @property
    def further(self) -> tuple[str, ...]:
        """Further workspaces of which it is a full member, beside its id's own."""
        return () if self.guest else self.full[1:]


def account(
    reader: str, kind: MemberKind, workspaces: Iterable[str], own: tuple[str, ...], trusted: tuple[str, ...]
) -> Joiner | None:
    """What an account is to a room (R-ROOM-7); None for the agent's own, which is no reader."""
    if kind is MemberKind.SELF and reader in own:
        return None
    if kind is MemberKind.MEMBER:
        return Joiner(reader, guest=False, full=(namespace(reader), *workspaces))
    if kind in (MemberKind.BOT, MemberKind.SELF) and reader in trusted:
        return Joiner(reader, guest=False, full=(namespace(reader),))
    return Joiner(reader, guest=True, full=())


def changed_at(ledger: Ledger, agent: str, room: str) -> int | None:
    """When the room last became something else, as this agent was told; None where never."""
    times = [at for of, at in ledger.room_log(room).changed if of is None or of == agent]
    return max(times, default=None)


def known_listing(ledger: Ledger, agent: str, room: str) -> Listing | None:
    """The agent's current listing of a room, unless a `RoomChanged` has made it void (R-ROOM-5)."""
    listing = ledger.room(agent, room).listing
    changed = changed_at(ledger, agent, room)
    return None if listing is None or (changed is not None and listing.started_at <= changed) else listing


def standing(ledger: Ledger, agent: str, room: str) -> Standing:
    """What the agent knows of the room now."""
    row = ledger.room(agent, room)
    listing = known_listing(ledger, agent, room)
    if listing is None or listing.visibility is Visibility.OPEN:
        return Standing(listing, None, row.skewed)
    policy = ledger.policy(room)
    events = ledger.room_log(room).events
    roster = ledger.tables.rosters.get((ledger.tenant, agent, room))
    if roster is None:
        raise LookupError("a listing without its roster")
    basis = (listing, roster, events, policy.accounts(agent), policy.settings.trusted_bots)
    cached = ledger.caches.bounds.get((agent, room))
    if cached is None or not _same(cached[0], basis):
        cached = (basis, _bounds(ledger, agent, listing, roster, events, policy))
        ledger.caches.bounds[agent, room] = cached
    return Standing(listing, cached[1], row.skewed)


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return a[0] is b[0] and a[1] is b[1] and a[2] is b[2] and a[3:] == b[3:]


def base(listing: Listing, roster: Roster, policy: Effective, agent: str) -> Audience:
    """The audience of a listing alone. Of one of a whole workspace, listed are those who are full members of none."""
    own, trusted = policy.accounts(agent), policy.settings.trusted_bots
    readers, guests = set(roster.members), set(roster.guests)
    for kind, names in ((MemberKind.BOT, roster.bots), (MemberKind.SELF, roster.selves)):
        for name in names:
            found = account(name, kind, (), own, trusted)
            if found is not None:
                (guests if found.guest else readers).add(name)
    if listing.visibility is Visibility.MEMBERS:
        return listed(readers | guests, guests, (), roster.memberships)
    plain = {r for r in readers - guests if not _full(roster, r).intersection(listing.workspaces)}
    return listed(plain | guests, guests, listing.workspaces, roster.memberships)


def _full(roster: Roster, reader: str) -> set[str]:
    return {namespace(reader), *roster.memberships.get(reader, ())}


def since(events: Iterable[Event], agent: str, listing: Listing) -> list[Event]:
    """The events for this agent that apply on top of a listing."""
    return [e for e in events if (e.agent is None or e.agent == agent) and applies(e, listing)]


def applies(event: Event, listing: Listing) -> bool:
    """Whether an event applies on top of a listing: it was told after it, or it may have missed it (R-ROOM-4)."""
    return event.latest > listing.arrived or event.at >= listing.started_at


def covered(audience: Audience, joiner: Joiner) -> bool:
    """Whether an audience has this account already, as what it joins as (R-ROOM-6)."""
    if joiner.reader in audience.readers:
        return joiner.guest == (joiner.reader in audience.guests)
    return any(w in audience.workspaces for w in joiner.full)


def _bounds(
    ledger: Ledger, agent: str, listing: Listing, roster: Roster, events: tuple[Event, ...], policy: Effective
) -> Bounds:
    lower = upper = base(listing, roster, policy, agent)
    lower_key = base_key = audience_digest(lower)
    own, trusted = policy.accounts(agent), policy.settings.trusted_bots
    joiners: list[Joiner] = []
    left: set[str] = set()
    for event in since(events, agent, listing):
        found = account(event.reader, event.kind, event.workspaces, own, trusted)
        if not event.joined:
            left.add(event.reader)
        elif found is not None:
            joiners.append(found)
    if left.intersection(lower.readers):
        lower = without(lower, left)
        lower_key = audience_digest(lower)
    new = [j for j in joiners if not covered(upper, j)]
    joined = bool(new) or any(not covered(lower, j) for j in joiners)
    if not new:
        return Bounds(lower, lower_key, upper, base_key, upper, joined)
    upper_key = digest([base_key, [[j.reader, j.guest, list(j.full)] for j in new]])
    ledger.caches.sets.extend(base_key, upper, upper_key, [j.reader for j in new])
    return Bounds(lower, lower_key, _with(upper, new), upper_key, upper, joined)


def without(audience: Audience, left: set[str]) -> Audience:
    """The audience less these readers."""
    gone = left.intersection(audience.readers)
    return audience.model_copy(
        update={
            "readers": tuple(r for r in audience.readers if r not in gone),
            "guests": tuple(r for r in audience.guests if r not in gone),
            "memberships": {r: m for r, m in audience.memberships.items() if r not in gone},
        }
    )


def _with(audience: Audience, joiners: list[Joiner]) -> Audience:
    """The audience with more possible readers; who is a guest by either account counts as one."""
    readers, guests = list(audience.readers), list(audience.guests)
    memberships = dict(audience.memberships)
    for joiner in joiners:
        if _insert(readers, joiner.reader) and joiner.further:
            memberships[joiner.reader] = tuple(sorted(set(joiner.further)))
        if joiner.guest:
            _insert(guests, joiner.reader)
            memberships.pop(joiner.reader, None)
    return audience.model_copy(
        update={"readers": tuple(readers), "guests": tuple(guests), "memberships": dict(sorted(memberships.items()))}
    )


def _insert(ascending: list[str], value: str) -> bool:
    at = bisect.bisect_left(ascending, value)
    if at < len(ascending) and ascending[at] == value:
        return False
    ascending.insert(at, value)
    return True


def made_members(audience: Audience, events: list[Event], own: tuple[str, ...], trusted: tuple[str, ...]) -> Audience:
    """Whom a listing and the joins and leaves since then made members, each event where it was told first (R-AUD-9)."""
    for event in sorted(events, key=lambda e: e.first):
        if not event.joined:
            audience = without(audience, {event.reader})
        else:
            found = account(event.reader, event.kind, event.workspaces, own, trusted)
            if found is not None and not covered(audience, found):
                audience = _with(audience, [found])
    return audience
