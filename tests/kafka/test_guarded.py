"""The worker on a broker that wants TLS and a password, or a client's certificate: every client of it has them."""

from __future__ import annotations

import pytest
from aiokafka import TopicPartition

from tests.kafka.chained import Chained
from tests.kafka.cluster import CODEC, Cluster
from tests.kafka.exactness import assert_exact
from tests.kafka.feeding import mixture
from tests.streams.kafka.test_security import Guarded, guarded
from turngate.schemas.catalog import TICKS
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.service import Worker, WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings

__all__ = ["guarded"]

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]


@pytest.mark.parametrize("listener", ["NAMED", "MUTUAL"])
async def test_a_worker_works_over_tls(guarded: Guarded, unique: str, listener: str) -> None:
    environment = {"TURNGATE_CA_FILE": guarded.ca}
    if listener == "NAMED":
        environment |= {"TURNGATE_SASL_USER": "alex", "TURNGATE_SASL_PASSWORD": "by-scram"}
    else:
        environment |= {"TURNGATE_CLIENT_CERT": guarded.cert, "TURNGATE_CLIENT_KEY": guarded.key}
    settings = KafkaSettings.read(guarded.broker.addresses[listener], environment=environment)
    cluster = Cluster(settings, f"{unique}-", 2)
    await cluster.make_topics()
    ends = await cluster.send(mixture(200, 2))
    options = WorkerOptions(names=Names(cluster.prefix, cluster.prefix), test_time=False)
    async with Worker(settings, CODEC, options, Chained.restore):
        await cluster.until_applied(ends | {TopicPartition(TICKS, 0): 1})
    await assert_exact(cluster, Chained.restore, ends)
