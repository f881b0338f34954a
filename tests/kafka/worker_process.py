"""A worker for tests: `python -m tests.kafka.worker_process BOOTSTRAP PREFIX [flags]`.

Its engine is the one that remembers all it was given, or the product's with `--decide`.
"""

from __future__ import annotations

import argparse
import logging
from functools import partial

from tests.kafka.chained import Chained
from turngate.processors.engine import Engine
from turngate.processors.keys import NO_KEYS, TEST_KEYS
from turngate.streams.kafka.names import Names
from turngate.streams.kafka.service import WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.worker import run_worker
from turngate.streams.stderr import log_to_stderr


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("prefix")
    parser.add_argument("--group", default="")
    parser.add_argument("--instance", default=None)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--decide", action="store_true")
    parser.add_argument("--keys", action="store_true", help="with `--decide`: the published test key")
    given = parser.parse_args()
    Chained.pause = given.pause
    options = WorkerOptions(
        names=Names(given.prefix, given.prefix, given.group),
        instance=given.instance,
        session=3.0,
        heartbeat=0.5,
        report_every=2.0,
    )
    log_to_stderr(logging.INFO)
    decide = partial(Engine.restore, keys=TEST_KEYS if given.keys else NO_KEYS)
    run_worker(KafkaSettings.read(given.bootstrap), None, options, decide if given.decide else Chained.restore)


if __name__ == "__main__":
    main()
