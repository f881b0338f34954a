"""Contract section 8: what a scenario file may say; a mistake in it names the file and the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.streams.scenarios.document import find, load
from turngate.streams.scenarios.errors import ScenarioError

HEAD = "scenario: One sentence.\nrules: [R-AUD-2]\n"
STEP = "  - MessageObserved: {room: slack:T1/D1, message: slack:T1/D1/1}\n"


def written(folder: Path, text: str, name: str = "one.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_file_says_what_it_shows_and_how(tmp_path: Path) -> None:
    text = (
        "scenario: One sentence.\nsource: owner/repo#1\nrules: [R-AUD-2, R-TURN-10]\n"
        "policy: {notice: null, freshness: {destination: 5s}}\nsteps:\n" + STEP + "    repeat: 2\n  - wait: 10s\n"
    )
    scenario = load(written(tmp_path, text))
    assert (scenario.name, scenario.sentence, scenario.source) == ("one", "One sentence.", "owner/repo#1")
    assert [(s.number, s.name, s.repeat, s.wait_ms) for s in scenario.steps] == [
        (1, "MessageObserved", 2, 0),
        (2, "wait", 1, 10_000),
    ]
    assert scenario.policy is not None
    assert scenario.policy["notice"] is None
    # merged over the default, key by key
    assert scenario.policy["freshness"]["destination"] == "5s"
    assert scenario.policy["freshness"]["settle"] == "30s"
    assert set(scenario.policy["agents"]) == {"mesh", "scout"}


def test_null_is_no_policy_at_all(tmp_path: Path) -> None:
    assert load(written(tmp_path, HEAD + "policy: null\nsteps:\n" + STEP)).policy is None


@pytest.mark.parametrize(
    ("asked", "shown"), [("R-AUD", True), ("R-AUD-2", True), ("R-AUD-", True), ("R-AUD-20", False), ("R-A", False)]
)
def test_rules_are_picked_whole_or_by_family(tmp_path: Path, asked: str, shown: bool) -> None:
    assert load(written(tmp_path, HEAD + "steps:\n" + STEP)).shows([asked]) is shown


def test_its_tenants_are_those_that_its_steps_name(tmp_path: Path) -> None:
    other = "  - MessageObserved: {tenant: other, room: slack:T1/D1, message: slack:T1/D1/1}\n  - wait: 1s\n"
    assert load(written(tmp_path, HEAD + "steps:\n" + other + STEP)).tenants == ("other", "acme")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [", "line 2: "),
        ("- a list\n", "one.yaml: a scenario file is a map with scenario, rules and steps"),
        ("rules: [R-AUD-2]\nsteps:\n" + STEP, "scenario: one sentence is required"),
        ("scenario: x\nrules: [AUD]\nsteps:\n" + STEP, "rules: a list of rule ids such as R-AUD-2 is required"),
        (HEAD + "steps: []\n", "steps: a list of steps is required"),
        (HEAD + "stepps: []\n", "a scenario file has no 'stepps'"),
        (HEAD + "policy: {stale: {hold: soon}}\nsteps:\n" + STEP, "policy: stale.hold: must be a duration"),
        (HEAD + "policy: {agent: {}}\nsteps:\n" + STEP, "policy: agent: is not a key of the policy document"),
        (HEAD + "steps:\n" + STEP + "  - Message: {}\n", "step 2: there is no record 'Message'"),
        (HEAD + "steps:\n  - wait: 1s\n    room: {}\n", r"step 1: a step has exactly one .* \['wait', 'room'\]"),
        (HEAD + "steps:\n  - expect: nothing\n", "step 1: a step has exactly one of a record, room and wait"),
        (HEAD + "steps:\n  - wait: 10\n", "step 1: 10: must be a duration"),
        (HEAD + "steps:\n  - room: {rom: x}\n", "step 1: room has no 'rom'"),
        (HEAD + "steps:\n  - MessageObserved: {at: x}\n", r"step 1: MessageObserved\.at: 'x' is no time"),
        (HEAD + "steps:\n" + STEP + "    repeat: 0\n", "step 1: repeat: a number from 1"),
        (HEAD + "steps:\n" + STEP + "    repeat: 100001\n", "step 1: repeat: a number from 1 to 100000"),
        (HEAD + "steps:\n" + STEP + "    expect: silence\n", "step 1: expect: a list of patterns, or nothing"),
        (HEAD + "steps:\n" + STEP + "    expect: [TurnDone: {}]\n", "the pipeline writes no record 'TurnDone'"),
        (HEAD + "steps:\n" + STEP + "    expect: [not: {TurnDecided: {x: 1}}]\n", "TurnDecided has no field 'x'"),
        (
            HEAD + "steps:\n" + STEP + "    expect: [count: {TurnDecided: many}]\n",
            "count: TurnDecided: a number from 0",
        ),
        (HEAD + "steps:\n" + STEP + "    capture: {code: SharingOffered}\n", "step 1: capture: code: write a record"),
        (HEAD + "steps:\n" + STEP + "    capture: {code: SharingOffered.kode}\n", "SharingOffered has no field 'kode'"),
        (HEAD + "steps:\n  - MessageObserved: {text: a, text: b}\n", "line 4: 'text' is there twice"),
    ],
)
def test_a_mistake_names_the_file_and_the_step(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError, match=message) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_a_folder_is_all_its_files_in_order_of_name(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    paths = [written(tmp_path, HEAD, name) for name in ("b.yaml", "a.yml", "inner/c.yaml")]
    written(tmp_path, "", "README.md")
    assert list(find([tmp_path])) == [paths[1], paths[0], paths[2]]
    assert list(find([paths[0]])) == [paths[0]]


def test_a_path_where_there_is_nothing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such file or folder"):
        list(find([tmp_path / "absent"]))
    with pytest.raises(ScenarioError, match=r"this folder has no \.yaml file"):
        list(find([tmp_path]))
