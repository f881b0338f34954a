"""Hostile clients change nothing, and learn nothing of others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.gateway.conftest import (
    AT_ONCE,
    ROOM,
    TRIGGER,
    Keyring,
    Running,
    begin,
    day,
    draft,
    embedded,
    gateway_on,
    listing,
    on_log,
    request,
)
from turngate.gateway.asking import receipt
from turngate.gateway.guard import Limits
from turngate.gateway.identity import Key, Kind
from turngate.gateway.token_file import TokenFile
from turngate.gateway.tokens import Scope, presented
from turngate.schemas.digests import content_digest
from turngate.streams.clock import now_ms
from turngate.streams.feed import Feed

#: Topics on which a request of an agent could leave something.
INPUTS = ("turn-drafts", "tool-results", "memory-writes", "operator-commands", "policies", "approvals", "deliveries")
JSON = {"Content-Type": "application/json"}


async def size(feed: Feed) -> int:
    return sum([len(await on_log(feed, topic)) for topic in INPUTS])


async def test_a_token_speaks_for_its_own_tenant_and_agent(running: Running) -> None:
    """The same ids in two tenants, and of two agents, have nothing to do with each other."""
    before = await size(running.feed)
    mesh, scout, globex = running.agent(), running.agent("scout"), running.agent(tenant="globex")
    for named in ({"tenant": "globex"}, {"agent": "scout"}, {"tenant": "acme"}, {"agent": "mesh"}, {"tenant": None}):
        answer = await mesh.post("/v1/drafts", json=draft() | named)
        assert (answer.status_code, "the token and the URL say that" in answer.json()["detail"]) == (422, True)
    assert await size(running.feed) == before
    mine = await mesh.post("/v1/drafts", json=draft(text="only for Alex"))
    assert (await globex.post("/v1/drafts", json=draft(text="of another tenant"))).json()["verdict"] == "deliver"
    stolen = await scout.post("/v1/drafts", json=draft(text="only for Alex"))
    assert (stolen.status_code, mine.json()["verdict"]) == (409, "deliver")
    theirs = await scout.post("/v1/context", json=request("q1", "t9", "revision:plan@1", TRIGGER))
    assert [one["ref"] for one in theirs.json()["permitted"]] == [TRIGGER]  # its own observation of the message


async def test_nobody_says_anything_of_another_agents_turn(running: Running) -> None:
    mesh, scout = running.agent(), running.agent("scout")
    assert (await mesh.post("/v1/context", json=request("q1", "t1", TRIGGER))).status_code == 200
    result = {"room": ROOM, "call": "c1", "server": "wiki", "operation": "read"}
    note = {"write": "w1", "memory": "m", "revision": "m@1", "op": "create", "by": "turn", "kind": "note", "text": "x"}
    for path, body in (
        ("context", request("q2", "t1", TRIGGER)),
        ("tool-results", result | {"turn": "t1"}),
        ("tool-results", result | {"request": "q1"}),
        ("memory", note | {"turn": "t1"}),
        ("drafts", draft("t1")),
    ):
        assert (await scout.post(f"/v1/{path}", json=body)).status_code == 409, path
    assert (await mesh.post("/v1/drafts", json=draft("t1"))).json()["verdict"] == "deliver"
    # In another tenant the same names are nobody's.
    globex = running.agent("scout", tenant="globex")
    assert (await globex.post("/v1/context", json=request("q1", "t1", TRIGGER))).status_code == 200


async def test_a_receipt_is_of_use_to_the_token_that_asked_alone(running: Running) -> None:
    mesh = running.agent()
    held = await mesh.post("/v1/drafts", params=AT_ONCE, json=draft(room="slack:T1/C7"))
    place = held.headers["location"]
    assert (await mesh.get(place, params=AT_ONCE)).status_code == 202
    for other in (running.agent(), running.agent("scout"), running.agent(tenant="globex")):
        answer = await other.get(place, params=AT_ONCE)
        missing = await other.get(place.replace("t1", "t0"), params=AT_ONCE)
        assert (answer.status_code, answer.content) == (404, missing.content)  # nothing tells that it is there
    assert (await mesh.get(place.replace("drafts", "context"), params=AT_ONCE)).status_code == 404


async def test_a_receipt_that_another_agent_makes_up_is_of_no_use(running: Running) -> None:
    """Whoever guesses all that a request says can compute a receipt of their own for it."""
    asker, other = running.keyring.make(Scope.AGENT), running.keyring.make(Scope.AGENT, agent="scout")
    body = draft(room="slack:T1/C7")
    place = (await running.client(asker).post("/v1/drafts", params=AT_ONCE, json=body)).headers["location"]
    (drafted,) = await on_log(running.feed, "turn-drafts")
    key = Key("acme", Kind.DRAFT, "t1")
    for secret, status in ((asker, 202), (other, 404)):
        token = presented(TokenFile(running.keyring.path), secret, 0)
        assert token is not None
        made_up = f"/v1/answers/{receipt(token, key, content_digest(drafted))}/drafts/t1"
        assert (made_up == place) is (secret == asker)
        assert (await running.client(secret).get(made_up, params=AT_ONCE)).status_code == status


async def test_a_token_that_was_revoked_gets_nothing_more_in_a_stream_either(log_file: Path, keyring: Keyring) -> None:
    token, room = keyring.make(Scope.AGENT), "slack:T1/C7"
    async with embedded(log_file) as feed, gateway_on(feed, keyring, Limits(pulse=0.1)) as running:
        await begin(feed, day())
        client = running.client(token)
        place = (await client.post("/v1/drafts", params=AT_ONCE, json=draft(room=room))).headers["location"]
        async with client.stream("GET", place, headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: TurnDecided"
            keyring.revoke(token)
            await feed.append([listing(room=room)])  # by which the turn is decided
            assert not [line async for line in lines if line.startswith("event:")]
        assert (await client.get(place)).status_code == 401
        assert len(await on_log(feed, "turn-verdicts")) == 2


async def test_without_a_live_token_nothing_is_told(running: Running) -> None:
    nobody = running.client(None)
    known = running.keyring.make(Scope.AGENT)
    for header in ("", "Bearer", "Basic dGc6dGc=", f"Bearer tg_{'0' * 12}_{'A' * 43}", "Bearer \u00e9",
                   f"Bearer {known[:-1]}", f"Bearer {known[:16]}{'A' * 43}", f"Digest {known}"):  # fmt: skip
        headers = {"Authorization": header.encode("latin-1")}
        answer = await nobody.post("/v1/drafts", json=draft(), headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), header
        assert "hello" not in answer.text
    assert (await nobody.get("/v1/nothing")).status_code == 404
    assert await on_log(running.feed, "turn-drafts") == []


async def test_while_tokens_cannot_be_read_nobody_is_let_in(running: Running) -> None:
    agent = running.agent()
    running.keyring.path.chmod(0o644)
    running.keyring.path.write_text(running.keyring.path.read_text("utf-8"), "utf-8")
    assert (await agent.post("/v1/drafts", json=draft())).status_code == 503
    running.keyring.path.chmod(0o600)
    assert (await agent.post("/v1/drafts", json=draft())).status_code == 200


BODIES: list[tuple[bytes, int]] = [
    (b"", 400),
    (b"[]", 400),
    (b"null", 400),
    (b'"x"', 400),
    (b"{", 400),
    (b"\xff\xfe{}", 400),
    (b'{"turn": "t1", "turn": "t2"}', 400),
    (b'{"renderings": [{"text": "a", "text": "b"}]}', 400),
    (b'{"deadline": ' + b"9" * 100_000 + b"}", 400),
    (b'{"deadline": 1e999}', 422),
    (b'{"deadline": NaN}', 400),
    (b'{"deadline": 1.5}', 422),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
    (b"[" * 900_000, 400),
    (b'{"a":' * 100 + b"1" + b"}" * 100, 422),
    (json.dumps(draft(turn="a\0b")).encode(), 422),
    (json.dumps(draft(text="\0")).encode(), 422),
    (json.dumps({"a\0": 1}).encode(), 422),
    (json.dumps(draft(turn="\ud800")).encode(), 422),
    (json.dumps(draft(turn="")).encode(), 422),
    (json.dumps(draft(turn="x" * 513)).encode(), 422),
    (json.dumps(draft(renderings="hello")).encode(), 422),
    (json.dumps(draft(broadcast="perhaps")).encode(), 422),
    (json.dumps(draft(deadline=10**18)).encode(), 422),
    (json.dumps(draft(room="slack:T1")).encode(), 422),
    (b"{}", 422),
    (b'{"text": "' + b"x" * (1 << 20) + b'"}', 413),
]


async def test_a_body_that_is_no_record_leaves_nothing(running: Running) -> None:
    before, agent = await size(running.feed), running.agent()
    for body, status in BODIES:
        answer = await agent.post("/v1/drafts", content=body, headers=JSON)
        problem, said = answer.json(), body[:60]
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), said
        assert (problem["status"], bool(problem["detail"])) == (status, True), said
        assert "hello" not in answer.text, said
    assert await size(running.feed) == before
    assert (await agent.post("/v1/drafts", json=draft())).status_code == 200


async def test_another_type_of_body_is_refused(running: Running) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = await running.agent().post("/v1/drafts", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415


async def test_ids_mean_themselves_whatever_they_look_like(running: Running) -> None:
    agent = running.agent()
    for name in ("a/b", "../drafts", "a%2Fb", "ünï/çødé", "a b?c=d#e", "x" * 512, "\u202e\u200b"):
        held = await agent.post("/v1/drafts", params=AT_ONCE, json=draft(name, room="slack:T1/C7"))
        assert held.json()["decided"]["turn"] == name
        again = await agent.get(held.headers["location"], params=AT_ONCE)
        assert (again.status_code, again.json()["decided"]["turn"]) == (202, name)


async def raw(running: Running, *pieces: bytes, pause: float = 0) -> bytes:
    """What is answered to these bytes on a connection of their own."""
    host, _, port = running.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


def head(token: str, length: object = 1000, **more: str) -> bytes:
    fields = {
        "Host": "x",
        "Connection": "close",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
    } | more
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"POST /v1/drafts HTTP/1.1\r\n{lines}{size}\r\n".encode()


async def test_a_slow_or_a_giant_body_is_not_waited_for(log_file: Path, keyring: Keyring) -> None:
    limits = Limits(body_patience=0.2, body=10_000)
    async with embedded(log_file) as feed, gateway_on(feed, keyring, limits) as running:
        await begin(feed, day())
        token = keyring.make(Scope.AGENT)
        assert b" 408 " in await raw(running, head(token) + b"{")
        assert b" 413 " in await raw(running, head(token, 10_001))
        assert b" 400 " in await raw(running, head(token, "9" * 400))
        chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
        chunked = head(token, None, **{"Transfer-Encoding": "chunked"})
        assert b" 413 " in await raw(running, chunked, *[chunk] * 3)
        assert b" 401 " in await raw(running, head("tg_no") + b"{")  # before the body was asked for
        assert await on_log(feed, "turn-drafts") == []
        assert (await running.agent().post("/v1/drafts", json=draft())).status_code == 200


async def test_whoever_asks_too_much_waits_and_nobody_else(log_file: Path, keyring: Keyring) -> None:
    async with embedded(log_file) as feed, gateway_on(feed, keyring, Limits(rate=5, candidates=3)) as running:
        await begin(feed, day())
        greedy, other = running.agent(), running.agent()
        answers = await asyncio.gather(*(greedy.post("/v1/tool-results", json={}) for _ in range(40)))
        limited = [answer for answer in answers if answer.status_code == 429]
        assert len(limited) >= 2
        assert limited[0].headers["retry-after"] == "1"
        assert "5 requests in a second" in limited[0].json()["detail"]
        assert (await other.post("/v1/drafts", json=draft())).status_code == 200
        many = await other.post("/v1/context", json=request("q1", "t2", *(f"message:{ROOM}/{n}" for n in range(4))))
        assert (many.status_code, "at most 3 candidates" in many.json()["detail"]) == (422, True)
        few = await other.post("/v1/context", json=request("q1", "t2", *(f"message:{ROOM}/{n}" for n in range(3))))
        assert few.status_code == 200


async def test_replayed_and_altered_drafts_let_out_nothing_more(running: Running) -> None:
    agent = running.agent()
    await agent.post("/v1/drafts", json=draft())
    altered = [draft(text="other"), draft(broadcast=True), draft(thread="x"), draft(wrote=["plan@1"]),
               draft(deadline=now_ms() + 60_000), draft(trigger=None), draft(room="slack:T1/D2")]  # fmt: skip
    for body in altered:
        assert (await agent.post("/v1/drafts", json=body)).status_code == 409
    together = await asyncio.gather(*(agent.post("/v1/drafts", json=draft("t2", text)) for text in "abcdef"))
    assert sorted(answer.status_code for answer in together) == [200, 409, 409, 409, 409, 409]
    assert len(await on_log(running.feed, "outbound")) == 2


async def test_a_log_that_cannot_be_written_is_said_and_nothing_is_acknowledged(
    log_file: Path, keyring: Keyring
) -> None:
    async with embedded(log_file) as feed, gateway_on(feed, keyring) as running:
        await begin(feed, day())
        agent = running.agent()
        with feed._log.database() as database:
            database.execute("PRAGMA query_only = ON")
        refused = await agent.post("/v1/drafts", json=draft())
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        with feed._log._db as database:
            database.execute("PRAGMA query_only = OFF")
        assert (await agent.post("/v1/drafts", json=draft())).json()["verdict"] == "deliver"
        assert len(await on_log(feed, "turn-drafts")) == 1
