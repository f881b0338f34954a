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
#: Of a token in order: its own mark, that with what stands before it, and whether a value may end with it.
_STEP = 2 * _BYTES + 1
#: A token is letters and digits with the signs that join them; a comma joins digits.
_TOKEN = re.compile(r"\w+(?:(?:[-.@+']|(?<=\d),(?=\d))\w+)*")
#: By these a token goes on, but a new one may begin behind them: `invoice:INV-7` names INV-7, and not `invoice`.
_ON = re.compile(r"[:/]\w")
#: Signs right before a token, that may belong to it: `#general`.
_SIGNS = re.compile(r"[^\w\s]{1,3}$")
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
            plain = loose(unescape(text))
            yield f"text:{_encoded(b''.join(_steps(key, plain)))}"
            yield from (_mark(key, "signed", form) for form in _signed(plain))
        elif kind == "id":
            shown = unescape(text)
            forms = {m[0] for m in _TOKEN.finditer(shown) if _may_end(shown, m)} | set(_signed(shown)) | _joined(shown)
            yield from (_mark(key, kind, form) for form in sorted(forms))
        else:
            yield from (_mark(key, kind, form) for form in readings_in(kind, text))


def _may_end(text: str, token: re.Match[str]) -> bool:
    return _ON.match(text, token.end()) is None


def _joined(text: str) -> set[str]:
    """Tokens with what they go on by: `crm/INV-7`, from each of its parts on."""
    found: set[str] = set()
    parts: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        on = bool(parts) and token.start() == parts[-1].end() + 1 and text[token.start() - 1] in ":/"
        parts = [*parts[-7:], token] if on else [token]
        if _may_end(text, token):
            found.update(text[part.start() : token.end()] for part in parts[:-1])
    return found


def _signed(text: str) -> Iterator[str]:
    """Tokens with one to three signs right before them."""
    for token in _TOKEN.finditer(text):
        signs = _SIGNS.search(text, max(0, token.start() - 3), token.start())
        if signs is not None and _may_end(text, token):
            yield from (text[at : token.end()] for at in range(signs.start(), token.start()))


def _mark(key: bytes, kind: str, form: str) -> str:
    return f"{kind}:{_encoded(_mac(key, kind, form))}"


def _mac(key: bytes, kind: str, form: str) -> bytes:
    return hmac.digest(key, f"{kind}:{form}".encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _steps(key: bytes, text: str) -> list[bytes]:
    """Of each token in order its step."""
    steps, end = [], 0
    for token in _TOKEN.finditer(text):
        after = _mac(key, "next", text[end : token.end()])
        steps.append(_mac(key, "word", token[0]) + after + bytes([_may_end(text, token)]))
        end = token.end()
    return steps


def contains(ledger: Ledger, evidence: Evidence, kind: Kind, value: Value) -> bool:
    """Whether the evidence has the value as a whole token, compared as this type."""
    for key_id, key in ledger.keys.fingerprint_keys(ledger.tenant):
        known = {p.removeprefix(f"{key_id}:") for p in evidence.proves if p.startswith(f"{key_id}:")}
        if kind == "text":
            wanted = loose(str(value))
            if _mark(key, "signed", wanted) in known:
                return True
            if any(_in_order(key, wanted, proof) for proof in known if proof.startswith("text:")):
                return True
        elif _mark(key, kind, form_of(value)) in known:
            return True
    return False


def _in_order(key: bytes, value: str, proof: str) -> bool:
    tokens = list(_TOKEN.finditer(value))
    if not tokens or tokens[0].start() > 0 or tokens[-1].end() < len(value):
        return False  # signs at its edges leave no mark
    wanted = _steps(key, value)
    raw = base64.b64decode(proof.removeprefix("text:"))
    said = [raw[at : at + _STEP] for at in range(0, len(raw), _STEP)]
    return any(_begins(said[at : at + len(wanted)], wanted) for at in range(len(said) - len(wanted) + 1))


def _begins(said: list[bytes], wanted: list[bytes]) -> bool:
    """Whether these steps are the wanted ones, whatever stands before the first, and end where a value may."""
    first = said[0][:_BYTES] == wanted[0][:_BYTES]
    later = all(s[_BYTES:-1] == w[_BYTES:-1] for s, w in zip(said[1:], wanted[1:], strict=True))
    return first and later and said[-1][-1] == 1
