"""Decides what of a tool's result a model sees, and what is recorded: by the JSON paths of the tool's policy entry.

Structured content, and text that is a JSON object or array, is classified value by value. Any other text is one value,
at `$.result`, where SDKs put it to make it structured. Images, sounds, resources and links to them cannot be
classified, and are withheld.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonpath_rfc9535 import JSONPathError, JSONPathQuery, compile
from mcp.types import CallToolResult, TextContent

from turngate.schemas.shapes import FieldClass, ValueField
from turngate.schemas.tooling import ServerTerms

#: What stands for a part of a result that is not handed over.
WITHHELD = "[withheld]"
#: Characters of an error that are recorded and handed over.
ERROR = 2_000
_CLASSES = list(FieldClass)  # in the contract's order (section 2)
#: Characters of a value that is looked for elsewhere; a shorter one says too little (R-EGR-5).
_SHORTEST = 4
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
#: Characters of a field's name; a longer one is no help to anybody.
_LONGEST_NAME = 200
_GONE = object()
Location = tuple[int | str, ...]
#: Where a text's document may lie in the structured content: SDKs put what is no object at `$.result`, and give each
#: item of a list a text of its own.
_WRAPPINGS: tuple[Location, ...] = ((), ("result",), ("result", 0))


class Unclassifiable(Exception):
    """The result, or the policy's entry, cannot be read; nothing of the result is handed over."""


@dataclass(frozen=True, slots=True)
class _Marks:
    """What the policy says of places in a document: a class and the path that gives it, and which are about health."""

    classes: Mapping[Location, tuple[FieldClass, str]]
    health: frozenset[Location]


@dataclass(slots=True)
class Taken:
    """What is recorded of a result (`fields`, `error`), and what a model sees of it."""

    fields: list[ValueField] = field(default_factory=list)
    content: list[TextContent] = field(default_factory=list)
    structured: Any = None
    error: str | None = None


class Classifier:
    """The policy's entry of one server. Raises `Unclassifiable` where one of its paths is none (RFC 9535)."""

    def __init__(self, terms: ServerTerms) -> None:
        self._hidden = frozenset({FieldClass.SECRET, *terms.mask})
        self._default = FieldClass.INTERNAL if terms.named else FieldClass.CONFIDENTIAL
        try:
            self._paths = [(path, compile(path), given) for path, given in terms.fields.items()]
            self._health = [compile(path) for path in terms.health]
        except JSONPathError:
            raise Unclassifiable from None
        #: Whether a text that cannot be classified may hold what no model is to see.
        self._hides = any(given in self._hidden for _, _, given in self._paths)
        #: Whether it may be about somebody's health, and is recorded as if it were (R-MEM-6).
        self._tells_health = bool(self._health)

    def take(self, result: CallToolResult) -> Taken:
        """What a result comes to. Raises `Unclassifiable`."""
        taken = Taken()
        if result.is_error:
            return self.error("\n".join(block.text for block in result.content if isinstance(block, TextContent)))
        try:
            structured = None
            if result.structured_content is not None:
                structured = self._document(result.structured_content, taken)
            texts = [self._text(b.text, taken) if isinstance(b, TextContent) else WITHHELD for b in result.content]
            taken.fields = list(dict.fromkeys(taken.fields))
            quoted = self._quoted(taken.fields)
            taken.structured = None if structured is _GONE else _unquoted(structured, quoted)
            for left in texts:
                shown = WITHHELD if left is _GONE else _unquoted(left, quoted)
                text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
                taken.content.append(TextContent(text=text))
        except (JSONPathError, RecursionError):
            raise Unclassifiable from None
        return taken

    def _quoted(self, fields: Iterable[ValueField]) -> re.Pattern[str] | None:
        """What finds the values that no model is to see where the server repeats them; None where there are none."""
        hidden = {f.value for f in fields if f.class_ in self._hidden and len(f.value) >= _SHORTEST}
        return re.compile("|".join(map(re.escape, sorted(hidden, key=len, reverse=True)))) if hidden else None

    def error(self, text: str) -> Taken:
        """What an error comes to: it is a text that nobody can classify."""
        text = WITHHELD if self._tells_health else text[:ERROR]
        hidden = self._hides or self._default in self._hidden
        fields = [ValueField(name="$", value=text, class_=self._default, health=self._tells_health)] if text else []
        return Taken(fields=fields, content=[TextContent(text=WITHHELD if hidden else text)], error=text)

    def _text(self, text: str, taken: Taken) -> Any:
        """What is left of a text: of one that is a document, a document."""
        document = _json(text)
        return self._whole(text, taken) if document is None else self._document(document, taken, item=True)

    def _document(self, document: Any, taken: Taken, *, item: bool = False) -> Any:
        """What is left of a document; its values are recorded. `item`: it may be what SDKs have at `$.result`."""
        if isinstance(document, dict) and [*document] == ["result"] and isinstance(document["result"], str):
            left = self._text(document["result"], taken)
            return {"result": WITHHELD if left is _GONE else left}
        marks = self._marks(document, _WRAPPINGS if item else _WRAPPINGS[:1])
        return self._part(document, (), marks, (None, "$"), False, taken.fields)

    def _whole(self, text: str, taken: Taken) -> str:
        """What is left of a text, which is one value and may quote any other."""
        marks = self._marks({"result": text})
        given = max(marks.classes.values(), key=lambda mark: _CLASSES.index(mark[0]), default=None)
        kind, name = given or (self._default, "$.result")
        health = bool(marks.health) or (given is None and self._tells_health)
        if text:
            taken.fields.append(ValueField(name=name, value=text, class_=kind, health=health))
        return WITHHELD if kind in self._hidden or (self._hides and given is None) else text

    def _marks(self, document: Any, wrappings: Iterable[Location] = ((),)) -> _Marks:
        """What the policy says of a document, wherever it lay of these; elsewhere than at the root nothing loosens."""
        classes: dict[Location, tuple[FieldClass, str]] = {}
        health: set[Location] = set()
        for around in wrappings:
            whole = _wrapped(document, around)
            for path, query, given in self._paths:
                if around and given not in self._hidden and _CLASSES.index(given) <= _CLASSES.index(self._default):
                    continue
                for at in _found(query, whole, around):
                    if at not in classes or _CLASSES.index(given) > _CLASSES.index(classes[at][0]):
                        classes[at] = given, path
            health.update(at for query in self._health for at in _found(query, whole, around))
        return _Marks(classes, frozenset(health))

    def _part(
        self,
        part: Any,
        at: Location,
        marks: _Marks,
        above: tuple[FieldClass | None, str],
        health: bool,
        found: list[ValueField],
    ) -> Any:
        """What is left of a part, or `_GONE`. Of the classes given to it and to what it lies in the highest holds."""
        own, health = marks.classes.get(at), health or at in marks.health
        if own is not None and (above[0] is None or _CLASSES.index(own[0]) > _CLASSES.index(above[0])):
            above = own
        if isinstance(part, dict):
            kept = {key: self._part(value, (*at, key), marks, above, health, found) for key, value in part.items()}
            left: Any = {key: value for key, value in kept.items() if value is not _GONE}
        elif isinstance(part, list):
            parts = [self._part(value, (*at, n), marks, above, health, found) for n, value in enumerate(part)]
            left = [value for value in parts if value is not _GONE]
        else:
            left = part
            value = _value(part, classified=above[0] is not None or health)
            if value:
                name = _name(at) if above[0] is None else above[1]
                found.append(ValueField(name=name, value=value, class_=above[0] or self._default, health=health))
            return _GONE if (above[0] or self._default) in self._hidden else left
        return _GONE if above[0] in self._hidden else left


def _unquoted(part: Any, quoted: re.Pattern[str] | None) -> Any:
    """A part without the strings and numbers that repeat what is hidden."""
    if quoted is None:
        return part
    if isinstance(part, str | int | float):
        return WITHHELD if quoted.search(_value(part, classified=False)) else part
    if isinstance(part, dict):
        return {key: _unquoted(value, quoted) for key, value in part.items() if not quoted.search(key)}
    return [_unquoted(value, quoted) for value in part] if isinstance(part, list) else part


def _wrapped(document: Any, around: Location) -> Any:
    """A document with another one around it, in which it lies at this place."""
    for step in reversed(around):
        document = [document] if isinstance(step, int) else {step: document}
    return document


def _found(query: JSONPathQuery, whole: Any, around: Location) -> Iterator[Location]:
    """Where in the document that lies at `around` a query finds something; what it finds around it is all of it."""
    return (tuple(node.location)[len(around) :] for node in query.finditer(whole))


def _json(text: str) -> Any:
    """The object or array that a text is; None where it is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _value(part: Any, *, classified: bool) -> str:
    """A value as text, empty where there is none to be looked for: `true` and `false` say nothing by themselves."""
    if isinstance(part, str):
        return part
    if part is None or (isinstance(part, bool) and not classified):
        return ""
    return json.dumps(part)


def _name(at: Iterable[int | str]) -> str:
    """What an unclassified value is called: where it lies, without keys that may themselves be somebody's data."""
    steps = ("[*]" if isinstance(step, int) else f".{step if _NAME.fullmatch(step) else '*'}" for step in at)
    name = "".join(("$", *steps))
    return name if len(name) <= _LONGEST_NAME else "$"
