"""Who sends or executes claims a turn, and says what became of it: of its own agent's turns alone (R-DLV-2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.conftest import ROOM, Running, draft, on_log
from turngate.gateway.book import Book
from turngate.gateway.stops import MOST, Stops
from turngate.gateway.tokens import Scope
from turngate.processors.approvals import turn_fingerprint
from turngate.schemas.catalog import RECORDS
from turngate.schemas.inputs import ActionApproved, AgentPaused, ApprovalWithdrawn, ProofRevoked, TurnDelivered
from turngate.schemas.outputs import TurnAuthorized
from turngate.streams.clock import now_ms


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


async def test_what_was_stopped_meanwhile_cannot_be_claimed_until_it_goes_on(running: Running) -> None:
    """R-POL-4: a pause of the agent, or in the room; one elsewhere stops nothing, and one told again undoes nothing."""
    executor = running.client(running.keyring.make(Scope.EXECUTOR))

    async def pause(command: str, agent: str = "mesh", *, paused: bool = True, **room: str) -> None:
        fields = {"tenant": "acme", "at": now_ms(), "command": command, "operator": "alex", "agent": agent}
        await running.feed.append([AgentPaused(**fields, paused=paused, **room)])

    async def claimed(turn: str) -> int:
        return (await executor.post("/v1/deliveries", json=claim(turn) | {"turn": turn})).status_code

    for number in range(4):
        assert (await running.agent().post("/v1/drafts", json=draft(f"t{number}"))).json()["verdict"] == "deliver"
    await pause("c0", "scout")
    await pause("c1", room="slack:T1/D2")
    assert await claimed("t0") == 200
    await pause("c2", room=ROOM)
    assert await claimed("t1") == 409
    await pause("c3", paused=False, room=ROOM)
    await pause("c2", room=ROOM)
    assert await claimed("t1") == 200
    await pause("c4")
    assert (await claimed("t2"), await claimed("t3")) == (409, 409)


AUTHORIZED = {
    "tenant": "acme", "at": 1_000_000, "turn": "t1", "agent": "mesh", "room": ROOM, "broadcast": False, "text": "hello",
    "destination": {"readers": []}, "provenance": [], "grants": ["g1"], "proofs": ["p1"], "decision": "d1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "fields", "ended"),
    [
        ("GrantCommanded", {"op": "revoke", "grant": "g1", "command": "c1", "operator": "alex", "agent": "mesh"}, True),
        (
            "GrantCommanded",
            {"op": "revoke", "grant": "g2", "command": "c1", "operator": "alex", "agent": "mesh"},
            False,
        ),
        ("ProofRevoked", {"proof": "p1"}, True),
        ("ProofRevoked", {"proof": "p2"}, False),
        ("ProofRevoked", {"proof": "p1", "tenant": "globex"}, False),
        ("ApprovalWithdrawn", {"approval": "a1"}, True),
        ("ApprovalWithdrawn", {"approval": "a2"}, False),
    ],
)
def test_what_it_may_rest_on_ends_it(record: str, fields: dict[str, Any], *, ended: bool) -> None:
    """R-POL-2, and the twin that concerns something else. A turn without an end has one after a minute."""
    authorized = TurnAuthorized.model_validate(AUTHORIZED)
    book, stops = Book(60), Stops()
    book.learn(authorized)
    let_out = book.let_out("acme", "t1")
    assert let_out is not None
    yes = {"approval": "a1", "fingerprint": turn_fingerprint(authorized, "hello"), "by": "slack:T1/UALEX", "room": ROOM}
    stops.learn(ActionApproved.model_validate({"tenant": "acme", "at": 1_000_000, **yes}), 1_000_000)
    assert not stops.ended("acme", let_out, 1_000_001)
    stops.learn(RECORDS[record].model_validate({"tenant": "acme", "at": 1_000_000, **fields}), 1_000_000)
    assert stops.ended("acme", let_out, 1_000_001) is ended
    assert stops.ended("acme", let_out, 1_060_000)


@pytest.mark.parametrize("said", [1_000, 1_000_000, 9_000_000_000_000])
def test_a_yes_taken_back_ends_what_it_let_out_and_nothing_later_whatever_its_writers_clock_says(said: int) -> None:
    """R-TIME-1: what counts is when it came. What was let out later was let out by another yes."""
    book, stops = Book(60), Stops()
    for number, at in ((1, 1_000_000), (2, 1_020_000)):
        book.learn(TurnAuthorized.model_validate(AUTHORIZED | {"turn": f"t{number}", "at": at}))
    before, after = book.let_out("acme", "t1"), book.let_out("acme", "t2")
    assert before is not None
    assert after is not None
    yes = {"approval": "a1", "fingerprint": before.fingerprints[0], "by": "slack:T1/UALEX", "room": ROOM}
    stops.learn(ActionApproved.model_validate({"tenant": "acme", "at": said, **yes}), 999_000)
    stops.learn(ApprovalWithdrawn.model_validate({"tenant": "acme", "at": said, "approval": "a1"}), 1_010_000)
    assert (stops.ended("acme", before, 1_021_000), stops.ended("acme", after, 1_021_000)) == (True, False)


def test_whoever_revokes_ever_more_takes_up_no_more_memory_and_undoes_nothing() -> None:
    """What is not known any more may have been behind whatever was let out before it, and is behind nothing later."""
    book, stops = Book(60), Stops()
    for number, at in ((1, 1_000_000), (2, 1_020_000)):
        book.learn(TurnAuthorized.model_validate(AUTHORIZED | {"turn": f"t{number}", "at": at}))
    book.learn(TurnAuthorized.model_validate(AUTHORIZED | {"turn": "t3", "proofs": []}))
    turns = [turn for name in ("t1", "t2", "t3") if (turn := book.let_out("acme", name)) is not None]

    def revoked(proof: str, at: int, tenant: str = "acme") -> None:
        stops.learn(ProofRevoked(tenant=tenant, at=0, proof=proof), at)

    revoked("p1", 1_001_000, "globex")
    for number in range(MOST):
        revoked(f"r{number}", 1_002_000 + number // 100)
    assert [stops.ended("acme", turn, 1_021_000) for turn in turns] == [False, False, False]
    revoked("another", 1_005_000)
    assert [stops.ended("acme", turn, 1_021_000) for turn in turns] == [True, False, False]
    assert stops.ended("globex", turns[1], 1_021_000)  # and another tenant's flood has undone nothing
