"""Every page is in the index, what it links to and names of the project is there, and a test keeps every rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wheels import ROOT, tracked

PAGES = sorted(name for name in tracked() if name.endswith(".md") and not name.startswith("tests/"))
DOCS = sorted(name for name in PAGES if name.startswith("docs/") and name != "docs/README.md")
#: What stands for a name of somebody's own: no file of that name is meant.
MEANT = re.compile(r"NAME|RECORD|VERSION|R-AUD-11-")


def _links(page: str) -> list[tuple[str, str]]:
    """Each relative link: the file it leads to, and the heading in it."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)", text)
    return [((Path(page).parent / to).as_posix() if to else page, heading) for to, heading in found]


def _headings(page: str) -> set[str]:
    """As their anchors are made."""
    lines = re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    links = _links(page)
    assert [to for to, _ in links if not (ROOT / to).exists()] == []
    assert [(to, heading) for to, heading in links if heading and heading not in _headings(to)] == []


def test_every_page_is_in_the_index_once() -> None:
    listed = [Path(to).as_posix() for to, _ in _links("docs/README.md")]
    assert sorted(to for to in listed if to in DOCS) == DOCS


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_is_there(page: str) -> None:
    folders = "|".join(sorted({name.split("/")[0] for name in tracked() if "/" in name} - {".ci"}))
    named = set(re.findall(rf"`((?:{folders})/[\w./-]+)`", (ROOT / page).read_text("utf-8")))
    assert {name for name in named if not MEANT.search(name) and not (ROOT / name).exists()} == set()


def test_every_rule_that_is_cited_is_one_and_each_is_cited_by_a_test() -> None:
    rules = set(re.findall(r"^- (R-[A-Z]+-\d+) ", (ROOT / "docs" / "rules.md").read_text("utf-8"), flags=re.MULTILINE))
    cited = {name: _cited(name) for name in tracked() if name.endswith((".py", ".md", ".yaml"))}
    invented = {"CONTRIBUTING.md", "tests/test_docs.py", "tests/scenarios_runner/test_document.py"}
    assert {name: found - rules for name, found in cited.items() if name not in invented and found - rules} == {}
    assert rules - set().union(*(found for name, found in cited.items() if name.startswith("tests/"))) == set()


def _cited(name: str) -> set[str]:
    return set(re.findall(r"R-[A-Z]+-\d+", f"{name} {(ROOT / name).read_text('utf-8')}"))
