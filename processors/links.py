"""Decides what a connector would make clickable in a text, and which links may go out beside private data (R-TNT-5).

Where nobody knows what Slack does, a text has the link, and the link is as long as it could be: what is appended to an
exposed URL is data on its way out. A URL is what a browser makes of it (WHATWG URL, by `ada-url`). That a bare domain
is one is told by its last label (Public Suffix List, read at import): Slack links `tablename.id`, and not `report.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from ada_url import URL
from publicsuffixlist import PublicSuffixList

from turngate.processors.spelling import unescape


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a browser reads it.

    `host`: lower case, in ASCII, without a trailing dot, with its port unless that is the scheme's own; None where
    there is none (`mailto:`) or no browser can read it. `url`: the normalized URL, or the text itself if it is none.
    """

    host: str | None
    url: str


_SUFFIXES = PublicSuffixList(accept_unknown=False, only_icann=True)
#: Only these open a page at their host; another scheme hands the host to some program.
_WEB = ("http://", "https://")

#: Slack's own form: `<url>`, `<url|label>`; `<@U1>`, `<#C1|name>`, `<!here>` are no links, but a date may contain one.
_ANGLE = re.compile(r"<([^<>\n]+)>")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,30}:(?=[^\s:])", re.IGNORECASE)
#: What a link in plain text goes on with; a `>` belongs to it, as in GitHub's autolinks.
_ON = r"(?:[^\s<]|[\x1c-\x1f\x85])"
#: Whether anything stands behind a scheme.
_AFTER_SLASHES = re.compile(r":[/\\]*[^/\\]")
#: In plain text: any scheme with two slashes, which a browser takes either way, and those that do without.
_URL = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,30}:(?=[/\\]{2})|(?:https?|wss?|ftp|mailto|tel|sms|callto|skype|sips?|xmpp|magnet|geo):)"
    rf"[/\\]*{_ON}+",
    re.IGNORECASE,
)
_DOT = "[.\u3002\uff0e\uff61]"
#: Nobody sees these, and a browser leaves them out of a host.
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_TAIL = rf"(?:{_DOT}(?=[:/?#\\]))?(?::[0-9]+)?(?:[/?#\\]{_ON}*)?"
_BARE = re.compile(rf"(?<![\w{_UNSEEN}-])((?:[\w{_UNSEEN}-]+{_DOT})+[\w{_UNSEEN}-]+)({_TAIL})")
_QUAD = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_MAIL = re.compile(
    rf"(?<![\w.!#$%&'*+/=?^`{{|}}~@-])([\w.!#$%&'*+=^`{{|}}~-]+@(?:[\w-]+{_DOT})+[\w-]+)(?!{_DOT}?[\w@-])({_TAIL})"
)
#: What ends a sentence or closes a quotation is not of the link before it, nor is a bracket opened outside of it.
_TRAILING = frozenset(".,;:!?'\"…”’»›、。，！？；：>")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
#: Slack's marks for bold, italic, struck out and code; of a link only if they do not also stand before it.
_MARKS = frozenset("*_~`")
#: Where else a source's link may end: what is exposed by that is shorter than what stands there.
_CUTS = "\"'`|()[]{},;*>"


def links(text: str) -> tuple[Link, ...]:
    """Every link of a text, each once, in order; each as long as it could be."""
    return tuple(dict.fromkeys(_link(found) for found, _ in _found(text)))


def exposed(text: str) -> frozenset[str]:
    """The normalized URLs of a source's text, wherever its links could end."""
    urls = set()
    for found, plain in _found(text):
        urls.add(_link(found).url)
        if plain:
            cuts = {at for at in map(found.find, _CUTS) if at > 0}
            urls.update(_link(_stripped(found[:at], "")).url for at in cuts)
    return frozenset(urls)


def hosts(names: Iterable[str]) -> frozenset[str]:
    """The hosts of a policy's `link_hosts`, as `Link.host` names them. A port is that port alone; a name that is no
    host is left out, so it allows nothing.
    """
    found = (_link(f"https://{name.strip()}/") for name in names)
    return frozenset(link.host for link in found if link.host is not None and link.url == f"https://{link.host}/")


def allowed(link: Link, link_hosts: Container[str], urls: Container[str]) -> bool:
    """Whether a link may be said beside private data: its host is allowed, or exactly it is in an exposed source.

    `link_hosts` are `hosts` of the policy (of `https` or `http` only, and no subdomains), `urls` those `exposed`.
    """
    return (link.host in link_hosts and link.url.startswith(_WEB)) or link.url in urls


def _found(text: str) -> Iterator[tuple[str, bool]]:
    """Every link as it is written, with a scheme, and whether its end was guessed from plain text."""
    at = 0
    for match in _ANGLE.finditer(text):
        yield from _plain(text[at : match.start()])
        target, *label = match[1].split("|", 1)
        if target.startswith(("@", "#", "!")):
            for part in re.split(r"[|^]", match[1]):
                yield from _plain(part)
        elif _SCHEME.match(target):
            yield unescape(target), False
        else:
            yield from _plain(target)
        for part in label:
            yield from _plain(part)
        at = match.end()
    yield from _plain(text[at:])


def _plain(text: str) -> Iterator[tuple[str, bool]]:
    """The links of a text without Slack's own form: with a scheme, then what is left without one."""
    text = unescape(text)
    for part, match in _between(text, _URL):
        yield from ((f"http://{bare}", True) for bare in _without_scheme(part))
        if match is not None:
            found = _stripped(match[0], text[match.start() - 1 : match.start()])
            if not found.endswith((":", "/", "\\")) or _AFTER_SLASHES.search(found):
                yield found, True


def _without_scheme(text: str) -> Iterator[str]:
    """Bare domains, and what looks like a mail address but goes on like a URL, whose host is behind the at sign."""
    for part, mail in _between(text, _MAIL):
        for match in _BARE.finditer(part):
            before = match[1][0] if match[1][0] in _MARKS else part[match.start() - 1 : match.start()]
            name, tail = match[1].strip("_-"), match[2]
            cut = _domain_within(name)
            if cut is not None:
                yield _stripped(cut + (tail if cut == name else ""), before)
            elif tail and _QUAD.fullmatch(name):
                yield _stripped(name + tail, before)
        if mail is not None:
            whole = _stripped(mail[0], "")
            if not _is_domain(mail[1].rpartition("@")[2]):
                yield from _without_scheme(mail[0].replace("@", " "))
            elif len(whole) > len(mail[1]):
                yield whole


def _between(text: str, form: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str] | None]]:
    """What stands before each match, with the match; at last what stands behind them all."""
    at = 0
    for match in form.finditer(text):
        yield text[at : match.start()], match
        at = match.end()
    yield text[at:], None


def _domain_within(name: str) -> str | None:
    """The domain that a run of labels is or, up to a dash or another script after its last label, begins with."""
    if _is_domain(name):
        return name
    match = re.fullmatch(rf"(.*{_DOT}[a-z0-9]+)(?:[_-]|[^\x00-\x7f]).*?", name, re.IGNORECASE)
    return match[1] if match and not re.search(_DOT, name[match.end(1) :]) and _is_domain(match[1]) else None


def _is_domain(name: str) -> bool:
    """Whether the last label is one under which there are domains."""
    label = re.split(_DOT, re.sub(f"[{_UNSEEN}]", "", name))[-1].lower()
    return _SUFFIXES.publicsuffix(f"x.{label}") is not None


def _stripped(url: str, before: str) -> str:
    """A link out of plain text, without the marks that end its sentence, bracket, quotation or emphasis."""
    surplus = {closing: url.count(closing) - url.count(opening) for closing, opening in _BRACKETS.items()}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in _BRACKETS:
            if surplus[last] <= 0:
                break
            surplus[last] -= 1
        elif last not in _TRAILING and not (last in _MARKS and last == before):
            break
        end -= 1
    return url[:end]


def _link(written: str) -> Link:
    try:
        url = URL(written)
        if url.hostname.endswith("."):
            url.hostname = url.hostname[:-1]
    except (ValueError, UnicodeError):
        return Link(None, written)
    return Link(url.host or None, url.href)
