"""The rules by example: every scenario file passes, on the embedded runtime and through the worker on a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.streams.scenarios.document import load
from turngate.streams.scenarios.local import LocalBackend
from turngate.streams.scenarios.running import run, run_all

FOLDER = Path(__file__).parent / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_there_are_scenarios_of_every_family_but_the_sinks() -> None:
    families = {rule.split("-")[1] for path in FILES for rule in load(path).rules}
    everything = "TIME ROOM AUD EVI GRT IDN TURN SEN MEM TNT EGR ACT POL RET RUN"
    assert set(everything.split()) <= families


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_holds_on_the_embedded_runtime(path: Path) -> None:
    failure = run(load(path), LocalBackend())
    assert failure is None, "\n".join(["", *failure.lines()])


@pytest.mark.kafka
def test_every_scenario_holds_through_the_worker_on_a_broker(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from turngate.streams.kafka.settings import KafkaSettings
    from turngate.streams.scenarios.kafka import KafkaBackend

    monkeypatch.setenv("TURNGATE_TEST_TIME", "1")
    failed = []
    with KafkaBackend(KafkaSettings.read(kafka)) as backend:
        for path, failure in zip(FILES, run_all([load(path) for path in FILES], backend), strict=True):
            if failure is not None:
                failed += [path.stem, *failure.lines()]
    assert not failed, "\n".join(["", *failed])
