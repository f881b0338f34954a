"""Ids come from a live registry at start and from memory after that; the registry refuses what would break readers."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from tests.registry import Registry
from turngate.schemas.avro_schema import schema_of
from turngate.schemas.catalog import RECORDS
from turngate.schemas.codec import CONFLUENT, SINGLE_OBJECT, Codec, Undecodable, subject_of
from turngate.schemas.inputs import Tick, TurnDrafted
from turngate.streams.kafka.registry import RegistryIds, register_schemas
from turngate.streams.kafka.settings import RegistrySettings
from turngate.streams.log import LogError

pytestmark = pytest.mark.kafka

DRAFT = TurnDrafted(tenant="acme", at=1, agent="mesh", turn="t1", room="slack:T1/C1", renderings=({"text": "hi"},))


@pytest.fixture(scope="module")
def settings(registry: str) -> RegistrySettings:
    return RegistrySettings(registry)


@pytest.fixture(scope="module")
def ids(settings: RegistrySettings) -> RegistryIds:
    return RegistryIds(settings, register=True)


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as made:
        yield made


def test_every_record_has_an_id_under_its_own_subject(ids: RegistryIds, client: SchemaRegistryClient) -> None:
    for record in RECORDS:
        registered = client.get_latest_version(subject_of(record))
        assert ids.id_of(record) == registered.schema_id
        found = ids.schema_of(ids.id_of(record))
        assert found is not None
        assert found[0] == record
        assert client.get_compatibility(subject_of(record)) == "FULL_TRANSITIVE"


def test_registering_again_changes_nothing(ids: RegistryIds, settings: RegistrySettings) -> None:
    again = RegistryIds(settings, register=True)
    assert {record: again.id_of(record) for record in RECORDS} == {record: ids.id_of(record) for record in RECORDS}


def test_an_id_that_the_registry_did_not_know_is_none(ids: RegistryIds) -> None:
    assert ids.schema_of(0) is None
    assert ids.schema_of(2**31 - 1) is None
    with pytest.raises(Undecodable):
        Codec(ids).decode(CONFLUENT + (2**31 - 1).to_bytes(4, "big") + b"\x00")


def test_a_codec_with_a_registry_writes_confluent_frames_and_reads_both(ids: RegistryIds) -> None:
    with_registry, without = Codec(ids), Codec()
    framed, single = with_registry.encode(DRAFT), without.encode(DRAFT)
    assert framed[:5] == CONFLUENT + ids.id_of("TurnDrafted").to_bytes(4, "big")
    assert single[:2] == SINGLE_OBJECT
    assert framed[5:] == single[10:]
    assert with_registry.decode(framed) == with_registry.decode(single) == without.decode(single) == DRAFT
    with pytest.raises(Undecodable):
        without.decode(framed)


def test_the_registry_refuses_an_incompatible_schema(ids: RegistryIds, client: SchemaRegistryClient) -> None:
    schema = schema_of(TurnDrafted)
    assert isinstance(schema, dict)
    renamed = json.loads(json.dumps(schema).replace('"name": "turn"', '"name": "turn_id"'))
    assert renamed != schema
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject_of("TurnDrafted"), Schema(json.dumps(renamed), "AVRO"))
    assert refused.value.http_status_code == 409
    assert client.get_versions(subject_of("TurnDrafted")) == [1]


def test_a_compatible_schema_of_another_writer_is_read_after_a_refresh(own_registry: Registry) -> None:
    ids = RegistryIds(RegistrySettings(own_registry.url), register=True)
    schema = schema_of(Tick)
    assert isinstance(schema, dict)
    added = {"name": "added", "type": ["null", "string"], "default": None}
    newer = Schema(json.dumps({**schema, "fields": [*schema["fields"], added]}), "AVRO")
    with SchemaRegistryClient({"url": own_registry.url}) as client:
        theirs = client.register_schema(subject_of("Tick"), newer)
    tick = Tick(tenant="0", at=1000)
    body = Codec().encode(tick)[10:] + b"\x02\x06new"  # the added field, a string of three bytes
    frame = CONFLUENT + theirs.to_bytes(4, "big") + body

    with pytest.raises(Undecodable):
        Codec(ids).decode(frame)
    ids.refresh()
    assert Codec(ids).decode(frame) == tick
    assert ids.id_of("Tick") != theirs


def test_a_registry_that_is_empty_or_has_another_history_is_one_sentence(own_registry: Registry) -> None:
    settings = RegistrySettings(own_registry.url)
    with pytest.raises(LogError, match="the newest schema of MembershipPage is not registered; `turngate topics"):
        RegistryIds(settings)
    with SchemaRegistryClient({"url": own_registry.url}) as client:
        other = {"type": "record", "name": "Tick", "namespace": "turngate.v1", "fields": [{"name": "x", "type": "int"}]}
        client.register_schema(subject_of("Tick"), Schema(json.dumps(other), "AVRO"))
        client.set_compatibility(subject_of("Tick"), "FULL_TRANSITIVE")
    with pytest.raises(LogError, match=r"version 1 of turngate\.v1\.Tick is not compatible with what is registered"):
        register_schemas(settings)


def test_records_are_read_and_written_while_the_registry_is_gone(own_registry: Registry) -> None:
    ids = RegistryIds(RegistrySettings(own_registry.url), register=True)
    own_registry.stop()
    codec = Codec(ids)
    assert codec.decode(codec.encode(DRAFT)) == DRAFT
    with pytest.raises(LogError, match="no schema registry answered"):
        ids.refresh()
    assert codec.decode(codec.encode(DRAFT)) == DRAFT  # a refresh that failed has changed nothing


def test_a_closed_and_a_silent_port_are_one_sentence_in_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(LogError, match=f"no schema registry answered at {url} within 1 s"):
            RegistryIds(RegistrySettings(url), patience=1)
        assert time.monotonic() - begun < 5
    with pytest.raises(LogError, match=f"no schema registry answered at {url} within 1 s"):
        RegistryIds(RegistrySettings(url), patience=1)


def test_what_is_no_registry_is_one_sentence(registry: str) -> None:
    elsewhere = registry.rsplit("/apis", 1)[0] + "/nothing-here"
    with pytest.raises(LogError, match="schema registry"):
        RegistryIds(RegistrySettings(elsewhere), register=True)
