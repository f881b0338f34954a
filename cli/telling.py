"""Decides in which words `explain`, `who-can-see` and `blast-radius` answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from turngate.demo.words import words_of
from turngate.schemas.shapes import Audience, Reason, Scope
from turngate.schemas.ways_on import way_on

if TYPE_CHECKING:
    from turngate.sinks.store.asking import Piece
    from turngate.sinks.store.audible import Audible
    from turngate.sinks.store.reaching import Reached
    from turngate.sinks.store.told import Decided, Fed, Told
    from turngate.sinks.store.told import Heard as Compared

#: Readers that are named; of more, only how many there are.
MOST = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERDICTS = {
    "deliver": "may be said",
    "downgrade": "may be said only as what anybody may know",
    "hold": "waits for the room to be listed",
    "ask": "waits for somebody's yes",
    "drop": "refused",
}
_UNUSED = {"staged": "it waits for an operator", "retired": "it was replaced, forgotten or rejected"}
_HEARD = {
    "listed": "was listed in the room",
    "workspace": "may have read it as a member of the workspace",
    "anyone": "may have read it, as anybody may",
}


def when(ms: int) -> str:
    """A time, in UTC, to the second."""
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%SZ")
    except OverflowError:
        return f"{ms} ms after 1970"


def who(audience: Audience | None) -> str:
    """An audience in words; None: nobody knows."""
    if audience is None or audience.scope is Scope.UNKNOWN:
        return "nobody knows who"
    if audience.scope is Scope.PUBLIC:
        return "anybody"
    parts = [f"every full member of {workspace}" for workspace in audience.workspaces]
    parts += [f"{r} (guest)" if r in audience.guests else r for r in audience.readers[:MOST]]
    more = len(audience.readers) - MOST
    return ", ".join([*parts, *([f"and {more} more"] if more > 0 else [])]) or "nobody"


def story(told: Told) -> Iterator[str]:
    """A turn's story."""
    yield f"Turn {told.turn} of {told.agent}, for {told.destination.room} ({told.tenant})"
    for decided in told.decisions:
        yield f"  {when(decided.at)}  {_verdict(decided)}"
        yield from (f"      {_reason(reason)}" for reason in decided.reasons)
    yield ""
    yield f"Who could read {told.destination.room}"
    yield f"  {who(told.destination.audience)}"
    if told.destination.listed_at is not None:
        age = (told.decisions[-1].at - told.destination.listed_at) / 1000
        yield f"  known since {when(told.destination.listed_at)}, when it was listed, {age:,.0f} s before the decision"
    yield ""
    yield "What fed it" if told.evidence else "Nothing fed it"
    for fed in told.evidence:
        yield from _fed(fed)
    for grant in told.grants:
        given = "" if grant.since is None else f", given {when(grant.since)} by {grant.by}"
        yield f"  Grant {grant.grant}: {grant.revision or 'a revision'} for {who(grant.audience)}{given}"
    yield from (f"  Proof {proof}: two accounts are one person's" for proof in told.proofs)
    yield ""
    yield from _became(told)
    if told.codes:
        yield ""
        yield "What would make it pass"
        yield from (f"  {code}: {_way_on(code)}" for code in told.codes)
    if told.unknown:
        yield ""
        yield "Not known"
        yield from (f"  {what}" for what in told.unknown)


def _verdict(decided: Decided) -> str:
    rendering = "" if decided.rendering is None else f", rendering {decided.rendering}"
    return f"{_VERDICTS.get(decided.verdict, decided.verdict)} ({decided.verdict}, policy {decided.policy}{rendering})"


def _reason(reason: Reason) -> str:
    about = "" if reason.ref is None else f" ({reason.ref})"
    detail = "" if reason.detail is None else f" [{reason.detail}]"
    return f"{reason.code}{about}: {words_of(reason.code)}{detail}"


def _way_on(code: str) -> str:
    return way_on(code) or "this version does not know the code"


def _mark(permitted: bool | None) -> str:
    return "?" if permitted is None else "✓" if permitted else "✗"


def _fed(fed: Fed) -> Iterator[str]:
    state = "" if fed.state is None else f", {fed.state}"
    memory = "" if fed.memory is None else f" (memory {fed.memory}{state})"
    yield f"  {_mark(fed.permitted)} {fed.ref}{memory}, {fed.how}" + (
        "" if fed.ended is None else f"; {fed.ended} by now"
    )
    yield from (f"      {_reason(reason)}" for reason in fed.reasons)
    if fed.made_of:
        yield f"      made of {', '.join(fed.made_of)}"
    if fed.restrictions:
        yield f"      may be said in {', '.join(fed.restrictions)} alone"
    for heard in fed.leaves:
        yield from _leaf(heard)
    if not fed.leaves:
        yield "      nothing is recorded of who could read it"


def _leaf(heard: Compared) -> Iterator[str]:
    yield f"      {_mark(heard.permitted)} {_origin(heard.leaf)}; could be read by {who(heard.leaf.audience)}"
    if heard.by:
        yield f"          permitted by {', '.join(heard.by)}"
    if heard.missing:
        yield f"          could not be read by {_some(heard.missing)}, who could read the room"


def _origin(leaf: Piece) -> str:
    said = "said" if leaf.author is None else f"said by {leaf.author}"
    if leaf.call is not None:
        said = f"returned by the call {leaf.call}"
    return said if leaf.room is None else f"{said} in {leaf.room}"


def _some(readers: Sequence[str]) -> str:
    more = len(readers) - MOST
    return ", ".join([*readers[:MOST], *([f"and {more} more"] if more > 0 else [])])


def _became(told: Told) -> Iterator[str]:
    if not told.authorized:
        yield "Nothing was let out"
        return
    until = "" if told.valid_until is None else f", to be sent before {when(told.valid_until)}"
    yield f"It was let out{until}"
    for delivered in told.deliveries:
        as_what = "" if delivered.message is None else f" as {delivered.message}"
        yield f"  {when(delivered.at)}  {delivered.status}{as_what}"
        yield from (f"      {_reason(reason)}" for reason in delivered.reasons)


def audible(ref: str, found: Iterable[Audible], ended: str | None) -> Iterator[str]:
    """Who may hear a source."""
    if ended is not None:
        yield f"{ref} was {ended}: nobody may hear it any more"
    for one in found:
        source = one.source
        state = "" if source.state is None else f" (memory {source.memory}, {source.state})"
        yield f"{ref}, as {source.agent} has it since {when(source.recorded_at)}{state}"
        yield f"  {'may' if ended is None else 'could'} be heard by {who(one.audience)}"
        if source.restrictions:
            yield f"  in {', '.join(source.restrictions)} alone"
        if source.state in _UNUSED:
            yield f"  but no draft may use it: {_UNUSED[source.state]}"
        if len(source.leaves) > 1:
            yield f"  which is what {len(source.leaves)} pieces of evidence have in common:"
        yield from (f"    {_origin(leaf)}; could be read by {who(leaf.audience)}" for leaf in source.leaves)
        for grant in one.grants:
            yield f"  and by grant {grant.grant} of {when(grant.since)}: {who(grant.audience)}"


def reached(reader: str, source: str | None, found: Sequence[Reached]) -> Iterator[str]:
    """What a reader was sent."""
    of = "" if source is None else f" made of {source}"
    yield f"{len(found)} {'turn was' if len(found) == 1 else 'turns were'} let out to {reader}{of}"
    for one in found:
        sent = "nothing says what became of it" if one.status is None else one.status
        as_what = "" if one.message is None else f" as {one.message}"
        yield f"  {when(one.at)}  {one.turn} in {one.room}: {sent}{as_what}; {reader} {_HEARD[one.heard]}"
        joint = ", " if source is None else " → "
        if one.path:
            yield f"      {'made of ' if source is None else ''}{joint.join(one.path)}"
