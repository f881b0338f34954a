"""The command as a whole: it teaches, starts fast, completes itself, and says in one line what it lacks."""

from __future__ import annotations

import subprocess
import sys
from subprocess import PIPE

import pytest

from tests.cli.conftest import INSTALLED, Turngate, installed

OPERATORS = ["pause", "resume", "forget", "grant", "revoke"]
COMMANDS = [
    "demo",
    "scenarios",
    "apply",
    "topics",
    "worker",
    "import",
    "send",
    "policy",
    "tail",
    "doctor",
    "keys",
    "mcp",
    *OPERATORS,
]


def test_help_names_every_command_and_the_exit_codes(turngate: Turngate) -> None:
    shown = turngate("--help")
    assert shown.exit_code == 0
    for command in COMMANDS:
        assert f" {command} " in shown.stdout
    assert "Exit codes: 0 done, 1 the answer is no, 2 it could not be done." in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "scenarios",
        "apply",
        "topics create",
        "topics acl",
        "worker",
        "import slack-export",
        "send",
        "policy check",
        "policy diff",
        "policy suggest",
        "tail",
        "mcp",
    ],
)
def test_every_command_teaches_by_an_example(turngate: Turngate, command: str) -> None:
    shown = turngate(*command.split(), "--help")
    assert shown.exit_code == 0
    assert f"turngate {command}" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    "command", ["topics create", "worker", "import slack-export", "send", "tail", "doctor", *OPERATORS]
)
def test_every_command_that_connects_takes_tls_and_sasl(turngate: Turngate, command: str) -> None:
    shown = turngate(*command.split(), "--help").stdout
    for option in ("bootstrap-servers", "ca-file", "client-cert", "client-key", "sasl-user", "registry-url"):
        assert f"--{option} " in shown
    # a command line can be read by everyone on the machine
    assert "--sasl-password" not in shown


def test_a_command_that_there_is_not_is_a_usage_error(turngate: Turngate) -> None:
    result = turngate("frobnicate")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "frobnicate" in result.stderr


def test_no_command_at_all_shows_the_help(turngate: Turngate) -> None:
    assert "Try it" in turngate().output


def test_it_says_its_version() -> None:
    done = installed("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().count(".") == 2


def test_help_waits_for_no_heavy_library() -> None:
    # a proxy for start-up time that no busy machine can falsify
    heavy = ("aiokafka", "confluent_kafka", "fastavro", "faust", "psycopg", "pydantic", "pyroaring", "yaml")
    code = f"import sys; import turngate.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_completes_commands_and_options_in_a_shell() -> None:
    words = {"_TURNGATE_COMPLETE": "complete_bash", "COMP_WORDS": "turngate sc", "COMP_CWORD": "1"}
    assert installed(env=words).stdout.split() == ["scenarios"]
    words = {"_TURNGATE_COMPLETE": "complete_bash", "COMP_WORDS": "turngate tail --te", "COMP_CWORD": "2"}
    assert installed(env=words).stdout.split() == ["--tenant"]


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("aiokafka", ["topics", "create", "--bootstrap-servers", "127.0.0.1:1"], "kafka"),
        ("aiokafka", ["worker", "--bootstrap-servers", "127.0.0.1:1"], "kafka"),
        ("aiokafka", ["tail", "outbound", "--bootstrap-servers", "127.0.0.1:1"], "kafka"),
        ("psycopg", ["doctor", "--postgres-dsn", "postgresql://127.0.0.1:1/x"], "postgres"),
        ("cryptography", ["audit", "key", "none/key"], "audit"),
        ("slack_sdk", ["deliver"], "slack"),
        ("mcp", ["mcp", "--server", "crm"], "mcp"),
        ("jsonpath_rfc9535", ["mcp", "--server", "crm"], "mcp"),
        ("aiokafka", ["deliver"], "kafka"),
        ("psycopg", ["deliver"], "postgres"),
    ],
)
def test_a_missing_extra_is_named_with_what_brings_it(package: str, arguments: list[str], extra: str) -> None:
    # a module that is None cannot be imported, which is how Python itself says that a package is not there
    code = f"import sys; sys.modules[{package!r}] = None; from turngate.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert f"this needs the package {package}: pip install 'turngate[{extra}]'" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)


def test_what_stops_reading_early_ends_it_without_a_complaint() -> None:
    with subprocess.Popen([INSTALLED, "apply", "-"], stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        # what is refused is said, and there is nobody to say it to
        process.stdin.write(b'{"record": "ProofRevoked", "at": 1, "value": {"tenant": "acme"}}\n' * 2000)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 2
