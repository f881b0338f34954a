"""Decides how one call goes: asked for where it must be, claimed, made, recorded, and only then handed to the model.

What is not established is not done, and the model gets a constant text: a refusal must not tell what it rests on.
"""

from __future__ import annotations

import logging
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from turngate.client.acting import Acting
from turngate.client.mcp.actions import Returned, action_id, drafted
from turngate.client.mcp.classified import Classifier, Taken, Unclassifiable
from turngate.client.mcp.gateway import Asking
from turngate.schemas.canonical import digest
from turngate.schemas.inputs import SharingRequested, ToolReturned, TurnDrafted
from turngate.schemas.outputs import TurnDecided, Verdict
from turngate.schemas.policy import Access
from turngate.schemas.shapes import Audience
from turngate.schemas.tooling import ServerTerms

log = logging.getLogger("turngate.mcp")

#: All that a model is told where a call was not made, may still be made, or was made with an end that nobody knows.
NOT_MADE = "This call was not made: it is not permitted here."
WAITS = "This call was not made yet: somebody is asked. Make the same call again later."
BEGUN = "This call was begun before in this turn, or comes too late. It is not made again."
UNKNOWN = "What became of this call is not known."
#: Where it was made, and its result cannot be handed over.
NOT_SHOWN = "The result of this call cannot be shown."
#: Of `request_memory_sharing`.
ASKED, NOT_ASKED = "The person is asked.", "The person is not asked: it is not possible here."
#: Under this name of a result's `_meta` stands its ref, for the runtime.
REF = "turngate/ref"

#: Drafts that are remembered, so that the same call again is the same one; and how often one call is drafted.
_DRAFTS, _ATTEMPTS = 1_000, 10


class Tools(Protocol):
    """A server's tools."""

    async def has(self, tool: str) -> bool:
        """Whether it is there now, and has this tool."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult | None:
        """What it returns, None where nobody knows. It is called once, and nothing is raised."""


class _Made(NamedTuple):
    """A call that was made: its id, and what the server returned; None: nobody knows."""

    call: str
    result: CallToolResult | None


class Proxy:
    """One server's tools for one agent.

    `call_unnamed`: whether operations of a server of which the policy says nothing are called without being asked for.
    """

    def __init__(self, server: str, asking: Asking, tools: Tools, *, call_unnamed: bool = False) -> None:
        self._server = server
        self._asking = asking
        self._tools = tools
        self._call_unnamed = call_unnamed
        self._returned = Returned()
        self._drafts: OrderedDict[str, TurnDrafted] = OrderedDict()

    async def called(self, acting: Acting, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """What the model is handed for its call."""
        terms = await self._asking.terms(acting.room)
        if terms is None:
            return refusal(NOT_MADE)
        if (other := terms.doubles.get(tool)) is not None:
            of_other = f"{self._server}.{tool}".removeprefix(f"{other}.")
            log.error("%s's %s is %s's %s to the policy: neither is called", self._server, tool, other, of_other)
            return refusal(NOT_MADE)
        try:
            classifier = Classifier(terms)
        except Unclassifiable:
            log.error("the policy names a path for %s that is no JSON path (RFC 9535): nothing is called", self._server)
            return refusal(NOT_MADE)
        if self._free(terms, tool):
            made = _Made(uuid.uuid4().hex, await self._tools.call(tool, arguments))
        else:
            asked = await self._asked(acting, tool, arguments, terms)
            if isinstance(asked, str):
                return refusal(asked)
            made = asked
        return await self._recorded(acting, tool, terms, classifier, made)

    def _free(self, terms: ServerTerms, tool: str) -> bool:
        """Whether a call is made without being asked for: it reads, inside (R-TNT-7, R-TNT-8)."""
        operation = terms.operations.get(tool)
        if operation is None:
            return self._call_unnamed and not terms.mentioned
        return operation.internal and operation.access is Access.READ

    async def _asked(self, acting: Acting, tool: str, arguments: Mapping[str, Any], terms: ServerTerms) -> _Made | str:
        """Draft an action, wait for its verdict, claim it, call, and say so (R-DLV-2); or what to tell instead."""
        if not await self._tools.has(tool):
            return NOT_MADE  # a claim on what cannot be done would stay for ever
        operation = f"{self._server}.{tool}"
        turn, decided = await self._decided(acting, operation, arguments, terms)
        if not _passes(decided):
            log.info("%s of %s: %s", turn, operation, "not decided" if decided is None else decided.verdict)
            return WAITS if decided is not None and decided.verdict in (Verdict.ASK, Verdict.HOLD) else NOT_MADE
        if not await self._asking.claimed(turn, acting.room):
            return BEGUN  # perhaps before a crash
        result = await self._tools.call(tool, arguments)
        if result is not None and not result.is_error:
            await self._asking.sent(turn, acting.room)  # an error does not tell that nothing was done: uncertain
        return _Made(turn, result)

    async def _decided(
        self, acting: Acting, operation: str, arguments: Mapping[str, Any], terms: ServerTerms
    ) -> tuple[str, TurnDecided | None]:
        """The turn that a call has to itself, and its decision.

        A call that was refused is asked for again, as another turn, once there is more for it to rest on; never one of
        which it is not known that it was refused.
        """
        for attempt in range(_ATTEMPTS):
            turn = action_id(acting, operation, arguments, attempt)
            draft = self._draft(turn, acting, operation, arguments, terms)
            known = self._drafts.setdefault(turn, draft) if draft is not None else self._drafts.get(turn)
            if len(self._drafts) > _DRAFTS:
                self._drafts.popitem(last=False)
            decided = None if known is None else await self._asking.decided(known)
            refused = decided is not None and decided.verdict is Verdict.DROP
            if not refused or draft is None or known is None or draft.model_copy(update={"at": known.at}) == known:
                break
        return turn, decided

    def _draft(
        self, turn: str, acting: Acting, operation: str, arguments: Mapping[str, Any], terms: ServerTerms
    ) -> TurnDrafted | None:
        """The draft of a call as it would be now; None where nobody says what the model saw."""
        if acting.exposed is None:
            return None
        try:
            draft: TurnDrafted = self._asking.record(
                TurnDrafted,
                turn=turn,
                room=acting.room,
                thread=acting.thread,
                trigger=acting.trigger,
                exposed=tuple(dict.fromkeys((*acting.exposed, *self._returned.refs(acting.turn)))),
                action=drafted(acting, operation, arguments, terms, self._returned),
            )
        except ValidationError:
            return None
        return draft

    async def _recorded(
        self, acting: Acting, tool: str, terms: ServerTerms, classifier: Classifier, made: _Made
    ) -> CallToolResult:
        """Record a result, and hand over what a model may see of it; nothing of one that is not recorded."""
        try:
            taken = Taken(error="") if made.result is None else classifier.take(made.result)
        except Unclassifiable:
            log.warning("a result of %s.%s cannot be read", self._server, tool)
            taken = Taken(error="")
        foreign = taken.error is not None  # a server's error text counts as foreign
        try:
            record = self._asking.record(
                ToolReturned,
                room=acting.room,
                thread=acting.thread,
                turn=acting.turn,
                request=acting.request,
                call=made.call,
                server=self._server,
                operation=tool,
                private=None if terms.named else True,  # R-AUD-8
                untrusted=None if terms.named and not foreign else True,
                fields=tuple(taken.fields),
                error=taken.error,
            )
        except ValidationError:
            return refusal(NOT_SHOWN)
        if not await self._asking.recorded(record):
            return refusal(NOT_SHOWN)
        ref = f"tool:{made.call}"
        self._returned.add(acting.turn, ref, list(record.fields))
        if made.result is None:
            return refusal(UNKNOWN, ref)
        content = taken.content or [TextContent(text=NOT_SHOWN)]
        return CallToolResult(
            content=list(content), structured_content=taken.structured, is_error=foreign, _meta={REF: ref}
        )

    async def share(self, acting: Acting, revision: str, audience: str) -> CallToolResult:
        """Ask the one reader of this direct room whether a memory of theirs may be shared (R-GRT-1).

        The code that makes it so is shown to the person by whoever delivers, and to no model (R-GRT-10).
        """
        workspace = acting.room.partition("/")[0]
        try:
            record = self._asking.record(
                SharingRequested,
                room=acting.room,
                revision=revision,
                request=f"sharing-{digest([acting.room, acting.turn, revision, audience])[:40]}",
                audience=Audience.model_validate("public" if audience == "public" else {"workspace": workspace}),
            )
        except ValidationError:
            return refusal(NOT_ASKED)
        if not await self._asking.offered(record):
            return refusal(NOT_ASKED)
        return CallToolResult(content=[TextContent(text=ASKED)])


def refusal(text: str, ref: str | None = None) -> CallToolResult:
    """A constant text instead of a result."""
    meta = None if ref is None else {REF: ref}
    return CallToolResult(content=[TextContent(text=text)], is_error=True, _meta=meta)


def _passes(decided: TurnDecided | None) -> bool:
    return decided is not None and decided.verdict in (Verdict.DELIVER, Verdict.DOWNGRADE)
