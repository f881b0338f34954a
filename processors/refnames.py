"""Decides how refs are held in a few bytes: most are of a message that a room's id and a time name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from struct import Struct

from turngate.processors.numbers import Numbers

MESSAGE = "message:"
#: How Slack names a message in its room: seconds and microseconds.
_TIME = re.compile(r"[0-9]{10}\.[0-9]{6}", re.ASCII)
_SECOND = 1_000_000
#: A message: its room's number and its time. Any other ref: a number that is no room's, and how long it is.
_HELD = Struct(">IQ")
_WHOLE = (1 << 32) - 1


def short(name: str) -> int | str:
    """A message's name in its room, as the microseconds that it says."""
    return int(name[:10]) * _SECOND + int(name[11:]) if _TIME.fullmatch(name) is not None else name


def long(name: int | str) -> str:
    """The same in full."""
    return name if isinstance(name, str) else f"{name // _SECOND:010}.{name % _SECOND:06}"


class RefNames:
    """Refs as bytes. Rooms stand as numbers, each of which is used until the bytes are given back."""

    def __init__(self) -> None:
        self._rooms: Numbers[str] = Numbers()

    def hold(self, refs: Iterable[str]) -> bytes:
        """The bytes of these refs."""
        return b"".join(map(self._hold, refs))

    def refs(self, held: bytes) -> Iterator[str]:
        """The refs of bytes."""
        for room, name in _parts(held):
            yield name if room is None else f"{MESSAGE}{self._rooms.value(room)}/{name}"

    def give_back(self, held: bytes) -> None:
        """The bytes are needed no more."""
        for room, _ in _parts(held):
            if room is not None:
                self._rooms.leave(room)

    def _hold(self, ref: str) -> bytes:
        room, _, name = ref.rpartition("/")
        at = short(name)
        if isinstance(at, int) and room.startswith(MESSAGE):
            return _HELD.pack(self._rooms.use(room[len(MESSAGE) :]), at)
        raw = ref.encode()
        return _HELD.pack(_WHOLE, len(raw)) + raw


def _parts(held: bytes) -> Iterator[tuple[int | None, str]]:
    """A room's number and a name in it, or no room and a whole ref."""
    at = 0
    while at < len(held):
        room, number = _HELD.unpack_from(held, at)
        at += _HELD.size
        if room == _WHOLE:
            yield None, held[at : at + number].decode()
            at += number
        else:
            yield room, long(number)
