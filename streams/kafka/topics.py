"""Decides which topics a broker has, how long each keeps its records, and whether a cluster's topics will do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS
from turngate.streams.fold import RECORD_BYTES
from turngate.streams.kafka.settings import KafkaSettings, loopback
from turngate.streams.log import LogError

#: Where the checkpoint of each partition lies.
STATE_TOPIC = "turngate-state"

_DAY = 86_400_000
#: What the default policy keeps messages for, and what it keeps the log for (contract section 5, `retention`).
_MESSAGES, _LOG = 180 * _DAY, 7 * 365 * _DAY
#: Milliseconds for which each topic keeps its records. An exact replay (R-RUN-3) reaches back as far as every input
#: topic and `applied` do.
RETENTION: Mapping[str, int] = MappingProxyType(
    {
        "membership-refreshes": _MESSAGES,
        "observed-messages": _MESSAGES,
        "identity-proofs": _MESSAGES,
        "tool-results": _MESSAGES,
        "memory-writes": _MESSAGES,
        "operator-commands": _LOG,
        "turn-drafts": _MESSAGES,
        "approvals": _MESSAGES,
        "deliveries": _MESSAGES,
        "policies": _LOG,
        "ticks": 30 * _DAY,  # one a second and partition: the only topic that grows without anything happening
        "refresh-requests": _DAY,  # every one says by when it is needed
        "source-evidence": _MESSAGES,
        "memory-revisions": _LOG,
        "grants": _MESSAGES,  # an offer carries the text that would be shared
        "turn-verdicts": _MESSAGES,
        "outbound": 7 * _DAY,  # texts that a sink has sent by then, or must not send any more
        "audit": _LOG,  # R-RET-2
        "shadow-verdicts": 30 * _DAY,  # what a trial of a policy says; `replay --policy` says it again
        "room-lifecycle": _LOG,
        "applied": _MESSAGES,
        "dead-letters": 30 * _DAY,
    }
)

#: Seconds in which a broker must have answered.
PATIENCE = 10.0

#: Bytes that each output topic takes in one batch: the largest record that may come of one, its key and its headers.
OUTPUT_BYTES = 16 * 1024 * 1024
assert RECORD_BYTES + 512 * 1024 < OUTPUT_BYTES
#: The same of the state topic, whose larger entries lie in parts.
STATE_BYTES = 1024 * 1024
#: The least `max.message.bytes` of the topics that a worker writes.
LARGEST: Mapping[str, int] = MappingProxyType(dict.fromkeys(OUTPUT_TOPICS, OUTPUT_BYTES) | {STATE_TOPIC: STATE_BYTES})

_TIMESTAMPS, _CLEANUP, _LARGEST = "message.timestamp.type", "cleanup.policy", "max.message.bytes"


@dataclass(frozen=True, slots=True)
class Topic:
    """What a cluster says of one of its topics."""

    partitions: int
    timestamps: str
    cleanup: str
    largest: int


def topic_configs(topic: str, *, replication: int, create_time: bool = False) -> dict[str, str]:
    """The configuration with which a topic is created."""
    config = {
        _TIMESTAMPS: "CreateTime" if create_time else "LogAppendTime",  # R-TIME-1
        "min.insync.replicas": str(max(1, replication - 1)),
    }
    if topic in LARGEST:
        config[_LARGEST] = str(LARGEST[topic])
    if topic != STATE_TOPIC:
        # Simulated times are long past or to come, and a broker goes by them: it would delete or refuse the records.
        kept = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
        return config | {_CLEANUP: "delete"} | (kept if create_time else {"retention.ms": str(RETENTION[topic])})
    return config | {
        _CLEANUP: "compact",
        "segment.bytes": str(64 * 1024 * 1024),  # only closed segments are compacted, and a load reads all the rest
        "segment.ms": str(3_600_000),
        "min.cleanable.dirty.ratio": "0.2",
        "max.compaction.lag.ms": str(_DAY),  # an erased text is gone from the disk after that
    }


async def create_topics(
    settings: KafkaSettings,
    partitions: int,
    replication: int,
    *,
    create_time: bool = False,
    patience: float = PATIENCE,
) -> list[str]:
    """Make every topic of the contract, and the state topic, that is not there yet; returns the names of those made.

    Topics that are there are left as they are and checked as by `check_topics`. `create_time`: writers choose the time
    (`allow_create_time`). Raises `LogError` where the broker refuses or does not answer within `patience` seconds.
    """
    if create_time:
        allow_create_time(settings)
    names = (*RETENTION, STATE_TOPIC)
    async with _admin(settings, patience) as admin:
        there = {described["topic"] for described in await admin.describe_topics()}
        made = [name for name in names if name not in there]
        wanted = [
            NewTopic(
                name,
                partitions,
                replication,
                topic_configs=topic_configs(name, replication=replication, create_time=create_time),
            )
            for name in made
        ]
        if wanted:
            answer = await admin.create_topics(wanted, timeout_ms=int(patience * 1000))
            for name, code, message in answer.topic_errors:
                if code not in (0, TopicAlreadyExistsError.errno):
                    raise LogError(f"topic {name} was not created: {message or for_code(code).__name__}")
        found = await _topics(admin, names)
        while len(found) < len(names):
            await asyncio.sleep(0.05)
            found = await _topics(admin, names)
        _judge(found, create_time=create_time)
    return made


async def check_topics(
    settings: KafkaSettings, *, create_time: bool = False, patience: float = PATIENCE
) -> dict[str, Topic]:
    """What the cluster's topics of the contract are, all of them fit for a worker.

    Raises `LogError` with one sentence where a topic is missing, the numbers of partitions differ, a writer would
    choose the time of an input (R-TIME-1), records could be compacted away, a topic takes less than may be written to
    it, or the broker does not answer within `patience` seconds. `create_time`: writers choose the time, and must
    (`allow_create_time`).
    """
    if create_time:
        allow_create_time(settings)
    async with _admin(settings, patience) as admin:
        found = await _topics(admin, (*RETENTION, STATE_TOPIC))
    _judge(found, create_time=create_time)
    return found


def allow_create_time(settings: KafkaSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Raises `LogError` unless time may be simulated: on loopback, with `TURNGATE_TEST_TIME=1`."""
    hosts = [server.rpartition(":")[0] for server in settings.servers]
    if environment.get("TURNGATE_TEST_TIME") != "1" or not all(loopback(host.strip("[]")) for host in hosts):
        raise LogError("topics whose writers choose the time are for tests: on loopback, with TURNGATE_TEST_TIME=1")


def _judge(found: Mapping[str, Topic], *, create_time: bool) -> None:
    missing = [name for name in (*RETENTION, STATE_TOPIC) if name not in found]
    if not found:
        raise LogError("the broker has none of Turngate's topics; create them with `turngate topics create`")
    if missing:
        raise LogError(f"missing topics: {', '.join(missing)}; create them with `turngate topics create`")
    counts = {name: topic.partitions for name, topic in found.items()}
    if len(set(counts.values())) > 1:
        usual = max(set(counts.values()), key=list(counts.values()).count)
        odd = ", ".join(f"{name} has {n}" for name, n in counts.items() if n != usual)
        raise LogError(f"all topics must have the same number of partitions: {odd}, the others have {usual}")
    wanted = "CreateTime" if create_time else "LogAppendTime"
    wrong = [name for name in INPUT_TOPICS if found[name].timestamps != wanted]
    if wrong:
        raise LogError(f"{_TIMESTAMPS} must be {wanted}: {', '.join(wrong)}")
    lossy = [name for name in (*INPUT_TOPICS, *OUTPUT_TOPICS) if "compact" in found[name].cleanup]
    if lossy:
        raise LogError(f"{_CLEANUP} must be delete, or records are lost: {', '.join(lossy)}")
    if found[STATE_TOPIC].cleanup != "compact":
        raise LogError(f"{_CLEANUP} of {STATE_TOPIC} must be compact, or state is lost: {found[STATE_TOPIC].cleanup}")
    for least in sorted(set(LARGEST.values())):
        small = [name for name, needed in LARGEST.items() if needed == least and found[name].largest < least]
        if small:
            raise LogError(
                f"{_LARGEST} must be {least} or more, or a large room stops its partition: {', '.join(small)};"
                " raise it with Kafka's kafka-configs.sh"
            )


async def _topics(admin: AIOKafkaAdminClient, names: tuple[str, ...]) -> dict[str, Topic]:
    """Those of the named topics that there are."""
    # All topics are asked for: a question by name would create a missing one where the broker allows that.
    described = {t["topic"]: t for t in await admin.describe_topics() if t["topic"] in names and not t["error_code"]}
    if not described:
        return {}
    wanted: Any = dict.fromkeys((_TIMESTAMPS, _CLEANUP, _LARGEST))
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, n, wanted) for n in described])
    configs: dict[str, dict[str, str]] = {}
    for answer in answers:
        for code, message, _, name, entries in answer.resources:
            if code:
                raise LogError(f"topic {name} cannot be examined: {message or for_code(code).__name__}")
            configs[name] = {entry[0]: entry[1] for entry in entries}
    return {
        name: Topic(
            len(described[name]["partitions"]),
            configs[name][_TIMESTAMPS],
            configs[name][_CLEANUP],
            int(configs[name][_LARGEST]),
        )
        for name in names
        if name in described
    }


@asynccontextmanager
async def _admin(settings: KafkaSettings, patience: float) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connected admin client, whose every question together takes at most `patience` seconds."""
    silent = (
        f"no broker answered at {settings.bootstrap_servers} by {settings.security} within {patience:g} s: "
        "is it running, and are these its address and its security settings?"
    )
    admin = AIOKafkaAdminClient(request_timeout_ms=int(patience * 1000), **settings.client_options())
    try:
        async with asyncio.timeout(patience):
            await admin.start()
            yield admin
    except TimeoutError:
        raise LogError(silent) from None
    except KafkaError as error:
        named = type(error).__name__
        raise LogError(silent if "Connection" in named else f"{settings.bootstrap_servers}: {error}") from error
    finally:
        await admin.close()
