"""Decides how one turn goes: what its model may see, what it read and remembered, and what of it may be said.

Nothing here raises because something was not decided: what is not known is not said. The turn's id, and each record
with it, is made once; what is asked again is asked with the same record, so that no failure makes a second turn.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from turngate.client.acting import META, Acting
from turngate.client.asking import Asking, fields_of
from turngate.client.context import Context, rendered
from turngate.client.memories import Memories, Remembered
from turngate.client.transport import Transport
from turngate.client.verdict import Verdict, is_final, verdict_of
from turngate.schemas import outputs
from turngate.schemas.inputs import (
    ContextRequested,
    MemoryKind,
    SharingRequested,
    ToolReturned,
    TurnDrafted,
    WriteOp,
)
from turngate.schemas.outputs import (
    CommandRefused,
    ContextDecided,
    SharingOffered,
    TurnDecided,
)
from turngate.schemas.shapes import Action, Audience, Code, Reason, Ref, Rendering, ValueField

T = TypeVar("T")
_REF = TypeAdapter(Ref)


class Turn:
    """One turn of one agent in one room, for `async with`. `name` is its id."""

    def __init__(
        self,
        transport: Transport,
        *,
        room: str,
        trigger: str | None,
        thread: str | None,
        broadcast: bool,
        name: str | None,
        patience: float,
        observed: bool,
    ) -> None:
        self.name = _new() if name is None else name
        self._asking = Asking(transport, self.name, patience, fresh=name is None)
        self._observed = observed
        self._broadcast = broadcast
        self._place = {"room": room, "thread": thread}
        self._trigger = trigger
        self._seen: list[str] = []
        self._contexts: list[Context[Any]] = []
        self._memories = Memories(self._asking, self.name, room)
        self._draft: TurnDrafted | None = None
        try:  # a room, trigger or name that no record can have is refused before anything is said
            self._asking.record(ContextRequested, request="none", turn=self.name, trigger=trigger, **self._place)
            self._asking.record(TurnDrafted, turn=self.name, trigger=trigger, broadcast=broadcast, **self._place)
        except ValidationError as error:
            raise ValueError(f"a turn with an unusable {fields_of(error)}: see docs/contract.md, section 1") from None

    async def __aenter__(self) -> Self:
        self._asking.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._asking.close()

    @overload
    async def context(self, candidates: Mapping[str, T]) -> Context[T]: ...  # type: ignore[overload-overlap]
    @overload
    async def context(self, candidates: Iterable[str]) -> Context[None]: ...
    async def context(self, candidates: Mapping[str, Any] | Iterable[str]) -> Context[Any]:
        """Which candidates a model may be handed: those that this room may hear (R-TURN-1).

        `candidates`: what is known, by ref, or refs alone. Ask once for each inference. Where nothing is decided,
        nothing is handed over; of a gate that only observes, everything is.
        """
        given = dict(candidates) if isinstance(candidates, Mapping) else dict.fromkeys(candidates)
        unusable = {ref for ref in given if not _is_ref(ref)}
        usable = tuple(ref for ref in given if ref not in unusable)
        request = _new()
        more = {"turn": self.name, "trigger": self._trigger, "candidates": usable}
        answer = await self._asking.answer(
            self._asking.usable(ContextRequested, request=request, **more, **self._place)
        )
        decided = answer if isinstance(answer, ContextDecided) else None
        made = Context(request, given, decided, unusable=unusable, observed=self._observed)
        self._contexts.append(made)
        return made

    def saw(self, *refs: str) -> None:
        """The model saw these too, whichever inference it was, so they count as evidence of all that is said."""
        self._seen += (ref for ref in refs if ref not in self._seen)

    async def tool_returned(
        self,
        server: str,
        operation: str,
        *,
        fields: Iterable[ValueField] = (),
        context: Context[Any] | None = None,
        error: str | None = None,
        audience: Audience | None = None,
        private: bool | None = None,
        untrusted: bool | None = None,
        call: str | None = None,
    ) -> str:
        """Record what a tool returned, before a model sees it; returns its ref.

        `context`: of the inference that called it (None: of any). `fields`: values to be looked for in what is said,
        each with its class. `error`: what the tool said instead. Where it cannot be recorded the ref is evidence that
        nobody has, and what is made of it is refused (`source_missing`).
        """
        call = _new() if call is None else call
        (self if context is None else context).saw(ref := f"tool:{call}")
        record = self._asking.usable(
            ToolReturned,
            call=call,
            turn=self.name,
            request=None if context is None else context.request,
            server=server,
            operation=operation,
            fields=tuple(fields),
            error=error,
            audience=audience,
            private=private,
            untrusted=untrusted,
            **self._place,
        )
        await self._asking.answer(record)
        return ref

    def meta(
        self, *, context: Context[Any] | None = None, call: str | None = None, valid_from: int | None = None
    ) -> dict[str, Any]:
        """What an MCP call's `_meta` says to `turngate mcp`: for which turn, and what the model saw (docs/mcp.md).

        `context`: of the inference that calls. `call`: a name of your own; a call that is made again has the same.
        `valid_from`: the date of what the call rests on, in milliseconds.
        """
        contexts = self._contexts if context is None else [context]
        refs = dict.fromkeys((*self._seen, *(ref for one in contexts for ref in (*one, *one.seen))))
        request = None if context is None else context.request
        more = {"trigger": self._trigger, "request": request, "call": call, "valid_from": valid_from, **self._place}
        return {META: Acting(turn=self.name, exposed=tuple(refs), **more).model_dump(mode="json", exclude_none=True)}

    async def remember(
        self,
        text: str,
        *,
        memory: str | None = None,
        amends: str | None = None,
        kind: MemoryKind | str = MemoryKind.NOTE,
        sources: Iterable[str] = (),
        restrict: bool = False,
        health: bool = False,
    ) -> Remembered:
        """Write a memory, which inherits everything that this turn has read (R-EVI-2).

        `memory`: which; None: a new one. `amends`: the revision that it replaces. `restrict`: to this room.
        """
        if not self._contexts:
            await self.context(())  # without an answered context request its evidence would be unknown (R-EVI-2)
        memory = _new() if memory is None else memory
        revision = f"{memory}@{_new()}"
        op = WriteOp.CREATE if amends is None else WriteOp.AMEND
        more: dict[str, Any] = {"text": text, "sources": tuple(sources), "restrict": restrict, "health": health}
        return await self._memories.write(_new(), memory, revision, op, kind, base=amends, **more)

    async def forget(self, memory: str, revision: str, *, kind: MemoryKind | str = MemoryKind.NOTE) -> Remembered:
        """End a memory's current revision."""
        return await self._memories.write(_new(), memory, revision, WriteOp.FORGET, kind, base=revision)

    async def request_sharing(self, revision: str, audience: Audience) -> tuple[Reason, ...] | None:
        """Ask the one reader of this direct room whether a memory of theirs may be shared; whoever delivers shows it.

        Returns why not; an empty tuple where it is offered, None where nothing is known (R-GRT-1).
        """
        record = self._asking.usable(
            SharingRequested, request=_new(), room=self._place["room"], revision=revision, audience=audience
        )
        answer = await self._asking.answer(record)
        if isinstance(answer, SharingOffered):
            return ()
        return answer.reasons if isinstance(answer, CommandRefused) else None

    async def say(
        self, *renderings: str | Rendering, action: Action | None = None, acknowledges: bool = True
    ) -> Verdict:
        """Ask whether one of these may be said, in order of preference; returns what may be, and why the others not.

        A plain text counts as made of all that this turn has seen. `Context.rendering` makes one that counts as made of
        its own context alone: that is how a narrower answer passes where the full one is refused. `action`: what is to
        be done. `acknowledges`: whether any of them may tell what this turn remembered or forgot, so that whoever hears
        it must have been permitted what that is made of, too (R-TURN-5).

        A turn is drafted once: again with the same content it asks again, with other content it says nothing
        (`turn_conflict`). A turn that asks somebody is returned at once, and whoever delivers says it if they say yes;
        `final` waits for that. Cancelled, a draft that was handed in stays so, and may still be delivered.
        """
        made = tuple(self._made(r) for r in renderings)
        draft = self._drafting(made, action, acknowledges=acknowledges)
        if draft is None:
            return verdict_of(self.name, None, made, observed=self._observed)
        if self._draft is None:
            self._draft = draft
        elif draft.model_copy(update={"at": self._draft.at}) != self._draft:
            reasons = (Reason(code=Code.TURN_CONFLICT),)
            return replace(verdict_of(self.name, None, made, observed=self._observed), reasons=reasons)
        return await self._decided(
            self._draft, None, lambda decided: is_final(decided) or decided.verdict is outputs.Verdict.ASK
        )

    async def final(self, *, patience: float | None = None) -> Verdict:
        """What became of the turn in the end; waits `patience` seconds at most (None: the gate's)."""
        if self._draft is None:
            return verdict_of(self.name, None, (), observed=self._observed)
        return await self._decided(self._draft, patience, is_final)

    async def _decided(
        self, draft: TurnDrafted, patience: float | None, enough: Callable[[TurnDecided], bool]
    ) -> Verdict:
        answer = await self._asking.answer(draft, lambda a: isinstance(a, TurnDecided) and enough(a), patience)
        decided = answer if isinstance(answer, TurnDecided) else None
        return verdict_of(self.name, decided, draft.renderings, observed=self._observed)

    def _drafting(
        self, renderings: tuple[Rendering, ...], action: Action | None, *, acknowledges: bool
    ) -> TurnDrafted | None:
        contexts = [ref for context in self._contexts for ref in context.seen]
        return self._asking.usable(
            TurnDrafted,
            turn=self.name,
            broadcast=self._broadcast,
            trigger=self._trigger,
            exposed=tuple(dict.fromkeys((*self._seen, *contexts))),
            wrote=tuple(self._memories.wrote) if acknowledges else (),
            retired=tuple(self._memories.retired) if acknowledges else (),
            renderings=renderings,
            action=action,
            **self._place,
        )

    def _made(self, rendering: str | Rendering) -> Rendering:
        """With what the turn saw in whichever inference, since that may have been this one."""
        if not isinstance(rendering, Rendering):
            return rendered(rendering)
        if rendering.exposed is None:
            return rendering
        return rendering.model_copy(update={"exposed": tuple(dict.fromkeys((*rendering.exposed, *self._seen)))})


def _new() -> str:
    return uuid.uuid4().hex


def _is_ref(ref: str) -> bool:
    try:
        _REF.validate_python(ref)
    except ValidationError:
        return False
    return True
