"""Decides what listings, joins, leaves and changes do to a room (R-ROOM-2 to R-ROOM-5, R-TIME-2)."""

from __future__ import annotations

from dataclasses import replace

from turngate.processors.accounts import account
from turngate.processors.bounds import applies, current, known_listing, standing
from turngate.processors.ledger import Ledger
from turngate.processors.rows import Event, Listing, Page, Refresh, Room, RoomLog, Roster
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import Change, MembershipChanged, MembershipPage, RoomChanged
from turngate.schemas.outputs import Because
from turngate.schemas.shapes import MemberKind, Visibility

#: So many listings of one room are remembered as under way or spoiled, and so many as from the future, for one agent;
#: of more, the oldest are forgotten. Both are emptied by the next good listing.
MOST_UNFINISHED = 200
#: Events of a room are looked through for those that nothing needs whenever so many more are remembered.
PRUNE_EVERY = 256


def page_arrived(ledger: Ledger, record: MembershipPage) -> Listing | None:
    """Take in one page; the listing that it completes, where that becomes the room's current one (R-ROOM-2)."""
    tables, tenant = ledger.tables, ledger.tenant
    key = (tenant, record.refresh)
    row = ledger.room(record.agent, record.room)
    if _done(row, record.refresh):
        return None
    page = page_of(record)
    under_way = tables.refreshes.get(key)
    if under_way is None:
        if row.listing is not None and record.started_at < row.listing.started_at:
            return None  # R-ROOM-3
        if record.page == 0 and record.last and says_enough([page]):
            return _complete(ledger, record, [page])
        under_way = _begin(ledger, record, row)
    if under_way.spoiled:
        return None
    known = tables.pages.get((*key, str(record.page)))
    if known is not None and known.digest == page.digest:
        return None
    same = (under_way.agent, under_way.room, under_way.started_at) == (record.agent, record.room, record.started_at)
    last = record.page if record.last else under_way.last
    clash = record.last and under_way.last is not None
    beyond = last is not None and max(*under_way.pages, record.page, -1) > last
    if known is not None or not same or page.failed or clash or beyond:
        _spoil(ledger, record.refresh, under_way)
        return None
    pages = (*under_way.pages, record.page)
    tables.pages.put((*key, str(record.page)), page)
    tables.refreshes.put(key, replace(under_way, pages=pages, last=last))
    if last is None or len(pages) != last + 1:
        return None
    complete = [tables.pages.rows[*key, str(n)] for n in range(last + 1)]
    if not says_enough(complete):
        _spoil(ledger, record.refresh, replace(under_way, pages=pages))
        return None
    _forget(ledger, record.refresh)
    still = tuple(r for r in ledger.room(record.agent, record.room).open_refreshes if r != record.refresh)
    ledger.put_room(record.agent, record.room, open_refreshes=still)
    return _complete(ledger, record, complete)


def _begin(ledger: Ledger, record: MembershipPage, row: Room) -> Refresh:
    """Note that a listing is under way; of too many the oldest is forgotten."""
    under_way = (*row.open_refreshes, record.refresh)
    for refresh in under_way[:-MOST_UNFINISHED]:
        _forget(ledger, refresh)
    ledger.put_room(record.agent, record.room, open_refreshes=under_way[-MOST_UNFINISHED:])
    return Refresh(record.agent, record.room, record.started_at)


def _spoil(ledger: Ledger, refresh: str, under_way: Refresh) -> None:
    """Remember that a listing counts for nothing, whatever pages of it are still to come (R-ROOM-2)."""
    _drop_pages(ledger, refresh, under_way)
    ledger.tables.refreshes.put((ledger.tenant, refresh), replace(under_way, pages=(), spoiled=True))


def _forget(ledger: Ledger, refresh: str) -> None:
    under_way = ledger.tables.refreshes.get((ledger.tenant, refresh))
    if under_way is not None:
        _drop_pages(ledger, refresh, under_way)
        ledger.tables.refreshes.drop((ledger.tenant, refresh))


def says_enough(pages: list[Page]) -> bool:
    """Whether a listing whose pages are all there is complete (R-ROOM-2, R-ROOM-6, R-ROOM-7)."""
    first = pages[0]
    named = first.visibility is not Visibility.WORKSPACE or bool(first.workspaces)
    return first.kind is not None and first.visibility is not None and named and not any(p.failed for p in pages)


def _done(row: Room, refresh: str) -> bool:
    """A page of a listing that was complete before is ignored, so that a redelivery brings nothing back (R-RUN-4)."""
    current = row.listing is not None and refresh in row.listing.refreshes
    return current or any(refresh == unusable for unusable, _ in row.unusable)


def page_of(record: MembershipPage) -> Page:
    """What counts of a page."""
    info = record.info if record.page == 0 else None
    return Page(
        digest=digest(record.model_dump(mode="json", exclude={"tenant", "at"})),
        last=record.last,
        failed=record.error is not None,
        kind=None if info is None else info.kind,
        visibility=None if info is None else info.visibility,
        workspaces=None if info is None else info.workspaces,
        members=tuple((m.reader, m.kind, m.workspaces) for m in record.members),
    )


def _drop_pages(ledger: Ledger, refresh: str, under_way: Refresh) -> None:
    for number in under_way.pages:
        ledger.tables.pages.drop((ledger.tenant, refresh, str(number)))


def _complete(ledger: Ledger, record: MembershipPage, pages: list[Page]) -> Listing | None:
    """A listing that says enough is there: it becomes current if it is neither old nor of the future."""
    first = pages[0]
    if first.kind is None or first.visibility is None:
        raise ValueError("a listing that says not enough is not complete")
    row = ledger.room(record.agent, record.room)
    if record.started_at > ledger.now + ledger.policy(record.room).settings.freshness.clock_skew:
        unusable = (*row.unusable, (record.refresh, record.started_at))[-MOST_UNFINISHED:]
        ledger.put_room(record.agent, record.room, unusable=unusable, skewed=True)
        return None  # R-TIME-2
    current = row.listing
    if current is not None and record.started_at < current.started_at:
        return None  # R-ROOM-3
    together = current is not None and record.started_at == current.started_at
    roster = roster_of(pages)
    listing = Listing(
        started_at=record.started_at,
        arrived=ledger.arrival,
        refreshes=(*current.refreshes, record.refresh) if together and current is not None else (record.refresh,),
        kind=first.kind,
        visibility=first.visibility,
        workspaces=tuple(sorted(set(first.workspaces or ()))),
        roster=roster.digest,
    )
    _settle_in(ledger, record, row, listing, roster)
    return listing


def _settle_in(ledger: Ledger, record: MembershipPage, row: Room, listing: Listing, roster: Roster) -> None:
    key = (ledger.tenant, record.agent, record.room)
    known = ledger.tables.rosters.get(key)
    if known is None or known.digest != roster.digest:
        ledger.tables.rosters.put(key, roster)
    still = []
    for refresh in row.open_refreshes:
        under_way = ledger.tables.refreshes.get((ledger.tenant, refresh))
        if under_way is not None and under_way.started_at < listing.started_at:
            _forget(ledger, refresh)
        elif under_way is not None:
            still.append(refresh)
    ledger.put_room(
        record.agent,
        record.room,
        listing=listing,
        skewed=False,
        unusable=tuple(u for u in row.unusable if u[1] >= listing.started_at),
        open_refreshes=tuple(still),
    )


def roster_of(pages: list[Page]) -> Roster:
    """Who was listed. Whoever is listed as two things is the lesser one, and in those workspaces that all name."""
    by: dict[MemberKind, set[str]] = {kind: set() for kind in MemberKind}
    further: dict[str, set[str]] = {}
    for page in pages:
        for reader, kind, workspaces in page.members:
            if kind is MemberKind.MEMBER and (workspaces or reader in by[kind]):
                known = further.get(reader, set() if reader in by[kind] else set(workspaces))
                further[reader] = known.intersection(workspaces)
            by[kind].add(reader)
    guests = by[MemberKind.GUEST] | by[MemberKind.EXTERNAL]
    bots = by[MemberKind.BOT] - guests
    selves = by[MemberKind.SELF] - guests - bots
    members = by[MemberKind.MEMBER] - guests - bots - selves
    memberships = {r: tuple(sorted(further[r])) for r in sorted(further) if r in members and further[r]}
    parts = [sorted(part) for part in (members, guests, bots, selves)]
    return Roster(
        members=tuple(parts[0]),
        guests=tuple(parts[1]),
        bots=tuple(parts[2]),
        selves=tuple(parts[3]),
        memberships=memberships,
        digest=digest([*parts, memberships]),
    )


def membership_changed(ledger: Ledger, record: MembershipChanged) -> None:
    """Somebody joined or left (R-ROOM-4): joins ask for a listing where the known bounds did not cover them both."""
    log = ledger.room_log(record.room)
    agents = log.agents if record.agent is None else (record.agent,)
    uncovered = []
    for agent in agents:
        if record.change is Change.JOINED and not _covered(ledger, agent, record):
            uncovered.append(agent)
    events = _told(log, record, ledger.arrival)
    ledger.tables.room_logs.put((ledger.tenant, record.room), replace(log, events=events))
    if len(events) % PRUNE_EVERY == 0:
        prune(ledger, record.room)  # a room that nobody lists must not remember all of them
    for agent in uncovered:
        need_by = ledger.now + ledger.policy(record.room).settings.stale.hold
        ledger.ask(agent, record.room, Because.JOIN, need_by)


def _covered(ledger: Ledger, agent: str, record: MembershipChanged) -> bool:
    """Whether the known bounds cover this join; where there are none, there is nothing to ask about."""
    listing = known_listing(ledger.room(agent, record.room), ledger.room_log(record.room), agent)
    policy = ledger.policy(record.room)
    found = account(record.reader, record.kind, record.workspaces, policy.accounts(agent), policy.settings.trusted_bots)
    if listing is None or listing.visibility is Visibility.OPEN or found is None:
        return True
    settled = current(ledger, agent, record.room, listing).settles(found)
    if settled is not None:
        return settled  # the bounds are made of all that happened since, and thousands may join before a listing
    bounds = standing(ledger, agent, record.room).bounds
    return bounds is None or bounds.cover(found)


def _told(log: RoomLog, record: MembershipChanged, arrival: int) -> tuple[Event, ...]:
    """The room's events with this one; one that was told before keeps its first place."""
    event = Event(
        agent=record.agent,
        reader=record.reader,
        kind=record.kind,
        workspaces=record.workspaces,
        joined=record.change is Change.JOINED,
        at=record.at,
        first=arrival,
        latest=arrival,
    )
    for i, known in enumerate(log.events):
        if known.at == event.at and replace(known, first=arrival, latest=arrival) == event:
            return (*log.events[:i], replace(known, latest=arrival), *log.events[i + 1 :])
    return (*log.events, event)


def room_changed(ledger: Ledger, record: RoomChanged | MembershipChanged) -> None:
    """The room became something else, or what is not known: its listings are void up to here (R-ROOM-5)."""
    log = ledger.room_log(record.room)
    at = max([record.at, *(t for of, t in log.changed if of == record.agent)])
    changed = (*((of, t) for of, t in log.changed if of != record.agent), (record.agent, at))
    ledger.tables.room_logs.put((ledger.tenant, record.room), replace(log, changed=changed))


def prune(ledger: Ledger, room: str) -> None:
    """Forget the events that no listing, of now or to come, nor any waiting message can need any more."""
    log = ledger.room_log(room)
    policy = ledger.policy(room).settings
    reach = ledger.now - max(policy.freshness.observation, policy.freshness.destination)
    needs = [(agent, *_needs(ledger.room(agent, room))) for agent in log.agents]
    kept = tuple(
        e
        for e in log.events
        if e.at >= reach
        or any(
            (e.agent is None or e.agent == agent)
            and ((said is not None and e.at >= said) or any(applies(e, listing) for listing in listings))
            for agent, listings, said in needs
        )
    )
    if len(kept) != len(log.events):
        ledger.tables.room_logs.put((ledger.tenant, room), replace(log, events=kept))


def _needs(row: Room) -> tuple[list[Listing], int | None]:
    """The listings on top of which events still apply, and when the first of the waiting messages was said."""
    listings = [] if row.listing is None else [row.listing]
    listings += {p.before.arrived: p.before for p in row.pending if p.before is not None}.values()
    return listings, min((p.at for p in row.pending), default=None)
