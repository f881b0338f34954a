"""Decides what of a text is remembered so that it can prove where a parameter came from, without the text (R-ACT-1).

A text is kept as keyed marks of its whole tokens, by the types that a skill's parameters have. A value is proven by a
text that has its mark; a value of several words by a text that has their marks in this order, with the same signs
between them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator

from turngate.processors.ledger import Ledger
from turngate.processors.links import exposed
from turngate.processors.rows import Evidence
from turngate.processors.spelling import fits_text, unescape
from turngate.processors.values import Kind, Value, form_of, loose, readings_in
from turngate.schemas.shapes import Origin

#: Of a mark: one in 2**48 tokens is taken for another.
_BYTES = 6
#: A token is letters and digits with the signs that join them.
_TOKEN = re.compile(r"\w+(?:[-.@+:/',]\w+)*")
#: After these a token may begin anew: `invoice:INV-7` names INV-7.
_ANEW = re.compile("[:/]")
_OF_EVIDENCE = frozenset({Origin.PERSON, Origin.READ, Origin.IDENTITY})


def link_mark(url: str) -> str:
    """Under what a URL is remembered: 128 bits of its SHA-256."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def link_marks(texts: Iterable[str]) -> tuple[str, ...]:
    """The marks of all URLs that source texts expose (R-TNT-5), but of texts too long to be looked through."""
    return tuple(sorted({link_mark(url) for text in texts if fits_text(text) for url in exposed(text)}))


def proofs(ledger: Ledger, room: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The marks of these texts, of the types that the room's skills take from evidence; none without a key."""
    kinds = _wanted(ledger, room)
    key = next(iter(ledger.keys.fingerprint_keys(ledger.tenant)), None)
    if not kinds or key is None:
        return ()
    found: dict[str, None] = {}
    for text in texts:
        if fits_text(text):
            found.update(dict.fromkeys(f"{key[0]}:{proof}" for proof in _proofs(key[1], kinds, text)))
    return tuple(found)


def _wanted(ledger: Ledger, room: str) -> frozenset[Kind]:
    skills = (skill for versions in ledger.policy(room).skills.values() for skill in versions)
    return frozenset(
        param.type for skill in skills for param in skill.params.values() if _OF_EVIDENCE.intersection(param.set_by)
    )


def _proofs(key: bytes, kinds: frozenset[Kind], text: str) -> Iterator[str]:
    for kind in sorted(kinds):
        if kind == "text":
            yield f"text:{_sequence(key, loose(unescape(text)))}"
        else:
            for form in _ids(text) if kind == "id" else readings_in(kind, text):
                yield _mark(key, kind, form)


def _ids(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(unescape(text)):
        token = match[0]
        yield token
        for cut in _ANEW.finditer(token):
            yield token[cut.end() :]


def _mark(key: bytes, kind: str, form: str) -> str:
    return f"{kind}:{_encoded(_mac(key, kind, form))}"


def _mac(key: bytes, kind: str, form: str) -> bytes:
    return hmac.digest(key, f"{kind}:{form}".encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _steps(key: bytes, text: str) -> list[tuple[bytes, bytes]]:
    """Of each token the mark of itself, and that of itself with what stands between it and the one before."""
    steps, end = [], 0
    for match in _TOKEN.finditer(text):
        steps.append((_mac(key, "word", match[0]), _mac(key, "next", text[end : match.end()])))
        end = match.end()
    return steps


def _sequence(key: bytes, text: str) -> str:
    return _encoded(b"".join(own + after for own, after in _steps(key, text)))


def contains(ledger: Ledger, evidence: Evidence, kind: Kind, value: Value) -> bool:
    """Whether the evidence has the value as a whole token, compared as this type."""
    for key_id, key in ledger.keys.fingerprint_keys(ledger.tenant):
        known = {p.removeprefix(f"{key_id}:") for p in evidence.proves if p.startswith(f"{key_id}:")}
        if kind == "text":
            if any(_in_order(key, str(value), proof) for proof in known if proof.startswith("text:")):
                return True
        elif _mark(key, kind, form_of(value)) in known:
            return True
    return False


def _in_order(key: bytes, value: str, proof: str) -> bool:
    wanted = loose(value)
    steps = _steps(key, wanted)
    tokens = list(_TOKEN.finditer(wanted))
    if not tokens or tokens[0].start() > 0 or tokens[-1].end() < len(wanted):
        return False  # signs at its edges leave no mark
    raw = base64.b64decode(proof.removeprefix("text:"))
    words = [(raw[i : i + _BYTES], raw[i + _BYTES : i + 2 * _BYTES]) for i in range(0, len(raw), 2 * _BYTES)]
    return any(_begins(words[at:], steps) for at in range(len(words) - len(steps) + 1))


def _begins(words: list[tuple[bytes, bytes]], steps: list[tuple[bytes, bytes]]) -> bool:
    return words[0][0] == steps[0][0] and all(w[1] == s[1] for w, s in zip(words[1:], steps[1:], strict=False))
