"""How what the engine emits is written down, so that it can be held against what the model says."""

from __future__ import annotations

from tests.model.book import Out
from tests.model.facts import Leaf, Who
from tests.model.writes import who
from turngate.schemas import outputs
from turngate.schemas.inputs import Record
from turngate.schemas.shapes import Leaf as Shape
from turngate.schemas.shapes import Reason, Scope


def leaf(shape: Shape) -> Leaf:
    return Leaf(
        shape.agent,
        who(shape.audience),
        shape.author,
        shape.room,
        shape.open,
        shape.via,
        frozenset(shape.restrictions),
        shape.private,
        shape.untrusted,
    )


def leaves(shapes: tuple[Shape, ...]) -> frozenset[Leaf] | str:
    made = frozenset(leaf(shape) for shape in shapes)
    return "unknown" if not made or Who("unknown") in {x.who for x in made} else made


def reasons(found: tuple[Reason, ...]) -> frozenset[tuple[str, str | None]]:
    return frozenset((r.code, r.ref) for r in found)


def plain(out: list[Record]) -> list[Out]:
    return [row for record in out for row in rows(record)]


def rows(record: Record) -> list[Out]:  # one line for each record, but for context answers
    match record:
        case outputs.EvidenceRecorded():
            assert (record.status == "unknown") == (leaves(record.leaves) == "unknown")
            return [("EvidenceRecorded", record.ref, record.agent, leaves(record.leaves))]
        case outputs.RevisionRecorded():
            taint = (record.private, record.untrusted)
            found = leaves(record.leaves)
            bits = [found == "unknown" or any(getattr(x, n) for x in found) for n in ("private", "untrusted")]
            world = record.kind == "world"
            assert taint == tuple(bit or world for bit in bits)
            row = (record.kind, record.state, record.base, found, frozenset(record.restrictions), record.notes)
            return [("RevisionRecorded", record.write, record.revision, *row)]
        case outputs.WriteRefused():
            return [("WriteRefused", record.write, reasons(record.reasons))]
        case outputs.SharingOffered():
            return [("SharingOffered", record.request, record.text, who(record.audience), record.expires_at)]
        case outputs.GrantChanged():
            return [("GrantChanged", record.grant, record.revision, who(record.audience), record.state.value)]
        case outputs.CommandRefused():
            return [("CommandRefused", record.command, record.status, record.reasons[0].code)]
        case outputs.CommandHandled():
            return [("CommandHandled", record.message, record.outcome.value)]
        case outputs.ErasureApplied():
            return [("ErasureApplied", record.command, frozenset(record.refs))]
        case outputs.RecordRefused():
            return [("RecordRefused", record.code)]
        case outputs.ContextDecided():
            permitted = frozenset(p.ref for p in record.permitted)
            withheld = frozenset((w.ref, frozenset(r.code for r in w.reasons)) for w in record.withheld)
            answer: Out = ("ContextDecided", record.request, permitted, withheld, record.questions or ())
            return [answer, *(("attribution", record.request, p.ref, p.attribution.value) for p in record.permitted)]
        case outputs.TurnDecided():
            decided = (record.verdict.value, record.rendering, reasons(record.reasons), frozenset(record.provenance))
            return [("TurnDecided", record.turn, *decided)]
        case outputs.TurnAuthorized():
            listed = record.destination.scope is Scope.LISTED
            heard = who(record.destination) if listed else record.destination.scope.value
            helped = (frozenset(record.provenance), frozenset(record.grants), frozenset(record.proofs))
            return [("TurnAuthorized", record.turn, record.text, heard, *helped, record.valid_until)]
        case outputs.RefreshRequested() | outputs.DecisionTraced():
            return []
        case _:
            raise AssertionError(f"the model says nothing of {type(record).__name__}")
