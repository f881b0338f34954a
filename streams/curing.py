"""Decides which change of a policy is the smallest that lets through what is refused only for want of being named.

Only what a policy is silent about is proposed: tools, agents, open rooms, hosts of links. What is refused because
somebody in the room may not hear it needs another answer, and a guard is not loosened because it works.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngate.processors.links import links
from turngate.schemas.shapes import Code, Reason
from turngate.streams.counterfactual import Document
from turngate.streams.recorded_facts import Facts
from turngate.streams.refusals import Ended

#: Where in a policy something is missing.
Path = tuple[str, ...]
#: How often what a change brings to light is looked at once more: a guard is asked only where the audience permits.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing that a policy does not say yet, and the turns that are refused for it; of a list, `value` is added."""

    path: Path
    value: Any
    turns: set[str] = field(default_factory=set)

    def into(self, document: Document) -> Document:
        """The document with it."""
        return _into(document, self.path, self.value)


@dataclass(frozen=True, slots=True)
class Cure:
    """A change of a policy, and the turns that would pass with it."""

    edits: tuple[Edit, ...]
    passing: frozenset[str]

    def into(self, document: Document) -> Document:
        """The document with it."""
        return changed(self.edits, document)


def changed(edits: Iterable[Edit], document: Document) -> Document:
    """The document with all of these."""
    for edit in edits:
        document = edit.into(document)
    return document


def smallest(
    refused: Mapping[str, Ended], facts: Facts, under: Callable[[Sequence[Edit]], Mapping[str, Ended]]
) -> Cure:
    """The smallest change with which as many of the refused turns pass as any such change lets pass.

    `under` says how turns would end with a change.
    """
    found: dict[Path, Edit] = {}
    ends = refused
    for _ in range(_ROUNDS):
        more = _edits((end for end in ends.values() if end.turn in refused and not end.passed), facts, found)
        if more == found:
            break
        found, ends = more, under(list(more.values()))
    passing = {turn for turn, end in ends.items() if turn in refused and end.passed}
    kept = [edit for edit in found.values() if edit.turns & passing]
    for edit in [edit for edit in kept if edit.path[0] == "interlock"]:  # a source may have held the very link
        without = [other for other in kept if other is not edit]
        if all(end.passed for turn, end in under(without).items() if turn in passing):
            kept = without
    return Cure(tuple(kept), frozenset(passing))


def _edits(refused: Iterable[Ended], facts: Facts, known: Mapping[Path, Edit]) -> dict[Path, Edit]:
    """What turns are refused for that a policy could say, beside what is known, where it is all that they are."""
    turns: dict[Path, set[str]] = defaultdict(set)
    rooms: dict[Path, set[str]] = defaultdict(set)
    for end in refused:
        paths = [_missing(reason, end, facts) for reason in end.reasons]
        if paths and all(paths):
            for path in [path for some in paths for path in some]:
                turns[path].add(end.turn)
                rooms[path].add(end.room)
    found = dict(known)
    for path, of in turns.items():
        value = _value(path, rooms[path], facts)
        if value is not None:
            before = known.get(path)
            found[path] = Edit(path, value, of if before is None else before.turns | of)
    return found


def _missing(reason: Reason, end: Ended, facts: Facts) -> list[Path]:
    """Where a policy is silent about what a reason is about; empty: it is not that."""
    match reason.code:
        case Code.SOURCE_UNKNOWN if reason.ref in facts.servers:
            return [("tools", facts.servers[reason.ref])]
        case Code.AGENT_UNKNOWN:
            return [("agents", end.agent)]
        case Code.DESTINATION_UNKNOWN if facts.is_open(end.room):
            return [("open_rooms",)]
        case Code.SOURCE_UNKNOWN | Code.TRIGGER_NOT_SUBSET if facts.is_open(end.room) and _said_in(reason, end.room):
            return [("open_rooms",)]
        case Code.INTERLOCK_LINK if end.turn in facts.drafts:
            texts = [rendering.text for rendering in facts.drafts[end.turn].renderings]
            hosts = {link.host for text in texts for link in links(text) if link.host is not None}
            return [("interlock", "link_hosts", host) for host in sorted(hosts)]
    return []


def _said_in(reason: Reason, room: str) -> bool:
    return reason.ref is not None and reason.ref.startswith(f"message:{room}/")


def _value(path: Path, rooms: Iterable[str], facts: Facts) -> Any:
    """What a policy would have to say there for these rooms; None: nobody can tell."""
    match path:
        case ("tools", server):
            named = facts.policy.get("tools", {}).get(server)
            audience = _together(facts.audience(room) for room in sorted(rooms))
            if audience is None or (named is not None and (named.get("audience") or named.get("adapter") == "legacy")):
                return None
            return {"adapter": "mcp", "private": True, "untrusted": True, **(named or {}), "audience": audience}
        case ("agents", agent):
            accounts = facts.accounts(agent)
            return {"accounts": accounts} if accounts else None
        case ("open_rooms",):
            return "own_words"
        case ("interlock", "link_hosts", host):
            return [host]
    return None


def _together(audiences: Iterable[Mapping[str, list[str]] | None]) -> dict[str, list[str]] | None:
    """All of these readers; None where those of one room are not known."""
    made: dict[str, set[str]] = defaultdict(set)
    for audience in audiences:
        if audience is None:
            return None
        for name, values in audience.items():
            made[name].update(values)
    return {name: sorted(values) for name, values in made.items() if values}


def _into(document: Document, path: Path, value: Any) -> Document:
    key, *rest = path
    if isinstance(value, list) and len(rest) == 1:  # the last part of the path is the element itself
        return document | {key: sorted({*(document.get(key) or ()), *value})}
    if not rest:
        return document | {key: value}
    return document | {key: _into(document.get(key) or {}, tuple(rest), value)}
