"""Contract section 8: what a scenario sends, and when it has failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenarios_runner.standin import StandIn
from turngate.schemas.inputs import MembershipPage, MessageObserved, PolicyPublished, Record, Tick, TurnDrafted
from turngate.schemas.policy import parse_policy
from turngate.streams.scenarios.document import load
from turngate.streams.scenarios.errors import ScenarioError
from turngate.streams.scenarios.running import Failure, run
from turngate.streams.scenarios.times import EPOCH

HEAD = "scenario: One sentence.\nrules: [R-AUD-2]\n"
MESSAGE = "room: slack:T1/D1, message: slack:T1/D1/1"
DRAFT = "TurnDrafted: {turn: t1, room: slack:T1/D1, text: hi}"


def ran(folder: Path, steps: str, head: str = HEAD) -> tuple[StandIn, Failure | None]:
    path = folder / "one.yaml"
    path.write_text(head + "steps:\n" + steps, "utf-8")
    partition = StandIn()
    return partition, run(load(path), partition)


def sent(folder: Path, steps: str, head: str = HEAD) -> list[Record]:
    return ran(folder, steps, head)[0].records


def policies(partition: StandIn) -> list[PolicyPublished]:
    return [r for _, r, _ in partition.engine.seen if isinstance(r, PolicyPublished)]


def test_every_step_is_a_second_after_the_one_before(tmp_path: Path) -> None:
    steps = f"  - {DRAFT}\n  - MessageObserved: {{at: 10s, {MESSAGE}}}\n  - {DRAFT}\n"
    partition, _ = ran(tmp_path, steps)
    assert [r.at - EPOCH for r in partition.records] == [1000, 10_000, 11_000]
    # a step's at is also its broker time
    assert [i.timestamp - EPOCH for i in partition.sent] == [0, 1000, 10_000, 11_000]


def test_broker_at_is_the_brokers_time_and_at_the_records_own(tmp_path: Path) -> None:
    partition, _ = ran(tmp_path, f"  - MessageObserved: {{at: 24h, broker_at: 12s, {MESSAGE}}}\n  - {DRAFT}\n")
    assert partition.records[0].at - EPOCH == 86_400_000
    assert [i.timestamp - EPOCH for i in partition.sent] == [0, 12_000, 13_000]


def test_a_wait_moves_the_clock_on_from_where_it_is_and_sends_a_tick_of_the_partition(tmp_path: Path) -> None:
    partition, _ = ran(
        tmp_path, f"  - wait: 2m\n  - MessageObserved: {{at: 3s, {MESSAGE}}}\n  - wait: 5s\n  - {DRAFT}\n"
    )
    first, second = (r for r in partition.records if isinstance(r, Tick))
    assert (first.at - EPOCH, second.at - EPOCH) == (120_000, 125_000)
    assert first.tenant == str(partition.partition)
    assert partition.records[-1].at - EPOCH == 126_000


def test_a_room_is_a_complete_page_that_began_at_its_own_time(tmp_path: Path) -> None:
    (page,) = sent(
        tmp_path,
        "  - room: {at: 5s, room: slack:T1/C1, kind: channel, visibility: members, members: [slack:T1/UKIM]}\n",
    )
    assert isinstance(page, MembershipPage)
    assert (page.page, page.last, page.started_at, page.at) == (0, True, page.at, EPOCH + 5000)
    assert page.info is not None
    assert (page.info.kind, page.info.visibility, page.info.workspaces) == ("channel", "members", None)
    assert [m.reader for m in page.members] == ["slack:T1/UKIM"]


def test_two_listings_of_a_room_are_two_refreshes(tmp_path: Path) -> None:
    pages = sent(tmp_path, "  - room: {room: slack:T1/C1}\n  - room: {room: slack:T1/C1, started_at: 1s}\n")
    assert len({p.refresh for p in pages if isinstance(p, MembershipPage)}) == 2


def test_a_repeated_step_sends_the_same_bytes_and_its_expectation_is_of_all_of_them(tmp_path: Path) -> None:
    steps = f"  - {DRAFT}\n    repeat: 3\n    expect: [count: {{TurnDecided: 3}}]\n"
    partition, failure = ran(tmp_path, steps)
    assert failure is None
    assert len({i.value for i in partition.sent[1:]}) == 1
    assert len(partition.sent) == 4


def test_the_policy_is_published_first_for_every_tenant_that_is_named(tmp_path: Path) -> None:
    steps = f"  - {DRAFT}\n  - MessageObserved: {{tenant: other, {MESSAGE}}}\n"
    partition, _ = ran(tmp_path, steps, HEAD + "policy: {notice: null}\n")
    assert [(p.tenant, p.version, p.at) for p in policies(partition)] == [("acme", "1", EPOCH), ("other", "1", EPOCH)]
    policy = parse_policy(policies(partition)[0].document)
    assert (policy.notice, set(policy.agents), policy.skills["refund"].approval) == (
        None,
        {"mesh", "scout"},
        "required",
    )


def test_no_policy_is_published_where_it_is_null(tmp_path: Path) -> None:
    assert policies(ran(tmp_path, f"  - {DRAFT}\n", HEAD + "policy: null\n")[0]) == []


def test_a_later_policy_is_merged_over_the_scenarios_own(tmp_path: Path) -> None:
    steps = '  - PolicyPublished: {version: "2", document: {stale: {then: drop}}}\n'
    partition, _ = ran(tmp_path, steps, HEAD + "policy: {stale: {hold: 2s}}\n")
    policy = parse_policy(policies(partition)[1].document)
    assert (policy.version, policy.stale.hold, policy.stale.then) == (2, 2000, "drop")


def test_a_policy_given_as_text_is_sent_as_it_is(tmp_path: Path) -> None:
    partition, _ = ran(tmp_path, '  - PolicyPublished: {version: "2", document: "version: two"}\n')
    assert policies(partition)[1].document == "version: two"


@pytest.mark.parametrize(
    ("fields", "topic"),
    [
        ("by: distill", "memory-writes"),
        ("by: operator", "operator-commands"),
        ("op: promote", "operator-commands"),
        ("op: review", "operator-commands"),
        ("topic: memory-writes, by: operator", "memory-writes"),
    ],
)
def test_a_write_is_on_the_topic_that_its_author_may_write(tmp_path: Path, fields: str, topic: str) -> None:
    partition, _ = ran(tmp_path, f"  - MemoryWrite: {{write: w1, memory: m, revision: m@1, {fields}}}\n")
    assert partition.sent[-1].topic == topic


def test_a_topic_that_is_no_input_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"one\.yaml: step 1: 'outbound' is no input topic"):
        ran(tmp_path, f"  - MessageObserved: {{topic: outbound, {MESSAGE}}}\n")


def test_what_no_schema_can_say_goes_out_as_json_and_comes_back_refused(tmp_path: Path) -> None:
    steps = f"  - MessageObserved: {{{MESSAGE}, author_kind: robot}}\n    expect: [RecordRefused: {{code: invalid}}]\n"
    partition, failure = ran(tmp_path, steps)
    assert failure is None
    assert json.loads(partition.sent[-1].value)["author_kind"] == "robot"
    assert partition.sent[-1].key == b"acme"


def test_what_is_expected_and_comes_passes(tmp_path: Path) -> None:
    steps = f"""\
  - MessageObserved: {{{MESSAGE}, text: known}}
    expect: [EvidenceRecorded: {{status: known}}, not: {{EvidenceRecorded: {{status: unknown}}}}]
  - {DRAFT}
    expect:
      - TurnAuthorized: {{text: hi, destination: {{workspace: slack:T1}}}}
      - count: {{TurnDecided: 1, WriteRefused: 0}}
"""
    assert ran(tmp_path, steps)[1] is None


@pytest.mark.parametrize(
    "expect",
    [
        "[TurnDecided: {verdict: drop}]",
        "[TurnDecided: {verdict: deliver, turn: t2}]",
        "[not: {TurnAuthorized: {}}]",
        "[not: {TurnAuthorized: {text: hi}}]",
        "[count: {TurnAuthorized: 2}]",
        "[count: {TurnAuthorized: 0}]",
        "[EvidenceRecorded: {}]",
        "[TurnDecided: {verdict: deliver}, TurnDecided: {verdict: drop}]",
        "nothing",
    ],
)
def test_what_is_expected_and_does_not_come_fails(tmp_path: Path, expect: str) -> None:
    _, failure = ran(tmp_path, f"  - {DRAFT}\n    expect: {expect}\n")
    assert failure is not None
    assert len(failure.unmet) == 1


def test_nothing_overlooks_the_stretch_and_the_audit_trace(tmp_path: Path) -> None:
    steps = f"  - wait: 1s\n    expect: nothing\n  - {DRAFT}\n    expect: [not: {{SharingOffered: {{}}}}]\n"
    assert ran(tmp_path, steps)[1] is None


def test_a_failure_shows_the_step_what_was_expected_and_every_record_that_came(tmp_path: Path) -> None:
    steps = f"  - wait: 1s\n  - {DRAFT}\n    expect: [TurnDecided: {{verdict: drop}}, not: {{TurnAuthorized: {{}}}}]\n"
    failure = ran(tmp_path, steps)[1]
    assert failure is not None
    lines = failure.lines()
    assert lines[:3] == [
        "step 2 (TurnDrafted)",
        '  expected  TurnDecided: {"verdict": "drop"}',
        "  expected  not: {TurnAuthorized: {}}",
    ]
    assert [line.split()[:2] for line in lines[3:]] == [
        ["came", "TurnDecided"],
        ["came", "DecisionTraced"],
        ["came", "TurnAuthorized"],
        ["came", "StretchApplied"],
    ]


def test_a_run_ends_at_its_first_failure(tmp_path: Path) -> None:
    partition, failure = ran(tmp_path, f"  - {DRAFT}\n    expect: nothing\n  - wait: 1s\n")
    assert failure is not None
    assert not any(isinstance(r, Tick) for r in partition.records)


def test_a_captured_field_stands_for_itself_in_later_steps_and_expectations(tmp_path: Path) -> None:
    grant = "GrantCommanded: {command: g1, operator: op1, op: grant}"
    steps = f"""\
  - {grant}
    capture: {{code: SharingOffered.code}}
  - MessageObserved: {{{MESSAGE}, text: "  Share $code "}}
  - {grant}
    expect: [SharingOffered: {{code: $code}}, not: {{SharingOffered: {{code: x$code}}}}]
"""
    partition, failure = ran(tmp_path, steps)
    assert failure is None
    (message,) = (r for r in partition.records if isinstance(r, MessageObserved))
    assert message.text == "  Share ABCDEFGH2345 "


def test_a_capture_of_what_did_not_come_fails_the_step(tmp_path: Path) -> None:
    _, failure = ran(tmp_path, f"  - {DRAFT}\n    capture: {{code: SharingOffered.code}}\n")
    assert failure is not None
    assert failure.unmet == ("capture: {code: SharingOffered.code}",)


def test_times_in_a_draft_are_offsets_too(tmp_path: Path) -> None:
    steps = """\
  - TurnDrafted: {turn: t1, room: slack:T1/D1, text: hi, deadline: 30s}
    expect: [TurnAuthorized: {valid_until: 1767225630000}]
"""
    partition, failure = ran(tmp_path, steps)
    assert failure is None
    (draft,) = (r for r in partition.records if isinstance(r, TurnDrafted))
    assert draft.deadline == EPOCH + 30_000
