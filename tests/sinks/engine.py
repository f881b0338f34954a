"""Decides what these tests ask for: drafts that the product's engine judges, and what is shown and pressed then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.connectors.slack.scene import installed
from tests.sinks.records import ALEX, DIRECT, POLICY, ROOM, SELF, made, page
from tests.sinks.stage import CODEC, Stage
from tests.slack import Workspace
from turngate.processors.keys import TEST_KEYS
from turngate.schemas import inputs
from turngate.schemas.inputs import Record, TurnDrafted
from turngate.schemas.outputs import SharingOffered, TurnDecided
from turngate.sinks.questions import APPROVE, pressed
from turngate.streams.clock import now_ms
from turngate.streams.local import LocalRuntime

#: Of the policy, in milliseconds.
ASK_TTL = 900_000
LINK = "see https://x.example/secret"
TOOL = {"mail": {"audience": {"workspace": "slack:T1"}, "private": True, "untrusted": True}}
REFUND = {"operation": "crm.refund", "skill": "refund", "params": [{"name": "amount", "value": "5", "origin": "llm"}]}
ASKING = {
    "tools": TOOL,
    "interlock": {"mode": "ask"},
    "operations": {"crm.refund": {"access": "write", "audience": "internal"}},
    "skills": {
        "refund": {
            "operation": "crm.refund",
            "params": {"amount": {"type": "price", "set_by": ["llm"]}},
            "approval": "required",
        }
    },
}


class Engine:
    """The product's engine on the stage's log, and what came of everything."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.runtime = LocalRuntime(stage.log, CODEC, keys=TEST_KEYS)
        self.version = 1

    def feed(self, *records: Record) -> list[Record]:
        self.stage.write(*records)
        return [CODEC.decode(message.value) for message in self.runtime.step()]

    def make(self, kind: type[Record], /, **fields: Any) -> list[Record]:
        return self.feed(made(kind, at=now_ms(), **fields))

    def policy(self, **more: Any) -> None:
        self.version += 1
        document = json.dumps(POLICY | ASKING | {"version": self.version} | more)
        self.make(inputs.PolicyPublished, version=str(self.version), document=document)

    def listing(self, room: str, *members: Any, **info: Any) -> None:
        at = now_ms()
        self.feed(page(*members, {"reader": SELF, "kind": "self"}, room=room, refresh=f"{room} {at}", at=at,
                       started_at=at, info=info))  # fmt: skip

    def say(self, number: int = 1, room: str = ROOM, author: str = ALEX) -> str:
        message = f"{room}/{number}"
        self.make(inputs.MessageObserved, agent="mesh", room=room, message=message, author=author, author_kind="person",
                  text="hi")  # fmt: skip
        return f"message:{message}"

    def draft(self, turn: str = "t1", text: str | None = LINK, **more: Any) -> TurnDecided:
        """A draft after a tool has brought in others' words."""
        self.make(inputs.ToolReturned, agent="mesh", room=ROOM, call=f"c-{turn}", server="mail", operation="list")
        fields = {"agent": "mesh", "turn": turn, "room": ROOM, "trigger": f"message:{ROOM}/1"} | more
        renderings = [] if text is None else [{"text": text}]
        (decided,) = (r for r in self.make(TurnDrafted, renderings=renderings, **fields) if isinstance(r, TurnDecided))
        return decided

    async def append(self, records: Sequence[Record]) -> None:
        self.feed(*records)

    async def deliver(self) -> None:
        async with self.stage.delivery(append=self.append) as running:
            for _ in range(2):  # what came of what was delivered, too
                await running.look()
                await running.finish()


def offered(engine: Engine) -> SharingOffered:
    """What comes of asking to share a memory of Alex' with the workspace, in the room that he has with the agent."""
    engine.listing(DIRECT, ALEX, kind="direct")
    ref = engine.say(7, DIRECT)
    fields = {"agent": "mesh", "room": DIRECT}
    engine.make(inputs.MemoryWrite, write="w", memory="m", revision="m@1", op="create", by="distill", kind="note",
                sources=[ref], text="the offsite is in June", **fields)  # fmt: skip
    came = engine.make(
        inputs.SharingRequested, request="s1", revision="m@1", audience={"workspace": "slack:T1"}, **fields
    )
    (found,) = (r for r in came if isinstance(r, SharingOffered))
    return found


def shown(post: Any) -> list[str]:
    """The texts of a question's blocks between its lines."""
    texts = [block["text"]["text"] if block["type"] == "section" else block["type"] for block in post.args["blocks"]]
    return [text for text in texts if text != "actions"]


def button(post: Any, action: str = APPROVE, user: str = "UALEX", home: Workspace | None = None) -> dict[str, Any]:
    """What Slack sends when somebody presses a button of a message, to the app in a workspace (None: T1)."""
    (buttons,) = (block["elements"] for block in post.args["blocks"] if block["type"] == "actions")
    (value,) = (button["value"] for button in buttons if button["action_id"] == action)
    app, team = ("A1", "T1") if home is None else (home.app, home.id)
    return {
        "type": "block_actions",
        "api_app_id": app,
        "user": {"id": user, "team_id": team},
        "team": {"id": team},
        "container": {"type": "message", "message_ts": post.ts, "channel_id": post.room},
        "actions": [{"action_id": action, "block_id": "b", "value": value, "type": "button"}],
    }


def press(
    stage: Stage,
    post: Any,
    action: str = APPROVE,
    user: str = "UALEX",
    home: Workspace | None = None,
    **more: Any,
) -> Record | None:
    """What comes of it."""
    home = stage.acme if home is None else home
    return pressed(button(post, action, user, home) | more, installed(home), now_ms())
