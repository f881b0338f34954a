"""`turngate policy check`: would the pipeline take this document up?"""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Turngate

VALID = "version: 3\nagents: {mesh: {accounts: ['slack:T1/UBOT']}}\nstale: {hold: 5s, then: drop}\n"


def test_a_valid_document_is_said_to_be_one(turngate: Turngate, tmp_path: Path) -> None:
    path = tmp_path / "acme.yaml"
    path.write_text(VALID, "utf-8")
    result = turngate("policy", "check", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{path}: valid, version 3: 1 agents, 0 tools, 0 operations, 0 skills\n"


def test_an_invalid_one_is_exit_code_1_and_names_the_line(turngate: Turngate, tmp_path: Path) -> None:
    path = tmp_path / "acme.yaml"
    path.write_text(VALID.replace("then: drop", "then: shout"), "utf-8")
    result = turngate("policy", "check", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{path}: line 3: stale.then: must be downgrade or drop\n"


def test_it_reads_standard_input(turngate: Turngate) -> None:
    assert turngate("policy", "check", "-", input="version: one").stderr == (
        "-: line 1: version: must be a whole number\n"
    )


def test_a_document_without_agents_is_valid_and_mentioned(turngate: Turngate) -> None:
    result = turngate("policy", "check", "-", input='{"version": 1}')
    assert result.exit_code == 0
    assert "names no agent" in result.stderr


def test_two_servers_with_a_tool_of_one_operation_name_are_mentioned(turngate: Turngate) -> None:
    tools = "tools: {crm: {}, crm.a: {}}\noperations: {crm.a.b: {access: read}, crm.read: {access: read}}\n"
    assert turngate("policy", "check", "-", input=VALID + tools).stderr == (
        "-: operations.crm.a.b is crm's a.b and crm.a's b, and `turngate mcp` calls neither: rename a server\n"
    )
    assert turngate("policy", "check", "-", input=VALID + tools.replace("crm.a: {}", "crm-a: {}")).stderr == ""


def test_what_cannot_be_read_is_exit_code_2(turngate: Turngate, tmp_path: Path) -> None:
    assert turngate("policy", "check", tmp_path / "absent").exit_code == 2
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    result = turngate("policy", "check", tmp_path / "bytes")
    assert (result.exit_code, result.stderr) == (2, f"turngate: {tmp_path / 'bytes'}: is not UTF-8\n")
