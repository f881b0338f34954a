"""Decides when a person is offered to share a memory, and what `share CODE` and `unshare CODE` do (rules GRT)."""

from __future__ import annotations

import re
from dataclasses import replace

from turngate.processors.agents import named
from turngate.processors.audience import keyed, namespace
from turngate.processors.granting import add_grant, end_grant, refuse_command, taken, usable
from turngate.processors.keys import is_code
from turngate.processors.ledger import Ledger
from turngate.processors.lineage import known
from turngate.processors.permits import destination
from turngate.processors.rows import REQUESTS, Flag, Grant, Offer, OfferState, Waiting, WaitKind
from turngate.schemas.inputs import MessageObserved, SharingRequested
from turngate.schemas.outputs import CommandHandled, GrantChanged, GrantState, Outcome, SharingOffered
from turngate.schemas.shapes import Audience, AuthorKind, Code, Scope

_COMMAND = re.compile(r"\s*(share|unshare)\s+([a-z2-7]{12})\s*", re.IGNORECASE | re.ASCII)


def requested(ledger: Ledger, record: SharingRequested) -> Waiting | None:
    """Offer the author of a memory to share it (R-GRT-1); the same request again changes nothing (R-GRT-3)."""
    key = (ledger.tenant, record.request)
    asked = (ledger.tenant, REQUESTS, record.request)
    if asked in ledger.tables.commands:
        return None
    ledger.tables.commands.put(asked, Flag(ledger.now))
    ledger.active(record.room)
    code = _against(ledger, record)
    secret = ledger.keys.code(ledger.tenant, record.request)
    if code is not None or secret is None:
        refuse_command(ledger, record.request, code or Code.INVALID)
        return None
    to = destination(ledger, record.agent, record.room)[0]
    if to is None or to.sole is None:
        raise LookupError("a direct room without its reader")
    row = ledger.tables.revisions.rows[ledger.tenant, record.revision]
    if row.text is None:
        raise LookupError("a revision without its text")
    expires_at = ledger.now + ledger.policy(record.room).settings.sharing.code_ttl
    offer = Offer(
        record.agent,
        record.room,
        to.sole,
        row.memory,
        record.revision,
        ledger.keep_audience(keyed(record.audience)),
        expires_at,
        OfferState.OPEN,
    )
    ledger.tables.offers.put(key, offer)
    ledger.tables.codes.put((ledger.tenant, ledger.keys.tags(ledger.tenant, secret)[0]), record.request)
    ledger.emit(
        SharingOffered(
            tenant=ledger.tenant,
            at=ledger.now,
            request=record.request,
            agent=record.agent,
            room=record.room,
            revision=record.revision,
            text=row.text,
            audience=record.audience,
            code=secret,
            expires_at=expires_at,
        )
    )
    return Waiting(ledger.arrival, expires_at, WaitKind.OFFER, ledger.tenant, record.request, record.agent)


def _against(ledger: Ledger, record: SharingRequested) -> Code | None:
    """The first check that fails (R-GRT-1)."""
    if not named(ledger, record.agent, record.room):
        return Code.AGENT_UNKNOWN
    to = destination(ledger, record.agent, record.room)[0]
    if to is None or to.sole is None:
        return Code.NOT_DIRECT
    row = ledger.tables.revisions.get((ledger.tenant, record.revision))
    if row is None:
        return Code.SOURCE_MISSING
    if row.agent != record.agent:
        return Code.OTHER_AGENT
    if not usable(ledger, record.revision):
        return Code.BASE_NOT_CURRENT
    if row.over or not row.leaves or not known(ledger, row.leaves):
        return Code.SOURCE_UNKNOWN
    if row.text is None:
        return Code.SOURCE_UNKNOWN  # nobody can agree to a text that is not there to be shown
    leaves = [ledger.leaf(key) for key in row.leaves]
    if row.restrictions or any(leaf.restrictions for leaf in leaves):
        return Code.RESTRICTED_TO_CONVERSATION
    if any(leaf.author != to.sole for leaf in leaves):
        return Code.NOT_SOLE_AUTHOR
    if not _may_share(ledger, record, to.sole):
        return Code.PARAM_INVALID
    return Code.ALREADY_GRANTED if taken(ledger, record.request) else None


def _may_share(ledger: Ledger, record: SharingRequested, reader: str) -> bool:
    """With the reader's own workspace, or the public, as far as the policy allows it."""
    allowed = ledger.policy(record.room).settings.sharing.audiences
    audience = record.audience
    if audience.scope is Scope.PUBLIC:
        return "public" in allowed
    own = audience == Audience(workspaces=(namespace(reader),))
    return own and "workspace" in allowed


def command_in(record: MessageObserved) -> tuple[str, str] | None:
    """The command and the code of a `share` or `unshare` message, or None of an ordinary one (R-GRT-2)."""
    if record.text is None or record.edited or record.author_kind not in (AuthorKind.PERSON, AuthorKind.EXTERNAL):
        return None
    match = _COMMAND.fullmatch(record.text)
    if match is None or not is_code(match[2].upper()):
        return None
    return match[1].lower(), match[2].upper()


def consumed(ledger: Ledger, record: MessageObserved) -> bool:
    """Whether the message was a command when it was first seen; no edit makes it anything else (R-GRT-2, R-GRT-5)."""
    return (ledger.tenant, record.message, record.agent) in ledger.tables.commands


def handled(ledger: Ledger, record: MessageObserved, command: str, code: str) -> None:
    """Carry out a command before inference; it is no evidence (R-GRT-5)."""
    ledger.tables.commands.put((ledger.tenant, record.message, record.agent), Flag(ledger.now))
    ledger.active(record.room)
    outcome = (_share if command == "share" else _unshare)(ledger, record, code)
    if isinstance(outcome, Code):
        refuse_command(ledger, record.message, outcome)
        outcome = Outcome.REFUSED
    ledger.emit(CommandHandled(tenant=ledger.tenant, at=ledger.now, message=record.message, outcome=outcome))


def _offer(ledger: Ledger, record: MessageObserved, code: str, *, again: bool = False) -> tuple[str, Offer] | Code:
    """The request and the offer of a code, for the person and in the room that it was given to.

    A cancelled code is one that nobody knows, but for whoever cancels it `again` (R-GRT-4).
    """
    tags = ledger.keys.tags(ledger.tenant, code)
    request = next((r for r in (ledger.tables.codes.get((ledger.tenant, tag)) for tag in tags) if r is not None), None)
    offer = None if request is None else ledger.tables.offers.get((ledger.tenant, request))
    if request is None or offer is None or offer.agent != record.agent:
        return Code.CODE_UNKNOWN
    if offer.state is OfferState.CANCELLED and not again:
        return Code.CODE_UNKNOWN
    if offer.reader != record.author:
        return Code.CODE_WRONG_READER
    return (request, offer) if offer.room == record.room else Code.CODE_WRONG_ROOM


def _share(ledger: Ledger, record: MessageObserved, code: str) -> Outcome | Code:
    found = _offer(ledger, record, code)
    if isinstance(found, Code):
        return found
    request, offer = found
    if offer.state is OfferState.GRANTED:
        return Code.ALREADY_GRANTED
    if offer.state is OfferState.EXPIRED:
        return Code.CODE_EXPIRED
    if not usable(ledger, offer.revision):
        return Code.BASE_NOT_CURRENT
    _put(ledger, request, offer, OfferState.GRANTED)
    made = Grant(offer.agent, offer.memory, offer.revision, offer.audience, GrantState.ACTIVE, "author")
    add_grant(ledger, request, made)
    return Outcome.GRANTED


def _unshare(ledger: Ledger, record: MessageObserved, code: str) -> Outcome | Code:
    """Take back a grant, or the request; again, it answers the same and changes nothing (R-GRT-4)."""
    found = _offer(ledger, record, code, again=True)
    if isinstance(found, Code):
        return found
    request, offer = found
    if offer.state is OfferState.GRANTED:
        if ledger.tables.grants.rows[ledger.tenant, request].state is GrantState.ACTIVE:
            end_grant(ledger, request, GrantState.REVOKED, "author")
        return Outcome.REVOKED
    if offer.state is not OfferState.CANCELLED:
        _put(ledger, request, offer, OfferState.CANCELLED)
        _tell(ledger, request, offer, GrantState.CANCELLED, "author")
    return Outcome.CANCELLED


def offer_ran_out(ledger: Ledger, waiting: Waiting) -> None:
    """A code's time is over."""
    offer = ledger.tables.offers.get((ledger.tenant, waiting.subject))
    if offer is not None and offer.state is OfferState.OPEN:
        _put(ledger, waiting.subject, offer, OfferState.EXPIRED)
        _tell(ledger, waiting.subject, offer, GrantState.EXPIRED, "time")


def _put(ledger: Ledger, request: str, offer: Offer, state: OfferState) -> None:
    ledger.tables.offers.put((ledger.tenant, request), replace(offer, state=state))


def _tell(ledger: Ledger, request: str, offer: Offer, state: GrantState, by: str) -> None:
    ledger.emit(
        GrantChanged(
            tenant=ledger.tenant,
            at=ledger.now,
            grant=request,
            agent=offer.agent,
            memory=offer.memory,
            revision=offer.revision,
            audience=ledger.audience(offer.audience),
            state=state,
            by=by,
        )
    )
