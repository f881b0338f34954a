"""Decides whether a drafted action is known, with values of known origin, in time, and done only once (rules ACT)."""

from __future__ import annotations

from dataclasses import dataclass, field

from turngate.processors.approvals import member
from turngate.processors.evidence import evidence_of
from turngate.processors.ledger import Ledger
from turngate.processors.origins import contains
from turngate.processors.policy import same_adapter
from turngate.processors.rows import Evidence
from turngate.processors.values import Value, form_of, loose, over_max, parse
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.policy import Adapter, Skill, SkillParam
from turngate.schemas.shapes import Action, Code, Origin, Param, Reason

MESSAGE = "message:"
TOOL = "tool:"


@dataclass(slots=True)
class Acted:
    """What an action came to.

    The reasons against it, whether its skill is known and needs an approval, until when it is good, and its claims.
    """

    reasons: list[Reason] = field(default_factory=list)
    known: bool = False
    needs_approval: bool = False
    until: list[int] = field(default_factory=list)
    claims: list[tuple[str, str]] = field(default_factory=list)

    def against(self, code: Code, ref: str | None) -> None:
        """Add a reason."""
        self.reasons.append(Reason(code=code, ref=ref))


def internal(ledger: Ledger, room: str, operation: str) -> bool:
    """Whether the policy says that an operation stays in the house; one that it does not name does not."""
    named = ledger.policy(room).settings.operations.get(operation)
    return named is not None and named.audience == "internal"


def judge_action(ledger: Ledger, draft: TurnDrafted, action: Action, refs: tuple[str, ...]) -> Acted:
    """Hold an action against every version of the policy in force (R-ACT-1, 2, 4 and 5); `refs` are the rendering's."""
    acted = Acted()
    policy = ledger.policy(draft.room)
    skills = () if action.skill is None else policy.skills.get(action.skill, ())
    known = action.operation in policy.settings.operations
    if not known or any(skill.operation != action.operation for skill in skills):
        acted.against(Code.OPERATION_UNKNOWN, action.operation)
    if not skills:
        acted.against(Code.SKILL_UNKNOWN, action.skill)
        return acted
    acted.known = True
    repeated = _repeated(action)
    for name in repeated:
        acted.against(Code.PARAM_INVALID, name)
    for skill in skills:
        _params(ledger, draft, action, skill, refs, repeated, acted)
        _in_time(ledger, draft, action, skill, acted)
        _unique(ledger, draft, action, skill, acted)
        acted.needs_approval = acted.needs_approval or skill.approval is not None
    return acted


def _repeated(action: Action) -> frozenset[str]:
    names = [param.name for param in action.params]
    return frozenset(name for name in names if names.count(name) > 1)


def _params(
    ledger: Ledger,
    draft: TurnDrafted,
    action: Action,
    skill: Skill,
    refs: tuple[str, ...],
    repeated: frozenset[str],
    acted: Acted,
) -> None:
    given = {param.name for param in action.params}
    for name, wanted in skill.params.items():
        if name not in given and not wanted.optional:
            acted.against(Code.PARAM_MISSING, name)
    for param in action.params:
        if param.name in repeated:
            continue
        wanted_here = skill.params.get(param.name)
        if wanted_here is None:
            acted.against(Code.PARAM_UNKNOWN, param.name)
        else:
            _param(ledger, draft, param, wanted_here, refs, acted)


def _param(
    ledger: Ledger, draft: TurnDrafted, param: Param, wanted: SkillParam, refs: tuple[str, ...], acted: Acted
) -> None:
    value = parse(wanted.type, param.value)
    if value is None:
        acted.against(Code.PARAM_INVALID, param.name)
        return
    if wanted.max is not None and over_max(value, wanted.max):
        acted.against(Code.PARAM_OVER_MAX, param.name)
    code = _origin(ledger, draft, param, value, wanted, refs)
    if code is not None:
        acted.against(code, param.name)


def _origin(
    ledger: Ledger, draft: TurnDrafted, param: Param, value: Value, wanted: SkillParam, refs: tuple[str, ...]
) -> Code | None:
    """Whoever it is said to come from must be one who may set it; what is not proven is the model's (R-ACT-1)."""
    if param.origin not in wanted.set_by:
        return Code.ORIGIN_NOT_PERMITTED
    if Origin.LLM in wanted.set_by or _proven(ledger, draft, param, value, wanted, refs):
        return None
    return Code.ORIGIN_NOT_PROVEN


def _proven(
    ledger: Ledger, draft: TurnDrafted, param: Param, value: Value, wanted: SkillParam, refs: tuple[str, ...]
) -> bool:
    if param.evidence is None or param.evidence not in refs:
        return False
    evidence = evidence_of(ledger, param.evidence, draft.agent)
    if evidence is None or not contains(ledger, evidence, wanted.type, value):
        return False
    if param.origin is Origin.PERSON:
        return param.evidence.startswith(MESSAGE) and persons_word(ledger, draft, evidence)
    if not param.evidence.startswith(TOOL):
        return False
    if param.origin is Origin.IDENTITY:
        tools = ledger.policy(draft.room).tools.get(evidence.server or "")
        return bool(tools) and same_adapter(tools or ()) is Adapter.IDENTITY
    untrusted = any(ledger.leaf(key).untrusted for key in evidence.leaves)
    return wanted.from_untrusted or not untrusted


def persons_word(ledger: Ledger, draft: TurnDrafted, evidence: Evidence) -> bool:
    """Whether this is the message of a person, no guest, in the draft's room, as its bounds say now (R-ACT-1)."""
    if evidence.author is None or not evidence.person or evidence.room != draft.room:
        return False
    return member(ledger, draft.agent, draft.room, evidence.author)


def _in_time(ledger: Ledger, draft: TurnDrafted, action: Action, skill: Skill, acted: Acted) -> None:
    """A document is good from its date on and for so long; a read behind it must be recent (R-ACT-5)."""
    if skill.valid_for is not None:
        start = action.valid_from
        if start is None or not start <= ledger.now < start + skill.valid_for:
            acted.against(Code.VALIDITY_EXPIRED, None)
        else:
            acted.until.append(start + skill.valid_for)
    if skill.recent_read is not None:
        wanted = skill.recent_read
        read = ledger.tables.reads.get((ledger.tenant, draft.agent, draft.room, wanted.operation))
        if read is None or read < ledger.began(draft.room) or ledger.now - read >= wanted.within:
            acted.against(Code.READ_STALE, wanted.operation)
        else:
            acted.until.append(read + wanted.within)


def _unique(ledger: Ledger, draft: TurnDrafted, action: Action, skill: Skill, acted: Acted) -> None:
    """A key is claimed once per tenant and skill (R-ACT-4); without its parameter nothing can be claimed."""
    if skill.unique is None or action.skill is None:
        return
    name = skill.unique.removeprefix("$params.")
    wanted = skill.params.get(name)
    given = [param.value for param in action.params if param.name == name]
    value = parse(wanted.type, given[0]) if wanted is not None and len(given) == 1 else None
    if value is None:
        if not any(r.ref == name for r in acted.reasons):
            acted.against(Code.PARAM_MISSING, name)
        return
    form = form_of(value)
    tags = ledger.keys.claims(
        ledger.tenant, name, loose(form) if wanted is not None and wanted.type == "text" else form
    )
    holders = {ledger.tables.claims.get((ledger.tenant, action.skill, tag)) for tag in tags}
    if not tags or holders - {None, draft.turn}:  # without a key it cannot be known
        acted.against(Code.NOT_UNIQUE, name)
    elif (action.skill, tags[0]) not in acted.claims:
        acted.claims.append((action.skill, tags[0]))
