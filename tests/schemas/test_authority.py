"""Who may write and read which topic is what the contract says, for every topic (R-EVI-10)."""

from __future__ import annotations

import re

import pytest

from tests.schemas import contract_text
from turngate.schemas.authority import READERS, WRITERS, Role
from turngate.schemas.catalog import INPUT_TOPICS, OPERATOR_TOPICS, OUTPUT_TOPICS, TICKS

WORDS = {
    "connectors": Role.CONNECTOR,
    "runtimes (agents)": Role.AGENT,
    "sinks": Role.SINK,
    "operators": Role.OPERATOR,
    "the worker": Role.WORKER,
}


def test_writers_are_those_of_the_contract() -> None:
    sentence = contract_text.sections()[3].split("authority (R-EVI-10):")[1].split(".\n")[0].replace("\n", " ")
    said = {}
    for part in sentence.split(";"):
        who = next(role for words, role in WORDS.items() if part.strip().startswith(words))
        said |= dict.fromkeys(re.findall(r"`([a-z-]+)`", part), who)
    assert said.keys() == set(INPUT_TOPICS)
    for topic in INPUT_TOPICS:  # an assessor's word comes on the agents' topic (contract section 3)
        assert WRITERS[topic] - {Role.ASSESSOR, Role.GATEWAY} == {said[topic]}


def test_the_gateway_writes_for_all_but_operators_and_workers_and_reads_what_it_needs() -> None:
    written = {topic for topic, roles in WRITERS.items() if Role.GATEWAY in roles}
    assert written == {t for t, roles in WRITERS.items() if roles & {Role.AGENT, Role.CONNECTOR, Role.SINK}}
    read = {topic for topic, roles in READERS.items() if Role.GATEWAY in roles}
    assert not {"observed-messages", "audit"} & read
    assert "operator-commands" in read  # whoever is paused claims nothing (R-POL-4)


def test_every_topic_has_writers_and_readers() -> None:
    assert WRITERS.keys() == READERS.keys() == {*INPUT_TOPICS, *OUTPUT_TOPICS}


def test_only_workers_write_what_the_pipeline_writes() -> None:
    assert {t for t, roles in WRITERS.items() if Role.WORKER in roles} == {TICKS, *OUTPUT_TOPICS}
    assert all(WRITERS[topic] == {Role.WORKER} for topic in OUTPUT_TOPICS)


def test_operators_alone_command() -> None:
    assert {t for t, roles in WRITERS.items() if Role.OPERATOR in roles} == OPERATOR_TOPICS
    assert all(WRITERS[topic] == {Role.OPERATOR} for topic in OPERATOR_TOPICS)


def test_operators_see_everything_and_workers_every_input() -> None:
    assert all(Role.OPERATOR in roles for roles in READERS.values())
    assert {t for t, roles in READERS.items() if Role.WORKER in roles} == set(INPUT_TOPICS)


@pytest.mark.parametrize("topic", ["observed-messages", "memory-writes", "turn-drafts", "outbound", "grants"])
def test_texts_and_codes_are_not_for_auditors(topic: str) -> None:  # R-RET-2, R-GRT-10
    assert Role.AUDITOR not in READERS[topic]
