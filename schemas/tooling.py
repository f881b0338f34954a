"""Decides what a tool's adapter is told of the policy: how to classify what a server returns, and what to ask for."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from turngate.schemas.policy import Access, Policy
from turngate.schemas.shapes import FieldClass, Id, Origin


class _Terms(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class OperationTerms(_Terms):
    """An operation that the policy names; only an internal read is done without asking (R-TNT-7, R-TNT-8)."""

    access: Access = Access.WRITE
    internal: bool = False


class ParamTerms(_Terms):
    """A parameter of a skill: who may set it, and whether it may be missing."""

    set_by: tuple[Origin, ...] = ()
    optional: bool = False


class SkillTerms(_Terms):
    """A named way to use an operation."""

    operation: Id
    params: Mapping[Id, ParamTerms] = {}


class ServerTerms(_Terms):
    """What the policy says of one server in one room. An operation that is not here is not named.

    `named`: whether it names the server; else what it returns is private and untrusted (R-AUD-8). `mentioned`: whether
    any version says anything of the server or of an operation of it, also one that does not hold there. `fields`,
    `mask` and `health`: see `turngate.schemas.policy.Tool`.
    `operations` are named as the server names them, without the server's own name. `doubles`: those that are, by their
    whole name, tools of another server that the policy names, which is said: `a.b` of `crm` is `b` of `crm.a`.
    """

    named: bool = False
    mentioned: bool = True
    fields: Mapping[str, FieldClass] = {}
    mask: tuple[FieldClass, ...] = ()
    health: tuple[str, ...] = ()
    operations: Mapping[str, OperationTerms] = {}
    skills: Mapping[Id, SkillTerms] = {}
    doubles: Mapping[str, Id] = {}


def doubles(policy: Policy, server: str) -> dict[Id, Id]:
    """The operations of a server that are, by name, tools of another one that the policy names: which."""
    others = [name for name in policy.tools if name != server]
    own = [name for name in policy.operations if name.startswith(f"{server}.")]
    return {name: other for name in own for other in others if name.startswith(f"{other}.")}
