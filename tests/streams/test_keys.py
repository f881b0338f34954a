"""Keys come from a file or the environment, whole and private, and are in no message (R-GRT-10)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from turngate.processors.keys import NO_KEYS
from turngate.streams.kafka.environment import SettingsError
from turngate.streams.keys import add_key, read_keys

SECRET = "5ec2e7" + "0" * 58
OTHER = "0a" * 32
DOCUMENT = {"current": "2", "keys": {"1": {"*": OTHER}, "2": {"*": SECRET, "acme": OTHER}}}


def written(path: Path, document: Any = DOCUMENT, mode: int = 0o600) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    path.chmod(mode)
    return path


def refusal(path: Path | None = None, **environment: str) -> str:
    with pytest.raises(SettingsError) as refused:
        read_keys(path, environment)
    assert "5ec2e7" not in str(refused.value)
    return str(refused.value)


def test_without_any_nobody_has_a_code() -> None:
    assert read_keys(None, {}) is NO_KEYS
    assert read_keys(None, {"TURNGATE_KEYS": "", "TURNGATE_KEYS_FILE": ""}) is NO_KEYS
    assert NO_KEYS.code("acme", "r1") is None


def test_a_file_and_a_variable_say_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "keys")
    keys = read_keys(path, {})
    assert keys == read_keys(None, {"TURNGATE_KEYS_FILE": str(path)})
    assert keys == read_keys(None, {"TURNGATE_KEYS": json.dumps(DOCUMENT)})
    assert keys.current == "2"
    assert keys.secrets["2"] == {"*": bytes.fromhex(SECRET), "acme": bytes.fromhex(OTHER)}


def test_no_key_is_in_a_repr(tmp_path: Path) -> None:
    shown = repr(read_keys(written(tmp_path / "keys"), {}))
    assert "2" in shown
    assert SECRET not in shown
    assert repr(bytes.fromhex(SECRET))[2:8] not in shown


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX'")
@pytest.mark.parametrize(
    ("mode", "fine"),
    [(0o600, True), (0o400, True), (0o640, True), (0o644, False), (0o660, False), (0o602, False)],
)
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int, fine: bool) -> None:
    path = written(tmp_path / "keys", mode=mode)
    if fine:
        assert read_keys(path, {}).current == "2"
    else:
        assert f"{path}: others may use it (mode {mode:o}): chmod 600" in refusal(path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("no json", "is no JSON"),
        ('{"current": "1", "current": "2", "keys": {}}', "names something twice"),
        ({"keys": {}}, 'must be {"current": KEY_ID'),
        ({**DOCUMENT, "more": 1}, 'must be {"current": KEY_ID'),
        ({**DOCUMENT, "current": "3"}, "current names none of the keys"),
        ({"current": "1", "keys": [SECRET]}, "keys a map by key id"),
        ({"current": "a:b", "keys": {"a:b": {"*": SECRET}}}, "a key id has 1 to 64 characters"),
        ({"current": "1", "keys": {"1": {}}}, "key id 1: must be a map from tenants"),
        ({"current": "1", "keys": {"1": {"Acme": SECRET}}}, "key id 1: a name is no tenant's"),
        ({"current": "1", "keys": {"1": {"acme": SECRET[:-2]}}}, "key id 1: acme: a key is 64 hexadecimal digits"),
        ({"current": "1", "keys": {"1": {"acme": 7}}}, "key id 1: acme: a key is 64 hexadecimal digits"),
    ],
)
def test_what_is_wrong_is_said_without_a_key(tmp_path: Path, document: Any, message: str) -> None:
    path = written(tmp_path / "keys", document)
    assert refusal(path) == f"keys file {path}: {refusal(path).removeprefix(f'keys file {path}: ')}"
    assert message in refusal(path)
    text = document if isinstance(document, str) else json.dumps(document)
    assert message in refusal(None, TURNGATE_KEYS=text)


def test_two_places_at_once_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "keys")
    both = {"TURNGATE_KEYS_FILE": str(path), "TURNGATE_KEYS": json.dumps(DOCUMENT)}
    assert "both set" in refusal(None, **both)
    assert "No such file" in refusal(tmp_path / "absent")


def test_a_new_key_is_current_and_codes_of_the_old_one_are_still_found(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    first = add_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    code = first.code("acme", "r1")
    assert code is not None

    second = add_key(path)
    assert (first.current, second.current) == ("1", "2")
    assert second == read_keys(path, {})
    assert second.code("acme", "r1") != code
    assert set(first.tags("acme", code)) <= set(second.tags("acme", code))
    assert [p.name for p in tmp_path.iterdir()] == ["keys"]


def test_a_tenant_with_a_key_of_its_own_gets_a_new_one_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path / "keys")
    made = add_key(path)
    assert made.current == "3"
    assert made.secrets["3"].keys() == {"*", "acme"}
    assert (
        len({secret for tenants in made.secrets.values() for secret in tenants.values()}) == 4
    )  # OTHER is there twice


def test_where_nothing_can_be_written_the_file_stays_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        add_key(tmp_path / "absent" / "keys")
    path = written(tmp_path / "keys", "no keys")
    with pytest.raises(SettingsError, match="is no JSON"):
        add_key(path)
    assert path.read_text() == "no keys"
