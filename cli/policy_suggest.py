"""Decides in which words `turngate policy suggest` proposes entries for what was seen and is not named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turngate.cli.options import Connection, connects
from turngate.cli.pasted import as_yaml
from turngate.cli.recorded import of_tenant, recorded

if TYPE_CHECKING:
    from turngate.streams.suggesting import Seen, Unnamed

_HEADER = """\
# What was seen and is not named has an entry here. The comment above it says how often it was seen, and what stands
# against it today: codes of docs/refusals.md, and how many turns, requests or calls had each. As it stands the document
# lets nothing out unasked: look at each entry, say what it is, and publish it. `turngate replay --policy` says what
# would change. A host is named by taking away the `# ` at the beginning of its lines.
"""
_TOOL = """\
# Say who may hear what it returns: audience: public, {workspace: …}, {readers: […]}, or result.
# Then take away private and untrusted where it is neither, and classify what it returns: fields: {$.path: class}.
"""
_OPERATION = (
    "# Say access: read where it changes nothing, and audience: internal where no parameter leaves the house.\n"
)
_SKILL = """\
# Say what each parameter is (type), and who may set it: set_by: [read, person, identity, llm].
# Without approval: required it is done unasked.
"""
_HOSTS = "# Links to these were drafted; whoever controls such a host reads what a link to it carries.\n"


@connects(log=True)
def suggest(
    connection: Connection,
    *,
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose log and policy.", show_default=False)],
) -> None:
    """Propose a policy with entries for every tool, operation, skill and link host that was seen and is not named.

    Each has a comment that says how often it was seen and what it is refused for today. The new entries are the
    strictest that there are, so nobody is let out by publishing them; loosen what you know.

    Example:  turngate policy suggest --tenant acme --log turngate.db > acme-next.yaml
    """
    from turngate.streams.suggesting import unnamed

    with recorded(connection) as (records, codec):
        of_tenant(records, tenant)
        found = unnamed(records, codec, tenant)
    if not found:
        typer.echo(f"everything that was seen of {tenant} is named", err=True)
        return
    typer.echo(_document(found), nl=False)


def _document(found: Unnamed) -> str:
    """The policy in force, one version on, with the entries that it lacks."""
    import yaml

    base: dict[str, Any] = {} if found.document is None else yaml.load(found.document, yaml.CSafeLoader)
    parts = [_HEADER, _dump({"version": found.policy.version + 1})]
    own = ("version", "tools", "operations", "skills", "interlock")
    parts += [_dump({name: value}) for name, value in base.items() if name not in own]
    tools = {name: {"adapter": "mcp", "private": True, "untrusted": True} for name in found.tools}
    operations = {name: {"access": "write"} for name in found.operations}
    skills = {
        name: {
            "operation": next(iter(skill.operations)),
            "params": {param: {"type": "text", "set_by": []} for param in skill.params},
            "approval": "required",
        }
        for name, skill in found.skills.items()
    }
    parts.append(_section("tools", base, tools, found.tools, _TOOL))
    parts.append(_section("operations", base, operations, found.operations, _OPERATION))
    parts.append(_section("skills", base, skills, found.skills, _SKILL))
    parts.append(_interlock(base.get("interlock") or {}, found.link_hosts))
    return "".join(parts)


def _section(
    name: str, base: Mapping[str, Any], proposed: Mapping[str, Any], seen: Mapping[str, Seen], about: str
) -> str:
    """A part of the document: what it has, and what is proposed, each under its comment."""
    known = base.get(name) or {}
    if not known and not proposed:
        return ""
    lines = [_dump(known) if known else ""]
    lines += [about] if proposed else []
    lines += [_said(seen[key]) + _dump({key: entry}) for key, entry in proposed.items()]
    return f"{name}:\n" + _indented("".join(lines))


def _interlock(known: Mapping[str, Any], seen: Mapping[str, Seen]) -> str:
    """The interlock, with what would name a host commented out: to name one is to let data go there."""
    if not seen:
        return _dump({"interlock": dict(known)}) if known else ""
    named = known.get("link_hosts") or []
    rest = _dump({name: value for name, value in known.items() if name != "link_hosts"})
    lines = ["interlock:\n" if known else "# interlock:\n", _indented(rest), _indented(_HOSTS)]
    lines.append("  link_hosts:\n" if named else "#   link_hosts:\n")
    lines += (f"    - {json.dumps(host)}\n" for host in named)
    for host, one in seen.items():
        item = as_yaml({"link_hosts": [host]}).splitlines()[1]  # a draft may name `*.example.com`, which is an alias
        lines += (f"    {_said(one)}", f"#     {item}\n")
    return "".join(lines)


def _said(seen: Seen) -> str:
    """How often it was seen, and for what it is refused; names and ids are others' words, and stand in no comment."""
    against = ", ".join(f"{code} ({len(of)})" for code, of in sorted(seen.refused.items()))
    times = "once" if seen.times == 1 else f"{seen.times} times"
    return f"# seen {times}; {against or 'nothing stands against it so far'}\n"


def _dump(entries: Mapping[str, Any]) -> str:
    """Each entry on a line of its own, as far as it fits."""

    def flow(value: Any) -> bool | None:
        return None if isinstance(value, dict | list) and value else False

    return "".join(as_yaml({key: value}, flow=flow(value)) for key, value in entries.items())


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.split("\n") if line)
