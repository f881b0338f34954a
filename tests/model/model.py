"""The rules of memory once more, as plainly as they can be said: one record in, what must come of it out.

Written from the rules (EVI, GRT, IDN, MEM, SEN, and what they need of AUD, ROOM, TURN and RET), not from the engine. It
holds for rooms whose listings are of one page, for messages in rooms where nobody has joined since, and for drafts of
text in rooms that are known.
"""

from __future__ import annotations

import re

from tests.model import sharing, turns, writes
from tests.model.book import Book, Out, Terms, recorded, tool_audience
from tests.model.facts import UNKNOWN, Leaf, Room, Said, nobody_knows
from turngate.schemas import inputs
from turngate.schemas.inputs import MembershipChanged, MembershipPage, MessageObserved, Record, ToolReturned

COMMAND = re.compile(r"\s*(share|unshare)\s+([a-z2-7]{12})\s*", re.I)


class Model:
    def __init__(self, terms: Terms) -> None:
        self.book = Book(terms)
        self._due: list[tuple[int, int, str, str]] = []  # until, arrival, what, id
        self._arrival = 0

    def apply(self, record: Record, timestamp: int, topic: str) -> list[Out]:
        book = self.book
        book.now = max(book.now, timestamp)
        self._arrival += 1
        book.out = []
        self._time_passes()
        operators = topic == "operator-commands"
        match record:
            case MembershipPage():
                self._listed(record)
            case MembershipChanged():
                self._changed(record)
            case MessageObserved():
                self._observed(record)
            case inputs.MessageDeleted():
                book.deleted.add(f"message:{record.message}")
            case ToolReturned():
                self._returned(record)
            case inputs.AccountProven():
                sharing.proven(book, record)
            case inputs.ProofRevoked():
                sharing.revoked(book, record)
            case inputs.MemoryWrite():
                writes.written(book, record, operators=operators)
                if record.write in book.waiting:
                    self._wait(book.waiting[record.write][0], "write", record.write)
            case inputs.SensitivityAssessed():
                writes.assessed(book, record)
            case inputs.SharingRequested():
                sharing.requested(book, record)
                if record.request in book.offers:
                    self._wait(book.offers[record.request].expires_at, "offer", record.request)
            case inputs.GrantCommanded():
                if operators:
                    sharing.commanded(book, record)
                    self._grant_ends(record.command)
                else:
                    book.out.append(("RecordRefused", "not_operator"))
            case inputs.ErasureCommanded():
                if ("command", record.command) not in book.done:
                    book.done.add(("command", record.command))
                    writes.erased(book, record)
            case inputs.ContextRequested():
                turns.asked_for_context(book, record)
            case inputs.TurnDrafted():
                turns.drafted(book, record)
        return book.out

    # Time

    def _wait(self, until: int, what: str, name: str) -> None:
        if (what, name) not in {(w, n) for _, _, w, n in self._due}:
            self._due.append((until, self._arrival, what, name))

    def _grant_ends(self, command: str) -> None:
        grant = self.book.grants.get(command)
        if grant is not None and grant.expires_at is not None and grant.state == "active":
            self._wait(grant.expires_at, "grant", command)

    def _time_passes(self) -> None:
        """R-TIME-4: all that is due, in order of the arrival of what made it wait."""
        book = self.book
        due = sorted((d for d in self._due if d[0] <= book.now), key=lambda d: d[1])
        self._due = [d for d in self._due if d[0] > book.now]
        for _, _, what, name in due:
            if what == "write" and name in book.waiting:
                writes.after_waiting(book, book.waiting.pop(name)[1], None)
            elif what == "offer" and book.offers[name].state == "open":
                offer = book.offers[name]
                offer.state = "expired"
                book.out.append(("GrantChanged", name, offer.revision, offer.who, "expired"))
            elif what == "grant" and book.grants[name].state == "active":
                book.grants[name].state = "expired"
                sharing.changed(book, name, "expired")

    # Rooms and what is said there

    def _listed(self, record: MembershipPage) -> None:
        assert record.info is not None
        assert record.info.kind is not None
        assert record.info.visibility is not None
        people = frozenset(m.reader for m in record.members)
        key = (record.agent, record.room)
        before = self.book.rooms.get(key)
        if before is None or before.started_at < record.started_at:
            self.book.rooms[key] = Room(
                record.room, record.info.kind.value, record.info.visibility.value, people, record.started_at
            )

    def _changed(self, record: MembershipChanged) -> None:
        for (agent, room), known in list(self.book.rooms.items()):
            if room == record.room:
                joined, left = known.joined, known.left
                if record.change == "joined":
                    joined |= {record.reader}
                else:
                    left |= {record.reader}
                self.book.rooms[agent, room] = Room(
                    room, known.kind, known.visibility, known.listed, known.started_at, joined, left
                )

    def _observed(self, record: MessageObserved) -> None:
        book, agent, ref = self.book, record.agent, f"message:{record.message}"
        if (agent, record.message) in book.done:
            return
        said = book.said.get((ref, agent))
        person = record.author_kind in ("person", "external")
        match = COMMAND.fullmatch(record.text or "") if person and said is None and not record.edited else None
        if match is not None and re.search(r"\d", match[2]):
            sharing.said(book, record, match[1].lower(), match[2].upper())
            return
        content = (record.text, record.quotes)
        if said is not None and (not record.edited or content in said.contents):
            return
        if record.author_kind == "self":
            turn = None if record.turn is None else book.turns.get(record.turn)
            proven = turn is not None and turn.sent_to == record.room and turn.agent == agent
            leaves = set(turn.leaves) if turn is not None and proven else {nobody_knows(agent, record.room)}
            made_of = set() if turn is None else set(turn.refs)
        else:
            leaves, made_of = {self._leaf(record)}, set()
        said = book.said.setdefault((ref, agent), Said(frozenset(), record.room))
        said.author = record.author
        book.say(ref, agent, content, leaves | book.quoted(record.quotes, agent), made_of | {*record.quotes})

    def _leaf(self, record: MessageObserved) -> Leaf:
        room = self.book.source_of(record.agent, record.room)
        assert room is not None, "the machine lists a room before anything is said there"
        assert not room.joined_new, "the machine lists a room again after a join"
        return Leaf(
            record.agent,
            UNKNOWN if room.open else room.lower,
            author=record.author if record.author_kind in ("person", "external") else None,
            room=record.room,
            open=room.open,
            private=room.visibility == "members",
            untrusted=record.author_kind in ("external", "bot"),
        )

    def _returned(self, record: ToolReturned) -> None:
        book, ref = self.book, f"tool:{record.call}"
        if (ref, record.agent) in book.said:
            return
        named = None if record.audience is None else writes.who(record.audience)
        audience, restrictions, private, untrusted = tool_audience(record.server, named)
        leaf = Leaf(
            record.agent,
            audience,
            restrictions=restrictions,
            private=private or record.private is True,
            untrusted=untrusted or record.untrusted is True,
        )
        book.said[ref, record.agent] = Said(frozenset({leaf}), record.room)
        book.out.append(recorded(ref, record.agent, frozenset({leaf}), over=False))
        turns.result_came(book, record)
