"""Decides which bots cost a tenant refusals by reading along, and how many turns trusting them would have let out.

A bot is a guest (R-ROOM-7): what a whole workspace may hear is refused in a room with one, until an operator lists it
in `trusted_bots`. What is said here is counted by the room's last listing, not by those of the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from turngate.processors.audience import Sets, keyed
from turngate.processors.live import shown
from turngate.processors.policy import Effective, effective
from turngate.schemas.inputs import MembershipPage, PolicyPublished, Record
from turngate.schemas.outputs import EvidenceRecorded, TurnDecided, Verdict
from turngate.schemas.policy import Policy, PolicyInvalid, parse_policy
from turngate.schemas.shapes import Audience, Code, MemberKind, Scope

#: Topics whose records are learnt from, in this order.
TOPICS = ("policies", "membership-refreshes", "source-evidence", "turn-verdicts")
#: Refusals for who reads the room.
_FOR_READERS = frozenset({Code.AUDIENCE_NOT_SUBSET, Code.TRIGGER_NOT_SUBSET})

#: Tenant, agent, and a room or a ref.
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """A room in which turns were refused for who reads it, its bots, and how many would pass if these were trusted."""

    tenant: str
    agent: str
    room: str
    refused: int
    bots: tuple[str, ...]
    would_pass: int


class BotCosts:
    """Learns from records, and says what bots cost."""

    def __init__(self) -> None:
        self._policies: defaultdict[str, dict[int, Policy]] = defaultdict(dict)
        self._pages: defaultdict[tuple[str, str], dict[int, MembershipPage]] = defaultdict(dict)
        self._listings: dict[Key, list[MembershipPage]] = {}
        self._audiences: dict[Key, tuple[Audience, ...]] = {}
        self._refused: defaultdict[Key, list[frozenset[str]]] = defaultdict(list)

    def learn(self, record: Record) -> None:
        """Take a record of one of `TOPICS` in."""
        match record:
            case PolicyPublished():
                with suppress(PolicyInvalid):
                    policy = parse_policy(record.document)
                    self._policies[record.tenant].setdefault(policy.version, policy)
            case MembershipPage():
                self._page(record)
            case EvidenceRecorded():
                leaves = () if record.restrictions else record.leaves  # what must stay in its room is not looked at
                self._audiences[record.tenant, record.agent, record.ref] = tuple(leaf.audience for leaf in leaves)
            case TurnDecided(verdict=Verdict.DROP | Verdict.DOWNGRADE) if record.reasons:
                if {reason.code for reason in record.reasons} <= _FOR_READERS:
                    refs = frozenset(reason.ref for reason in record.reasons if reason.ref is not None)
                    self._refused[record.tenant, record.agent, record.room].append(refs)

    def costs(self) -> Iterator[Cost]:
        """The rooms with bots and refusals, those with the most refusals first."""
        for room, turns in sorted(self._refused.items(), key=lambda item: -len(item[1])):
            tenant, agent, name = room
            pages, policy = self._listings.get(room, []), self._policy(tenant)
            listed = {m.reader for page in pages for m in page.members if m.kind is MemberKind.BOT}
            bots = tuple(sorted(listed - set(policy.settings.trusted_bots)))
            if bots:
                passing = sum(self._would_pass(room, refs, bots, policy) for refs in turns)
                yield Cost(tenant, agent, name, len(turns), bots, passing)

    def _page(self, page: MembershipPage) -> None:
        room = (page.tenant, page.agent, page.room)
        pages = self._pages[page.tenant, page.refresh]
        pages[page.page] = page
        last = next((p.page for p in pages.values() if p.last), None)
        if page.error is not None or last is None or len(pages) <= last:
            return
        del self._pages[page.tenant, page.refresh]
        there = self._listings.get(room)
        if there is None or there[0].started_at <= page.started_at:
            self._listings[room] = [pages[number] for number in sorted(pages)]

    def _policy(self, tenant: str) -> Effective:
        versions = self._policies[tenant]
        return effective(tuple(versions[number] for number in sorted(versions)))

    def _would_pass(self, room: Key, refs: frozenset[str], bots: tuple[str, ...], policy: Effective) -> bool:
        """Whether everything that was refused may be heard by the room's readers, these bots being full members."""
        trusted = (*policy.settings.trusted_bots, *bots)
        trusting = effective((policy.settings.model_copy(update={"trusted_bots": trusted}),))
        now = shown(self._listings[room], trusting)
        if now is None or now.upper.scope is not Scope.LISTED:
            return False
        sources = [self._audiences.get((*room[:2], ref), ()) for ref in refs]
        return bool(sources) and all(
            audiences and all(_within(now.upper, a) for a in audiences) for audiences in sources
        )


def _within(upper: Audience, audience: Audience) -> bool:
    mine, theirs = keyed(upper), keyed(audience)
    return Sets().within(upper, mine.key, audience, theirs.key)
