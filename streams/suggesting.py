"""Decides what a log shows that its tenant's policy does not name, and what that is refused for today."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from turngate.processors.links import allowed, hosts, links
from turngate.processors.policy import NO_POLICY
from turngate.schemas.codec import Codec
from turngate.schemas.inputs import PolicyPublished, Record, ToolReturned, TurnDrafted
from turngate.schemas.outputs import ContextDecided, DecisionTraced, TurnDecided
from turngate.schemas.policy import Policy, PolicyInvalid, parse_policy
from turngate.schemas.shapes import Code, Reason
from turngate.streams.recorded import Records, of_tenant


@dataclass(slots=True)
class Seen:
    """How often something was seen, and in how many turns and requests each code was reported because of it."""

    times: int = 0
    refused: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def because(self, code: str, of: str) -> None:
        """A turn or request was refused for it."""
        self.refused[code].add(of)


@dataclass(slots=True)
class SeenSkill(Seen):
    """A skill: the operations that it was drafted for, and the parameters that it was given."""

    operations: dict[str, None] = field(default_factory=dict)
    params: dict[str, None] = field(default_factory=dict)


class _Call(NamedTuple):
    """What of a call is not named."""

    tool: Seen | None = None
    operation: Seen | None = None


@dataclass(slots=True)
class Unnamed:
    """What a log shows beside a policy. `document`: the text of the policy in force, None where there is none."""

    document: str | None = None
    policy: Policy = NO_POLICY
    tools: defaultdict[str, Seen] = field(default_factory=lambda: defaultdict(Seen))
    operations: defaultdict[str, Seen] = field(default_factory=lambda: defaultdict(Seen))
    skills: defaultdict[str, SeenSkill] = field(default_factory=lambda: defaultdict(SeenSkill))
    link_hosts: defaultdict[str, Seen] = field(default_factory=lambda: defaultdict(Seen))

    def __bool__(self) -> bool:
        return any((self.tools, self.operations, self.skills, self.link_hosts))


def unnamed(records: Records, codec: Codec, tenant: str) -> Unnamed:
    """What a tenant's log shows that its latest policy does not name. Raises `LogError` where it cannot be read."""
    found = Unnamed()
    for record in _of(records, codec, tenant, "policies"):
        if isinstance(record, PolicyPublished):
            _publish(found, record)
    about: dict[str, _Call] = {}
    for record in _of(records, codec, tenant, "tool-results"):
        if isinstance(record, ToolReturned):
            _returned(found, record, about)
    drafts: defaultdict[str, list[tuple[Code, Seen]]] = defaultdict(list)
    for record in _of(records, codec, tenant, "turn-drafts"):
        if isinstance(record, TurnDrafted):
            drafts[record.turn] += _drafted(found, record)
    for topic in ("turn-verdicts", "audit"):
        for record in _of(records, codec, tenant, topic):
            _refused(record, about, drafts)
    return found


def _of(records: Records, codec: Codec, tenant: str, topic: str) -> Iterator[Record]:
    """The tenant's records on a topic."""
    for partition in range(records.partitions):
        yield from of_tenant(records, codec, tenant, topic, partition)


def _publish(found: Unnamed, record: PolicyPublished) -> None:
    """As the engine takes policies up (R-POL-3)."""
    try:
        policy = parse_policy(record.document)
    except PolicyInvalid:
        return
    if record.version == str(policy.version) and (found.document is None or policy.version > found.policy.version):
        found.document, found.policy = record.document, policy


def _returned(found: Unnamed, record: ToolReturned, about: dict[str, _Call]) -> None:
    """What of a result is not named; each was seen once more."""
    operation = f"{record.server}.{record.operation}"
    call = _Call(
        None if record.server in found.policy.tools else found.tools[record.server],
        None if operation in found.policy.operations else found.operations[operation],
    )
    if any(call):
        about[f"tool:{record.call}"] = call
    _counted(one for one in call if one is not None)


def _drafted(found: Unnamed, record: TurnDrafted) -> list[tuple[Code, Seen]]:
    """What of a draft is not named, each with the code by which it is refused."""
    seen: list[tuple[Code, Seen]] = []
    action, named = record.action, hosts(found.policy.interlock.link_hosts)
    if action is not None and action.operation not in found.policy.operations:
        seen.append((Code.OPERATION_UNKNOWN, found.operations[action.operation]))
    name = None if action is None else action.skill or _skill_of(found.policy, action.operation)
    if action is not None and name is not None and name not in found.policy.skills:
        skill = found.skills[name]
        skill.operations[action.operation] = None
        skill.params.update(dict.fromkeys(param.name for param in action.params))
        seen.append((Code.SKILL_UNKNOWN, skill))
    carried = dict.fromkeys(link for rendering in record.renderings for link in links(rendering.text))
    others = dict.fromkeys(
        link.host for link in carried if link.host and link.url.startswith("http") and not allowed(link, named, ())
    )
    seen += ((Code.INTERLOCK_LINK, found.link_hosts[host]) for host in others if host is not None)
    _counted(one for _, one in seen)
    return seen


def _skill_of(policy: Policy, operation: str) -> str | None:
    """What a skill would be called of an operation that has none; None where it has one, which was not named."""
    return None if any(skill.operation == operation for skill in policy.skills.values()) else operation


def _counted(seen: Iterable[Seen]) -> None:
    for one in seen:
        one.times += 1


def _refused(record: Record, about: Mapping[str, _Call], drafts: Mapping[str, list[tuple[Code, Seen]]]) -> None:
    """Who refused what for which of these."""
    match record:
        case TurnDecided(turn=turn, reasons=reasons):
            _because(reasons, f"turn:{turn}", about)
            codes = {reason.code for reason in reasons}
            for code, seen in drafts.get(turn, ()):
                if code in codes:
                    seen.because(code, f"turn:{turn}")
        case ContextDecided(request=request, withheld=withheld):
            for one in withheld:
                reasons = tuple(reason.model_copy(update={"ref": one.ref}) for reason in one.reasons)
                _because(reasons, f"request:{request}", about)
        case DecisionTraced(call=str(call), reasons=reasons):
            operation = about.get(f"tool:{call}", _Call()).operation
            if operation is not None:
                for reason in reasons:
                    operation.because(reason.code, f"call:{call}")


def _because(reasons: Iterable[Reason], of: str, about: Mapping[str, _Call]) -> None:
    for reason in reasons:
        tool = about.get(reason.ref or "", _Call()).tool
        if tool is not None:
            tool.because(reason.code, of)
