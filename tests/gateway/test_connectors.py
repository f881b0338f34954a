"""Another chat system is attached over HTTP: it brings in its own rooms, and speaks for nobody else's."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.gateway.conftest import ALEX, AT_ONCE, ROOM, Running, draft, on_log
from turngate.gateway.tokens import Scope
from turngate.schemas import inputs
from turngate.streams.clock import now_ms

HALL, EVE = "chat:H1/C1", "chat:H1/UEVE"


@pytest.fixture
def connector(running: Running) -> httpx2.AsyncClient:
    """Of a chat system that the tenant has beside Slack."""
    return running.client(running.keyring.make(Scope.CONNECTOR, namespaces=["chat:H1"]))


def page(room: str = HALL, **more: Any) -> dict[str, Any]:
    at = now_ms() - 500
    return {"room": room, "at": at, "started_at": at, "refresh": f"r{at}", "page": 0, "last": True,
            "info": {"kind": "direct", "visibility": "members"}, "members": [{"reader": EVE, "kind": "member"}],
            **more}  # fmt: skip


def said(room: str = HALL, number: int = 1, **more: Any) -> dict[str, Any]:
    return {"room": room, "at": now_ms(), "message": f"{room}/{number}", "author": EVE, "author_kind": "person",
            "text": "good evening", **more}  # fmt: skip


async def test_a_turn_waits_for_a_listing_that_the_connector_is_asked_for(
    running: Running, connector: httpx2.AsyncClient
) -> None:
    agent = running.agent()
    assert (await connector.post("/v1/listings", json=page())).status_code == 200
    message = await connector.post("/v1/observations", json=said())
    assert message.json() == {"recorded": f"message:{HALL}/1"}
    changed = {"record": "RoomChanged", "room": HALL, "what": "renamed", "at": now_ms()}
    assert (await connector.post("/v1/listings", json=changed)).status_code == 200
    body = draft(room=HALL, trigger=f"message:{HALL}/1")
    held = await agent.post("/v1/drafts", params=AT_ONCE, json=body)
    assert held.json()["status"] == "hold"
    asked = (await connector.get("/v1/refresh-requests")).json()
    assert [(r["room"], r["because"]) for r in asked["requests"]] == [(HALL, "draft")]
    behind = await connector.get("/v1/refresh-requests", params={"after": asked["next"], **AT_ONCE})
    assert behind.json() == {"requests": [], "next": asked["next"]}
    assert (await connector.post("/v1/listings", json=page(at=now_ms(), started_at=now_ms()))).status_code == 200
    assert (await agent.get(held.headers["location"])).json()["verdict"] == "deliver"


async def test_who_joined_and_what_was_deleted_counts(running: Running, connector: httpx2.AsyncClient) -> None:
    await connector.post("/v1/listings", json=page())
    await connector.post("/v1/observations", json=said())
    deleted = {"record": "MessageDeleted", "room": HALL, "message": f"{HALL}/1", "at": now_ms()}
    assert (await connector.post("/v1/observations", json=deleted)).status_code == 200
    decided = await running.agent().post("/v1/drafts", json=draft(room=HALL, trigger=f"message:{HALL}/1"))
    assert [r["code"] for r in decided.json()["reasons"]] == ["source_deleted"]
    joined = {"record": "MembershipChanged", "room": HALL, "reader": ALEX, "kind": "guest", "change": "joined"}
    await connector.post("/v1/listings", json=joined | {"at": now_ms()})
    (change,) = (
        r for r in await on_log(running.feed, "membership-refreshes") if isinstance(r, inputs.MembershipChanged)
    )
    assert (change.tenant, change.agent, change.reader) == ("acme", "mesh", ALEX)


async def test_it_speaks_for_its_own_namespaces_alone(running: Running, connector: httpx2.AsyncClient) -> None:
    later = now_ms() + 60_000
    slack = running.client(running.keyring.make(Scope.CONNECTOR, namespaces=["slack:T1"]))
    proof = {"proof": "p1", "reader": ALEX, "subject": "alex", "expires_at": later}
    approval = {"approval": "a1", "fingerprint": "f", "by": ALEX, "room": ROOM}
    for path, body in (
        ("/v1/observations", said(ROOM)),
        ("/v1/listings", page(ROOM)),
        ("/v1/listings", {"record": "RoomChanged", "room": "chat:H11/C1", "what": "renamed", "at": now_ms()}),
        ("/v1/proofs", proof),
        ("/v1/approvals", approval),
    ):
        assert (await connector.post(path, json=body)).status_code == 403, path
    assert (await slack.post("/v1/proofs", json=proof)).status_code == 200
    assert (await slack.post("/v1/approvals", json=approval)).status_code == 200
    revoked, withdrawn = {"record": "ProofRevoked", "proof": "p1"}, {"record": "ApprovalWithdrawn", "approval": "a1"}
    for client, status in ((connector, 403), (slack, 200)):
        assert (await client.post("/v1/proofs", json=revoked)).status_code == status
        assert (await client.post("/v1/approvals", json=withdrawn)).status_code == status
    # Taking back what nobody remembers takes nothing from anybody, and must not wait.
    assert (await connector.post("/v1/proofs", json=revoked | {"proof": "p0"})).status_code == 200
    assert not [r for r in await on_log(running.feed, "membership-refreshes") if r.room.startswith("chat:")]


async def test_a_connector_is_asked_only_for_rooms_of_its_own(running: Running, connector: httpx2.AsyncClient) -> None:
    await running.agent().post("/v1/drafts", params=AT_ONCE, json=draft(room="slack:T1/C7"))
    await running.agent("scout").post("/v1/drafts", params=AT_ONCE, json=draft("t2", room=HALL))
    await running.agent(tenant="globex").post("/v1/drafts", params=AT_ONCE, json=draft("t3", room=HALL))
    assert (await connector.get("/v1/refresh-requests", params=AT_ONCE)).json()["requests"] == []
    for agent, tenant, namespace, room in (
        ("mesh", "acme", "slack:T1", "slack:T1/C7"),
        ("scout", "acme", "chat:H1", HALL),
        ("mesh", "globex", "chat:H1", HALL),
    ):
        token = running.keyring.make(Scope.CONNECTOR, tenant=tenant, agent=agent, namespaces=[namespace])
        asked = (await running.client(token).get("/v1/refresh-requests", params=AT_ONCE)).json()
        assert [r["room"] for r in asked["requests"]] == [room]


async def test_the_same_page_again_changes_nothing_and_another_one_spoils_its_listing(
    running: Running, connector: httpx2.AsyncClient
) -> None:
    first = page(last=False)
    for _ in range(2):
        assert (await connector.post("/v1/listings", json=first)).status_code == 200
    other = first | {"members": [{"reader": reader, "kind": "member"} for reader in (EVE, ALEX)]}
    assert (await connector.post("/v1/listings", json=other)).status_code == 409
    second = page(page=1, info=None, members=[], refresh=first["refresh"], started_at=first["started_at"])
    assert (await connector.post("/v1/listings", json=second)).status_code == 200
    held = await running.agent().post("/v1/drafts", params=AT_ONCE, json=draft(room=HALL))
    assert held.json()["status"] == "hold"  # R-ROOM-2
    assert len([r for r in await on_log(running.feed, "membership-refreshes") if r.room == HALL]) == 3


async def test_what_says_nothing_of_its_time_or_of_its_kind_is_refused(connector: httpx2.AsyncClient) -> None:
    undated = {k: v for k, v in said().items() if k != "at"}
    answer = await connector.post("/v1/observations", json=undated)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "at")
    answer = await connector.post("/v1/listings", json=page(members=[{"reader": EVE}]))
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "members.0.kind")  # and is no full member
    assert (await connector.post("/v1/listings", json=page())).status_code == 200
    assert (await connector.post("/v1/observations", json=said(record="MembershipPage"))).status_code == 422
    assert (await connector.post("/v1/observations", json=said(message="chat:H1/C2/1"))).status_code == 422
