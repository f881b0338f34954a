"""A worker with the engine of the live tests: `python -m tests.kafka.worker_process BOOTSTRAP PREFIX [flags]`."""

from __future__ import annotations

import argparse
import logging

from tests.kafka.chained import Chained
from turngate.streams.kafka.owner import Names
from turngate.streams.kafka.service import WorkerOptions
from turngate.streams.kafka.settings import KafkaSettings
from turngate.streams.kafka.worker import log_to_stderr, run_worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("prefix")
    parser.add_argument("--group", default="")
    parser.add_argument("--heartbeat", type=float, default=0.5)
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    Chained.pause = options.pause
    log_to_stderr(logging.INFO)
    run_worker(
        KafkaSettings.read(options.bootstrap),
        None,
        WorkerOptions(
            names=Names(options.prefix, options.prefix, options.group),
            session=3.0,
            heartbeat=options.heartbeat,
            report_every=2.0,
        ),
        Chained.restore,
    )


if __name__ == "__main__":
    main()
