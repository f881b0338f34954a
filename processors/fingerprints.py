"""Decides under which keyed fingerprints a value is remembered, and which of them a running text contains (R-EGR-1).

A value is never kept, only HMAC-SHA256 of its normal forms under the tenant's key. A text is read once: every span of
it that could be a value is brought to the same forms, and their fingerprints are looked up. So the cost is that of the
text, not that of the number of values.

Most words of a text would be hashed for nothing. So the fingerprint of a phrase or an id begins with a tag, two bytes
of the keyed hash of its first four characters, and only where a remembered one may begin are longer spans hashed.
Without the key a tag says nothing; whoever has the key can try whole values anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING

from turngate.processors.forms import HEAD, SIGNIFICANT, Kind, exact, forms, integral, rows, words
from turngate.processors.spelling import MAX_VALUE, Number, fold, numbers

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

#: Bytes that SHA-256 takes at a time, and what HMAC makes of a key (RFC 2104).
_BLOCK, _INNER, _OUTER = 64, 0x36, 0x5C
#: Bytes of a tenant's key (docs/operations.md, Keys), of a fingerprint, and of the tag with which some begin.
KEY_BYTES, FINGERPRINT_BYTES, TAG_BYTES = 32, 16, 2


def fingerprints(value: str, key: bytes) -> tuple[bytes, ...]:
    """The fingerprints under which a field's value is to be remembered; none if it is too short to mean anything."""
    finder = Finder(key)
    return tuple(finder.fingerprint(form) for form in forms(fold(value)))


def tags(remembered: Iterable[bytes]) -> frozenset[bytes]:
    """The first bytes of remembered fingerprints, from which `Finder.find` knows where one may begin."""
    return frozenset(fingerprint[:TAG_BYTES] for fingerprint in remembered)


class Finder:
    """Finds remembered values in texts. It holds nothing but the key; raises `ValueError` for one of another length."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a fingerprint key has {KEY_BYTES} bytes")
        # HMAC with the key hashed once, not once for each span: half the time of `hmac.digest`, and the same bytes.
        padded = key.ljust(_BLOCK, b"\x00")
        self._inner = sha256(bytes(byte ^ _INNER for byte in padded))
        self._outer = sha256(bytes(byte ^ _OUTER for byte in padded))

    def find(
        self, text: str, remembered: Collection[bytes], beginnings: Container[bytes] | None = None
    ) -> tuple[bytes, ...]:
        """Which of the remembered fingerprints occur in the text, each once, in a fixed order.

        `beginnings`: `tags` of the remembered ones or of more, from whoever keeps them at hand; absent, they are taken
        anew, which costs a pass over what is remembered.
        """
        if not remembered:
            return ()
        folded = fold(text)
        there = list(numbers(folded))
        found = [fingerprint for form in exact(folded, there) if (fingerprint := self.fingerprint(form)) in remembered]
        search = _Search(self, remembered, tags(remembered) if beginnings is None else beginnings)
        found += search.within(Kind.PHRASE, words(folded))
        for row in rows(folded, there):
            found += search.within(Kind.DIGITS, [number.digits for number in row], row)
        return tuple(dict.fromkeys(found))

    def fingerprint(self, form: str) -> bytes:
        """The keyed fingerprint of a normal form."""
        if form[0] in {Kind.PHRASE, Kind.DIGITS}:
            return self.tag(form[: 1 + SIGNIFICANT]) + self.finish(self.start(form))[:-TAG_BYTES]
        return self.finish(self.start(form))

    def tag(self, beginning: str) -> bytes:
        """The tag of a kind's letter and the first characters of a phrase or id."""
        return self.finish(self.start("tag" + beginning))[:TAG_BYTES]

    def start(self, form: str) -> HASH:
        """HMAC of a form, to which more may be added before it is finished."""
        inner = self._inner.copy()
        inner.update(_bytes(form))
        return inner

    def finish(self, inner: HASH) -> bytes:
        """The first bytes of a HMAC that was started; what is handed in can go on."""
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()[:FINGERPRINT_BYTES]


class _Search:
    """Looks for remembered phrases and ids in one text."""

    __slots__ = ("_beginnings", "_begins", "_finder", "_remembered")

    def __init__(self, finder: Finder, remembered: Container[bytes], beginnings: Container[bytes]) -> None:
        self._finder = finder
        self._remembered = remembered
        self._beginnings = beginnings
        self._begins: dict[str, bytes | None] = {}

    def within(self, kind: Kind, groups: list[str], row: list[Number] | None = None) -> Iterator[bytes]:
        """The fingerprints found in a row of words, or of numbers."""
        joined = "".join(groups)
        ends = list(accumulate(map(len, groups)))
        for at, end in enumerate(ends):
            start = end - len(groups[at])
            tag = self._begin(kind + joined[start : start + SIGNIFICANT])
            if tag is None:
                continue
            for last in range(at, len(ends)):
                if ends[last] - start > HEAD:
                    if self._finder.fingerprint(Kind.HEAD + kind + joined[start : start + HEAD]) in self._remembered:
                        yield from self._long(kind, joined, start, ends[last:], tag)
                    break
                span = joined[start : ends[last]]
                decimal = row is not None and last == at and not integral(row[at])
                if len(span) >= SIGNIFICANT and not decimal:
                    yield from self._known(tag, self._finder.start(kind + span))

    def _long(self, kind: Kind, joined: str, start: int, ends: list[int], tag: bytes) -> Iterator[bytes]:
        """The values that begin like this one and are longer than their beginning."""
        inner, at = self._finder.start(kind), start
        for end in ends:
            if end - start > MAX_VALUE:
                break
            inner.update(_bytes(joined[at:end]))
            at = end
            yield from self._known(tag, inner)

    def _known(self, tag: bytes, inner: HASH) -> Iterator[bytes]:
        fingerprint = tag + self._finder.finish(inner)[:-TAG_BYTES]
        if fingerprint in self._remembered:
            yield fingerprint

    def _begin(self, beginning: str) -> bytes | None:
        """The tag, if a remembered value begins so."""
        if beginning not in self._begins:
            tag = self._finder.tag(beginning)
            known = len(beginning) == 1 + SIGNIFICANT and tag in self._beginnings
            self._begins[beginning] = tag if known else None
        return self._begins[beginning]


def _bytes(form: str) -> bytes:
    return form.encode("utf-8", "surrogatepass")
