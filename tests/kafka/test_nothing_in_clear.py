"""Values that a room has read are in clear in its tool results and in what is let out, and nowhere else (R-EGR-1)."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import pytest

from turngate.processors.engine import Engine
from turngate.processors.keys import TEST_KEYS
from turngate.schemas.catalog import OUTPUT_TOPIC, OUTPUT_TOPICS, RECORDS, topic_of
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import TurnDecided
from turngate.streams.kafka.driver import KafkaDriver
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.topics import STATE_TOPIC

pytestmark = pytest.mark.kafka

CODEC = Codec()
AT = 1_767_225_600_000
ROOM = "slack:T1/C1"
POLICY = {
    "version": 1,
    "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}},
    "tools": {"hr": {"audience": {"workspace": "slack:T1"}, "private": True}},
    "operations": {"mail.send": {"access": "write", "audience": "external", "outward": "allow"}},
    "skills": {"mail": {"operation": "mail.send", "params": {"body": {"type": "text", "set_by": ["llm"]}}}},
}
FIELDS = [
    {"name": "salary", "value": "82500.00", "class": "confidential"},
    {"name": "who", "value": "Kim Ostrowska", "class": "personal", "subject": "slack:T1/UKIM"},
    {"name": "mail", "value": "kim.ostrowska@example.com", "class": "internal"},
    {"name": "token", "value": "xk-4711-08-15", "class": "secret"},
    {"name": "illness", "value": "hay fever", "class": "personal", "health": True},
]
#: Parts of the values that nothing else here contains, in small letters and without signs between them.
PARTS = (b"82500", b"ostrowska", b"xk4711", b"hayfever")


def found(raw: bytes) -> set[bytes]:
    """The parts of values that these bytes contain, however they are spelled."""
    plain = bytes(byte for byte in raw.lower() if chr(byte).isalnum())
    return {part for part in PARTS if part in plain}


def mail(turn: str, body: str, text: str = "Sent.") -> tuple[str, dict[str, Any]]:
    action = {"operation": "mail.send", "skill": "mail", "params": [{"name": "body", "value": body, "origin": "llm"}]}
    asked = {"turn": turn, "room": ROOM, "trigger": f"message:{ROOM}/1", "exposed": ["tool:c1"]}
    return "TurnDrafted", asked | {"renderings": [{"text": text}], "action": action}


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("PolicyPublished", {"version": "1", "document": json.dumps(POLICY)}),
    (
        "MembershipPage",
        {"room": ROOM, "refresh": "r", "page": 0, "last": True, "started_at": AT,
         "members": [{"reader": "slack:T1/UALEX", "kind": "member"}],
         "info": {"kind": "channel", "visibility": "members"}},
    ),
    ("MessageObserved", {"room": ROOM, "message": f"{ROOM}/1", "author": "slack:T1/UALEX", "author_kind": "person",
                         "text": "Write to them."}),
    ("ToolReturned", {"room": ROOM, "call": "c1", "server": "hr", "operation": "read", "fields": FIELDS}),
    ("ToolReturned", {"room": ROOM, "call": "c2", "server": "hr", "operation": "read", "error": "no Kim Ostrowska"}),
    mail("t1", "You get EUR 82.500 a year."),
    mail("t2", "Ask KIM OSTROWSKA."),
    mail("t3", "Use xk 4711 08 15."),
    mail("t4", "Come on Thursday.", "It is xk-4711-08-15."),
    ("MemoryWrite", {"write": "w", "memory": "m", "revision": "m@1", "op": "create", "by": "turn", "kind": "note",
                     "room": ROOM, "turn": "t5", "text": "Kim Ostrowska has hay fever.", "health": True}),
    ("TurnDrafted", {"turn": "t6", "room": ROOM, "trigger": f"message:{ROOM}/1", "exposed": ["tool:c1"],
                     "renderings": [{"text": "It is 82,500, for Kim Ostrowska."}]}),
]  # fmt: skip


async def test_no_value_is_in_the_state_in_an_answer_in_the_audit_or_in_a_log(
    kafka: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    caplog.set_level(logging.DEBUG, "turngate")
    async with KafkaDriver(KafkaSettings(kafka), restore=partial(Engine.restore, keys=TEST_KEYS)) as driver:
        for record, fields in STEPS:
            of = {"tenant": "acme", "at": AT} | ({} if record == "PolicyPublished" else {"agent": "mesh"})
            value = CODEC.encode(RECORDS[record].model_validate(of | fields))
            await driver.send(topic_of(record, fields), b"acme", value, AT)
            await driver.applied()
        await driver.send("tool-results", b"acme", b"Kim Ostrowska gets 82500 and is no record", AT)
        await driver.applied()
        written = await driver.outputs(topics=(*OUTPUT_TOPICS, STATE_TOPIC))

    verdicts = [r for m in written if m.topic == OUTPUT_TOPIC["TurnDecided"] for r in [CODEC.decode(m.value)]]
    decided = {r.turn: r.verdict.value for r in verdicts if isinstance(r, TurnDecided)}
    assert decided == {"t1": "drop", "t2": "drop", "t3": "drop", "t4": "drop", "t6": "deliver"}
    by_topic: dict[str, set[bytes]] = {}
    for message in written:
        raw = b"\n".join([message.key or b"", message.value or b"", *(value for _, value in message.headers)])
        by_topic.setdefault(message.topic, set()).update(found(raw))
    assert {STATE_TOPIC, "source-evidence", "turn-verdicts", "memory-revisions", "dead-letters"} <= by_topic.keys()
    assert {topic: parts for topic, parts in by_topic.items() if parts} == {"outbound": {b"82500", b"ostrowska"}}
    assert caplog.records
    assert found(caplog.text.encode()) == set()
