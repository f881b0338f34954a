"""Decides what one inference may see: of the candidates, those that its destination may hear (R-TURN-1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from turngate.schemas.outputs import Attribution, ContextDecided
from turngate.schemas.shapes import Code, Reason, Rendering

T = TypeVar("T")


def rendered(text: str, request: str | None = None, exposed: tuple[str, ...] | None = None) -> Rendering:
    """A rendering, whatever the text is: a model may write what no record can hold, and that is not said either."""
    return Rendering.model_construct(text=text, request=request, exposed=exposed)


class Context(Mapping[str, T], Generic[T]):
    """The candidates that may be handed to a model, by ref, in the order in which they were given.

    `request` names it; a rendering made from it carries that name. `withheld`: why the others are not in it.
    `redact`: fields that no model may see; they are left out of a value that is a mapping, and any other value with
    such a field is withheld (R-EGR-4). `hidden`: refs of which nobody may be told whose they are (R-GRT-8).
    `questions`: memories about whose sharing to ask the one person who reads this room (R-SEN-3).
    """

    def __init__(
        self,
        request: str,
        candidates: Mapping[str, T],
        decided: ContextDecided | None,
        *,
        unusable: Collection[str] = (),
        observed: bool = False,
    ) -> None:
        self.request = request
        permitted = {} if decided is None else {p.ref: p for p in decided.permitted if p.ref in candidates}
        self.redact = MappingProxyType({ref: p.redact for ref, p in permitted.items() if p.redact})
        self.hidden = frozenset(ref for ref, p in permitted.items() if p.attribution is Attribution.HIDDEN)
        self.questions = () if decided is None or decided.questions is None else decided.questions
        withheld = {} if decided is None else {w.ref: w.reasons for w in decided.withheld if w.ref in candidates}
        withheld |= {ref: (Reason(code=Code.INVALID),) for ref in unusable}
        shown = {ref: self._shown(ref, value) for ref, value in candidates.items() if ref in permitted}
        withheld |= {ref: (Reason(code=Code.SECRET_EXPOSED),) for ref, values in shown.items() if not values}
        self.withheld = MappingProxyType(withheld)
        self._items = dict(candidates) if observed else {ref: values[0] for ref, values in shown.items() if values}
        self._seen = [ref for ref in candidates if ref not in permitted and ref not in unusable] if observed else []
        if observed and unusable:  # what no record can name is evidence that nobody has, under this name
            self._seen.append(f"revision:{request}")

    def _shown(self, ref: str, value: T) -> tuple[T, ...]:
        """What a model may see of a permitted candidate: one value, or none."""
        redact = self.redact.get(ref)
        if redact is None or value is None:  # only its ref was given: whoever has the value goes by `redact`
            return (value,)
        if not isinstance(value, Mapping):
            return ()
        kept: Any = {name: held for name, held in value.items() if name not in redact}
        return (kept,)

    def __getitem__(self, ref: str) -> T:
        return self._items[ref]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def seen(self) -> tuple[str, ...]:
        """What its inference saw beside what was permitted."""
        return tuple(self._seen)

    def saw(self, *refs: str) -> None:
        """Its inference saw these too, from somewhere else, so they count as evidence of what it says."""
        self._seen += (ref for ref in refs if ref not in self._seen)

    def rendering(self, text: str) -> Rendering:
        """A text that a model made of nothing but this context and the tool results that were recorded for it."""
        return rendered(text, self.request, self.seen)
