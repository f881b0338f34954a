"""Links are whatever a connector would make clickable, read as a browser reads them (R-TNT-5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.processors.links import Link, allowed, exposed, hosts, links
from turngate.processors.spelling import MAX_TEXT


def urls(text: str) -> list[str]:
    return [link.url for link in links(text)]


LINKS = [
    # with a scheme, as a browser reads it
    ("see https://news.example.com/a?q=1#x", ["https://news.example.com/a?q=1#x"]),
    ("HTTPS://News.Example.COM:443/a/../b", ["https://news.example.com/b"]),
    ("https://example.com", ["https://example.com/"]),
    ("https://example.com./x", ["https://example.com/x"]),
    ("http://example.com:8080/x", ["http://example.com:8080/x"]),
    ("https://good.com@evil.com", ["https://good.com@evil.com/"]),
    ("https://good.com:x@evil.com/", ["https://good.com:x@evil.com/"]),
    ("https:\\\\evil.com\\x https:/evil.com/y https:evil.com/z", [f"https://evil.com/{at}" for at in "xyz"]),
    ("https://ex%61mple.com/%41?ä", ["https://example.com/%41?%C3%A4"]),
    ("https://пример.рф/x", ["https://xn--e1afmkfd.xn--p1ai/x"]),
    ("https://evil。com https://ｅｖｉｌ．com", ["https://evil.com/"]),
    ("http://0x7f.1/ http://4711", ["http://127.0.0.1/", "http://0.0.18.103/"]),
    ("http://xk42abcd", ["http://xk42abcd/"]),
    ("Re:https://a.com, zoommtg://x.us/y", ["https://a.com/", "zoommtg://x.us/y"]),
    ("mailto:bob@example.com?body=x tel:+4930", ["mailto:bob@example.com?body=x", "tel:+4930"]),
    # what no browser can read is a link all the same
    ("http://82500.00", ["http://82500.00"]),
    # without a scheme
    ("see evil.example.com/?q=data", ["http://evil.example.com/?q=data"]),
    ("news.example.com is right.", ["http://news.example.com/"]),
    ("Example.COM. example.com:8080/x", ["http://example.com/", "http://example.com:8080/x"]),
    ("пример.рф, evil。com", ["http://xn--e1afmkfd.xn--p1ai/", "http://evil.com/"]),
    ("tablename.id, README.md", ["http://tablename.id/", "http://readme.md/"]),
    ("//evil.com/x", ["http://evil.com/x"]),
    ("exa\u00admple.com", ["http://example.com/"]),
    ("example.com-and example.comを見て", ["http://example.com/"]),
    ("1.2.3.4/x", ["http://1.2.3.4/x"]),
    # Slack's own form
    ("<https://a.com/x|label> <https://a.com/y>", ["https://a.com/x", "https://a.com/y"]),
    ("<https://a.com/x|b.com>", ["https://a.com/x", "http://b.com/"]),
    ("<https://a.com/x y|z>", ["https://a.com/x%20y"]),
    ("<mailto:bob@example.com|bob@example.com>", ["mailto:bob@example.com"]),
    ("<spotify:track:1|play> <a.com|x>", ["spotify:track:1", "http://a.com/"]),
    ("<!date^1^Posted {date}^https://a.com/x|yesterday>", ["https://a.com/x"]),
    (
        "<https://a.com/x?a=1&amp;b=2> https://a.com/x?a=1&amp;b=3",
        ["https://a.com/x?a=1&b=2", "https://a.com/x?a=1&b=3"],
    ),
    # what ends a sentence, a bracket or emphasis is not of the link
    ("(see https://a.com/x). “https://a.com/y”, [z](https://a.com/z)!", [f"https://a.com/{at}" for at in "xyz"]),
    (
        "https://en.wikipedia.org/wiki/Foo_(bar), https://a.com/x_",
        ["https://en.wikipedia.org/wiki/Foo_(bar)", "https://a.com/x_"],
    ),
    ("*https://a.com/x* _a.com/y_ `https://a.com/z`", ["https://a.com/x", "http://a.com/y", "https://a.com/z"]),
    ("&lt;https://a.com/x&gt;", ["https://a.com/x"]),
    # a link is as long as it could be
    ('https://a.com/x"y https://a.com/x|y https://a.com/x&gt;y', [f"https://a.com/x{s}y" for s in ("%22", "|", "%3E")]),
    # what looks like a mail address, but goes on like a URL
    ("good.com@evil.com/?q=1", ["http://good.com@evil.com/?q=1"]),
    ("a.com/bob@example.com", ["http://a.com/bob@example.com"]),
    ("a.com@b x@bob@evil.com", ["http://a.com/", "http://evil.com/"]),
]
NO_LINKS = [
    "report.txt, jquery.min.js and archive.tar.gz",
    "write to bob@example.com, first.last@mail.example.co.uk.",
    "is it 'bob@example.com'? (bob@example.com): bob@example.com!",
    "e.g. i.e. a.m. U.S. v1.2 3.14 1.200,50 x..y foo...com Node.js",
    "<@U1> <#C1|general> <!here> <!subteam^S1|@team> <3 a < b > c <std::string>",
    "at 12:30, note:this, localhost:8080/x, C:\\x, /etc/hosts, https://, http:// www",
    "release 1.2.3.4 and 22.02.2026",
    "",
]


@pytest.mark.parametrize(("text", "expected"), LINKS)
def test_what_is_clickable_is_a_link(text: str, expected: list[str]) -> None:
    assert urls(text) == expected


@pytest.mark.parametrize("text", NO_LINKS)
def test_what_is_not_clickable_is_none(text: str) -> None:
    assert links(text) == ()


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("https://Wiki.Example.com./x", "wiki.example.com"),
        ("https://wiki.example.com:443/x", "wiki.example.com"),
        ("https://wiki.example.com:8443/x", "wiki.example.com:8443"),
        ("https://wiki.example.com@evil.com", "evil.com"),
        ("https://evil.com\\@wiki.example.com", "evil.com"),
        ("mailto:bob@example.com", None),
        ("http://82500.00", None),
    ],
)
def test_the_host_is_the_one_that_a_browser_goes_to(text: str, host: str | None) -> None:
    (link,) = links(text)
    assert link.host == host


def test_hosts_of_a_policy_are_normalized_and_exact() -> None:
    assert hosts(["Wiki.Example.com", "пример.рф", "a.com:8443", "b.com:443"]) == {
        "wiki.example.com",
        "xn--e1afmkfd.xn--p1ai",
        "a.com:8443",
        "b.com",
    }
    assert hosts(["https://x.com", "bad host", "x.com/path", "a@x.com", "x.com?", ""]) == frozenset()


ALLOWED = [
    "see https://wiki.example.com/x?q=anything and http://WIKI.example.com",
    "see https://news.example.com/a.",
    "(<https://news.example.com:443/a|the news>)",
    "see HTTPS://NEWS.EXAMPLE.COM/./a, please",
    "from b.example.com",
]
NOT_ALLOWED = [
    "https://evil.example.com/?q=data",
    "https://sub.wiki.example.com/",
    "https://wiki.example.com:8443/",
    "https://wiki.example.com@evil.com",
    "https://wiki.example.com.evil.com",
    "ftp://wiki.example.com/ zoommtg://wiki.example.com/",
    "https://news.example.com/a?q=data",
    "https://news.example.com/A",
    "https://news.example.com/%61",
    "https://news.example.com/a#data",
    "https://data@news.example.com/a",
    "https://data.news.example.com/a",
    "https://news.example.com/a|data",
    "https://news.example.com/a\u200b\u200c",
    "http://news.example.com/a",
    "news.example.com/a",
    "b.example.com/x",
    "https://b.example.com",
    "http://82500.01",
]
SOURCE = "is https://news.example.com/a true? b.example.com says so, and http://82500.00"


@pytest.mark.parametrize("text", ALLOWED)
def test_an_allowed_host_or_a_link_of_a_source_passes(text: str) -> None:
    assert all(allowed(link, hosts(["wiki.example.com"]), exposed(SOURCE)) for link in links(text))
    assert links(text)


@pytest.mark.parametrize("text", NOT_ALLOWED)
def test_a_link_that_could_carry_anything_else_does_not(text: str) -> None:
    assert links(text)
    assert not any(allowed(link, hosts(["wiki.example.com"]), exposed(SOURCE)) for link in links(text))


LABELS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8)
PATHS = st.text("abcXYZ012-._~%&=+/?:@", max_size=20).map(lambda path: f"/x{path}z")
URLS = st.builds("https://{}.{}.com{}".format, LABELS, LABELS, PATHS)
#: What people and tools put around a link.
AROUND = st.sampled_from(
    ["{}", "({}).", '"{}"', "<{}>", "<{}|x>", "[x]({}), y", "*{}*", "{}!", "“{}”", '{{"u":"{}","v":1}}', "`{}`;"]
)


@given(URLS, AROUND, AROUND)
def test_a_link_of_a_source_may_be_said_again(url: str, source: str, draft: str) -> None:
    known = exposed(f"see {source.format(url)} there")
    # JSON in a draft is read as one long link, which is not what the source has
    said = "{}" if "{{" in draft else draft
    assert all(allowed(link, frozenset(), known) for link in links(f"look: {said.format(url)} is it"))


@given(URLS, st.text("abcXYZ019-_~%=&/|\"'()<>,;\u200b字", min_size=1, max_size=8), AROUND)
def test_whatever_is_appended_to_a_link_of_a_source_makes_it_another(url: str, data: str, around: str) -> None:
    """But for what the connector itself takes for the end of the link, which then carries nothing."""
    known = exposed(f"see {around.format(url)} there")
    (link, *_) = links(f"{url}{data}Q")
    ends = "<" in data
    assert allowed(link, frozenset(), known) is False or ends


@given(
    st.text(),
    st.lists(st.sampled_from(["<", ">", "|", ".", "a.com", "https://", "@", "&lt;", "&amp;", "mailto:", "\\", " "])),
)
def test_any_text_has_links_and_quoting_it_whole_is_allowed(text: str, parts: list[str]) -> None:
    whole = text + "".join(parts)
    known = exposed(whole)
    assert all(allowed(link, frozenset(), known) for link in links(whole))


@pytest.mark.parametrize(
    "part", ["a-", "a.", "a@", "https://a.com/)", "<", "a.com ", "(a.com", "@a", "&gt;", ",x.com/,", "https:"]
)
def test_a_text_of_the_greatest_size_is_looked_through(part: str) -> None:
    text = (part * MAX_TEXT)[: MAX_TEXT - 20] + " https://a.com/end"
    assert Link("a.com", "https://a.com/end") in links(text)
    assert "https://a.com/end" in exposed(text)
