"""Decides how evidence is held in memory: a million messages are recorded, and each must cost little (rules RET).

A row that says what most say is packed into 31 bytes, the others are kept as compressed JSON. Rooms, leaves and authors
stand as numbers that mean something here only; nothing of this form leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pydantic import TypeAdapter

from turngate.processors.leafrows import LeafRows
from turngate.processors.numbers import Numbers
from turngate.processors.recent import Recent
from turngate.processors.squeezed import Squeeze
from turngate.processors.state import Key, Rows

if TYPE_CHECKING:
    from turngate.processors.rows import Evidence

#: So many bytes of a content's SHA-256 tell the texts apart that one message has had. That is enough against accident,
#: and there is nothing to gain by making two texts of the same: an edit that is not seen as one is seen by nobody.
CONTENT_BYTES = 12
#: What a row is in two bits, its stream time, its room's and its leaves' numbers; of a plain one then how much later it
#: was observed than said, whose it is by number, and its one content.
_BITS, _SEEN, _NUMBER, _LATER = 1, 6, 3, 3
_ROOM = _BITS + _SEEN
_LEAVES = _ROOM + _NUMBER
_HEAD = _LEAVES + _NUMBER
_WHOSE = _HEAD + _LATER
_CONTENT = _WHOSE + _NUMBER
#: Added to a time, so that every one from the year 1412 to the year 9999 is a number of six bytes (shapes.Millis).
_BEFORE = 1 << 44
_MOST_LATER = 1 << (8 * _LATER - 1)
#: A person said it; `whose` is the server of a tool, not an author; it is a plain row.
_PERSON, _SERVER, _PLAIN = 1, 2, 4
#: Stands for nobody's.
_NOBODY = (1 << 8 * _NUMBER) - 1
#: Marks a number of several leaves together; without it, it is one leaf's.
_SEVERAL = 1 << (8 * _NUMBER - 1)
#: Rows unpacked last; a draft and its context request look at the same ones several times.
_RECENT = 2_000


class Shelf(NamedTuple):
    """One agent's evidence of one room of a tenant."""

    tenant: str
    agent: str
    room: str


class Order:
    """The names on one shelf, the oldest first. The first ones leave often, so that where it begins moves on."""

    __slots__ = ("names", "start")

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.start = 0


class EvidenceRows(Rows["Evidence"]):
    """Rows of the table of evidence, by (tenant, ref, agent), and for each room which of them are the oldest."""

    def __init__(self, made: type[Evidence], written: TypeAdapter[Evidence], leaves: LeafRows) -> None:
        self._make = made
        self._squeeze = Squeeze(made, written)
        self._leaves = leaves
        self._packed: dict[str, dict[str, dict[bytes, bytes]]] = {}
        self._orders: dict[Shelf, Order] = {}
        self._rooms: Numbers[str] = Numbers()
        self._whose: Numbers[str] = Numbers()
        self._several: dict[str, Numbers[tuple[int, ...]]] = {}
        self._recent: Recent[Key, Evidence] = Recent(_RECENT)

    # As a mapping

    def __getitem__(self, key: Key) -> Evidence:
        found = self._recent.get(key)
        if found is not None:
            return found
        tenant, ref, agent = key
        packed = self._packed[tenant][agent][_name(ref)]
        made = self._recent[key] = self._unpack(tenant, packed)
        return made

    def get(self, key: Key, default: Evidence | None = None) -> Evidence | None:  # type: ignore[override]
        """The row of a key, or the default."""
        found = self._recent.get(key)
        if found is not None:
            return found
        return super().get(key, default)

    def __setitem__(self, key: Key, row: Evidence) -> None:
        tenant, ref, agent = key
        names = self._packed.setdefault(tenant, {}).setdefault(agent, {})
        name = _name(ref)
        known = names.get(name)
        packed = self._pack(tenant, row)
        if known is not None:
            self._leave(key, name, known)
        names[name] = packed
        self._recent.pop(key, None)
        self._place(Shelf(tenant, agent, self._room(packed)), name, _moment(packed))

    def __delitem__(self, key: Key) -> None:
        tenant, ref, agent = key
        name = _name(ref)
        names = self._packed[tenant][agent]
        packed = names[name]
        self._leave(key, name, packed)
        del names[name]
        self._recent.pop(key, None)
        if not names:
            del self._packed[tenant][agent]
            if not self._packed[tenant]:
                del self._packed[tenant]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and _name(key[1]) in self._packed.get(key[0], {}).get(key[2], ())

    def __iter__(self) -> Iterator[Key]:
        for tenant, agents in self._packed.items():
            for agent, names in agents.items():
                for name in names:
                    yield tenant, _ref(name), agent

    def __len__(self) -> int:
        return sum(len(names) for agents in self._packed.values() for names in agents.values())

    # Beside that

    def agents(self, tenant: str, ref: str) -> list[str]:
        """Which agents of a tenant have a row of the ref."""
        name = _name(ref)
        return [agent for agent, names in self._packed.get(tenant, {}).items() if name in names]

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, str, Evidence]]:
        """Ref, agent and row of everything that a tenant has."""
        for agent, names in self._packed.get(tenant, {}).items():
            for name, packed in names.items():
                yield _ref(name), agent, self._unpack(tenant, packed)

    def shelves(self, tenant: str | None = None) -> list[Shelf]:
        """Where there is something: of a tenant, or of all."""
        return [shelf for shelf in self._orders if tenant is None or shelf.tenant == tenant]

    def oldest(self, shelf: Shelf) -> tuple[Key, int] | None:
        """The key of the oldest row on a shelf, and when it was first observed."""
        order = self._orders.get(shelf)
        if order is None:
            return None
        name = order.names[order.start]
        packed = self._packed[shelf.tenant][shelf.agent][name]
        return (shelf.tenant, _ref(name), shelf.agent), _moment(packed)

    def in_room(self, tenant: str, room: str) -> list[Key]:
        """The keys of everything said or read in a room, the oldest of each agent first."""
        agents = sorted(self._packed.get(tenant, {}))
        found = [(agent, self._orders.get(Shelf(tenant, agent, room))) for agent in agents]
        there = [(agent, order.names[order.start :]) for agent, order in found if order is not None]
        return [(tenant, _ref(name), agent) for agent, names in there for name in names]

    # As entries of a checkpoint

    def write(self, key: Key) -> bytes:
        """A row as it stands in a checkpoint."""
        return self._squeeze.plain(self[key])

    def read(self, key: Key, raw: bytes) -> None:
        """Take in a row from a checkpoint. Raises `ValueError` for what is none."""
        row = self._squeeze.row(raw)
        tenant, ref, agent = key
        name, packed = _name(ref), self._pack(tenant, row)
        self._packed.setdefault(tenant, {}).setdefault(agent, {})[name] = packed
        self._orders.setdefault(Shelf(tenant, agent, row.room), Order()).names.append(name)

    def all_read(self) -> None:
        """Everything of a checkpoint was taken in, in whatever order: put every shelf in the order of age."""
        for shelf, order in self._orders.items():
            packed = self._packed[shelf.tenant][shelf.agent]
            del order.names[: order.start]
            order.start = 0
            order.names.sort(key=lambda name: (_moment(packed[name]), name))

    # Packing

    def _pack(self, tenant: str, row: Evidence) -> bytes:
        room, leaves = self._rooms.use(row.room), self._number(tenant, row.leaves)
        plain = _is_plain(row)
        bits = _PERSON * row.person + _SERVER * (row.server is not None) + _PLAIN * plain
        moment = bits.to_bytes(_BITS, "big") + (row.seen + _BEFORE).to_bytes(_SEEN, "big")
        head = moment + room.to_bytes(_NUMBER, "big") + leaves.to_bytes(_NUMBER, "big")
        if not plain:
            return head + self._squeeze.press(row)
        later = (row.seen - row.at).to_bytes(_LATER, "big", signed=True)
        name = row.author if row.server is None else row.server
        whose = _NOBODY if name is None else self._whose.use(name)
        return head + later + whose.to_bytes(_NUMBER, "big") + bytes.fromhex(row.contents[0])

    def _unpack(self, tenant: str, packed: bytes) -> Evidence:
        if not packed[0] & _PLAIN:
            return self._squeeze.row(self._squeeze.release(packed[_HEAD:]))
        seen = _moment(packed)
        number = int.from_bytes(packed[_LEAVES:_HEAD], "big")
        numbers = self._several[tenant].value(number - _SEVERAL) if number >= _SEVERAL else (number,)
        whose = int.from_bytes(packed[_WHOSE:_CONTENT], "big")
        name = None if whose == _NOBODY else self._whose.value(whose)
        of_tool = packed[0] & _SERVER
        return self._make(
            leaves=tuple(self._leaves.digest(tenant, n) for n in numbers),
            room=self._room(packed),
            at=seen - int.from_bytes(packed[_HEAD:_WHOSE], "big", signed=True),
            seen=seen,
            contents=(packed[_CONTENT:].hex(),),
            author=None if of_tool else name,
            person=bool(packed[0] & _PERSON),
            server=name if of_tool else None,
        )

    def _number(self, tenant: str, leaves: tuple[str, ...]) -> int:
        """The number that stands for these leaves, each of which is used by it."""
        numbers = tuple(self._leaves.use(tenant, leaf) for leaf in leaves)
        if len(numbers) == 1:
            number = numbers[0]
        else:
            several = self._several.setdefault(tenant, Numbers())
            if numbers in several:  # which uses the leaves already
                for leaf in numbers:
                    self._leaves.leave(tenant, leaf)
            number = several.use(numbers)
        if number >= _SEVERAL:
            raise OverflowError("more leaves, or sets of them, in one tenant than can be numbered")
        return number if len(numbers) == 1 else number + _SEVERAL

    def _leave_leaves(self, tenant: str, number: int) -> None:
        numbers: tuple[int, ...] | None = (number,)
        if number >= _SEVERAL:
            numbers = self._several[tenant].leave(number - _SEVERAL)
        for leaf in numbers or ():
            self._leaves.leave(tenant, leaf)

    def _room(self, packed: bytes) -> str:
        return self._rooms.value(int.from_bytes(packed[_ROOM:_LEAVES], "big"))

    def _leave(self, key: Key, name: bytes, packed: bytes) -> None:
        """A packed row goes: its name from its shelf, its numbers one use less."""
        shelf = Shelf(key[0], key[2], self._room(packed))
        order = self._orders[shelf]
        if order.names[order.start] == name:
            order.names[order.start] = b""
            order.start += 1
            if order.start * 2 > len(order.names):
                del order.names[: order.start]
                order.start = 0
        elif order.names[-1] == name:
            order.names.pop()
        else:
            order.names.remove(name)
        if not order.names:
            del self._orders[shelf]
        self._rooms.leave(int.from_bytes(packed[_ROOM:_LEAVES], "big"))
        self._leave_leaves(shelf.tenant, int.from_bytes(packed[_LEAVES:_HEAD], "big"))
        if packed[0] & _PLAIN and packed[_WHOSE:_CONTENT] != _NOBODY.to_bytes(_NUMBER, "big"):
            self._whose.leave(int.from_bytes(packed[_WHOSE:_CONTENT], "big"))

    def _place(self, shelf: Shelf, name: bytes, seen: int) -> None:
        """Put a name where it belongs by age, then by name: most often at the end."""
        order = self._orders.get(shelf)
        if order is None:
            order = self._orders[shelf] = Order()
        names, packed = order.names, self._packed[shelf.tenant][shelf.agent]
        at = len(names)
        while at > order.start and (_moment(packed[names[at - 1]]), names[at - 1]) > (seen, name):
            at -= 1
        names.insert(at, name)


def _moment(packed: bytes) -> int:
    """When a packed row was first observed."""
    return int.from_bytes(packed[_BITS:_ROOM], "big") - _BEFORE


def _is_plain(row: Evidence) -> bool:
    """Whether a row says no more than fits into the packed form."""
    if row.over or row.made_of or row.quoted or row.values or row.proves or row.links or len(row.contents) != 1:
        return False
    one = row.author is None or row.server is None
    return one and len(row.contents[0]) == 2 * CONTENT_BYTES and -_MOST_LATER <= row.seen - row.at < _MOST_LATER


def _name(ref: str) -> bytes:
    """A ref as it is kept: what kind it is by its first letter, then its id."""
    kind, _, name = ref.partition(":")
    return kind[:1].encode() + name.encode()


def _ref(name: bytes) -> str:
    """The ref of a name."""
    kind = "message" if name.startswith(b"m") else "tool"
    return f"{kind}:{name[1:].decode()}"
