"""Decides what `docs/contract.md` says, as data: topics, records, fields, shapes, codes, and the policy's defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"


@dataclass(frozen=True)
class Said:
    """A field as the contract writes it: `name`, `name?`, `name: type`, `name: type?`, `name?: type`."""

    name: str
    optional: bool
    type: str | None

    @property
    def symbols(self) -> list[str] | None:
        """Of `a|b|c` the symbols."""
        return self.type.split("|") if self.type is not None and "|" in self.type else None


def sections() -> dict[int, str]:
    """The numbered sections."""
    parts = re.split(r"^## (\d+)\. .*$", CONTRACT.read_text("utf-8"), flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def fields(text: str) -> list[Said]:
    """The fields of a list with commas between, whatever is nested in them."""
    return [_field(part) for part in _split(text.replace("\\|", "|"))]


def _field(text: str) -> Said:
    match = re.fullmatch(r"(\w+)(\??)(?:: (.+?)(\??))?", text)
    assert match is not None, f"not a field: {text!r}"
    return Said(match[1], "?" in (match[2] or "") + (match[4] or ""), match[3])


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def records(section: int) -> tuple[dict[str, list[str]], dict[str, list[Said]]]:
    """The records of each topic, and the fields of each record beyond `tenant` and `at`, of section 3 or 4."""
    topics: dict[str, list[str]] = {}
    said: dict[str, list[Said]] = {}
    topic = ""
    for line in sections()[section].splitlines():
        row = re.fullmatch(r"\| ?(?:`([a-z-]+)`)? \| `(\w+)` \| (.+) \|", line)
        if row is None:
            continue
        topic = row[1] or topic
        described = [(row[2], row[3])]
        if also := re.search(r" / `(\w+)`: (`.+`)", row[3]):
            described = [(row[2], row[3][: also.start()]), (also[1], also[2])]
        for record, text in described:
            topics.setdefault(topic, []).append(record)
            if text.startswith("`"):
                said[record] = fields(text[1 : text.index("`", 1)])
            elif text.startswith("(no more)"):
                said[record] = []
            else:
                assert text.startswith("as above"), text
    return topics, said


def shapes() -> dict[str, list[Said]]:
    """The shapes of section 2 and the leaf of section 4."""
    text = sections()[2] + sections()[4]
    return {name: fields(inner) for name, inner in re.findall(r"^`(\w+) \{ (.+?) \}`", text, flags=re.MULTILINE)}


def symbols(shape: str, field: str) -> list[str]:
    """The values that section 2 lists for a field of a shape, explanations in brackets left out."""
    text = sections()[2]
    text = re.sub(r"\([^()]*\)", "", text[text.index(f"`{shape} {{") :])
    listed = re.search(rf"`{field}`: (`[^.;]+)", text)
    assert listed is not None, f"{shape}.{field}"
    return re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", listed[1])))


def codes() -> list[str]:
    """The reason codes of section 6."""
    text = sections()[6]
    return [
        code for listed in re.findall(r"`([^`]+)`", text[: text.index("Codes are stable")]) for code in listed.split()
    ]


def policy() -> str:
    """The policy document of section 5."""
    match = re.search(r"```yaml\n(.+?)```", sections()[5], flags=re.DOTALL)
    assert match is not None
    return match[1]
