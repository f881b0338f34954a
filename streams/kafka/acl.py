"""Decides which ACLs on a broker make authority by topic true (R-EVI-10), and says them as commands of Kafka's tool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from turngate.schemas.authority import READERS, WRITERS, Role
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.topics import STATE_TOPIC

#: Who looks at how topics are configured: a worker before it starts, an operator's `turngate doctor`.
_LOOKS = frozenset({Role.WORKER, Role.OPERATOR})


@dataclass(frozen=True, slots=True)
class Allowed:
    """One operation that a role may do on resources of one kind, by the words of Kafka's tool.

    `prefixed`: on all whose names begin so.
    """

    operation: str
    kind: str
    names: tuple[str, ...]
    prefixed: bool = False


def allowed(role: Role, names: Names | None = None) -> Iterator[Allowed]:
    """Everything that a role needs on a broker, and no more. What is not allowed is refused by the broker.

    Reading and writing include describing. A worker has its group and transactional ids; every other role that reads
    has the groups whose names begin with `turngate-ROLE`.
    """
    names = Names() if names is None else names
    state = (STATE_TOPIC,) if role in (Role.WORKER, Role.OPERATOR) else ()
    read = (*(t for t, roles in READERS.items() if role in roles), *state)
    write = (*(t for t, roles in WRITERS.items() if role in roles), *(state if role is Role.WORKER else ()))
    for operation, topics in (("Read", read), ("Write", write)):
        if topics:
            yield Allowed(operation, "topic", tuple(names.prefix + topic for topic in topics))
    if role in _LOOKS:
        every = (*READERS, STATE_TOPIC)
        yield Allowed("DescribeConfigs", "topic", tuple(names.prefix + topic for topic in every))
    if role is Role.WORKER:
        yield Allowed("Read", "group", (names.group_id(role),))
        yield Allowed("Write", "transactional-id", (f"turngate-{names.app}-",), prefixed=True)
    elif read:
        yield Allowed("Read", "group", (names.group_id(role),), prefixed=True)


def commands(
    principals: Mapping[Role, Sequence[str]], options: Sequence[str], *, tool: str, remove: bool = False
) -> Iterator[str]:
    """A shell command for each operation of each role that has principals (`User:name`); `options` follow the tool."""
    for role, who in principals.items():
        for what in allowed(role) if who else ():
            words = [tool, *options, *(("--remove", "--force") if remove else ("--add",))]
            for principal in who:
                words += ["--allow-principal", principal]
            words += ["--operation", what.operation]
            for name in what.names:
                words += [f"--{what.kind}", name]
            if what.prefixed:
                words += ["--resource-pattern-type", "prefixed"]
            yield shlex.join(words)
