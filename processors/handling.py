"""Decides which rule a record, or what has waited long enough, is handed to (R-EVI-10 for who may write what)."""

from __future__ import annotations

from turngate.processors import contexts, gate
from turngate.processors.approvals import withdrawn
from turngate.processors.erasure import erase
from turngate.processors.errors import Refused
from turngate.processors.evidence import deleted, evidence_of, message_ref, observed, returned, tool_ref
from turngate.processors.granting import commanded, grant_ran_out
from turngate.processors.identity import proven, revoked
from turngate.processors.ledger import Ledger
from turngate.processors.memory import assessed, give_up, never_assessed, written
from turngate.processors.permits import destination
from turngate.processors.publishing import published
from turngate.processors.rooms import membership_changed, room_changed
from turngate.processors.rows import Waiting, WaitKind
from turngate.processors.sharing import command_in, consumed, handled, offer_ran_out, requested
from turngate.processors.taint import arm, of_refs
from turngate.processors.turns import result_came
from turngate.processors.undrafted import undrafted
from turngate.schemas import inputs
from turngate.schemas.catalog import INPUT_TOPICS, OPERATOR_TOPICS
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import Code

#: Records that count on the operators' topics only (R-EVI-10).
_OPERATORS = (inputs.GrantCommanded, inputs.AgentPaused, inputs.ErasureCommanded, inputs.PolicyPublished)


def belongs(record: Record, topic: str) -> None:
    """Authority is by topic (R-EVI-10): raises `Refused` for a record on a topic that is not its own."""
    if isinstance(record, INPUT_TOPICS[topic]):
        return
    operators = topic in OPERATOR_TOPICS or isinstance(record, _OPERATORS)
    raise Refused(Code.NOT_OPERATOR if operators else Code.INVALID)


def handle(ledger: Ledger, record: Record, topic: str, *, late: bool) -> Waiting | None:
    """Apply a record; what it makes wait. Listings are the engine's, since a listing also ends waits."""
    match record:  # the most frequent first: each case that is none takes a microsecond
        case inputs.TurnDrafted():
            return gate.turn_drafted(ledger, record, late=late)
        case inputs.ContextRequested():
            return contexts.context_requested(ledger, record, late=late)
        case inputs.MessageObserved():
            _observed(ledger, record)
        case inputs.MembershipChanged():
            membership_changed(ledger, record)
        case inputs.RoomChanged():
            room_changed(ledger, record)
        case inputs.MessageDeleted():
            deleted(ledger, record)
        case inputs.ToolReturned():
            if returned(ledger, record):
                undrafted(ledger, record, result_came(ledger, record))
                armed = of_refs(ledger, record.agent, record.room, [tool_ref(record.call)])[0]
                arm(ledger, record.agent, record.room, record.thread, armed)
        case inputs.AccountProven():
            proven(ledger, record)
        case inputs.ProofRevoked():
            revoked(ledger, record)
        case inputs.MemoryWrite():
            return written(ledger, record, operators_topic=topic in OPERATOR_TOPICS)
        case inputs.SensitivityAssessed():
            assessed(ledger, record)
        case inputs.SharingRequested():
            return requested(ledger, record)
        case inputs.GrantCommanded():
            return commanded(ledger, record)
        case inputs.ApprovalWithdrawn():
            withdrawn(ledger, record)
        case inputs.TurnDelivered():
            gate.delivered(ledger, record)
        case inputs.PolicyPublished():
            published(ledger, record)
        case inputs.ErasureCommanded():
            erase(ledger, record)
    return None


def forgotten(ledger: Ledger, record: Record) -> bool:
    """Whether this is told again of what was forgotten with its room, which does not start anew by that (R-RET-1)."""
    if type(record) is inputs.MessageObserved:
        ref = message_ref(record.message)
    elif type(record) is inputs.ToolReturned:
        ref = tool_ref(record.call)
    else:
        return False
    return (ledger.tenant, ref, record.agent) in ledger.tables.gone


def _observed(ledger: Ledger, record: inputs.MessageObserved) -> None:
    """A command is consumed before inference (R-GRT-5); everything else is evidence."""
    if consumed(ledger, record):
        return
    known = evidence_of(ledger, message_ref(record.message), record.agent) is not None
    command = None if known else command_in(record)
    if command is None:
        observed(ledger, record)
    else:
        handled(ledger, record, *command)


def time_is_up(ledger: Ledger, waiting: Waiting) -> Waiting | None:
    """Do what is due; what then waits for something else."""
    match waiting.kind:
        case WaitKind.CONTEXT:
            contexts.answer(ledger, contexts.waiting_request(ledger, waiting), None)
        case WaitKind.DRAFT:
            return gate.time_is_up(ledger, waiting)
        case WaitKind.ASK:
            gate.never_approved(ledger, waiting)
        case WaitKind.WRITE:
            never_assessed(ledger, waiting)
        case WaitKind.OFFER:
            offer_ran_out(ledger, waiting)
        case WaitKind.GRANT:
            grant_ran_out(ledger, waiting)
    return None


def room_known(ledger: Ledger, waiting: Waiting) -> Waiting | None:
    """Decide what waited for a room that is known and fresh now, or shown to be open (R-TURN-6)."""
    if waiting.kind is WaitKind.DRAFT:
        return gate.room_known(ledger, waiting)
    if waiting.room is not None:
        to = destination(ledger, waiting.agent, waiting.room)[0]
        contexts.answer(ledger, contexts.waiting_request(ledger, waiting), to)
    return None


def failed(ledger: Ledger, waiting: Waiting) -> None:
    """An error in what waited is never a delivery, and it waits no more (R-RUN-6)."""
    if waiting.kind in (WaitKind.DRAFT, WaitKind.ASK):
        gate.fail_waiting(ledger, waiting)
    elif waiting.kind is WaitKind.CONTEXT:
        contexts.withhold(ledger, contexts.waiting_request(ledger, waiting), Code.DECISION_ERROR)
    elif waiting.kind is WaitKind.WRITE:
        give_up(ledger, waiting)
