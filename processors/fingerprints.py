"""Decides under which keyed fingerprints a value is remembered, and which of them a running text contains (R-EGR-1).

A value is never kept, only HMAC-SHA256 of its normal forms under the tenant's key. A text is read once: every span of
it that could be a value is brought to the same forms, and their fingerprints are looked up. So the cost is that of the
text, not that of the number of values.

Most words of a text would be hashed for nothing. So the fingerprint of a phrase or an id begins with a tag, two bytes
of the keyed hash of its first four characters, and only where a remembered one may begin are longer spans hashed.
Without the key a tag says nothing; whoever has the key can try whole values anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from hashlib import sha256

from turngate.processors.forms import LENGTHS, SIGNIFICANT, Kind, exact, forms, integral, rows, words
from turngate.processors.spelling import fold

#: Bytes that SHA-256 takes at a time, and what HMAC makes of a key (RFC 2104).
_BLOCK, _INNER, _OUTER = 64, 0x36, 0x5C
#: Bytes of a tenant's key (architecture, Keys), of a fingerprint, and of the tag with which some begin.
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
        beginnings = tags(remembered) if beginnings is None else beginnings
        found = [fingerprint for form in exact(folded) if (fingerprint := self.fingerprint(form)) in remembered]
        found += [fingerprint for fingerprint in self._ids(folded, beginnings) if fingerprint in remembered]
        found += [fingerprint for fingerprint in self._phrases(folded, beginnings) if fingerprint in remembered]
        return tuple(dict.fromkeys(found))

    def fingerprint(self, form: str) -> bytes:
        """The keyed fingerprint of a normal form."""
        if form[0] in {Kind.PHRASE, Kind.DIGITS}:
            return self._tag(form[: 1 + SIGNIFICANT]) + self._mac(form)[:-TAG_BYTES]
        return self._mac(form)

    def _tag(self, beginning: str) -> bytes:
        return self._mac("tag" + beginning)[:TAG_BYTES]

    def _mac(self, form: str) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(form.encode("utf-8", "surrogatepass"))
        outer.update(inner.digest())
        return outer.digest()[:FINGERPRINT_BYTES]

    def _phrases(self, folded: str, beginnings: Container[bytes]) -> Iterator[bytes]:
        for _, _, tag, form in self._spans(Kind.PHRASE, words(folded), beginnings):
            if not form[1:].isdecimal():
                yield tag + self._mac(form)[:-TAG_BYTES]

    def _ids(self, folded: str, beginnings: Container[bytes]) -> Iterator[bytes]:
        for row in rows(folded):
            for at, length, tag, form in self._spans(Kind.DIGITS, [number.digits for number in row], beginnings):
                if length > 1 or integral(row[at]):
                    yield tag + self._mac(form)[:-TAG_BYTES]

    def _spans(
        self, kind: Kind, groups: Sequence[str], beginnings: Container[bytes]
    ) -> Iterator[tuple[int, int, bytes, str]]:
        """Where a span that begins like a remembered value starts, how many groups it has, its tag and its form."""
        joined, ends, at = "".join(groups), [], 0
        for group in groups:
            at += len(group)
            ends.append(at)
        known: dict[str, bytes | None] = {}
        start = 0
        for at, end in enumerate(ends):
            beginning = joined[start : start + SIGNIFICANT]
            if beginning not in known:
                tag = self._tag(kind + beginning)
                known[beginning] = tag if len(beginning) == SIGNIFICANT and tag in beginnings else None
            tagged = known[beginning]
            if tagged is not None:
                for length in LENGTHS:
                    if at + length > len(ends):
                        break
                    stop = ends[at + length - 1]
                    if stop - start >= SIGNIFICANT:
                        yield at, length, tagged, kind + joined[start:stop]
            start = end
