"""No turn is said twice, whatever is not answered, killed or taken over, and each has a record (R-DLV-2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.kafka.cluster import until
from tests.sinks.records import ROOM
from tests.sinks.stage import QUICK, Stage
from tests.slack import Fault
from turngate.schemas.inputs import Record, TurnDelivered
from turngate.sinks import courier
from turngate.sinks.claims import Key, Kind, Place
from turngate.sinks.errands import Patience
from turngate.sinks.local_claims import LocalClaims
from turngate.streams.clock import now_ms
from turngate.streams.log import LogError

DONE = (Fault.FATAL, Fault.BROKEN, Fault.RESET, Fault.SILENT, Fault.HALF)
NOT_DONE = (Fault.UNAVAILABLE, Fault.REFUSED, Fault.LOST)


@pytest.mark.parametrize("fault", DONE)
async def test_what_may_have_been_sent_is_looked_up_and_not_sent_again(stage: Stage, fault: Fault) -> None:  # R-DLV-2
    stage.slack.fail("chat.postMessage", fault)
    stage.authorize("t1", "t2")
    await stage.deliver(call=0.3)
    await stage.deliver()
    assert stage.said() == ["this is t1", "this is t2"]
    assert stage.outcomes() == {"t1": ("sent",), "t2": ("sent",)}
    assert stage.recorded()[0].message == f"{ROOM}/{stage.slack.posts[0].ts}"


@pytest.mark.parametrize("fault", NOT_DONE)
async def test_what_is_not_found_stays_uncertain_and_is_never_sent_blindly(stage: Stage, fault: Fault) -> None:
    stage.slack.fail("chat.postMessage", fault)
    stage.authorize("t1", "t2")
    await stage.deliver(call=0.3)
    await stage.deliver()
    assert stage.said() == ["this is t2"]
    assert stage.outcomes() == {"t1": ("uncertain", "not_confirmed"), "t2": ("sent",)}


async def test_what_is_found_later_has_been_sent(stage: Stage) -> None:
    async def sent() -> bool:
        return stage.outcomes() == {"t1": ("sent",)}

    stage.slack.fail("chat.postMessage", Fault.RESET)
    stage.slack.fail("conversations.history", Fault.UNAVAILABLE, times=1)
    stage.authorize("t1")
    async with stage.delivery() as running:
        await running.look()
        await running.finish()
        assert stage.outcomes() == {"t1": ("uncertain", "not_confirmed")}
        await until(sent)
    assert stage.said() == ["this is t1"]


async def test_what_was_uncertain_is_looked_for_after_a_restart_too(stage: Stage) -> None:
    async def sent() -> bool:
        return stage.outcomes() == {"t1": ("sent",)}

    stage.slack.fail("chat.postMessage", Fault.RESET)
    stage.slack.fail("conversations.history", Fault.UNAVAILABLE, times=1)
    stage.authorize("t1")
    await stage.deliver(patience=Patience(looks=()))
    assert stage.outcomes() == {"t1": ("uncertain", "not_confirmed")}
    stage.restarted()
    async with stage.delivery():
        await until(sent)


async def test_what_was_found_but_could_not_be_recorded_is_found_again_after_a_restart(stage: Stage) -> None:
    tried: list[Record] = []

    async def append(records: Sequence[Record]) -> None:
        if any(isinstance(record, TurnDelivered) and record.status == "sent" for record in records):
            tried.extend(records)
            raise LogError("the log is full")
        stage.write(*records)

    async def refused() -> bool:
        return bool(tried)

    async def sent() -> bool:
        return stage.outcomes() == {"t1": ("sent",)}

    stage.slack.fail("chat.postMessage", Fault.RESET)
    stage.slack.fail("conversations.history", Fault.UNAVAILABLE, times=1)
    stage.authorize("t1")
    async with stage.delivery(append=append) as running:
        await running.look()
        await running.finish()
        await until(refused)
    assert stage.outcomes() == {"t1": ("uncertain", "not_confirmed")}
    stage.restarted()
    async with stage.delivery():
        await until(sent)
    assert stage.said() == ["this is t1"]


async def test_what_is_left_when_a_partition_is_taken_away_is_left_to_whoever_has_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:  # R-RUN-4
    async def begun() -> bool:
        return len(stage.slack.called("conversations.members")) > 1

    monkeypatch.setattr(courier, "AT_ONCE", 1)
    stage.slack.fail("conversations.members", Fault.UNAVAILABLE, times=1_000)
    stage.authorize("t1", valid_until=now_ms() + 1_500)
    stage.authorize("t2", "t3", room="slack:T1/C9", destination="public")
    async with stage.courier() as carrying:
        taking = asyncio.create_task(carrying.take_all(list(stage.log.scan("outbound"))))
        await until(begun)
        carrying.drop("outbound", 0)
        await taking
        await carrying.finish()
        assert stage.outcomes().keys() == {"t1", "t2"}  # that was waited for already
        assert carrying.progress.take() == {}


async def test_a_message_in_a_thread_is_found_there(stage: Stage) -> None:
    root = stage.slack.say(stage.room, "UALEX", "hi")
    stage.slack.fail("chat.postMessage", Fault.RESET, times=2)
    stage.authorize("t1", thread=root)
    stage.authorize("t2", thread="1700000000.000100")  # Slack drops a thread that is not there
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("sent",), "t2": ("sent",)}
    assert stage.said() == ["this is t1", "this is t2"]


async def test_anothers_message_with_the_turns_mark_is_not_the_turn(stage: Stage) -> None:
    metadata = {"event_type": "turngate_turn", "event_payload": {"id": "t1"}}
    stage.slack.fail("chat.postMessage", Fault.REFUSED)
    stage.slack.say(stage.room, "UALEX", "this is t1", metadata=metadata)
    stage.authorize("t1")
    await stage.deliver()
    assert stage.outcomes() == {"t1": ("uncertain", "not_confirmed")}


async def test_a_turn_that_lies_on_the_log_twice_is_said_once(stage: Stage) -> None:
    stage.authorize("t1")
    stage.authorize("t1")
    await stage.deliver()
    assert (stage.said(), stage.outcomes()) == (["this is t1"], {"t1": ("sent",)})


def under_way(stage: Stage, turn: str) -> tuple[LocalClaims, Key, Place]:
    """The claims, and what another process claims of them, which is still finishing what it had begun."""
    return LocalClaims(stage.log), Key("acme", Kind.TURN, turn), Place("mesh", ROOM)


async def test_what_another_process_gave_back_is_not_left_to_it(stage: Stage) -> None:  # R-DLV-2
    async def looked_for() -> bool:
        return bool(stage.slack.called("conversations.history"))

    claims, key, place = under_way(stage, "t1")
    await claims.take(key, place, "other", now_ms())
    await claims.begin(key, "other")
    stage.authorize("t1")
    async with stage.delivery(patience=replace(QUICK, sending=0.5)) as running:
        await running.look()
        await until(looked_for)
        await claims.release(key, "other")  # Slack wanted it to wait, and it is killed while it does
        await running.finish()
    assert (stage.said(), stage.outcomes()) == (["this is t1"], {"t1": ("sent",)})


async def test_what_another_process_took_over_is_not_left_to_it(stage: Stage) -> None:  # R-DLV-2
    async def listing() -> bool:
        return bool(stage.slack.called("conversations.members"))

    claims, key, place = under_way(stage, "t1")
    stage.slack.fail("conversations.members", Fault.SILENT)
    stage.authorize("t1")
    async with stage.delivery() as running:
        await running.look()
        await until(listing)
        await claims.take(key, place, "other", now_ms())  # and it is killed
        await running.finish()
    assert (stage.said(), stage.outcomes()) == (["this is t1"], {"t1": ("sent",)})
