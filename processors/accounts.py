"""Decides what an account is to a room: no reader, a reader, or a guest (R-ROOM-7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from turngate.processors.audience import namespace
from turngate.schemas.shapes import Audience, MemberKind


@dataclass(frozen=True, slots=True)
class Joiner:
    """A reader, a guest or a full member of the workspaces `full`, of which its id's own is the first."""

    reader: str
    guest: bool
    full: tuple[str, ...]

    @property
    def further(self) -> tuple[str, ...]:
        """Further workspaces of which it is a full member, beside its id's own."""
        return self.full[1:]

    def inside(self, workspaces: Iterable[str]) -> bool:
        """Whether it is a full member of one of these."""
        return any(w in workspaces for w in self.full)


def account(
    reader: str, kind: MemberKind, workspaces: Iterable[str], own: tuple[str, ...], trusted: tuple[str, ...]
) -> Joiner | None:
    """What an account is, given the agent's own accounts and the trusted bots; None for the agent's own."""
    if kind is MemberKind.SELF and reader in own:
        return None
    if kind is MemberKind.MEMBER:
        return Joiner(reader, guest=False, full=(namespace(reader), *workspaces))
    if kind in (MemberKind.BOT, MemberKind.SELF) and reader in trusted:
        return Joiner(reader, guest=False, full=(namespace(reader),))
    return Joiner(reader, guest=True, full=())


def covered(audience: Audience, joiner: Joiner) -> bool:
    """Whether an audience has this account already, as what it joins as (R-ROOM-6)."""
    if joiner.reader in audience.readers:
        return same(audience, joiner, guest=joiner.reader in audience.guests)
    return joiner.inside(audience.workspaces)


def same(audience: Audience, joiner: Joiner, *, guest: bool) -> bool:
    """Whether a listed reader is there as what it joins as, and as a member of no workspace that it does not name."""
    return joiner.guest == guest and set(audience.memberships.get(joiner.reader, ())) <= set(joiner.full)
