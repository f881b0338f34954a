"""Decides what an agent's tool adapter is told of its tenant's policy: of one server, as it holds in one room.

Which version a room started with only the engine knows. It is seen in the decisions for that room; until there is one,
whatever any version ever masked is masked, so that nothing is loosened before its time (R-POL-1).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from turngate.schemas.inputs import PolicyPublished
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.policy import Access, Operation, Policy, PolicyInvalid, Skill, Tool, parse_policy
from turngate.schemas.shapes import FieldClass
from turngate.schemas.tooling import OperationTerms, ParamTerms, ServerTerms, SkillTerms, doubles

#: Rooms whose version is remembered; of the others every version counts.
ROOMS = 100_000
_CLASSES = list(FieldClass)  # in the contract's order (section 2)
T = TypeVar("T")


class Policies:
    """The policies of all tenants, and which version rooms started with. For one event loop."""

    def __init__(self) -> None:
        self._versions: defaultdict[str, list[Policy]] = defaultdict(list)
        self._newest: defaultdict[str, int] = defaultdict(int)
        self._started: OrderedDict[tuple[str, str], int] = OrderedDict()

    def learn(self, record: PolicyPublished | TurnDecided) -> None:
        """Take notice of a record that is on the log; again, it changes nothing."""
        if isinstance(record, TurnDecided):
            pinned, _, latest = record.policy.partition("+")
            self._started[record.tenant, record.room] = int(pinned)
            self._newest[record.tenant] = max(self._newest[record.tenant], int(latest or pinned))
            self._started.move_to_end((record.tenant, record.room))
            if len(self._started) > ROOMS:
                self._started.popitem(last=False)
            return
        try:
            policy = parse_policy(record.document)
        except PolicyInvalid:  # R-POL-3
            return
        known = self._versions[record.tenant]
        if record.version == str(policy.version) and all(policy.version > one.version for one in known):
            known.append(policy)

    def terms(self, tenant: str, room: str, server: str) -> ServerTerms | None:
        """What holds for a server's results and operations in a room; None where a version that decided is unread."""
        versions = self._versions.get(tenant, [])
        if self._newest[tenant] > (versions[-1].version if versions else 0):
            return None
        started = self._started.get((tenant, room))
        if started is None:
            return _terms(versions, versions[-1:], server)
        since = [policy for policy in versions if policy.version >= started]
        return _terms(since, since, server)


def _terms(versions: Sequence[Policy], naming: Sequence[Policy], server: str) -> ServerTerms:
    """The meet of what these versions say. What one of `naming` does not name is not named (R-POL-1).

    What any of them hides is hidden all the same, and about health what any of them says to be.
    """
    tools = [policy.tools[server] for policy in versions if server in policy.tools]
    own = f"{server}."
    operations = {
        name.removeprefix(own): _operation(_said(versions, naming, lambda p: p.operations, name))
        for name in _names(naming, lambda policy: policy.operations)
        if name.startswith(own)
    }
    skills = {name: _skill(_said(versions, naming, _skills, name)) for name in _names(naming, _skills)}
    return ServerTerms(
        named=bool(naming) and all(server in policy.tools for policy in naming),
        mentioned=bool(tools) or any(name.startswith(own) for policy in versions for name in policy.operations),
        fields=_fields(tools),
        mask=tuple(sorted({masked for tool in tools for masked in tool.mask}, key=_CLASSES.index)),
        health=tuple(sorted({path for tool in tools for path in tool.health})),
        operations=operations,
        skills={name: skill for name, skill in skills.items() if skill.operation.startswith(own)},
        doubles={name.removeprefix(own): of for policy in versions for name, of in doubles(policy, server).items()},
    )


def _skills(policy: Policy) -> dict[str, Skill]:
    return policy.skills


def _names(naming: Sequence[Policy], of: Callable[[Policy], dict[str, T]]) -> Iterable[str]:
    """What all of these versions name."""
    return [name for name in of(naming[-1]) if all(name in of(policy) for policy in naming)] if naming else []


def _said(
    versions: Sequence[Policy], naming: Sequence[Policy], of: Callable[[Policy], dict[str, T]], name: str
) -> list[T]:
    """What the versions say of something, the latest last; nothing where it is not named."""
    if not naming or not all(name in of(policy) for policy in naming):
        return []
    return [of(policy)[name] for policy in versions if name in of(policy)]


def _fields(tools: Iterable[Tool]) -> dict[str, FieldClass]:
    found: dict[str, FieldClass] = {}
    for path, given in (pair for tool in tools for pair in tool.fields.items()):
        found[path] = max(found.get(path, given), given, key=_CLASSES.index)
    return found


def _operation(said: Sequence[Operation]) -> OperationTerms:
    return OperationTerms(
        access=Access.WRITE if any(one.access is Access.WRITE for one in said) else Access.READ,
        internal=all(one.audience == "internal" for one in said),
    )


def _skill(said: Sequence[Skill]) -> SkillTerms:
    """As the latest has it: the engine holds a draft against every version."""
    params = {n: ParamTerms(set_by=p.set_by, optional=p.optional) for n, p in said[-1].params.items()}
    return SkillTerms(operation=said[-1].operation, params=params)
