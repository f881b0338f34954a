"""`turngate topics acl` prints commands for Kafka's tool; what they do on a broker is in `tests/kafka/test_acl.py`."""

from __future__ import annotations

import shlex

from tests.cli.conftest import Turngate


def test_a_role_is_given_what_it_needs_and_no_more(turngate: Turngate) -> None:
    result = turngate("topics", "acl", "--connector", "User:slack", "--bootstrap-servers", "broker:9092")
    assert result.exit_code == 0
    read, write, group = (shlex.split(line) for line in result.stdout.splitlines())
    start = ["kafka-acls.sh", "--bootstrap-server", "broker:9092", "--add", "--allow-principal", "User:slack"]
    reads = ("membership-refreshes", "observed-messages", "policies", "refresh-requests")
    assert read == [*start, "--operation", "Read", *(word for topic in reads for word in ("--topic", topic))]
    inputs = ("membership-refreshes", "observed-messages", "identity-proofs", "approvals")
    assert write == [*start, "--operation", "Write", *(word for t in inputs for word in ("--topic", t))]
    assert group == [*start, "--operation", "Read", "--group", "turngate-connector",
                     "--resource-pattern-type", "prefixed"]  # fmt: skip
    assert result.stderr == "nobody is named for: agent, assessor, operator, worker, sink, auditor, store, gateway\n"


def test_several_principals_share_a_role_and_odd_names_survive_a_shell(turngate: Turngate) -> None:
    result = turngate("topics", "acl", "--auditor", "User:CN=audit store,O=Acme", "--auditor", "User:a")
    (first, *_) = (shlex.split(line) for line in result.stdout.splitlines())
    at = first.index("--allow-principal")
    assert first[at : at + 4] == ["--allow-principal", "User:CN=audit store,O=Acme", "--allow-principal", "User:a"]


def test_the_same_can_be_taken_away_again(turngate: Turngate) -> None:
    arguments = ("topics", "acl", "--worker", "User:w", "--command-config", "admin.properties", "--tool", "kafka-acls")
    added, removed = (turngate(*arguments, *more).stdout for more in ((), ("--remove",)))
    assert removed == added.replace(" --add ", " --remove --force ")
    assert all(line.startswith("kafka-acls --bootstrap-server localhost:9092 --command-config admin.properties --add")
               for line in added.splitlines())  # fmt: skip


def test_nobody_and_everybody_are_refused(turngate: Turngate) -> None:
    for arguments, message in (
        ((), "nobody is named: give principals to roles, such as --worker User:turngate"),
        (("--sink", "alex"), "alex: a principal is written TYPE:NAME, such as User:alex"),
        (("--sink", "User:"), "User:: a principal is written TYPE:NAME, such as User:alex"),
        (("--operator", "User:*"), "User:*: that is everybody, and a role is somebody's"),
    ):
        result = turngate("topics", "acl", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"turngate: {message}\n"
