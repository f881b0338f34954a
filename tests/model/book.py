"""What is so at a moment, and what a destination may hear of it (R-AUD-2, R-AUD-3, R-GRT-7, R-IDN-2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from tests.model.facts import (
    DESTINATION,
    OBSERVATION,
    UNKNOWN,
    WORKSPACE,
    Asked,
    Destination,
    Grant,
    Judged,
    Leaf,
    Offer,
    Proof,
    Revision,
    Room,
    Said,
    Turn,
    Who,
    nobody_knows,
    within,
)
from turngate.schemas.inputs import MemoryWrite

#: A record as both sides are compared by: its name, and what must be equal.
Out = tuple[object, ...]


@dataclass(frozen=True)
class Terms:
    """What the machine's policy says, one for each run."""

    max_leaves: int = 5_000
    assessed: bool = False
    own_words: bool = False
    share_publicly: bool = True


@dataclass(frozen=True)
class Evidence:
    """A ref as one agent has it, with what is against it whoever hears it."""

    leaves: frozenset[Leaf]
    codes: frozenset[str] = frozenset()
    over: bool = False
    restrictions: frozenset[str] = frozenset()
    revision: str | None = None


@dataclass
class Book:
    terms: Terms
    now: int = 0
    rooms: dict[tuple[str, str], Room] = field(default_factory=dict)
    said: dict[tuple[str, str], Said] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    revisions: dict[str, Revision] = field(default_factory=dict)
    memories: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    open_in: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    early: dict[str, list[str]] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    offers: dict[str, Offer] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)
    done: set[tuple[str, str]] = field(default_factory=set)
    waiting: dict[str, tuple[int, MemoryWrite]] = field(default_factory=dict)
    questions: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    out: list[Out] = field(default_factory=list)

    # Evidence

    def evidence(
        self, ref: str, agent: str, wrote: Collection[str] = (), retired: Collection[str] = ()
    ) -> Evidence | None:
        """R-AUD-3; `wrote` and `retired` are what a turn may acknowledge (R-TURN-5)."""
        codes = {"source_deleted"} if ref in self.deleted else set()
        kind, _, name = ref.partition(":")
        if kind != "revision":
            said = self.said.get((ref, agent))
            return None if said is None else Evidence(said.leaves, frozenset(codes), said.over)
        row = self.revisions.get(name)
        if row is None or row.agent != agent:
            return None
        if name not in wrote and name not in retired:
            if row.state == "staged":
                codes.add("revision_staged")
            if row.state == "retired":
                codes.add("revision_not_current")
        leaves = row.seen if name in wrote else row.leaves
        return Evidence(leaves, frozenset(codes), row.over, row.restrictions, name)

    def known(self, evidence: Evidence | None) -> bool:
        """Established, all of it."""
        if evidence is None or evidence.over or not evidence.leaves:
            return False
        return all(leaf.who != UNKNOWN for leaf in evidence.leaves)

    def as_seen(self, refs: Iterable[str], agent: str) -> set[Leaf]:
        """R-EVI-6: the leaves of a revision carry it as `via`."""
        seen: set[Leaf] = set()
        for ref in refs:
            found = self.evidence(ref, agent)
            if found is None:
                continue
            leaves = found.leaves
            if found.over:  # R-EVI-5
                leaves = frozenset({replace(nobody_knows(agent), restrictions=found.restrictions)})
            if found.revision is not None:
                leaves = frozenset(replace(leaf, via=found.revision) for leaf in leaves)
            seen |= leaves
        return seen

    def absent(self, ref: str) -> str:
        if ref.startswith("revision:"):
            return "other_agent" if ref.removeprefix("revision:") in self.revisions else "source_missing"
        return "other_agent" if any(of == ref for of, _ in self.said) else "source_missing"

    # Rooms

    def source_of(self, agent: str, room: str) -> Room | None:
        """The room, if what is said there now can be evidence (R-AUD-5)."""
        found = self.rooms.get((agent, room))
        return found if found is not None and found.fresh(self.now, OBSERVATION) else None

    def destination(self, agent: str, room: str) -> Destination | None:
        """Known and fresh, or open; else None (R-ROOM-10, R-TURN-6)."""
        found = self.rooms.get((agent, room))
        if found is None:
            return None
        if found.open:
            return Destination(room, UNKNOWN, own_words=self.terms.own_words)
        if not found.fresh(self.now, DESTINATION) or not (found.upper.people or found.upper.workspaces):
            return None
        direct = found.kind == "direct" and found.visibility == "members" and len(found.upper.people) == 1
        sole = min(found.upper.people) if direct else None
        return Destination(room, found.upper, sole, until=found.started_at + DESTINATION)

    # Permission

    def judge(
        self, ref: str, agent: str, to: Destination, wrote: Collection[str] = (), retired: Collection[str] = ()
    ) -> Judged:
        found = self.evidence(ref, agent, wrote, retired)
        if found is None:
            return Judged(frozenset({self.absent(ref)}))
        codes = set(found.codes)
        if found.restrictions - {to.room}:
            codes.add("restricted_to_conversation")
        if found.over:
            codes.add("leaf_limit")
        elif not found.leaves:
            codes.add("source_unknown")
        grants: set[str] = set()
        proofs: set[str] = set()
        own = False
        for leaf in found.leaves:
            if leaf.agent != agent:
                codes.add("other_agent")
            if leaf.restrictions - {to.room}:
                codes.add("restricted_to_conversation")
            if leaf.who == UNKNOWN:
                if to.own_words and leaf.open and leaf.room == to.room:
                    own = True
                else:
                    codes.add("source_unknown")
            elif not within(to.who, leaf.who):
                self._otherwise(leaf, found.revision, agent, to, codes, grants, proofs)
        return Judged(frozenset(codes), frozenset(grants), frozenset(proofs), own)

    def _otherwise(
        self,
        leaf: Leaf,
        revision: str | None,
        agent: str,
        to: Destination,
        codes: set[str],
        grants: set[str],
        proofs: set[str],
    ) -> None:
        """R-IDN-2, then R-GRT-7; else the code, which tells what would have permitted it once (R-TURN-2)."""
        alone = min(leaf.who.people) if len(leaf.who.people) == 1 and not leaf.who.workspaces else None
        if alone is not None and to.sole is not None:
            a, b = self._bound(agent, alone), self._bound(agent, to.sole)
            if a is not None and b is not None and a[0] == b[0]:
                proofs.update((a[1], b[1]))
                return
        mine = [
            (id, grant)
            for id, grant in sorted(self.grants.items())
            if grant.agent == agent and grant.revision in (revision, leaf.via) and within(to.who, grant.who)
        ]
        live = [id for id, grant in mine if grant.state == "active"]
        if live:
            grants.add(live[0])
        elif any(grant.state == "revoked" for _, grant in mine):
            codes.add("grant_revoked")
        elif mine:
            codes.add("grant_expired")
        elif alone is not None and to.sole is not None and self._ever(agent, alone) & self._ever(agent, to.sole):
            codes.add("proof_not_live")
        else:
            codes.add("audience_not_subset")

    def _bound(self, agent: str, reader: str) -> tuple[str, str] | None:
        """R-IDN-1: the one subject of an account's live proofs, and the first of these."""
        live = {
            id: p.subject
            for id, p in self.proofs.items()
            if (p.agent, p.reader) == (agent, reader) and not p.revoked and self.now < p.expires_at
        }
        return (min(live.values()), min(live)) if len(set(live.values())) == 1 else None

    def _ever(self, agent: str, reader: str) -> set[str]:
        return {p.subject for p in self.proofs.values() if (p.agent, p.reader) == (agent, reader)}

    # What was said

    def say(self, ref: str, agent: str, content: object, leaves: set[Leaf], made_of: set[str]) -> None:
        """R-AUD-6: what was said before stays; R-EVI-5: too much is nothing that is known."""
        said = self.said[ref, agent]
        said.contents.add(content)
        said.made_of |= made_of
        said.leaves |= leaves
        if said.over or len(said.leaves) > self.terms.max_leaves:
            said.leaves, said.over = frozenset(), True
        self.out.append(recorded(ref, agent, said.leaves, over=said.over))

    def quoted(self, quotes: Iterable[str], agent: str) -> set[Leaf]:
        leaves: set[Leaf] = set()
        for ref in quotes:
            said = self.said.get((ref, agent))
            leaves |= {nobody_knows(agent)} if said is None or said.over else said.leaves
        return leaves


def recorded(ref: str, agent: str, leaves: frozenset[Leaf], *, over: bool) -> Out:
    """`EvidenceRecorded`; of what is unknown, neither its leaves nor its bits are anybody's business."""
    if over or not leaves or any(leaf.who == UNKNOWN for leaf in leaves):
        return ("EvidenceRecorded", ref, agent, "unknown")
    return ("EvidenceRecorded", ref, agent, leaves)


def tool_audience(server: str, named: Who | None) -> tuple[Who, frozenset[str], bool, bool]:
    """R-AUD-8, for the machine's tools: audience, restrictions, private, untrusted."""
    known: dict[str, tuple[Who, frozenset[str], bool, bool]] = {
        "wiki": (WORKSPACE, frozenset(), False, False),
        "web": (Who("public"), frozenset(), False, True),
        "vault": (WORKSPACE, frozenset({"slack:T1/C1"}), True, False),
    }
    if server == "drive" and named is not None and named.scope == "listed":
        return named, frozenset(), False, False
    return known.get(server, (UNKNOWN, frozenset(), server != "drive", server != "drive"))
