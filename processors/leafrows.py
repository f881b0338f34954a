"""Decides how leaves are held in memory: as many as there are authors in rooms, each in a few dozen bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from turngate.processors.numbers import Numbers
from turngate.processors.recent import Recent
from turngate.processors.state import Key, Rows

if TYPE_CHECKING:
    from turngate.processors.rows import LeafRow

#: Its own number, what it is in three bits, its agent, audience, author and room by numbers, and what it was seen via.
_OWN, _BITS, _AGENT, _NAME = 3, 1, 2, 3
_PLAIN = _OWN + _BITS + _AGENT + 3 * _NAME
_WITH_VIA = _PLAIN + _NAME
#: Stands for no author, and for no room.
_NONE = (1 << 8 * _NAME) - 1
_RECENT = 20_000
#: So many numbers of one tenant's leaves are found without its packed rows.
_NUMBERS = 2_000


class _Leaves:
    """One tenant's leaves by digest: a number and, once the leaf itself is there, what it is."""

    def __init__(self) -> None:
        self.packed: dict[bytes, bytes] = {}
        self.digests: list[bytes | None] = []
        self.uses: list[int] = []
        self.free: list[int] = []
        #: The numbers of those that were used last.
        self.recent: Recent[str, int] = Recent(_NUMBERS)
        self.there = 0


class LeafRows(Rows["LeafRow"]):
    """Rows of the table of leaves, by (tenant, digest). Rows of other tables may name a leaf by its number.

    Such a use keeps the number; it may begin before the leaf itself is read from a checkpoint.
    """

    def __init__(self, made: type[LeafRow], written: TypeAdapter[LeafRow]) -> None:
        self._make = made
        self._json = written
        self._of: dict[str, _Leaves] = {}
        self._agents: Numbers[str] = Numbers()
        self._names: Numbers[str] = Numbers()
        self._recent: Recent[Key, LeafRow] = Recent(_RECENT)

    # As a mapping

    def __getitem__(self, key: Key) -> LeafRow:
        found = self._recent.get(key)
        if found is None:
            packed = self._of[key[0]].packed[bytes.fromhex(key[1])]
            if len(packed) == _OWN:
                raise KeyError(key)
            found = self._recent[key] = self._unpack(packed)
        return found

    def get(self, key: Key, default: LeafRow | None = None) -> LeafRow | None:  # type: ignore[override]
        """The row of a key, or the default."""
        found = self._recent.get(key)
        if found is not None:
            return found
        return super().get(key, default)

    def __setitem__(self, key: Key, row: LeafRow) -> None:
        leaves = self._leaves(key[0])
        digest = bytes.fromhex(key[1])
        own = leaves.packed.get(digest) or self._begin(leaves, digest)
        if len(own) == _OWN:
            leaves.there += 1
        else:
            self._leave_names(own)
        leaves.packed[digest] = own[:_OWN] + self._pack(row)
        self._recent.pop(key, None)

    def __delitem__(self, key: Key) -> None:
        leaves = self._of[key[0]]
        digest = bytes.fromhex(key[1])
        packed = leaves.packed[digest]
        if len(packed) == _OWN:
            raise KeyError(key)
        self._leave_names(packed)
        self._recent.pop(key, None)
        leaves.there -= 1
        leaves.packed[digest] = packed[:_OWN]
        self._end(leaves, digest)

    def __contains__(self, key: object) -> bool:
        leaves = self._of.get(key[0]) if isinstance(key, tuple) else None
        packed = None if leaves is None or not isinstance(key, tuple) else leaves.packed.get(bytes.fromhex(key[1]))
        return packed is not None and len(packed) != _OWN

    def __iter__(self) -> Iterator[Key]:
        for tenant, leaves in self._of.items():
            yield from ((tenant, digest.hex()) for digest, packed in leaves.packed.items() if len(packed) != _OWN)

    def __len__(self) -> int:
        return sum(leaves.there for leaves in self._of.values())

    # Beside that

    def count(self, tenant: str) -> int:
        """How many leaves a tenant has."""
        return self._of[tenant].there if tenant in self._of else 0

    def unused(self, tenant: str) -> Iterator[str]:
        """The digests of the tenant's leaves that no row names by number."""
        leaves = self._leaves(tenant)
        for digest, packed in leaves.packed.items():
            if len(packed) != _OWN and not leaves.uses[int.from_bytes(packed[:_OWN], "big")]:
                yield digest.hex()

    def audiences(self, tenant: str) -> Iterator[str]:
        """The digests of the audiences that the tenant's leaves name, some more than once."""
        for packed in self._leaves(tenant).packed.values():
            if len(packed) in (_PLAIN, _WITH_VIA):
                yield self._names.value(self._named(packed)[1])
            elif len(packed) != _OWN:
                row = self._unpack(packed)
                yield from (row.audience, *row.each)

    def use(self, tenant: str, digest: str) -> int:
        """The number of a leaf, which a row names from now on."""
        leaves = self._leaves(tenant)
        key = bytes.fromhex(digest)
        number = int.from_bytes((leaves.packed.get(key) or self._begin(leaves, key))[:_OWN], "big")
        leaves.uses[number] += 1
        return number

    def use_all(self, tenant: str, digests: Iterable[str]) -> None:
        """Each of these leaves is named by a row from now on."""
        leaves = self._leaves(tenant)
        for digest in digests:
            number = leaves.recent.get(digest)
            if number is None:
                leaves.recent[digest] = self.use(tenant, digest)
            else:
                leaves.uses[number] += 1

    def number(self, tenant: str, digest: str) -> int:
        """The number of a leaf that is named already. Raises `KeyError` for one that is not."""
        return int.from_bytes(self._of[tenant].packed[bytes.fromhex(digest)][:_OWN], "big")

    def digest(self, tenant: str, number: int) -> str:
        """The digest of a leaf by its number. Raises `LookupError` for a number that stands for nothing."""
        digest = self._of[tenant].digests[number]
        if digest is None:
            raise LookupError("a number that stands for no leaf")
        return digest.hex()

    def leave(self, tenant: str, leaf: int | str) -> None:
        """A row names the leaf, given by its number or digest, no more."""
        leaves = self._of[tenant]
        digest = bytes.fromhex(leaf) if isinstance(leaf, str) else leaves.digests[leaf]
        if digest is None:
            raise LookupError("a number that stands for no leaf")
        leaves.uses[int.from_bytes(leaves.packed[digest][:_OWN], "big")] -= 1
        self._end(leaves, digest)

    # As entries of a checkpoint

    def write(self, key: Key) -> bytes:
        """All of a leaf by name."""
        return self._json.dump_json(self[key])

    def read(self, key: Key, raw: bytes) -> None:
        """Take in a leaf. Raises `ValueError` for what is none."""
        self[key] = self._json.validate_json(raw)

    # Packing

    def _leaves(self, tenant: str) -> _Leaves:
        found = self._of.get(tenant)
        if found is None:
            found = self._of[tenant] = _Leaves()
        return found

    def _begin(self, leaves: _Leaves, digest: bytes) -> bytes:
        number = leaves.free.pop() if leaves.free else len(leaves.digests)
        if number == len(leaves.digests):
            leaves.digests.append(None)
            leaves.uses.append(0)
        leaves.digests[number] = digest
        own = leaves.packed[digest] = number.to_bytes(_OWN, "big")
        return own

    def _end(self, leaves: _Leaves, digest: bytes) -> None:
        """Give a number free, if the leaf is not there and nothing names it."""
        packed = leaves.packed[digest]
        number = int.from_bytes(packed[:_OWN], "big")
        if len(packed) == _OWN and not leaves.uses[number]:
            del leaves.packed[digest]
            leaves.digests[number] = None
            leaves.recent.pop(digest.hex(), None)
            leaves.free.append(number)

    def _pack(self, row: LeafRow) -> bytes:
        if row.call is not None or row.restrictions or row.each:
            return self._json.dump_json(row)
        bits = row.open + 2 * row.private + 4 * row.untrusted
        named = [row.audience, row.author, row.room, *([] if row.via is None else [row.via])]
        packed = bits.to_bytes(_BITS, "big") + self._agents.use(row.agent).to_bytes(_AGENT, "big")
        return packed + b"".join(self._number(name).to_bytes(_NAME, "big") for name in named)

    def _number(self, name: str | None) -> int:
        return _NONE if name is None else self._names.use(name)

    def _unpack(self, packed: bytes) -> LeafRow:
        if len(packed) not in (_PLAIN, _WITH_VIA):
            return self._json.validate_json(packed[_OWN:])
        bits = packed[_OWN]
        agent, audience, author, room, *via = self._named(packed)
        return self._make(
            agent=self._agents.value(agent),
            audience=self._names.value(audience),
            author=None if author == _NONE else self._names.value(author),
            room=None if room == _NONE else self._names.value(room),
            open=bool(bits & 1),
            via=self._names.value(via[0]) if via else None,
            private=bool(bits & 2),
            untrusted=bool(bits & 4),
        )

    def _named(self, packed: bytes) -> list[int]:
        """The numbers in a packed leaf, its agent's first."""
        start = _OWN + _BITS + _AGENT
        agent = int.from_bytes(packed[_OWN + _BITS : start], "big")
        return [agent, *(int.from_bytes(packed[at : at + _NAME], "big") for at in range(start, len(packed), _NAME))]

    def _leave_names(self, packed: bytes) -> None:
        if len(packed) in (_PLAIN, _WITH_VIA):
            agent, *named = self._named(packed)
            self._agents.leave(agent)
            for number in named:
                if number != _NONE:
                    self._names.leave(number)
