"""What a person's and an operator's words do to grants (rules GRT), and what proofs do (rules IDN)."""

from __future__ import annotations

from tests.model.book import Book
from tests.model.facts import CODE_TTL, UNKNOWN, Grant, Offer, Proof, workspace
from tests.model.writes import AGENTS, explicit, who
from turngate.schemas.inputs import AccountProven, GrantCommanded, MessageObserved, ProofRevoked, SharingRequested
from turngate.schemas.shapes import Audience, Scope

STATUS = {"code_unknown": 404, "source_missing": 404, "already_granted": 409, "base_not_current": 409}


def refuse(book: Book, command: str, code: str) -> None:
    book.out.append(("CommandRefused", command, STATUS.get(code, 422), code))


def usable(book: Book, revision: str) -> bool:
    row = book.revisions.get(revision)
    return row is not None and row.state == "current" and f"revision:{revision}" not in book.deleted


def known(book: Book, revision: str) -> bool:
    row = book.revisions[revision]
    return not row.over and bool(row.leaves) and all(leaf.who != UNKNOWN for leaf in row.leaves)


def requested(book: Book, record: SharingRequested) -> None:
    """R-GRT-1"""
    if ("request", record.request) in book.done:
        return
    book.done.add(("request", record.request))
    to = book.destination(record.agent, record.room)
    row = book.revisions.get(record.revision)
    if record.agent not in AGENTS:
        return refuse(book, record.request, "agent_unknown")
    if to is None or to.sole is None:
        return refuse(book, record.request, "not_direct")
    if row is None:
        return refuse(book, record.request, "source_missing")
    if row.agent != record.agent:
        return refuse(book, record.request, "other_agent")
    if not usable(book, record.revision):
        return refuse(book, record.request, "base_not_current")
    if not known(book, record.revision) or row.text is None:
        return refuse(book, record.request, "source_unknown")
    if row.restrictions or any(leaf.restrictions for leaf in row.leaves):
        return refuse(book, record.request, "restricted_to_conversation")
    if any(leaf.author != to.sole for leaf in row.leaves):
        return refuse(book, record.request, "not_sole_author")
    if not _may_share(book, record.audience, to.sole):
        return refuse(book, record.request, "param_invalid")
    if record.request in book.grants:
        return refuse(book, record.request, "already_granted")
    until = book.now + CODE_TTL
    book.offers[record.request] = Offer(
        record.agent, record.room, to.sole, row.memory, record.revision, who(record.audience), until, "open"
    )
    book.out.append(("SharingOffered", record.request, row.text, who(record.audience), until))
    return None


def _may_share(book: Book, audience: Audience, reader: str) -> bool:
    if audience.scope is Scope.PUBLIC:
        return book.terms.share_publicly
    return audience == Audience(workspaces=(workspace(reader),))


def said(book: Book, record: MessageObserved, command: str, code: str) -> None:
    """R-GRT-2, R-GRT-4, R-GRT-5"""
    book.done.add((record.agent, record.message))
    request = book.codes.get(code)
    offer = None if request is None else book.offers[request]
    outcome = "refused"
    cancelled = offer is not None and offer.state == "cancelled" and command == "share"
    if request is None or offer is None or offer.agent != record.agent or cancelled:
        refuse(book, record.message, "code_unknown")
    elif offer.reader != record.author:
        refuse(book, record.message, "code_wrong_reader")
    elif offer.room != record.room:
        refuse(book, record.message, "code_wrong_room")
    elif command == "share":
        outcome = _share(book, record.message, request, offer)
    else:
        outcome = _unshare(book, request, offer)
    book.out.append(("CommandHandled", record.message, outcome))


def _share(book: Book, message: str, request: str, offer: Offer) -> str:
    if offer.state == "granted":
        refuse(book, message, "already_granted")
    elif offer.state == "expired":
        refuse(book, message, "code_expired")
    elif not usable(book, offer.revision):
        refuse(book, message, "base_not_current")
    else:
        offer.state = "granted"
        book.grants[request] = Grant(offer.agent, offer.memory, offer.revision, offer.who, "active", None)
        changed(book, request, "active")
        return "granted"
    return "refused"


def _unshare(book: Book, request: str, offer: Offer) -> str:
    if offer.state == "granted":
        if book.grants[request].state == "active":
            book.grants[request].state = "revoked"
            changed(book, request, "revoked")
        return "revoked"
    if offer.state != "cancelled":
        offer.state = "cancelled"
        book.out.append(("GrantChanged", request, offer.revision, offer.who, "cancelled"))
    return "cancelled"


def changed(book: Book, grant: str, state: str) -> None:
    row = book.grants[grant]
    book.out.append(("GrantChanged", grant, row.revision, row.who, state))


def commanded(book: Book, record: GrantCommanded) -> None:
    """R-GRT-6"""
    if ("command", record.command) in book.done:
        return
    book.done.add(("command", record.command))
    if record.op == "revoke":
        grant = book.grants.get(record.grant or "")
        if grant is None or grant.state != "active":
            refuse(book, record.command, "source_missing")
        else:
            grant.state = "revoked"
            changed(book, str(record.grant), "revoked")
        return
    row = book.revisions.get(record.revision or "")
    mine = row is not None and (row.agent, row.memory) == (record.agent, record.memory)
    if row is None or not mine or not usable(book, str(record.revision)):
        refuse(book, record.command, "base_not_current")
    elif not known(book, str(record.revision)):
        refuse(book, record.command, "source_unknown")
    elif record.audience is None or not explicit(record.audience):
        refuse(book, record.command, "param_invalid")
    elif record.command in book.grants or record.command in book.offers:
        refuse(book, record.command, "already_granted")
    else:
        book.grants[record.command] = Grant(
            record.agent, row.memory, str(record.revision), who(record.audience), "active", record.expires_at
        )
        changed(book, record.command, "active")


def proven(book: Book, record: AccountProven) -> None:
    """R-IDN-1: a proof that was told before, or revoked before it came, is what it was."""
    before = book.proofs.get(record.proof)
    if before is None or not before.reader:
        book.proofs[record.proof] = Proof(
            record.agent, record.reader, record.subject, record.expires_at, revoked=before is not None
        )


def revoked(book: Book, record: ProofRevoked) -> None:
    book.proofs.setdefault(record.proof, Proof("", "", "", 0)).revoked = True
