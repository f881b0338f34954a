"""The Slack of the tests, asked by Slack's own SDK: what it is known to do, it does."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack import Call, Conversation, Fault, Slack, Workspace
from tests.slack.server import APP_TOKEN, SIGNING_SECRET, signed


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as running:
        yield running


@pytest.fixture
def acme(slack: Slack) -> Workspace:
    home = slack.workspace("T1", bot="UBOT")
    for user in ("UALEX", "UBO", "UCY", "UDEE"):
        home.user(user)
    return home


@pytest.fixture
def room(slack: Slack, acme: Workspace) -> Conversation:
    return slack.channel("C1", acme, ["UBOT", "UALEX", "UBO"])


@asynccontextmanager
async def client(slack: Slack, token: str) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield AsyncWebClient(token=token, base_url=slack.url, session=session, retry_handlers=[])


async def refusal(work: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        await work  # type: ignore[misc]
    return str(caught.value.response["error"])


async def test_conversations_of_every_kind(slack: Slack, acme: Workspace, room: Conversation) -> None:
    other = slack.workspace("T2", bot="UBOT2")
    other.user("UEVE")
    slack.channel("C2", acme, ["UALEX"], private=True)
    slack.direct("D1", acme, "UALEX")
    slack.group("G1", acme, ["UALEX", "UBO"])
    slack.channel("C3", acme, ["UBOT", "UEVE"], external=["T2"])
    async with client(slack, acme.token) as api:
        shown = {r: (await api.conversations_info(channel=r))["channel"] for r in ("C1", "D1", "G1", "C3")}
        assert await refusal(api.conversations_info(channel="C2")) == "channel_not_found"  # and not: hidden
        assert (await api.users_info(user="UEVE"))["user"]["is_stranger"] is True
    assert (shown["C1"]["is_private"], shown["C1"]["is_ext_shared"]) == (False, False)
    assert shown["D1"]["user"] == "UALEX"
    assert "is_private" not in shown["D1"]
    assert (shown["G1"]["is_mpim"], shown["G1"]["is_private"]) == (True, True)
    assert (shown["C3"]["is_ext_shared"], shown["C3"]["connected_team_ids"]) == (True, ["T2"])
    async with client(slack, other.token) as api:
        assert await refusal(api.conversations_info(channel="C1")) == "channel_not_found"
        assert (await api.conversations_info(channel="C3"))["channel"]["context_team_id"] == "T2"


async def test_members_come_in_pages(slack: Slack, acme: Workspace, room: Conversation) -> None:
    slack.page = 2
    async with client(slack, acme.token) as api:
        first = await api.conversations_members(channel="C1", limit=200)
        slack.join(room, "UCY")
        second = await api.conversations_members(channel="C1", cursor=first["response_metadata"]["next_cursor"])
        assert await refusal(api.conversations_members(channel="C1", cursor="%")) == "invalid_cursor"
    assert first["members"] + second["members"] == ["UBOT", "UALEX", "UBO", "UCY"]
    assert second["response_metadata"]["next_cursor"] == ""


@pytest.mark.parametrize(
    ("fault", "raised", "said"),
    [
        (Fault.RATE_LIMITED, SlackApiError, 0),
        (Fault.UNAVAILABLE, SlackApiError, 0),
        (Fault.REFUSED, aiohttp.ClientError, 0),
        (Fault.LOST, TimeoutError, 0),
        (Fault.FATAL, SlackApiError, 1),
        (Fault.BROKEN, SlackApiError, 1),
        (Fault.RESET, aiohttp.ClientError, 1),
        (Fault.SILENT, TimeoutError, 1),
        (Fault.HALF, aiohttp.ClientError, 1),
        ("restricted_action", SlackApiError, 0),
    ],
)
async def test_a_post_that_fails_may_have_been_said(
    slack: Slack, acme: Workspace, room: Conversation, fault: Fault | str, raised: type[Exception], said: int
) -> None:
    slack.fail("chat.postMessage", fault, after=1)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.3)) as session:
        api = AsyncWebClient(token=acme.token, base_url=slack.url, session=session, retry_handlers=[])
        await api.chat_postMessage(channel="C1", text="one")
        with pytest.raises(raised):
            await api.chat_postMessage(channel="C1", text="two")
    assert [post.args["text"] for post in slack.posts] == ["one", "two"][: 1 + said]


async def test_a_limit_is_of_a_method_and_a_workspace(slack: Slack, acme: Workspace, room: Conversation) -> None:
    slack.workspace("T2", bot="UBOT2")
    slack.channel("C2", slack.workspaces["T2"], ["UBOT2"])
    slack.limit("conversations.info", calls=1, seconds=60)
    async with client(slack, acme.token) as api, client(slack, "xoxb-T2-A1") as other:
        await api.conversations_info(channel="C1")
        with pytest.raises(SlackApiError) as caught:
            await api.conversations_info(channel="C1")
        await other.conversations_info(channel="C2")
        await api.conversations_members(channel="C1")
    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "60")


async def test_what_was_said_is_read_back_with_its_metadata(slack: Slack, acme: Workspace, room: Conversation) -> None:
    metadata = {"event_type": "turngate_turn", "event_payload": {"turn": "t1"}}
    async with client(slack, acme.token) as api:
        root = slack.say(room, "UALEX", "hi")
        posted = await api.chat_postMessage(channel="C1", text="hello", thread_ts=root, metadata=metadata)
        dropped = await api.chat_postMessage(channel="C1", text="lost", thread_ts="1.000001")
        replies = await api.conversations_replies(channel="C1", ts=root, include_all_metadata=True)
        history = await api.conversations_history(channel="C1")
    assert [m.get("metadata") for m in replies["messages"]] == [None, metadata]
    assert [m["ts"] for m in history["messages"]] == [dropped["ts"], root]  # newest first, and no replies
    assert (posted["message"]["bot_id"], "thread_ts" in dropped["message"]) == ("BBOT", False)
    assert slack.queue[1]["event"]["metadata"] == metadata


async def test_something_happens_just_before_a_post(slack: Slack, acme: Workspace, room: Conversation) -> None:
    def joins(call: Call) -> None:
        slack.join(room, "UDEE")

    slack.before["chat.postMessage"] = joins
    async with client(slack, acme.token) as api:
        await api.chat_postMessage(channel="C1", text="hello")
    assert [e["event"]["type"] for e in slack.queue] == ["member_joined_channel", "message"]


async def test_direct_messages_are_opened_once(slack: Slack, acme: Workspace) -> None:
    async with client(slack, acme.token) as api:
        assert await refusal(api.conversations_open(users=["UALEX"], prevent_creation=True)) == "channel_not_found"
        first = (await api.conversations_open(users=["UALEX"]))["channel"]["id"]
        assert (await api.chat_postMessage(channel="UALEX", text="hello"))["channel"] == first


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")  # which the SDK uses
async def test_a_token_ends_with_its_installation(slack: Slack, acme: Workspace, room: Conversation) -> None:
    code = slack.oauth_code(acme, rotating=True)
    async with client(slack, "") as api, client(slack, acme.token) as before:
        given = await api.oauth_v2_access(client_id="c", client_secret="s", code=code)
        assert await refusal(api.oauth_v2_access(client_id="c", client_secret="s", code=code)) == "invalid_code"
        assert await refusal(before.auth_test()) == "token_expired"
        async with client(slack, given["access_token"]) as now:
            assert (await now.auth_test())["user_id"] == "UBOT"
            slack.uninstall(acme)
            assert await refusal(now.auth_test()) == "account_inactive"
    assert [e["event"]["type"] for e in slack.queue] == ["tokens_revoked", "app_uninstalled"]


async def test_socket_mode_brings_what_is_not_acknowledged_again(slack: Slack, acme: Workspace) -> None:
    came: list[tuple[str, int]] = []
    first = asyncio.Event()

    async def listen(api: SocketModeClient, request: SocketModeRequest) -> None:
        came.append((request.payload["event_id"], request.retry_attempt or 0))
        first.set()
        if request.retry_attempt:
            await api.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    socket = SocketModeClient(APP_TOKEN, web_client=AsyncWebClient(base_url=slack.url))
    socket.socket_mode_request_listeners.append(listen)  # type: ignore[arg-type]
    await socket.connect()
    try:
        envelope = await asyncio.to_thread(slack.push, slack.tell(acme, {"type": "im_open"}))
        await first.wait()
        assert await asyncio.to_thread(slack.push_again) == 1
        await asyncio.to_thread(slack.wait_acknowledged, envelope)
    finally:
        await socket.close()
    assert [attempt for _, attempt in came] == [0, 1]
    assert len({event for event, _ in came}) == 1


def test_an_event_is_signed_as_slack_signs_it() -> None:
    verifier, body = SignatureVerifier(SIGNING_SECRET), b'{"type": "event_callback"}'
    assert verifier.is_valid_request(body, signed(body))
    assert not verifier.is_valid_request(body, signed(body, at=time.time() - 400))
    assert not verifier.is_valid_request(body + b" ", signed(body))
    assert not verifier.is_valid_request(body, signed(body, "another secret"))


def test_an_events_server_is_asked_as_slack_asks_it(slack: Slack, acme: Workspace) -> None:
    came: list[tuple[bytes, dict[str, str]]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.rfile.read(int(self.headers["Content-Length"])), dict(self.headers.items())))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"thanks")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/slack/events"
        answer = slack.post(slack.tell(acme, {"type": "im_open"}), url, X_Slack_Retry_Num="1")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    ((body, headers),) = came
    assert (answer.status, answer.body, headers["X-Slack-Retry-Num"]) == (200, "thanks", "1")
    assert SignatureVerifier(SIGNING_SECRET).is_valid_request(body, headers)
    assert json.loads(body)["event"]["type"] == "im_open"
