"""Only what the engine waits for is assessed: bodies of `create` and `amend` where the policy enables it (R-SEN-1)."""

from __future__ import annotations

import pytest

from tests.connectors.assessor.writes import DISABLED, ENABLED, a_policy, a_write
from turngate.connectors.assessor.assessment import Assessment, Wanted
from turngate.schemas.inputs import Label, SensitivityAssessed, Tick


def learned(*documents: str) -> Wanted:
    wanted = Wanted()
    for document in documents:
        wanted.learn(a_policy(document))
    return wanted


def test_nothing_is_wanted_where_nobody_enabled_it() -> None:
    assert learned().wants(a_write()) is None
    assert learned(DISABLED).wants(a_write()) is None
    assert learned("version: what").wants(a_write()) is None
    assert learned(ENABLED).wants(a_write(tenant="other")) is None


@pytest.mark.parametrize(("op", "wanted"), [("create", True), ("amend", True), ("derive", False), ("forget", False)])
def test_bodies_of_create_and_amend_are_wanted(op: str, wanted: bool) -> None:
    write = a_write(op=op)
    assert learned(ENABLED).wants(write) == (write if wanted else None)


def test_what_was_told_about_health_is_given_to_nobody() -> None:  # R-MEM-6
    assert learned(ENABLED).wants(a_write(health=True)) is None
    assert learned(ENABLED).wants(Tick(tenant="0", at=1)) is None


def test_a_room_that_started_with_it_enabled_keeps_it() -> None:  # R-POL-1
    wanted = learned(ENABLED, DISABLED)
    assert wanted.wants(a_write()) is not None
    assert wanted.deadline("acme") == 1000  # the smaller of the two
    assert learned(ENABLED).deadline("acme") == 2000


def test_an_assessment_names_the_write_and_its_tenant() -> None:
    said = Assessment(Label.SENSITIVE, "health", ask_author=True).record(a_write(), 7)
    assert said == SensitivityAssessed(
        tenant="acme", at=7, write="w1", label=Label.SENSITIVE, note="health", ask_author=True
    )
