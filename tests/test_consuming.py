"""What docs/consuming.md shows: the consumer runs on a broker and a registry, and the settings name what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import quiet
from tests.streams.telling import ALEX, C1, CODEC, KIM, POLICY, World
from turngate.schemas.authority import READERS, Role
from turngate.schemas.avro_schema import versions
from turngate.schemas.catalog import OUTPUT_TOPICS
from turngate.schemas.codec import Codec, subject_of
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.registry import COMPATIBILITY, RegistryIds
from turngate.streams.kafka.settings import RegistrySettings
from turngate.streams.local_log import LocalLog
from turngate.streams.log import Message

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "consuming.md").read_text("utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "consuming" / "decisions.py"


def decided(path: Path) -> list[Message]:
    """What a worker writes of two drafts and a context request."""
    with LocalLog(path) as log:
        world = World(log)
        world.send("PolicyPublished", version="1", document=POLICY)
        world.listing(C1, ALEX, KIM)
        said = world.message(C1, 1, ALEX, "hello")
        world.send("ContextRequested", request="r1", turn="t1", room=C1, trigger=said, candidates=[said])
        for turn in ("t1", "t2"):
            world.send("TurnDrafted", turn=turn, room=C1, trigger=said, renderings=[{"text": "hi"}])
        return list(log.scan("turn-verdicts"))


def produce(bootstrap: str, topic: str, messages: list[Message], codec: Codec) -> None:
    """In one transaction, after one that was broken off."""
    producer = Producer(quiet(bootstrap) | {"transactional.id": topic})
    producer.init_transactions(30)
    for some, end in ((messages[:1], producer.abort_transaction), (messages, producer.commit_transaction)):
        producer.begin_transaction()
        for m in some:
            producer.produce(topic, codec.encode(CODEC.decode(m.value)), m.key, headers=list(m.headers))
        producer.flush(30)
        end(30)


@pytest.mark.kafka
def test_the_consumer_reads_every_decision_once(kafka: str, registry: str, unique: str, tmp_path: Path) -> None:
    settings = RegistrySettings.read(registry, environment={})
    assert settings is not None
    codec = Codec(RegistryIds(settings, register=True))
    admin = AdminClient(quiet(kafka))
    admin.create_topics([NewTopic(unique, 1, 1)])[unique].result(10)
    messages = decided(tmp_path / "log")
    produce(kafka, unique, messages, codec)

    def consumed() -> list[dict[str, object]]:
        command = [sys.executable, str(EXAMPLE), kafka, registry, unique]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    events = consumed()
    assert [event["type"] for event in events] == [
        "turngate.v1.ContextDecided",
        "turngate.v1.TurnDecided",
        "turngate.v1.TurnDecided",
    ]
    assert [event["id"] for event in events] == [dict(m.headers)["ce_id"].decode() for m in messages]
    assert [event.get("verdict") for event in events] == [None, "deliver", "deliver"]
    assert consumed() == []  # which were committed
    produce(kafka, unique, messages[:1], codec)  # the same event again: it is told apart by its source and id
    (again,) = consumed()
    assert again["id"] == events[0]["id"]


def test_the_settings_of_connect_name_topics_of_one_record_that_an_auditor_may_read() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    config = json.loads(block)["config"]
    for topic in config["topics"].split(","):
        assert len(OUTPUT_TOPICS[topic]) == 1
        assert Role.AUDITOR in READERS[topic]
    assert config["consumer.override.isolation.level"] == "read_committed"
    assert config["consumer.override.group.id"].startswith(Names().group_id(Role.AUDITOR))
    assert config["schema.compatibility"] == COMPATIBILITY.removesuffix("_TRANSITIVE")
    assert subject_of("TurnDecided") == "turngate.v1.TurnDecided"  # which is the record's full name in Avro


def test_the_columns_of_flink_are_fields_of_the_record() -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert "'topic' = 'audit'" in block
    assert "'properties.isolation.level' = 'read_committed'" in block
    named = re.findall(r"^  `?(\w+)`? (?:STRING|TIMESTAMP|ARRAY)", block, re.MULTILINE)
    schema = versions("DecisionTraced")[-1]
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    assert set(named) <= fields.keys()
    assert len(named) == 8
    (nested,) = re.findall(r"refs ARRAY<ROW<(.*)>>,", block)
    inner = {field["name"] for field in fields["refs"]["items"]["fields"]}
    assert set(re.findall(r"(\w+) (?:STRING|BOOLEAN|ARRAY)", nested)) - {"code"} <= inner


@pytest.mark.parametrize("topic", sorted(OUTPUT_TOPICS))
def test_the_page_says_which_topics_hold_one_record_alone(topic: str) -> None:
    (said,) = re.findall(r"One record alone are\s+on (.*?)\. What\s+comes", PAGE, re.DOTALL)
    assert (f"`{topic}`" in said) == (len(OUTPUT_TOPICS[topic]) == 1)
