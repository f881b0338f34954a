"""Decides how an agent that may write Kafka's topics itself gets its answers from there (R-EVI-10).

Whoever may do so is trusted for all tenants on that broker; other agents go through the gateway. Needs the extra
`kafka`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError
from aiokafka.partitioner import DefaultPartitioner

from turngate.client.answers import TOPICS, Answers
from turngate.client.gate import Gate, Mode
from turngate.client.transport import Unreachable
from turngate.schemas.catalog import DRAFTS, topic_of
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import Record

#: Seconds for which answers are looked back for, so that a turn that an agent begins again after a restart is known.
BACK = 600
#: Seconds until a broker that failed is read again.
_PAUSE = 1.0

log = logging.getLogger("turngate.client")


@asynccontextmanager
async def connect(
    bootstrap_servers: str,
    *,
    tenant: str,
    agent: str,
    mode: Mode | str = Mode.ENFORCE,
    patience: float | None = None,
    prefix: str = "",
    codec: Codec | None = None,
    **options: Any,
) -> AsyncIterator[Gate]:
    """A gate straight over Kafka. `prefix`: of every topic's name; `codec`: with a schema registry, None: without one.

    `options` are aiokafka's own for a client, such as `security_protocol`, `ssl_context` and `sasl_mechanism`.
    Raises `Unreachable` where no broker answers there, or the topics are not there.
    """
    transport = KafkaTransport(bootstrap_servers, tenant, agent, prefix, Codec() if codec is None else codec, options)
    try:
        await transport.start()
        yield Gate(transport, mode=mode, patience=patience)
    finally:
        await transport.stop()


class KafkaTransport:
    """The contract's topics on a broker (`turngate.client.transport.Transport`)."""

    def __init__(
        self, bootstrap_servers: str, tenant: str, agent: str, prefix: str, codec: Codec, options: dict[str, Any]
    ) -> None:
        self.tenant = tenant
        self.agent = agent
        self._address = bootstrap_servers
        self._prefix = prefix
        self._codec = codec
        self._answers = Answers(tenant, agent)
        clients = {"bootstrap_servers": bootstrap_servers, **options}
        self._producer = AIOKafkaProducer(acks="all", linger_ms=0, enable_idempotence=True, **clients)
        self._consumer = AIOKafkaConsumer(
            enable_auto_commit=False, auto_offset_reset="earliest", isolation_level="read_committed", **clients
        )
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect, and begin to read what was answered of late."""
        try:
            await self._producer.start()
            await self._consumer.start()
            if self._prefix + DRAFTS not in await self._consumer.topics():  # a question by name may make one
                raise UnknownTopicOrPartitionError
            parts = await self._producer.partitions_for(self._prefix + DRAFTS)
            lane = DefaultPartitioner()(self.tenant.encode(), sorted(parts), sorted(parts))
            places = [TopicPartition(self._prefix + topic, lane) for topic in TOPICS]
            self._consumer.assign(places)
            since = await self._consumer.offsets_for_times(dict.fromkeys(places, self.now() - BACK * 1_000))
            for place, end in (await self._consumer.end_offsets(places)).items():
                found = since.get(place)
                self._consumer.seek(place, end if found is None else found.offset)
        except KafkaError as error:
            raise Unreachable(
                f"{self._address}: no broker that answers, or none with these topics ({type(error).__name__}); see "
                "`turngate doctor`"
            ) from None
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """Let go of the broker."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        await self._consumer.stop()
        await self._producer.stop()

    def now(self) -> int:
        """This machine's clock."""
        return time.time_ns() // 1_000_000

    def answers(self, record: Record, *, fresh: bool = True) -> AsyncGenerator[Record]:
        """Append the record, and yield what comes on the answers' topics."""
        return self._answers.to(record, self._append, fresh=fresh)

    def forget(self, record: Record) -> None:
        """Nobody asks for this record's answers any more."""
        self._answers.forget(record)

    async def _append(self, record: Record) -> None:
        topic = self._prefix + topic_of(type(record).__name__, record.model_dump(include={"by", "op"}))
        try:
            await self._producer.send_and_wait(topic, self._codec.encode(record), key=record.tenant.encode())
        except KafkaError as error:
            raise Unreachable(f"{self._address}: {topic} was not written ({type(error).__name__})") from None

    async def _read(self) -> None:
        """Until cancelled; a broker that goes away is waited for, and read on where it was left."""
        while True:
            try:
                async for message in self._consumer:
                    with suppress(Undecodable):
                        self._answers.take(self._codec.decode(message.value))
            except KafkaError as error:
                log.warning("%s: answers cannot be read (%s)", self._address, type(error).__name__)
                await asyncio.sleep(_PAUSE)
