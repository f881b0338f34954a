"""Decides which schema ids a codec writes and reads, from a Confluent-compatible schema registry, asked at start only.

Reading and writing records asks nobody: an id that the registry gave out later is unknown until `refresh`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import fastavro
import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from turngate.schemas.avro_schema import versions
from turngate.schemas.catalog import RECORDS
from turngate.schemas.codec import subject_of, writer_schema
from turngate.streams.kafka.settings import RegistrySettings
from turngate.streams.log import LogError

#: What every subject of the contract is held to (contract section 7).
COMPATIBILITY = "FULL_TRANSITIVE"
#: Seconds in which a registry must have answered one question.
PATIENCE = 5.0

#: HTTP statuses, and their first three digits in a registry's own codes.
_NOT_FOUND, _CONFLICT = 404, 409


class RegistryIds:
    """The schema ids of every record of the contract, in memory (`turngate.schemas.codec.SchemaIds`)."""

    def __init__(self, settings: RegistrySettings, *, register: bool = False, patience: float = PATIENCE) -> None:
        """Ask the registry for everything. With `register`, first register what it lacks (`register_schemas`).

        Raises `LogError` where it does not answer, or lacks the newest schema of a record.
        """
        self._settings = settings
        self._patience = patience
        self._newest: Mapping[str, int] = {}
        self._writers: Mapping[int, tuple[str, Any]] = {}
        if register:
            register_schemas(settings, patience=patience)
        self.refresh()

    def id_of(self, record: str) -> int:
        """The id under which the newest schema of a record is registered. Raises `KeyError` for a name that is none."""
        return self._newest[record]

    def schema_of(self, schema_id: int) -> tuple[str, Any] | None:
        """The record's name and the writer's schema of an id, or None where the registry did not know it."""
        return self._writers.get(schema_id)

    def refresh(self) -> None:
        """Ask the registry again. Blocks: not for the event loop. Raises as the constructor; nothing changes then."""
        newest: dict[str, int] = {}
        writers: dict[int, tuple[str, Any]] = {}
        with _client(self._settings, self._patience) as client:
            for record in RECORDS:
                try:
                    found = client.lookup_schema(subject_of(record), _newest(record))
                except SchemaRegistryError as error:
                    if error.http_status_code != _NOT_FOUND:
                        raise
                    raise LogError(
                        f"{self._settings.url}: the newest schema of {record} is not registered; "
                        "`turngate topics create` registers all of them"
                    ) from None
                newest[record] = _known(found.schema_id)
                for version in client.get_versions(subject_of(record)):
                    registered = client.get_version(subject_of(record), version)
                    if registered.schema is not None:
                        writers[_known(registered.schema_id)] = record, _writer(record, registered.schema)
        self._newest, self._writers = newest, writers


def register_schemas(settings: RegistrySettings, *, patience: float = PATIENCE) -> None:
    """Register every version of every record's schema, oldest first, under FULL_TRANSITIVE; harmless when repeated.

    Raises `LogError` where the registry does not answer or refuses a schema as incompatible.
    """
    with _client(settings, patience) as client:
        for record in RECORDS:
            subject = subject_of(record)
            for number, schema in enumerate(versions(record), start=1):
                try:
                    client.register_schema(subject, _schema(schema))
                except SchemaRegistryError as error:
                    if error.http_status_code != _CONFLICT:
                        raise
                    raise LogError(
                        f"{settings.url}: version {number} of {subject} is not compatible with what is registered there"
                    ) from None
                if number == 1:  # a subject must exist before it can be configured
                    client.set_compatibility(subject, COMPATIBILITY)


def _newest(record: str) -> Schema:
    return _schema(versions(record)[-1])


def _schema(schema: Mapping[str, Any]) -> Schema:
    return Schema(json.dumps(schema, separators=(",", ":")), "AVRO")


def _known(schema_id: int | None) -> int:
    if schema_id is None:
        raise LogError("the schema registry answered without a schema id")
    return schema_id


def _writer(record: str, schema: Schema) -> Any:
    """A writer's schema ready for use. Raises `LogError` for one that is not Avro."""
    try:
        return writer_schema(record, json.loads(schema.schema_str or ""))
    except (ValueError, TypeError, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
        raise LogError(f"a schema registered for {subject_of(record)} is no Avro schema: {error}") from None


@contextmanager
def _client(settings: RegistrySettings, patience: float) -> Iterator[SchemaRegistryClient]:
    """A client whose failures are `LogError`s of one sentence."""
    config = settings.client_config() | {"timeout": patience, "max.retries": 0}
    try:
        with SchemaRegistryClient(config) as client:
            yield client
    except SchemaRegistryError as error:
        raise LogError(f"schema registry at {settings.url}: {error.http_status_code} {error.error_message}") from error
    except (httpx2.HTTPError, OSError) as error:
        raise LogError(
            f"no schema registry answered at {settings.url} within {patience:g} s ({type(error).__name__}): "
            "is it running, and are these its address and its TLS settings?"
        ) from error
