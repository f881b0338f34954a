"""Decides what tells installations on one cluster apart: what their topics, groups and transactional ids are called."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.schemas.authority import Role


@dataclass(frozen=True, slots=True)
class Names:
    """The application's name, which tells workers apart, and a prefix of topics.

    `group` may differ from the role's own, in tests.
    """

    app: str = "main"
    prefix: str = ""
    group: str = ""

    def group_id(self, role: Role) -> str:
        """The consumer group of a role; of one that is not a service, what the names of its groups begin with."""
        return self.group or f"turngate-{self.app if role is Role.WORKER else role}"

    def transactional_id(self, partition: int) -> str:
        """One for each partition, so that a new owner fences the former one."""
        return f"turngate-{self.app}-{partition}"
