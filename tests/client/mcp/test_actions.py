"""What writes, or leaves the house, is asked for, claimed and done once; what is not established is not done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.client.mcp.conftest import POLICY, TURN, Desk, proxied, shop_gateway, shown, text_of, token
from tests.gateway.conftest import ALEX, ROOM, Running
from turngate.client.acting import META, Acting
from turngate.client.http import connect, transport
from turngate.client.mcp.actions import Returned
from turngate.client.mcp.classified import WITHHELD
from turngate.client.mcp.gateway import Asking
from turngate.client.mcp.proxy import ASKED, BEGUN, NOT_ASKED, NOT_MADE, NOT_SHOWN, REF, UNKNOWN, WAITS, Proxy
from turngate.gateway.guard import Limits
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import ActionApproved, SharingRequested
from turngate.schemas.outputs import SharingOffered, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import ValueField
from turngate.streams.clock import now_ms

ORDER = {"invoice": "INV-7", "amount": "120.00"}


async def test_a_write_is_asked_for_claimed_done_and_said_to_be_done(desk: Desk) -> None:
    """Both values were read in this turn, as the skill wants them to be (R-ACT-1)."""
    await desk.call("read", invoice="INV-7")
    result = await desk.call("refund", **ORDER)
    assert (result.is_error, desk.calls) == (False, ["read", "refund"])
    (authorized,) = [r for r in await desk.on("outbound") if isinstance(r, TurnAuthorized)]
    assert authorized.action is not None
    assert {(p.name, p.value, p.origin.value) for p in authorized.action.params} == {
        ("invoice", "INV-7", "read"),
        ("amount", "120.00", "read"),
    }
    assert await desk.deliveries() == ["uncertain", "sent"]
    done = (await desk.results())[-1]
    assert (done.turn, done.call, (result.meta or {})[REF]) == ("t1", authorized.turn, f"tool:{authorized.turn}")
    assert await desk.undrafted() == []


async def test_a_value_that_nobody_has_read_is_the_models_own_and_is_not_written(desk: Desk) -> None:
    await desk.call("read", invoice="INV-7")
    assert text_of(await desk.call("refund", **ORDER | {"amount": "999.00"})) == NOT_MADE
    assert (desk.calls, await desk.deliveries()) == (["read"], [])


async def test_what_was_refused_is_asked_for_again_once_there_is_more_to_rest_on(desk: Desk) -> None:
    """And not before: the same draft has the same answer."""
    for _ in range(3):
        assert text_of(await desk.call("refund", **ORDER)) == NOT_MADE
    assert len(await desk.on("turn-drafts")) == 1
    await desk.call("read", invoice="INV-7")
    assert not (await desk.call("refund", **ORDER)).is_error
    assert text_of(await desk.call("refund", **ORDER)) == BEGUN
    await desk.call("read", invoice="INV-7")
    assert text_of(await desk.call("refund", **ORDER)) == BEGUN
    assert (desk.calls.count("refund"), len(await desk.on("turn-drafts"))) == (1, 2)


async def test_the_same_call_of_the_same_turn_is_made_once_however_often_and_at_once(desk: Desk) -> None:
    """A runtime that means another one gives it a name of its own."""
    await desk.call("read", invoice="INV-7")
    results = await asyncio.gather(*(desk.call("refund", **ORDER) for _ in range(5)))
    assert sorted(text_of(r) == BEGUN for r in results) == [False, True, True, True, True]
    assert text_of(await desk.call("refund", **ORDER)) == BEGUN
    assert desk.calls.count("refund") == 1
    named = await desk.call("refund", TURN | {"call": "second"}, **ORDER)
    assert (named.is_error, desk.calls.count("refund")) == (False, 2)


async def test_an_error_is_foreign_and_does_not_tell_that_nothing_was_done(tmp_path: Path, counted: Path) -> None:
    """Its text stands for nobody's word but the server's; the claim stays, so that it is never made again."""
    skills = {"refund": {"operation": "shop.refund", "params": {n: {"type": "text", "set_by": ["llm"]} for n in ORDER}}}
    tools = {"shop": {"audience": {"readers": [ALEX]}}}
    async with shop_gateway(tmp_path, skills=skills, tools=tools) as running, proxied(running, counted) as desk:
        arguments = ORDER | {"amount": "0.13"}
        result = await desk.call("refund", **arguments)
        assert (result.is_error, "refund" in text_of(result)) == (True, True)
        record = (await desk.results())[-1]
        assert (record.untrusted, record.error) == (True, text_of(result))
        assert text_of(await desk.call("refund", **arguments)) == BEGUN
        assert (desk.calls, await desk.deliveries()) == (["refund"], ["uncertain"])


async def test_what_asks_for_an_approval_waits_and_is_made_when_the_same_call_comes_again(
    tmp_path: Path, counted: Path
) -> None:
    skills = {"refund": POLICY["skills"]["refund"] | {"approval": "required"}}
    async with shop_gateway(tmp_path, skills=skills) as running, proxied(running, counted) as desk:
        await desk.call("read", invoice="INV-7")
        assert text_of(await desk.call("refund", **ORDER)) == WAITS
        (asking,) = [r for r in await desk.on("turn-verdicts") if isinstance(r, TurnDecided)]
        assert asking.fingerprint is not None
        yes = {"approval": "a1", "fingerprint": asking.fingerprint, "by": ALEX, "room": ROOM}
        await running.feed.append([ActionApproved(tenant="acme", at=now_ms(), **yes)])
        await desk.call("read", invoice="INV-8")  # what is read since does not make it another call
        assert not (await desk.call("refund", **ORDER)).is_error
        assert desk.calls.count("refund") == 1


async def test_a_skill_that_is_valid_for_a_while_needs_the_date_of_what_it_rests_on(
    tmp_path: Path, counted: Path
) -> None:
    """R-ACT-5. It makes no other call: done once, it is not done again for a newer date."""
    skills = {"refund": POLICY["skills"]["refund"] | {"valid_for": "1h"}}
    async with shop_gateway(tmp_path, skills=skills) as running, proxied(running, counted) as desk:
        await desk.call("read", invoice="INV-7")
        for since in ({}, {"valid_from": now_ms() - 3_600_000}, {"valid_from": now_ms() + 3_600_000}):
            assert text_of(await desk.call("refund", TURN | since, **ORDER)) == NOT_MADE
        assert not (await desk.call("refund", TURN | {"valid_from": now_ms() - 60_000}, **ORDER)).is_error
        assert text_of(await desk.call("refund", TURN | {"valid_from": now_ms()}, **ORDER)) == BEGUN
        assert desk.calls == ["read", "refund"]


async def test_nothing_is_written_where_nobody_says_which_turn_it_is_or_what_the_model_saw(desk: Desk) -> None:
    """A model writes names and arguments, and no `_meta`."""
    await desk.call("read", invoice="INV-7")
    partly: list[Any] = [
        {"room": ROOM, "turn": "t1"},  # but not what was exposed
        {"turn": "t1", "exposed": []},
        TURN | {"room": "C1"},
        TURN | {"more": 1},
        {},
    ]
    for turn in partly:
        assert text_of(await desk.call("refund", turn, **ORDER)) == NOT_MADE
    inside = await desk.host.call_tool("refund", {**ORDER, "_meta": {META: TURN}, META: TURN})
    assert text_of(inside) == NOT_MADE
    assert desk.calls == ["read"]


async def test_a_turn_that_the_proxy_was_started_for_is_the_turn_of_every_call(shopped: Running, counted: Path) -> None:
    async with proxied(shopped, counted, fixed=Acting.model_validate(TURN)) as desk:
        await desk.call("read", {"room": "slack:T1/C9", "turn": "t9"}, invoice="INV-7")
        assert [(r.room, r.turn) for r in await desk.results()] == [(ROOM, "t1")]


@pytest.mark.parametrize(
    "operation", [{"access": "read"}, {"audience": "internal"}, {"access": "read", "audience": "external"}]
)
async def test_whatever_is_no_internal_read_is_asked_for_and_one_action_is_one_call(
    tmp_path: Path, counted: Path, operation: dict[str, str]
) -> None:
    """R-TNT-7: what leaves is drafted, and the audit trail finds the action behind the call."""
    params = {"invoice": {"type": "id", "set_by": ["llm"]}}
    more = {"operations": {"shop.read": operation}, "skills": {"look": {"operation": "shop.read", "params": params}}}
    async with shop_gateway(tmp_path, **more) as running, proxied(running, counted) as desk:
        assert shown(await desk.call("read", invoice="INV-7"))["invoice"] == "INV-7"
        assert text_of(await desk.call("read", invoice="INV-7", more="x")) == NOT_MADE
        assert (await desk.deliveries(), await desk.undrafted()) == (["uncertain", "sent"], [])


async def test_an_operation_that_is_also_another_servers_tool_is_called_of_neither(
    tmp_path: Path, counted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What the policy says of it may be meant of the other one. The twin has no other server that is named."""
    operations = {"mall.shop.read": {"access": "read", "audience": "internal"}}
    for tools, called in ((("mall", "mall.shop"), []), (("mall.shop",), ["read"])):
        policy = {"operations": operations, "tools": {name: {"audience": "public"} for name in tools}, "skills": {}}
        (tmp_path / "-".join(tools)).mkdir()
        async with (
            shop_gateway(tmp_path / "-".join(tools), **policy) as running,
            proxied(running, counted, "mall.shop") as desk,
        ):
            assert (text_of(await desk.call("read", invoice="INV-7")) == NOT_MADE) is (called == [])
            assert desk.calls == called
    assert "mall.shop's read is mall's shop.read to the policy: neither is called" in caplog.text


async def test_what_leaves_the_house_unasked_is_on_record(shopped: Running, counted: Path) -> None:
    async with proxied(shopped, counted, "bazaar", call_unnamed=True) as desk:
        await desk.call("read", invoice="INV-7")
        assert await desk.undrafted() == [r.call for r in await desk.results()]


async def test_nothing_is_called_where_the_gateway_does_not_answer_or_does_not_let_it(
    shopped: Running, counted: Path
) -> None:
    """A token that may not claim may not write; it reads all the same."""
    async with proxied(shopped, counted) as desk:
        await desk.call("read", invoice="INV-7")
        url, narrow = shopped.url, shopped.keyring.make(Scope.AGENT)
        for place, shown_token in (("http://127.0.0.1:1", token(shopped)), (url, "tg_none"), (url, narrow)):
            async with transport(place, token=shown_token) as carrier:
                proxy = Proxy("shop", Asking(carrier, "shop", 1.0, at_once=1.0), _Untouched())
                told = await proxy.called(Acting.model_validate(TURN), "refund", ORDER)
                assert text_of(told) in (NOT_MADE, BEGUN)
        assert desk.calls == ["read"]


class _Untouched:
    """A shop that is not to be called."""

    async def has(self, tool: str) -> bool:
        return True

    async def call(self, tool: str, arguments: object) -> None:
        raise AssertionError("called")


async def test_a_tool_that_is_not_there_is_not_claimed(tmp_path: Path, counted: Path) -> None:
    """Nor asked for: a claim on it would stay for ever."""
    skills = {"refund": {"operation": "shop.repay", "params": {n: {"type": "text", "set_by": ["llm"]} for n in ORDER}}}
    operations = {"shop.repay": {"audience": "internal"}}
    async with (
        shop_gateway(tmp_path, skills=skills, operations=operations) as running,
        proxied(running, counted) as desk,
    ):
        assert text_of(await desk.call("repay", **ORDER)) == NOT_MADE
        assert (desk.calls, await desk.on("turn-drafts")) == ([], [])


async def test_a_value_in_another_spelling_and_one_that_a_person_said_are_found_by_the_engine(
    tmp_path: Path, counted: Path
) -> None:
    """R-ACT-1: 120 was read as 120.00, `morning` stands in the trigger; nobody has said `evening`."""
    params = {
        "amount": {"type": "price", "set_by": ["read"]},
        "invoice": {"type": "text", "set_by": ["person", "read"]},
    }
    skills = {"refund": {"operation": "shop.refund", "params": params}}
    async with shop_gateway(tmp_path, skills=skills) as running, proxied(running, counted) as desk:
        await desk.call("read", invoice="INV-7")
        assert text_of(await desk.call("refund", invoice="evening", amount="120")) == NOT_MADE
        assert not (await desk.call("refund", invoice="morning", amount="120")).is_error
        assert desk.calls == ["read", "refund"]


@pytest.mark.parametrize("odd", ["\ud800", "\x00"])
async def test_what_no_record_can_hold_is_neither_written_nor_shown(desk: Desk, odd: str) -> None:
    assert text_of(await desk.call("refund", **ORDER | {"amount": odd})) in (NOT_MADE, UNKNOWN)
    assert text_of(await desk.call("read", invoice=odd)) in (NOT_SHOWN, WITHHELD)
    assert "refund" not in desk.calls


async def test_only_tools_pass_and_a_memory_is_shared_by_its_person_alone(desk: Desk) -> None:
    names = [tool.name for tool in (await desk.host.list_tools()).tools]
    assert sorted(names) == ["die", "hang", "jam", "picture", "read", "refund", "request_memory_sharing", "story"]
    assert desk.host.server_capabilities.prompts is None
    assert desk.host.instructions is None
    write = {"write": "w1", "memory": "plan", "revision": "plan@1", "op": "create", "by": "turn", "kind": "note",
             "text": "the plan", "sources": [TURN["trigger"]], "room": ROOM, "turn": "t1"}  # fmt: skip
    agent = desk.running.agent()
    await agent.post("/v1/context", json={"request": "q1", "turn": "t1", "room": ROOM, "trigger": TURN["trigger"]})
    assert (await agent.post("/v1/memory", json=write)).status_code == 200
    asked = await desk.call("request_memory_sharing", revision="plan@1", audience="workspace")
    assert (text_of(asked), asked.is_error) == (ASKED, False)
    (offer,) = [r for r in await desk.on("grants") if isinstance(r, SharingOffered)]
    assert offer.code not in asked.model_dump_json()
    for revision, audience in (("plan@2", "workspace"), ("plan@1", "everybody"), ("", "public")):
        refused = await desk.call("request_memory_sharing", revision=revision, audience=audience)
        assert text_of(refused) == NOT_ASKED
    requests = [r for r in await desk.on("memory-writes") if isinstance(r, SharingRequested)]
    assert {r.audience.workspaces for r in requests} == {("slack:T1",)}
    assert desk.calls == []


async def test_a_path_that_is_none_stops_the_server_before_it_is_called(tmp_path: Path, counted: Path) -> None:
    tools = {"shop": {"audience": "public", "fields": {"key": "secret"}}}
    async with shop_gateway(tmp_path, tools=tools) as running, proxied(running, counted) as desk:
        assert text_of(await desk.call("read", invoice="INV-7")) == NOT_MADE
        assert desk.calls == []


async def test_what_cannot_be_recorded_is_not_shown(tmp_path: Path, counted: Path) -> None:
    """R-EVI-2: a model must not have seen what no evidence tells of. The shorter twin is recorded and shown."""
    async with shop_gateway(tmp_path, limits=Limits(body=2_000)) as running, proxied(running, counted) as desk:
        assert text_of(await desk.call("read", invoice="I" * 2_000)) == NOT_SHOWN
        assert await desk.results() == []
        assert shown(await desk.call("read", invoice="I" * 200))["invoice"] == "I" * 200


async def test_what_the_python_client_says_of_its_turn_is_understood(shopped: Running, counted: Path) -> None:
    """What one inference saw is exposed, and its results are of its context request."""
    async with (
        proxied(shopped, counted) as desk,
        connect(shopped.url, token=token(shopped)) as gate,
        gate.turn(room=ROOM, trigger=TURN["trigger"]) as turn,
    ):
        context = await turn.context([TURN["trigger"]])
        other = await turn.context(["message:slack:T1/D1/99"])
        turn.saw("revision:plan@1")
        said = Acting.model_validate(turn.meta(context=context, call="c1", valid_from=1_000)[META])
        assert said.exposed == ("revision:plan@1", TURN["trigger"])
        assert (said.turn, said.request, said.call, said.valid_from) == (turn.name, context.request, "c1", 1_000)
        assert Acting.model_validate(turn.meta()[META]).exposed == said.exposed
        meta: Any = turn.meta(context=context)
        await desk.host.call_tool("read", {"invoice": "INV-7"}, meta=meta)
        assert [(r.turn, r.request) for r in await desk.results()] == [(turn.name, context.request)]
        assert not other


def test_of_a_turn_with_many_results_the_newest_values_are_remembered_and_all_refs() -> None:
    returned = Returned()
    for n in range(250):
        field = ValueField.model_validate({"name": "$.n", "value": f"value-{n}", "class": "internal"})
        returned.add("t1", f"tool:c{n}", [field])
    assert len(returned.refs("t1")) == 250
    held = [n for n in range(250) if returned.holding("t1", f"value-{n}") == f"tool:c{n}"]
    assert held == list(range(50, 250))
