"""The Compose file is one, hangs together, keeps what must be kept, and runs what is locked and tested here."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests import registry
from turngate.cli.main import app
from turngate.cli.options import variables
from turngate.streams.keys import add_key, read_keys

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "docker-compose.yml"
DOCUMENT: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = DOCUMENT["services"]
#: Services that run to their end, and are then waited for as `service_completed_successfully`.
ONCE = {"topics"}
LOCKS = ("requirements.lock", "requirements.base.lock", "requirements.worker.lock")


def _check(path: Path) -> subprocess.CompletedProcess[str]:
    checker = Path(sys.executable).parent / "check-jsonschema"
    return subprocess.run(
        [checker, "--builtin-schema", "vendor.compose-spec", path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_file_follows_the_compose_specification(tmp_path: Path) -> None:
    done = _check(COMPOSE)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(COMPOSE.read_text("utf-8").replace("ports:", "portz:", 1))
    done = _check(wrong)
    assert done.returncode == 1
    assert "portz" in done.stdout


def test_it_has_servers_a_worker_an_assessor_a_store_a_gateway_and_slack_if_asked() -> None:
    asked = {"events", "roster", "deliver"}
    servers = {"kafka", "registry", "postgres"}
    assert set(SERVICES) == servers | {"topics", "worker", "assessor", "store", "gateway"} | asked
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["slack"]} == asked


@pytest.mark.parametrize("name", ["topics", "worker", "assessor", "store", "gateway", "events", "roster", "deliver"])
def test_a_service_of_ours_runs_a_command_that_there_is(name: str) -> None:
    words = [word for word in SERVICES[name]["command"] if word.isalpha()]
    assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0
    assert SERVICES[name]["environment"]["TURNGATE_REGISTRY_URL"].startswith("http://registry:")


def test_the_worker_alone_has_keys_and_they_come_from_outside_as_the_file_says(tmp_path: Path) -> None:
    keyed = {name for name, s in SERVICES.items() if any("KEYS" in setting for setting in s.get("environment", {}))}
    assert keyed == {"worker"}
    assert SERVICES["worker"]["environment"]["TURNGATE_KEYS"].startswith("${TURNGATE_KEYS:?")
    file = tmp_path / "keys.json"
    add_key(file)
    (line,) = re.findall(r"^#   (echo \"TURNGATE_KEYS=.*) >> \.env$", COMPOSE.read_text("utf-8"), flags=re.MULTILINE)
    said = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    name, _, quoted = said.rstrip("\n").partition("=")
    assert (quoted[0], quoted[-1], "'" in quoted[1:-1]) == ("'", "'", False)  # how Compose reads it: as it stands
    assert read_keys(environment={name: quoted[1:-1]}) == read_keys(file)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_says_what_it_runs_and_when_it_is_well(name: str) -> None:
    service = SERVICES[name]
    assert "image" in service
    assert not service["image"].endswith(":latest")
    if "build" not in service:
        assert re.search(r":\d", service["image"]), "a version"
    assert ("healthcheck" in service) == (name not in ONCE)
    assert ("restart" in service) == (name not in ONCE)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_waits_for_what_there_is(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        expected = "service_completed_successfully" if other in ONCE else "service_healthy"
        assert how["condition"] == expected


def test_what_lasts_is_on_named_volumes() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    assert sorted(mounted) == sorted(DOCUMENT["volumes"])
    assert {volume.split(":")[1] for volume in SERVICES["kafka"]["volumes"]} == {
        SERVICES["kafka"]["environment"]["KAFKA_LOG_DIRS"]
    }
    used = {config["source"] for service in SERVICES.values() for config in service.get("configs", [])}
    assert used == set(DOCUMENT["configs"])


def test_nothing_answers_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_password_has_a_default() -> None:
    text = COMPOSE.read_text("utf-8")
    for value in re.findall(r"PASSWORD: (.+)", text):
        assert re.fullmatch(r"\$\{POSTGRES_PASSWORD:\?.+\}", value)


def test_every_setting_of_ours_is_one() -> None:
    ours = {name for service in SERVICES.values() for name in service.get("environment", {}) if "TURNGATE" in name}
    assert ours
    assert ours <= variables()
    assert (
        SERVICES["worker"]["environment"]["TURNGATE_BOOTSTRAP_SERVERS"]
        in (SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"])
    )


def test_the_versions_are_those_that_the_tests_run() -> None:
    pom = (ROOT / "tests" / "pom.xml").read_text("utf-8")
    kafka = re.search(r"<artifactId>kafka_2\.13</artifactId>\s*<version>([\d.]+)</version>", pom)
    assert kafka is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{kafka[1]}"
    assert SERVICES["registry"]["image"] == f"apicurio/apicurio-registry:{registry.VERSION}"
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert SERVICES["worker"]["image"] == f"turngate:{ours}"


def test_the_image_is_built_from_files_that_are_there() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in allowed)
    copied = re.findall(r"^COPY (requirements\S+)", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    assert copied == ["requirements.worker.lock"]
    assert set(copied) <= allowed
    packages = re.findall(
        r'^"turngate\.(\w+)" = "\w+"$', (ROOT / "pyproject.toml").read_text("utf-8"), flags=re.MULTILINE
    )
    assert packages
    assert set(packages) <= allowed


def test_every_setting_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    of_a_build = {"TURNGATE_COMPILE"}
    assert set(re.findall(r"TURNGATE_[A-Z_]+", text)) == variables() | of_a_build


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_has_a_version_and_hashes_for_everything_and_no_address(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"^-", text, flags=re.MULTILINE), "an option"
    for requirement in text.replace("\\\n", " ").splitlines():
        assert re.match(r"[a-z0-9.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", requirement), requirement


def test_the_lock_files_agree() -> None:
    whole, *parts = [_pins(name) for name in LOCKS]
    for part in parts:
        assert part.items() <= whole.items()
    assert parts[0].items() <= parts[1].items()


def _pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / name).read_text("utf-8"), flags=re.MULTILINE))
