"""Decides which policy holds for a room: the meet of the version it started with and every later one (R-POL-1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from turngate.processors.audience import UNKNOWN, Sets, intersection, listed, says_all
from turngate.schemas.digests import audience_digest
from turngate.schemas.policy import (
    Access,
    Adapter,
    Agent,
    Evidence,
    Freshness,
    Interlock,
    Mode,
    OpenRooms,
    Operation,
    Part,
    Policy,
    Retention,
    Sensitivity,
    Sharing,
    Skill,
    Stale,
    Then,
    Tool,
)
from turngate.schemas.shapes import Audience, Scope

#: What a tenant without a policy has (contract section 5): the defaults, and no agents, tools, operations or skills.
NO_POLICY = Policy(version=0)


class Effective:
    """The policy in force for a room. `label` is the pinned version, and `+` the latest where that is another.

    `settings` is the meet of everything that has one; a tool or skill must pass every version, so all are kept.
    `agents_accounts`: those that are an agent's in any version.
    """

    def __init__(
        self,
        label: str,
        settings: Policy,
        tools: Mapping[str, tuple[Tool, ...]],
        skills: Mapping[str, tuple[Skill, ...]],
        agents_accounts: frozenset[str] = frozenset(),
    ) -> None:
        self.label: Final = label
        self.settings: Final = settings
        self.tools: Final = tools
        self.skills: Final = skills
        self.agents_accounts: Final = agents_accounts
        # What every draft asks, most of it several times, is not looked up in `settings` each time: milliseconds, and
        # a number of leaves.
        self.fresh_for: Final = settings.freshness.destination
        self.kept_for: Final = settings.retention.messages
        self.tainted_for: Final = settings.interlock.taint_ttl
        self.max_leaves: Final = settings.evidence.max_leaves

    def accounts(self, agent: str) -> tuple[str, ...]:
        """The agent's own accounts; none for an agent that the policy does not name."""
        named = self.settings.agents.get(agent)
        return () if named is None else named.accounts


def effective(versions: tuple[Policy, ...]) -> Effective:
    """The meet of these versions, the pinned one first; of none, what a tenant without a policy has."""
    if not versions:
        return Effective("0", NO_POLICY, {}, {})
    pinned, latest = versions[0], versions[-1]
    met = _resolved(pinned)
    for version in versions[1:]:
        met = meet(met, _resolved(version))
    label = str(pinned.version) if pinned.version == latest.version else f"{pinned.version}+{latest.version}"
    return Effective(
        label,
        met,
        {
            name: tuple(v.tools[name] for v in versions)
            for name in pinned.tools
            if all(name in v.tools for v in versions)
        },
        {
            name: tuple(v.skills[name] for v in versions)
            for name in pinned.skills
            if all(name in v.skills for v in versions)
        },
        frozenset(account for v in versions for agent in v.agents.values() for account in agent.accounts),
    )


def meet(a: Any, b: Any) -> Any:
    """Two versions of one part of the policy document, field by field; of each the stricter, `a` being the earlier."""
    kind = type(a)
    return kind.model_construct(
        **{name: MEETS[kind][name](getattr(a, name), getattr(b, name)) for name in kind.model_fields}
    )


def _resolved(policy: Policy) -> Policy:
    """Each operation with the `outward` that holds for it, its own or the interlock's, so that two can be compared."""
    operations = {
        name: op if op.outward is not None else op.model_copy(update={"outward": policy.interlock.outward})
        for name, op in policy.operations.items()
    }
    return policy.model_copy(update={"operations": operations})


def _first(order: tuple[Any, ...]) -> Callable[[Any, Any], Any]:
    """Of two values the one that comes first in this order."""
    return lambda a, b: min(a, b, key=order.index)


def _both(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """What both name."""
    return tuple(x for x in a if x in b)


def _named(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What both versions name, each the meet of the two."""
    return {name: meet(a[name], b[name]) for name in a if name in b}


def _either(a: bool, b: bool) -> bool:
    return a or b


def _earlier(a: Any, b: Any) -> Any:
    return a


def _notice(a: str | None, b: str | None) -> str | None:
    """The pinned one, null where any is."""
    return None if a is None or b is None else a


_MODE = _first((Mode.REFUSE, Mode.ASK, Mode.ALLOW))

#: How each field of the document meets (R-POL-1). A field without an entry cannot be met, and the tests say so.
MEETS: Mapping[type[Part], Mapping[str, Callable[[Any, Any], Any]]] = {
    Policy: {
        "version": max,
        "agents": _named,
        "freshness": meet,
        "stale": meet,
        "trusted_bots": _both,
        "open_rooms": _first((OpenRooms.REFUSE, OpenRooms.OWN_WORDS)),
        "notice": _notice,
        "sharing": meet,
        "sensitivity": meet,
        "evidence": meet,
        "tools": _earlier,  # every version is kept in `Effective.tools`
        "operations": _named,
        "skills": _earlier,  # every version is kept in `Effective.skills`
        "interlock": meet,
        "retention": meet,
    },
    Agent: {"accounts": _both},
    Freshness: dict.fromkeys(Freshness.model_fields, min),
    Stale: {"hold": min, "then": _first((Then.DROP, Then.DOWNGRADE))},
    Sharing: {"code_ttl": min, "audiences": _both},
    Sensitivity: {"enabled": _either, "deadline": min},
    Evidence: {"max_leaves": min},
    Operation: {
        "access": _first((Access.WRITE, Access.READ)),
        "audience": _first((None, "external", "internal")),
        "outward": _MODE,
    },
    Interlock: {
        "mode": _MODE,
        "outward": _MODE,
        "untrusted_writes": _MODE,
        "ask_ttl": min,
        "taint_ttl": max,
        "approvers": _both,
        "leak_guard": _either,
        "link_hosts": _both,
    },
    Retention: dict.fromkeys(Retention.model_fields, min),
}


@dataclass(frozen=True, slots=True)
class ToolTerms:
    """What a tool's result is: who may hear it, where it must stay, and what it arms.

    `each`: further audiences within which whoever hears it must lie, where `audience` alone does not say it.
    """

    audience: Audience
    restrictions: tuple[str, ...]
    private: bool
    untrusted: bool
    each: tuple[Audience, ...] = ()


def tool_terms(tools: tuple[Tool, ...] | None, named: Audience | None, sets: Sets) -> ToolTerms:
    """The terms of a result of a server with these versions (None: not named); `named` is the result's own audience."""
    if not tools or same_adapter(tools) is Adapter.LEGACY:  # R-AUD-8
        return ToolTerms(UNKNOWN, _restrictions(tools or ()), private=True, untrusted=True)
    audiences = [_tool_audience(tool, named, sets) for tool in tools]
    audience = audiences[0]
    each: tuple[Audience, ...] = ()
    for other in audiences[1:]:  # R-POL-1: a tool's audience must permit in each
        if not says_all(audience, other):
            each = tuple(audiences)
        audience = intersection(audience, other)
    private, untrusted = any(t.private for t in tools), any(t.untrusted for t in tools)
    return ToolTerms(audience, _restrictions(tools), private, untrusted, each)


def same_adapter(tools: tuple[Tool, ...]) -> Adapter:
    """Adapters that differ are legacy (R-POL-1)."""
    return tools[0].adapter if len({t.adapter for t in tools}) == 1 else Adapter.LEGACY


def _restrictions(tools: tuple[Tool, ...]) -> tuple[str, ...]:
    return tuple(sorted({t.restrict for t in tools if t.restrict is not None}))


def _tool_audience(tool: Tool, named: Audience | None, sets: Sets) -> Audience:
    if tool.audience is None:
        return UNKNOWN
    if isinstance(tool.audience, Audience):
        return tool.audience
    if named is None or named.scope is Scope.UNKNOWN:
        return UNKNOWN
    if named.scope is Scope.LISTED:  # a result's memberships are claims (R-AUD-8)
        named = listed(named.readers, named.guests, named.workspaces)
    if tool.within is None:
        return UNKNOWN if named.scope is Scope.PUBLIC else named
    inside = sets.within(named, audience_digest(named), tool.within, audience_digest(tool.within))
    return named if inside else UNKNOWN
