"""What a tool adapter is told of the policy: as it holds in a room, never looser than a version that may hold there."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from tests.gateway.conftest import AGENTS, ROOM, Running, draft
from tests.gateway.test_executors import claim
from turngate.gateway.policies import Policies
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import PolicyPublished
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.tooling import ServerTerms
from turngate.streams.clock import now_ms

CRM: dict[str, Any] = {
    "tools": {"crm": {"audience": "public", "fields": {"$.mail": "personal", "$.key": "secret"}, "mask": ["personal"]}},
    "operations": {"crm.read": {"access": "read", "audience": "internal"}, "crm.refund": {"audience": "internal"}},
    "skills": {"refund": {"operation": "crm.refund", "params": {"amount": {"type": "price", "set_by": ["read"]}}}},
}


async def publish(running: Running, version: int, policy: dict[str, Any], tenant: str = "acme") -> None:
    await running.feed.append([published(version, policy, tenant)])


def published(version: int, policy: dict[str, Any], tenant: str = "acme") -> PolicyPublished:
    document = json.dumps({"version": version, "agents": AGENTS, **policy})
    return PolicyPublished(tenant=tenant, at=now_ms(), version=str(version), document=document)


async def terms(client: httpx2.AsyncClient, server: str = "crm", room: str = ROOM) -> ServerTerms:
    answer = await client.get(f"/v1/tools/{server}", params={"room": room})
    assert answer.status_code == 200, answer.text
    return ServerTerms.model_validate_json(answer.content)


async def test_what_the_policy_says_of_a_server_and_nothing_of_others(running: Running) -> None:
    mail = {
        "operations": {**CRM["operations"], "mail.send": {}},
        "skills": {**CRM["skills"], "mail": {"operation": "mail.send"}},
    }
    await publish(running, 2, CRM | mail)
    told = await terms(running.agent())
    assert (told.named, told.mask, dict(told.fields)) == (True, ("personal",), CRM["tools"]["crm"]["fields"])
    assert {name: (o.access, o.internal) for name, o in told.operations.items()} == {
        "read": ("read", True),
        "refund": ("write", True),
    }
    assert {name: skill.operation for name, skill in told.skills.items()} == {"refund": "crm.refund"}
    nothing = ServerTerms(mentioned=False)
    assert await terms(running.agent(), "wiki") == nothing
    assert await terms(running.agent(tenant="globex")) == nothing


async def test_an_operation_is_said_to_bear_the_name_of_another_servers_tool_from_both_sides(running: Running) -> None:
    """Also where only a version of before names the other one: what it says may be meant of it."""
    operations = {"crm.a.b": {"access": "read", "audience": "internal"}, **CRM["operations"]}
    await publish(running, 2, {"tools": {"crm": {}, "crm.a": {}}, "operations": operations})
    await publish(running, 3, {"tools": {"crm": {}}, "operations": operations})
    assert dict((await terms(running.agent())).doubles) == {"a.b": "crm.a"}
    assert dict((await terms(running.agent(), "crm.a")).doubles) == {"b": "crm"}
    assert dict((await terms(running.agent(), "mail")).doubles) == {}


async def test_what_was_masked_is_masked_until_the_room_is_known_to_have_started_later(running: Running) -> None:
    """R-POL-1: the room starts under the third version, which masks less; only its first decision tells."""
    await publish(running, 2, CRM)
    await publish(running, 3, CRM | {"tools": {"crm": {"audience": "public", "fields": {"$.mail": "public"}}}})
    agent, new = running.agent(), "slack:T1/D7"
    before = await terms(agent, room=new)
    assert (before.fields["$.mail"], before.mask) == ("personal", ("personal",))
    await agent.post("/v1/drafts", json=draft(room=new, trigger=None, exposed=["tool:none"]), params={"wait": 0})
    after = await terms(agent, room=new)
    assert (dict(after.fields), after.mask) == ({"$.mail": "public"}, ())


async def test_a_room_that_started_before_a_tool_was_named_does_not_name_it(running: Running) -> None:
    agent = running.agent()
    await agent.post("/v1/drafts", json=draft())  # under the first version, which names no tool
    await publish(running, 2, CRM)
    told = await terms(agent)
    assert (told.named, dict(told.operations), told.mask) == (False, {}, ("personal",))  # and hides what it hides
    assert (told.fields["$.key"], told.mentioned) == ("secret", True)
    assert (await terms(agent, room="slack:T1/D7")).named


def test_nothing_is_told_of_a_policy_that_decides_and_was_not_read_yet() -> None:
    """R-POL-1: what it hides is not known. The topics of policies and of decisions are read each for itself."""
    for label in ("3", "1+3"):
        policies = Policies()
        assert policies.terms("acme", ROOM, "crm") == ServerTerms(mentioned=False)
        policies.learn(published(1, {}))
        policies.learn(decided(label))
        assert policies.terms("acme", ROOM, "crm") is None
        policies.learn(published(3, CRM))
        told = policies.terms("acme", ROOM, "crm")
        assert told is not None
        assert told.fields["$.key"] == "secret"


def decided(label: str) -> TurnDecided:
    of = {"tenant": "acme", "at": 1, "agent": "mesh", "turn": "t1", "room": ROOM, "decision": "d1"}
    return TurnDecided.model_validate({**of, "verdict": "drop", "policy": label, "leaves_digest": "0"})


async def test_a_policy_that_does_not_validate_or_is_not_newer_changes_nothing(running: Running) -> None:
    await publish(running, 2, CRM)
    for number, document in (("3", '{"version": 3, "tols": {}}'), ("2", '{"version": 2}'), ("4", '{"version": 5}')):
        await running.feed.append([PolicyPublished(tenant="acme", at=now_ms(), version=number, document=document)])
    assert (await terms(running.agent())).named


async def test_what_may_not_be_done_any_more_cannot_be_claimed(running: Running) -> None:
    """R-DLV-1: `valid_until` is the draft's deadline here; the twin without one is claimed."""
    agent, executor = running.agent(), running.client(running.keyring.make(Scope.EXECUTOR))
    soon = now_ms() + 1_500
    for turn, more in (("t1", {"deadline": soon}), ("t2", {})):
        answer = await agent.post("/v1/drafts", json=draft(turn, **more))
        assert answer.json()["verdict"] == "deliver"
    while now_ms() < soon:
        await agent.get("/v1/tools/crm", params={"room": ROOM})
    refused = await executor.post("/v1/deliveries", json=claim("one"))
    assert (refused.status_code, "any more" in refused.json()["detail"]) == (409, True)
    assert (await executor.post("/v1/deliveries", json=claim("one") | {"turn": "t2"})).status_code == 200
