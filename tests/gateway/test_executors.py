"""Who sends or executes claims a turn, and says what became of it: of its own agent's turns alone (R-DLV-2)."""

from __future__ import annotations

from typing import Any

from tests.gateway.conftest import ROOM, Running, draft, on_log
from turngate.gateway.tokens import Scope
from turngate.schemas.inputs import TurnDelivered


def delivery(status: str = "sent", turn: str = "t1", **more: Any) -> dict[str, Any]:
    return {"turn": turn, "room": ROOM, "status": status, **more}


def claim(name: str) -> dict[str, Any]:
    return delivery("uncertain", reasons=[{"code": "not_confirmed", "detail": name}])


async def test_a_turn_is_claimed_once_and_what_became_of_it_is_said_once(running: Running) -> None:
    await running.agent().post("/v1/drafts", json=draft())
    executor = running.client(running.keyring.make(Scope.EXECUTOR))
    statuses = [
        (await executor.post("/v1/deliveries", json=body)).status_code
        for body in (claim("one"), claim("one"), claim("two"), delivery(message=f"{ROOM}/2"),
                     delivery(message=f"{ROOM}/2"), delivery("failed"), claim("three"))
    ]  # fmt: skip
    assert statuses == [200, 200, 409, 200, 200, 409, 409]
    recorded = [r.status for r in await on_log(running.feed, "deliveries") if isinstance(r, TurnDelivered)]
    assert recorded == ["uncertain", "sent"]


async def test_nothing_is_said_of_a_turn_that_was_not_let_out_or_is_not_its_agents(running: Running) -> None:
    await running.agent().post("/v1/drafts", json=draft())
    await running.agent().post("/v1/drafts", json=draft("t2", exposed=["message:slack:T1/D9/1"]))
    executor = running.client(running.keyring.make(Scope.EXECUTOR))
    for client, body, status in (
        (executor, delivery(turn="t2"), 404),  # dropped
        (executor, delivery(room="slack:T1/D2"), 404),
        (executor, delivery(message="slack:T1/D2/1"), 422),
        (running.client(running.keyring.make(Scope.EXECUTOR, agent="scout")), delivery(), 404),
        (running.client(running.keyring.make(Scope.EXECUTOR, tenant="globex")), delivery(), 404),
    ):
        assert (await client.post("/v1/deliveries", json=body)).status_code == status, body
    assert await on_log(running.feed, "deliveries") == []
