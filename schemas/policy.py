"""Decides what a tenant's policy document may say (contract section 5), and names the line where it errs."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from turngate.schemas.shapes import Audience, FieldClass, Id, Origin, ReaderId, RoomId

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "y": 365 * 86_400_000}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d|y)")
#: A document beyond this is refused: it is read in the fold, and a policy is a page or two.
MAX_CHARACTERS = 500_000
#: Digits of the longest number. Beyond some thousands Python reads one only where its environment allows it (R-RUN-1).
MAX_DIGITS = 100
#: A character beyond U+FFFF as JSON escapes it, by two surrogates, which YAML refuses; and what may stand before it.
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)(\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})", re.IGNORECASE)


class PolicyInvalid(ValueError):
    """A policy document that does not validate. The message is `line N: where: what` (R-POL-3)."""


def duration_ms(text: object) -> int:
    """Milliseconds of `1500ms`, `10s`, `15m`, `24h`, `90d` or `7y` (a year has 365 days). Raises `ValueError`."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("must be a duration such as 1500ms, 10s, 15m, 24h, 90d or 7y")
    return int(match[1]) * _UNITS[match[2]]


#: A length of time in milliseconds; text with a unit in the document.
Duration = Annotated[int, BeforeValidator(duration_ms)]


class Part(BaseModel):
    """A part of the document. A key that it leaves out has the default; a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Then(StrEnum):
    """What becomes of a turn whose hold has ended."""

    DOWNGRADE = "downgrade"
    DROP = "drop"


class OpenRooms(StrEnum):
    """Whether an open room's own words may be said there again (R-AUD-10)."""

    REFUSE = "refuse"
    OWN_WORDS = "own_words"


class Mode(StrEnum):
    """What a guard does."""

    REFUSE = "refuse"
    ASK = "ask"
    ALLOW = "allow"


class Adapter(StrEnum):
    """How a tool is attached; `legacy` keeps no provenance (R-AUD-8)."""

    MCP = "mcp"
    LEGACY = "legacy"
    IDENTITY = "identity"


class Access(StrEnum):
    """Whether an operation writes or reads."""

    WRITE = "write"
    READ = "read"


class Agent(Part):
    """An agent and its own accounts, which are no readers to it (R-ROOM-7)."""

    accounts: tuple[ReaderId, ...] = ()


class Freshness(Part):
    """How old a listing may be, for what."""

    destination: Duration = 60_000
    observation: Duration = 3_600_000
    settle: Duration = 30_000
    clock_skew: Duration = 5_000
    delivery: Duration = 5_000


class Stale(Part):
    """How long a turn waits for a room to be known, and what then."""

    hold: Duration = 5_000
    then: Then = Then.DOWNGRADE


class Sharing(Part):
    """Explicit sharing: how long a code lives, and what a person may share with."""

    code_ttl: Duration = 900_000
    audiences: tuple[Literal["workspace", "public"], ...] = ("workspace", "public")


class Sensitivity(Part):
    """Whether writes wait for an assessor, and how long."""

    enabled: bool = False
    deadline: Duration = 2_000


class Evidence(Part):
    """More distinct leaves than this make the whole evidence unknown (R-EVI-5)."""

    max_leaves: int = Field(default=5_000, ge=1, le=1_000_000, strict=True)


class Tool(Part):
    """What a tool's results are. `audience` absent: unknown; `result`: as each names, within `within`.

    `fields`: JSON path (RFC 9535) to class; `mask`: classes that no model sees; `health`: JSON paths of what is about
    somebody's health. Whoever writes `ToolReturned` goes by these three; the engine does not look at them.
    """

    adapter: Adapter = Adapter.MCP
    audience: Audience | Literal["result"] | None = None
    within: Audience | None = None
    restrict: RoomId | None = None
    private: bool = False
    untrusted: bool = False
    fields: dict[str, FieldClass] = {}
    mask: tuple[FieldClass, ...] = ()
    health: tuple[str, ...] = ()


class Operation(Part):
    """An operation. Without an `audience` it is not internal."""

    access: Access = Access.WRITE
    audience: Literal["internal", "external"] | None = None
    outward: Mode | None = None


class SkillParam(Part):
    """What a parameter may be and who may set it."""

    type: Literal["price", "int", "number", "text", "email", "date", "bool", "id"]
    max: Decimal | None = None
    set_by: tuple[Origin, ...] = ()
    optional: bool = False
    from_untrusted: bool = False


class RecentRead(Part):
    """An operation that the room must have read a short while ago."""

    operation: Id
    within: Duration


class Skill(Part):
    """A named way to use an operation."""

    operation: Id
    params: dict[str, SkillParam] = {}
    unique: Annotated[str, Field(pattern=r"^\$params\.\S+$")] | None = None
    valid_for: Duration | None = None
    approval: Literal["required"] | None = None
    recent_read: RecentRead | None = None


class Interlock(Part):
    """What a tainted conversation may still do (rules TNT)."""

    mode: Mode = Mode.REFUSE
    outward: Mode = Mode.ASK
    untrusted_writes: Mode = Mode.ASK
    ask_ttl: Duration = 900_000
    taint_ttl: Duration = 86_400_000
    approvers: tuple[ReaderId, ...] = ()
    leak_guard: bool = False
    link_hosts: tuple[str, ...] = ()


class Retention(Part):
    """When what is forgotten (rules RET)."""

    room_empty: Duration = 86_400_000
    room_inactive: Duration = 90 * 86_400_000
    messages: Duration = 180 * 86_400_000
    log: Duration = 7 * 365 * 86_400_000


#: Said when a held turn's room could not be checked, unless a policy says otherwise (contract section 5).
NOTICE = "I can't check who can read this room right now."


class Policy(Part):
    """A tenant's policy document. `Policy(version=0)` is what a tenant without one has: defaults, and no agents."""

    version: Annotated[int, Field(ge=0, le=2**53, strict=True)]
    agents: dict[Id, Agent] = {}
    freshness: Freshness = Freshness()
    stale: Stale = Stale()
    trusted_bots: tuple[ReaderId, ...] = ()
    open_rooms: OpenRooms = OpenRooms.REFUSE
    notice: str | None = NOTICE
    sharing: Sharing = Sharing()
    sensitivity: Sensitivity = Sensitivity()
    evidence: Evidence = Evidence()
    tools: dict[Id, Tool] = {}
    operations: dict[Id, Operation] = {}
    skills: dict[Id, Skill] = {}
    interlock: Interlock = Interlock()
    retention: Retention = Retention()


#: What YAML reads as true or false.
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
#: Pydantic's messages in the document's own words.
_WORDS = {
    "missing": "is required",
    "extra_forbidden": "is not a key of the policy document",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "tuple_type": "must be a list",
}


def parse_policy(text: str) -> Policy:
    """The policy in a YAML or JSON document.

    Raises `PolicyInvalid`, whose message begins with the line (from 1) of what is wrong and never quotes a value.
    """
    node, data = _loaded(text)
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = [p for p in first["loc"] if not (isinstance(p, str) and ("[" in p or p in ("Audience",)))]
        where = ".".join(str(p) for p in path) or "document"
        raise PolicyInvalid(f"line {_line(node, path)}: {where}: {_say(first)}") from None


def policy_data(text: str) -> dict[str, Any]:
    """A YAML or JSON document as plain data; its fields may be wrong. Raises `PolicyInvalid` as `parse_policy` does."""
    return _loaded(text)[1]


def _loaded(text: str) -> tuple[Any, dict[str, Any]]:
    """A document's root node and its plain data."""
    if len(text) > MAX_CHARACTERS:
        raise PolicyInvalid(f"line 1: the document has more than {MAX_CHARACTERS} characters")
    try:
        node = yaml.compose(_with_whole_characters(text), Loader=yaml.CSafeLoader)
        data = _construct(node, "", set())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # A text that ends too early is marked beyond its end.
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        raise PolicyInvalid(f"line {line}: {error.problem or 'not YAML'}") from None
    except (yaml.YAMLError, RecursionError, UnicodeError):
        raise PolicyInvalid("line 1: not YAML or JSON") from None
    if not isinstance(data, dict):
        raise PolicyInvalid("line 1: the document must be a mapping")
    return node, data


def _with_whole_characters(text: str) -> str:
    """A JSON document with each pair of surrogates as the character that they mean; any other as it is."""
    if _PAIR.search(text) is None:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _PAIR.sub(lambda pair: pair[1] + json.loads(f'"{pair[2]}"'), text)


def _say(error: Any) -> str:
    kind = error["type"]
    if kind in ("enum", "literal_error"):
        return f"must be {error['ctx']['expected']}".replace("'", "")
    if kind == "value_error":
        return str(error["ctx"]["error"])
    message = str(error["msg"])
    return _WORDS.get(kind, message[0].lower() + message[1:])


def _construct(node: Any, where: str, seen: set[int]) -> Any:
    """Plain data of a YAML node: no aliases (they multiply), no duplicate keys, no odd tags."""
    if id(node) in seen:
        raise PolicyInvalid(f"line {node.start_mark.line + 1}: {_place(where)}: aliases are not allowed")
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):  # YAML allows any node as a key
                raise PolicyInvalid(f"line {key_node.start_mark.line + 1}: {_place(where)}: a key must be text")
            if key in out:
                raise PolicyInvalid(f"line {key_node.start_mark.line + 1}: {where}{key}: is there twice")
            out[key] = _construct(value_node, f"{where}{key}.", seen)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, f"{where}{i}.", seen) for i, item in enumerate(node.value)]
    if node is None:
        return None
    if len(node.value) > MAX_DIGITS and node.tag.endswith((":int", ":float")):
        raise PolicyInvalid(f"line {node.start_mark.line + 1}: {_place(where)}: has more than {MAX_DIGITS} digits")
    return _scalar(node)


def _place(where: str) -> str:
    return where.removesuffix(".") or "document"


def _scalar(node: Any) -> Any:
    """What a scalar says; one whose tag says what its text does not is text."""
    tag, value = node.tag.rsplit(":", 1)[-1], node.value.lower()
    if tag == "null" and value in ("", "~", "null"):
        return None
    if tag == "bool" and value in _SWITCHES:
        return _SWITCHES[value]
    if tag in ("int", "float") and re.fullmatch(r"[+-]?[0-9]+", value):
        return int(value)
    if tag == "float" and re.fullmatch(r"[+-]?[0-9]*\.[0-9]+", value):
        return Decimal(value)
    return node.value


def _line(node: Any, path: list[Any]) -> int:
    """The line of the deepest node on this path that the document has."""
    for step in path:
        inner = None
        if isinstance(node, yaml.MappingNode):
            inner = next((v for k, v in node.value if k.value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) + 1 if node is not None else 1
