"""Decides how evidence is held in memory: a million messages are recorded, and each must cost little (rules RET).

A row that says what most say is packed into 28 bytes, the others are kept as compressed JSON. Leaves and authors stand
as numbers that mean something here only, and a message by its room and time; nothing of this form leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.numbers import Numbers
from turngate.processors.recent import Recent
from turngate.processors.refnames import MESSAGE, long, short
from turngate.processors.squeezed import Squeeze
from turngate.processors.stacks import SEEN, Name, Stack
from turngate.processors.state import Key, Rows

if TYPE_CHECKING:
    from turngate.processors.rows import Evidence

#: So many bytes of a content's SHA-256 tell the texts apart that one message has had. That is enough against accident,
#: and there is nothing to gain by making two texts of the same: an edit that is not seen as one is seen by nobody.
CONTENT_BYTES = 12
#: A row's stream time and what it is in three bits; of a plain one then its one leaf's number, how much later it was
#: observed than said, whose it is by number, and its one content.
_BITS, _NUMBER, _LATER = 1, 3, 3
_LEAF = SEEN + _BITS
_AFTER = _LEAF + _NUMBER
_WHOSE = _AFTER + _LATER
_CONTENT = _WHOSE + _NUMBER
#: Added to a time, so that every one from the year 1412 to the year 9999 is a number of six bytes (shapes.Millis).
_BEFORE = 1 << 44
_MOST_LATER = 1 << (8 * _LATER - 1)
#: A person said it; `whose` is the server of a tool, not an author; it is a plain row.
_PERSON, _SERVER, _PLAIN = 1, 2, 4
#: Stands for nobody's.
_NOBODY = (1 << 8 * _NUMBER) - 1
#: Rows unpacked last; a draft and its context request look at the same ones several times.
_RECENT = 2_000


class Shelf(NamedTuple):
    """One agent's evidence of one room of a tenant."""

    tenant: str
    agent: str
    room: str


class EvidenceRows(Rows["Evidence"]):
    """Rows of the table of evidence, by (tenant, ref, agent), and for each room which of them are the oldest.

    A message is found by its id, which begins with its room's; of the others it is noted in which room they are.
    """

    def __init__(self, made: type[Evidence], written: TypeAdapter[Evidence], leaves: LeafRows) -> None:
        self._make = made
        self._squeeze = Squeeze(made, written)
        self._leaves = leaves
        self._stacks: dict[str, dict[str, dict[str, Stack]]] = {}
        self._elsewhere: dict[Key, str] = {}
        self._whose: Numbers[str] = Numbers()
        self._recent: Recent[Key, Evidence] = Recent(_RECENT)
        #: What somebody has made of a row; it goes when another row or none takes that one's place.
        self.made_of: Recent[Key, Any] = Recent(_RECENT)

    # As a mapping

    def __getitem__(self, key: Key) -> Evidence:
        row = self.get(key)
        if row is None:
            raise KeyError(key)
        return row

    def get(self, key: Key, default: Evidence | None = None) -> Evidence | None:  # type: ignore[override]
        """The row of a key, or the default."""
        found = self._recent.get(key)
        if found is not None:
            return found
        place = self._find(key)
        if place is None:
            return default
        room, name, stack = place
        packed = stack.get(name)
        assert packed is not None
        made = self._recent[key] = self._unpack(key[0], room, packed)
        return made

    def __setitem__(self, key: Key, row: Evidence) -> None:
        tenant, ref, agent = key
        packed = self._pack(tenant, row)
        self._recent.pop(key, None)
        self.made_of.pop(key, None)
        place = self._find(key)
        if place is not None and place[0] == row.room:
            _, name, stack = place
            before = stack.get(name)
            stack.put(name, packed)
            self._leave(tenant, row.room, before)
            return
        if place is not None:
            del self[key]
        name = _name(row.room, ref)
        if isinstance(name, bytes):
            self._elsewhere[key] = row.room
        rooms = self._stacks.setdefault(tenant, {}).setdefault(agent, {})
        if row.room not in rooms:
            rooms[row.room] = Stack()
        rooms[row.room].put(name, packed)

    def __delitem__(self, key: Key) -> None:
        place = self._find(key)
        if place is None:
            raise KeyError(key)
        tenant, _, agent = key
        room, name, stack = place
        packed = stack.pop(name)
        self._elsewhere.pop(key, None)
        self._recent.pop(key, None)
        self.made_of.pop(key, None)
        rooms = self._stacks[tenant][agent]
        if not stack:
            del rooms[room]
        if not rooms:
            del self._stacks[tenant][agent]
        if not self._stacks[tenant]:
            del self._stacks[tenant]
        self._leave(tenant, room, packed)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and self._find(key) is not None

    def __iter__(self) -> Iterator[Key]:
        for tenant in self._stacks:
            for agent, room, name, _ in self._all(tenant):
                yield tenant, _ref(room, name), agent

    def __len__(self) -> int:
        agents = (rooms for of_tenant in self._stacks.values() for rooms in of_tenant.values())
        return sum(len(stack) for rooms in agents for stack in rooms.values())

    # Beside that

    def agents(self, tenant: str, ref: str) -> list[str]:
        """Which agents of a tenant have a row of the ref."""
        places = _places(ref)
        return [
            agent
            for agent, rooms in self._stacks.get(tenant, {}).items()
            if (tenant, ref, agent) in self._elsewhere
            or any(room in rooms and name in rooms[room] for room, name in places)
        ]

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, str, Evidence]]:
        """Ref, agent and row of everything that a tenant has."""
        for agent, room, name, packed in self._all(tenant):
            yield _ref(room, name), agent, self._unpack(tenant, room, packed)

    def shelves(self, tenant: str | None = None) -> list[Shelf]:
        """Where there is something: of a tenant, or of all."""
        tenants = self._stacks if tenant is None else {tenant} & self._stacks.keys()
        return [Shelf(t, agent, room) for t in tenants for agent, rooms in self._stacks[t].items() for room in rooms]

    def oldest(self, shelf: Shelf) -> tuple[Key, int] | None:
        """The key of the oldest row on a shelf, and when it was first observed."""
        tenant, agent, room = shelf
        stack = self._stacks.get(tenant, {}).get(agent, {}).get(room)
        if stack is None:
            return None
        name, packed = stack.oldest()
        return (tenant, _ref(room, name), agent), _moment(packed)

    def in_room(self, tenant: str, room: str) -> list[Key]:
        """The keys of everything said or read in a room, the oldest of each agent first."""
        agents = self._stacks.get(tenant, {})
        found = [(agent, rooms[room].names()) for agent, rooms in sorted(agents.items()) if room in rooms]
        return [(tenant, _ref(room, name), agent) for agent, names in found for name in names]

    # As entries of a checkpoint

    def write(self, key: Key) -> bytes:
        """A row as it stands in a checkpoint."""
        return self._squeeze.plain(self[key])

    def read(self, key: Key, raw: bytes) -> None:
        """Take in a row from a checkpoint. Raises `ValueError` for what is none."""
        self[key] = self._squeeze.row(raw)

    # Places

    def _find(self, key: Key) -> tuple[str, Name, Stack] | None:
        """The room of a row, its name there, and what is there."""
        tenant, ref, agent = key
        rooms = self._stacks.get(tenant, {}).get(agent)
        if rooms is None:
            return None
        for room, name in _places(ref):
            stack = rooms.get(room)
            if stack is not None and name in stack:
                return room, name, stack
        elsewhere = self._elsewhere.get(key)
        return None if elsewhere is None else (elsewhere, ref.encode(), rooms[elsewhere])

    def _all(self, tenant: str) -> Iterator[tuple[str, str, Name, bytes]]:
        for agent, rooms in self._stacks.get(tenant, {}).items():
            for room, stack in rooms.items():
                for name in stack:
                    packed = stack.get(name)
                    assert packed is not None
                    yield agent, room, name, packed

    # Packing

    def _pack(self, tenant: str, row: Evidence) -> bytes:
        plain = _is_plain(row)
        bits = _PERSON * row.person + _SERVER * (row.server is not None) + _PLAIN * plain
        head = (row.seen + _BEFORE).to_bytes(SEEN, "big") + bits.to_bytes(_BITS, "big")
        numbers = [self._leaves.use(tenant, leaf) for leaf in row.leaves]
        if not plain:
            return head + self._squeeze.press(row)
        later = (row.seen - row.at).to_bytes(_LATER, "big", signed=True)
        name = row.author if row.server is None else row.server
        whose = _NOBODY if name is None else self._whose.use(name)
        head += numbers[0].to_bytes(_NUMBER, "big") + later
        return head + whose.to_bytes(_NUMBER, "big") + bytes.fromhex(row.contents[0])

    def _unpack(self, tenant: str, room: str, packed: bytes) -> Evidence:
        if not packed[SEEN] & _PLAIN:
            return self._squeeze.row(self._squeeze.release(packed[_LEAF:]))
        seen = _moment(packed)
        whose = int.from_bytes(packed[_WHOSE:_CONTENT], "big")
        name = None if whose == _NOBODY else self._whose.value(whose)
        of_tool = packed[SEEN] & _SERVER
        return self._make(
            leaves=(self._leaves.digest(tenant, int.from_bytes(packed[_LEAF:_AFTER], "big")),),
            room=room,
            at=seen - int.from_bytes(packed[_AFTER:_WHOSE], "big", signed=True),
            seen=seen,
            contents=(packed[_CONTENT:].hex(),),
            author=None if of_tool else name,
            person=bool(packed[SEEN] & _PERSON),
            server=name if of_tool else None,
        )

    def _leave(self, tenant: str, room: str, packed: bytes | None) -> None:
        """A packed row is gone: what it names by number is used once less."""
        assert packed is not None
        if not packed[SEEN] & _PLAIN:
            for leaf in self._unpack(tenant, room, packed).leaves:
                self._leaves.leave(tenant, leaf)
            return
        self._leaves.leave(tenant, int.from_bytes(packed[_LEAF:_AFTER], "big"))
        whose = int.from_bytes(packed[_WHOSE:_CONTENT], "big")
        if whose != _NOBODY:
            self._whose.leave(whose)


def _places(ref: str) -> list[tuple[str, Name]]:
    """The rooms in which a message may be by its id, and its name there."""
    found: list[tuple[str, Name]] = []
    at = ref.rfind("/") if ref.startswith(MESSAGE) else -1
    while at > 0:
        found.append((ref[len(MESSAGE) : at], short(ref[at + 1 :])))
        at = ref.rfind("/", 0, at)
    return found


def _moment(packed: bytes) -> int:
    """When a packed row was first observed."""
    return int.from_bytes(packed[:SEEN], "big") - _BEFORE


def _is_plain(row: Evidence) -> bool:
    """Whether a row says no more than fits into the packed form."""
    if row.over or row.made_of or row.quoted or row.values or row.proves or row.links:
        return False
    one = len(row.leaves) == len(row.contents) == 1 and (row.author is None or row.server is None)
    return one and len(row.contents[0]) == 2 * CONTENT_BYTES and -_MOST_LATER <= row.seen - row.at < _MOST_LATER


def _name(room: str, ref: str) -> Name:
    """A ref's name in a room: that of a message whose id begins with the room's, or the whole ref."""
    under = f"{MESSAGE}{room}/"
    return short(ref[len(under) :]) if ref.startswith(under) else ref.encode()


def _ref(room: str, name: Name) -> str:
    """The ref of a name in a room."""
    return name.decode() if isinstance(name, bytes) else f"{MESSAGE}{room}/{long(name)}"
