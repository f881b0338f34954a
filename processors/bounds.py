"""Decides who can read a room, by its current listing and what happened since (R-ROOM-1, 4 to 7, 10)."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable
from typing import Final

from turngate.processors.accounts import Joiner, account, covered, same
from turngate.processors.audience import Keyed, Sets, keyed, listed, namespace
from turngate.processors.ledger import Ledger
from turngate.processors.policy import Effective
from turngate.processors.rows import Event, Listing, Room, RoomLog, Roster
from turngate.schemas.shapes import Audience, MemberKind, RoomKind, Visibility


class Listed:
    """Whom a listing alone makes readers, under a policy."""

    def __init__(self, audience: Audience) -> None:
        self.audience = audience
        self.readers = frozenset(audience.readers)
        self.guests = frozenset(audience.guests)
        self._keyed: Keyed | None = None

    @property
    def keyed(self) -> Keyed:
        """The audience with its address."""
        if self._keyed is None:
            self._keyed = keyed(self.audience)
        return self._keyed

    def covers(self, joiner: Joiner) -> bool:
        """Whether it has this account already, as what it joins as (R-ROOM-6)."""
        if joiner.reader in self.readers:
            return same(self.audience, joiner, guest=joiner.reader in self.guests)
        return joiner.inside(self.audience.workspaces)

    def settles(self, joiner: Joiner) -> bool | None:
        """Whether the bounds cover this account, where that does not rest on what happened since the listing."""
        inside = joiner.inside(self.audience.workspaces)
        if inside and self.covers(joiner):
            return True
        return None if inside or joiner.reader in self.readers else False


class Bounds:
    """The readers certain to be permitted (`lower`) and all possible ones (`upper`), each worked out when asked for."""

    def __init__(
        self, by_listing: Listed, left: frozenset[str], joins: tuple[Joiner, ...], sets: Sets, *, joined: bool
    ) -> None:
        self.listed = by_listing
        self._left = left
        self._new = tuple(j for j in joins if not by_listing.covers(j))
        self._sets = sets
        #: Somebody has joined since the listing who is not certain to be permitted without that (R-AUD-9).
        self.joined = joined
        self._lower: Keyed | None = None
        self._upper: Keyed | None = None

    @property
    def lower(self) -> Keyed:
        """Whoever left is certain no more, and who joined is not yet (R-ROOM-4)."""
        if self._lower is None:
            still = not self._left.intersection(self.listed.readers)
            self._lower = self.listed.keyed if still else keyed(without(self.listed.audience, self._left))
        return self._lower

    @property
    def upper(self) -> Keyed:
        """Whoever joined is possible, and who left still is (R-ROOM-4)."""
        if self._upper is None:
            self._upper = self._with_joiners() if self._new else self.listed.keyed
        return self._upper

    def _with_joiners(self) -> Keyed:
        base = self.listed.keyed
        made = keyed(with_joiners(base.audience, self._new))
        self._sets.extend(base, made.key, [j.reader for j in self._new])
        return made

    def cover(self, joiner: Joiner) -> bool:
        """Whether both bounds have this account already, as what it joins as."""
        possible = self.listed.covers(joiner) or (bool(self._new) and covered(self.upper.audience, joiner))
        return possible and _certain(self.listed, self._left, joiner)


def _certain(by_listing: Listed, left: Collection[str], joiner: Joiner) -> bool:
    """Whether an account is permitted for certain, whoever joined."""
    listed_still = joiner.reader in by_listing.readers and joiner.reader not in left
    return listed_still or joiner.inside(by_listing.audience.workspaces)


class Standing:
    """What an agent knows of a room now. `listing` is null where it is unknown; `bounds` also where it is `open`."""

    def __init__(self, listing: Listing | None, bounds: Bounds | None, skewed: bool) -> None:
        self.listing: Final = listing
        self.bounds: Final = bounds
        self.skewed: Final = skewed

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
            and len(self.bounds.upper.audience.readers) == 1
        )


def changed_at(log: RoomLog, agent: str) -> int | None:
    """When a room last became something else, as this agent was told; None where never."""
    return max((at for of, at in log.changed if of is None or of == agent), default=None) if log.changed else None


def known_listing(known: Room, log: RoomLog, agent: str) -> Listing | None:
    """The agent's current listing of a room, unless a `RoomChanged` has made it void (R-ROOM-5)."""
    listing, changed = known.listing, changed_at(log, agent)
    return None if listing is None or (changed is not None and listing.started_at <= changed) else listing


def standing(ledger: Ledger, agent: str, room: str) -> Standing:
    """What the agent knows of the room now."""
    known, log, policy = ledger.room(agent, room), ledger.room_log(room), ledger.policy(room)
    roster = ledger.tables.rosters.get((ledger.tenant, agent, room))
    cached = ledger.caches.standings.get((agent, room))
    if cached is not None and cached[0] is known and cached[1] is log and cached[2] is policy and cached[3] is roster:
        found: Standing = cached[4]
        return found
    made = _standing(ledger, agent, room, known, log)
    ledger.caches.standings[agent, room] = known, log, policy, roster, made
    return made


def _standing(ledger: Ledger, agent: str, room: str, known: Room, log: RoomLog) -> Standing:
    listing = known_listing(known, log, agent)
    if listing is None or listing.visibility is Visibility.OPEN:
        return Standing(listing, None, known.skewed)
    by_listing = current(ledger, agent, room, listing)
    cached = ledger.caches.bounds.get((agent, room))
    if cached is None or cached[0] is not listing or cached[1] is not by_listing or cached[2] is not log.events:
        made = _bounds(ledger, agent, room, listing, by_listing, log.events)
        cached = ledger.caches.bounds[agent, room] = listing, by_listing, log.events, made
    bounds: Bounds = cached[3]
    return Standing(listing, bounds, known.skewed)


def current(ledger: Ledger, agent: str, room: str, listing: Listing) -> Listed:
    """Whom the room's current listing alone makes readers, under the policy in force."""
    roster = ledger.tables.rosters.rows[ledger.tenant, agent, room]
    policy = ledger.policy(room)
    terms = (policy.accounts(agent), policy.settings.trusted_bots, listing.visibility, listing.workspaces)
    cached = ledger.caches.listed.get((agent, room))
    if cached is None or cached[0] is not roster or cached[1] != terms:
        cached = ledger.caches.listed[agent, room] = (roster, terms, Listed(base(listing, roster, policy, agent)))
    found: Listed = cached[2]
    return found


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
    inside = set(listing.workspaces)
    plain = {r for r in readers - guests if not inside.intersection((namespace(r), *roster.memberships.get(r, ())))}
    return listed(plain | guests, guests, listing.workspaces, roster.memberships)


def _bounds(
    ledger: Ledger, agent: str, room: str, listing: Listing, by_listing: Listed, events: tuple[Event, ...]
) -> Bounds:
    policy = ledger.policy(room)
    own, trusted = policy.accounts(agent), policy.settings.trusted_bots
    joins: dict[Joiner, bool] = {}
    left: dict[str, bool] = {}
    for event in since(events, agent, listing):
        found = account(event.reader, event.kind, event.workspaces, own, trusted)
        new = told_since(event, listing)
        if not event.joined:
            left[event.reader] = left.get(event.reader, False) or new
        elif found is not None:
            joins[found] = joins.get(found, False) or new
    # An event that is only told again makes nothing wait: what it settled would be wider than what was known.
    gone = {reader for reader, new in left.items() if new}
    joined = any(new and not _certain(by_listing, gone, j) for j, new in joins.items())
    return Bounds(by_listing, frozenset(left), tuple(joins), ledger.caches.sets, joined=joined)


def since(events: Iterable[Event], agent: str, listing: Listing) -> list[Event]:
    """The events for this agent that apply on top of a listing."""
    return [e for e in events if (e.agent is None or e.agent == agent) and applies(e, listing)]


def told_since(event: Event, listing: Listing) -> bool:
    """Whether an event came after a listing where it was told first (R-AUD-9)."""
    return event.first > listing.arrived or event.at >= listing.started_at


def applies(event: Event, listing: Listing) -> bool:
    """Whether an event applies on top of a listing: it was told after it, or it may have missed it (R-ROOM-4)."""
    return event.latest > listing.arrived or event.at >= listing.started_at


def without(audience: Audience, left: Iterable[str]) -> Audience:
    """The audience less these readers."""
    gone = set(left).intersection(audience.readers)
    if not gone:
        return audience
    return audience.model_copy(
        update={
            "readers": tuple(r for r in audience.readers if r not in gone),
            "guests": tuple(r for r in audience.guests if r not in gone),
            "memberships": {r: m for r, m in audience.memberships.items() if r not in gone},
        }
    )


def with_joiners(audience: Audience, joiners: Iterable[Joiner]) -> Audience:
    """The audience with more possible readers.

    Who is a guest by either account counts as one, and who is listed already is a member of those workspaces only that
    both name.
    """
    readers, guests = list(audience.readers), list(audience.guests)
    memberships = dict(audience.memberships)
    for joiner in joiners:
        further = set(joiner.further)
        if not _insert(readers, joiner.reader):
            further &= set(memberships.get(joiner.reader, ()))
        if joiner.guest:
            _insert(guests, joiner.reader)
        memberships[joiner.reader] = tuple(sorted(further))
    kept = {r: m for r, m in sorted(memberships.items()) if m}
    return audience.model_copy(update={"readers": tuple(readers), "guests": tuple(guests), "memberships": kept})


def _insert(ascending: list[str], value: str) -> bool:
    """Insert into a sorted list; False where it is there already."""
    at = bisect.bisect_left(ascending, value)
    if at < len(ascending) and ascending[at] == value:
        return False
    ascending.insert(at, value)
    return True


def made_members(
    audience: Audience, events: Iterable[Event], own: tuple[str, ...], trusted: tuple[str, ...]
) -> Audience:
    """Whom a listing and the joins and leaves since then made members, each event where it was told first (R-AUD-9)."""
    for event in sorted(events, key=lambda e: e.first):
        if not event.joined:
            audience = without(audience, (event.reader,))
        else:
            found = account(event.reader, event.kind, event.workspaces, own, trusted)
            if found is not None and not covered(audience, found):
                audience = with_joiners(audience, (found,))
    return audience
