"""Follows what is decided, without anything of Turngate: a consumer, a registry, CloudEvents (docs/consuming.md).

pip install 'confluent-kafka[avro,schemaregistry]'
python decisions.py broker:9092 http://registry:8080/apis/ccompat/v7 [TOPIC …]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext


def events(bootstrap: str, registry: str, topics: Sequence[str], group: str) -> Iterator[tuple[dict[str, str], Any]]:
    """CloudEvents attributes and the record of each event, until everything that is there now has been seen."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,  # see below
        "isolation.level": "read_committed",  # what a worker that died had begun to write was never decided
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    decode = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    consumer.subscribe(list(topics))
    unread: set[tuple[str, int]] | None = None
    try:
        while unread is None or unread:
            message = consumer.poll(1.0)
            if unread is None and consumer.assignment():
                unread = {(place.topic, place.partition) for place in consumer.assignment()}
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                (unread or set()).discard((message.topic(), message.partition()))
                continue
            yield (
                attributes(message),
                decode(message.value(), SerializationContext(message.topic(), MessageField.VALUE)),
            )
            # After it was dealt with. A crash before this shows an event again: (source, id) tells that it is the same.
            consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def attributes(message: Message) -> dict[str, str]:
    """The CloudEvents attributes in the headers: `id`, `source`, `type`, `specversion`, `time`."""
    headers = message.headers() or []
    return {name.removeprefix("ce_"): (value or b"").decode() for name, value in headers if name.startswith("ce_")}


def main(bootstrap: str, registry: str, *topics: str) -> None:
    """Print each event once, however often it comes."""
    seen: set[tuple[str, str]] = set()
    for event, record in events(bootstrap, registry, topics or ("turn-verdicts",), "my-own-group"):
        if (event["source"], event["id"]) in seen:
            continue
        seen.add((event["source"], event["id"]))
        print(json.dumps({"type": event["type"], "id": event["id"], **record}, default=str, sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
