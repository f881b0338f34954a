"""What an agent asks over HTTP, and what it is answered: drafts, context, tool results, memory, sharing."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.conftest import ROOM, TRIGGER, Keyring, Running, draft, gateway_on, on_log, request
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import MemoryWrite, ToolReturned


async def test_a_draft_is_decided_and_one_that_may_not_be_said_is_dropped(running: Running) -> None:
    agent = running.agent()
    answer = await agent.post("/v1/drafts", json=draft())
    assert (answer.status_code, answer.json()["verdict"], answer.json()["rendering"]) == (200, "deliver", 0)
    assert not {"tenant", "agent", "as_of"} & answer.json().keys()
    refused = (await agent.post("/v1/drafts", json=draft("t2", exposed=["message:slack:T1/D9/1"]))).json()
    assert (refused["verdict"], [r["code"] for r in refused["reasons"]]) == ("drop", ["source_missing"])


async def test_context_is_decided_before_inference(running: Running) -> None:
    answer = await running.agent().post("/v1/context", json=request("q1", "t1", TRIGGER, "message:slack:T1/D9/1"))
    assert answer.status_code == 200
    assert [one["ref"] for one in answer.json()["permitted"]] == [TRIGGER]
    assert [one["ref"] for one in answer.json()["withheld"]] == ["message:slack:T1/D9/1"]


async def test_a_tool_result_is_recorded_without_what_it_says_of_somebodys_health(running: Running) -> None:
    fields = [{"name": "diagnosis", "value": "flu", "health": True}, {"name": "price", "value": "4711"}]
    body = {"room": ROOM, "turn": "t1", "call": "c1", "server": "wiki", "operation": "read", "fields": fields}
    answer = await running.agent().post("/v1/tool-results", json=body)
    assert (answer.status_code, answer.json()) == (200, {"recorded": "tool:c1"})
    (written,) = await on_log(running.feed, "tool-results")
    assert isinstance(written, ToolReturned)
    assert [field.value for field in written.fields] == ["", "4711"]


async def test_a_memory_is_written_or_refused(running: Running) -> None:
    agent = running.agent()
    await agent.post("/v1/context", json=request("q1", "t1", TRIGGER))
    body = {"write": "w1", "memory": "plan", "revision": "plan@1", "op": "create", "by": "turn", "kind": "note",
            "text": "Alex is up", "sources": [TRIGGER], "turn": "t1", "room": ROOM}  # fmt: skip
    answer = (await agent.post("/v1/memory", json=body)).json()
    assert (answer["revision"], answer["state"]) == ("plan@1", "current")
    assert not {"leaves", "restrictions"} & answer.keys()
    health = await agent.post("/v1/memory", json=body | {"write": "w2", "revision": "plan@2", "health": True})
    assert [r["code"] for r in health.json()["reasons"]] == ["health_not_retained"]
    texts = [r.text for r in await on_log(running.feed, "memory-writes") if isinstance(r, MemoryWrite)]
    assert texts == ["Alex is up", None]


async def test_its_author_is_offered_to_share_a_memory(running: Running) -> None:
    agent = running.agent()
    await agent.post("/v1/context", json=request("q1", "t1", TRIGGER))
    revision = "plan/a b@1"
    await agent.post("/v1/memory", json={
        "write": "w1", "memory": "plan", "revision": revision, "op": "create", "by": "turn", "kind": "note",
        "text": "Alex is up", "sources": [TRIGGER], "turn": "t1", "room": ROOM})  # fmt: skip
    body = {"request": "s1", "room": ROOM, "audience": {"workspace": "slack:T1"}}
    answer = await agent.post("/v1/memory/plan%2Fa%20b@1/sharing", json=body)
    assert (answer.status_code, answer.json()["revision"], answer.json()["text"]) == (200, revision, "Alex is up")
    refused = await agent.post("/v1/memory/nothing/sharing", json=body | {"request": "s2"})
    assert [r["code"] for r in refused.json()["reasons"]] == ["source_missing"]


async def test_a_turn_whose_room_is_not_known_waits_and_its_token_can_ask_again(running: Running) -> None:
    agent, room = running.agent(), "slack:T1/C7"
    answer = await agent.post("/v1/drafts?wait=0", json=draft(room=room, trigger=None, exposed=[TRIGGER]))
    assert (answer.status_code, answer.json()["status"]) == (202, "hold")
    place = answer.headers["location"]
    assert place == answer.json()["place"]
    again = await agent.get(place, params={"wait": 0})
    assert again.status_code == 202
    assert (await running.agent().get(place)).status_code == 404  # another token of the same agent
    assert (await running.agent("scout").get(place)).status_code == 404


async def test_the_same_request_has_the_same_answer_and_other_content_is_a_conflict(running: Running) -> None:
    agent = running.agent()
    first = await agent.post("/v1/drafts", json=draft())
    again = await agent.post("/v1/drafts", json=draft() | {"at": 1})
    assert (again.status_code, again.content) == (200, first.content)
    other = await agent.post("/v1/drafts", json=draft(text="something else"))
    assert (other.status_code, other.headers["content-type"]) == (409, "application/problem+json")
    assert len(await on_log(running.feed, "turn-drafts")) == 1
    assert len(await on_log(running.feed, "outbound")) == 1


async def test_what_was_answered_is_known_after_a_restart(log_file: Path, keyring: Keyring, running: Running) -> None:
    token = running.keyring.make(Scope.AGENT)
    first = await running.client(token).post("/v1/drafts", json=draft())
    async with gateway_on(running.feed, keyring) as other:
        again = await other.client(token).post("/v1/drafts", json=draft())
        conflict = await other.client(token).post("/v1/drafts", json=draft(text="something else"))
    assert (again.content, conflict.status_code) == (first.content, 409)
    assert len(await on_log(running.feed, "turn-drafts")) == 1
