"""Claims, the same in Postgres and in an embedded log's file: one attempt sends, and what has ended stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from turngate.schemas.shapes import Reason
from turngate.sinks.claims import Claims, ClaimsUnavailable, Key, Kind, Place, State, question_id
from turngate.sinks.local_claims import LocalClaims
from turngate.sinks.postgres_claims import PostgresClaims
from turngate.streams.kafka.settings import PostgresSettings
from turngate.streams.local_log import LocalLog

PLACE = Place("mesh", "slack:T1/C1", "1700000000.000100")
MESSAGE = "slack:T1/C1/1700000000.000200"
WHY = (Reason(code="destination_enlarged", ref="slack:T1/C1"), Reason(code="connector_refused", detail="is_archived"))
FINAL = (State.SENT, State.FAILED, State.WITHHELD)
AT = 1_767_225_600_000


@pytest.fixture(params=["postgres", "file"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path, unique: str) -> AsyncIterator[Callable[[], Claims]]:
    """Opens the same claims once more, as a process that was started again would; another test's are elsewhere."""
    if request.param == "file":
        log: list[LocalLog] = []

        def anew() -> Claims:
            if log:
                log.pop().close()
            log.append(LocalLog(tmp_path / "log"))
            return LocalClaims(log[0])

        yield anew
        log.pop().close()
        return
    settings = PostgresSettings(request.getfixturevalue("postgres"))
    async with AsyncExitStack() as stack:

        def connected() -> Claims:
            made = PostgresClaims(settings)
            stack.push_async_exit(made)
            return made

        yield connected


@pytest.fixture
def claims(reopen: Callable[[], Claims]) -> Claims:
    return reopen()


@pytest.fixture
def key(unique: str) -> Key:
    return Key(unique, Kind.TURN, "t1")


async def test_what_is_claimed_is_sent_and_recorded_with_all_that_was_said(claims: Claims, key: Key) -> None:
    taken = await claims.take(key, PLACE, "a", AT)
    assert (taken.key, taken.place, taken.state, taken.owner, taken.at) == (key, PLACE, State.CLAIMED, "a", AT)
    assert await claims.begin(key, "a")
    ended = await claims.end(key, "a", State.SENT, MESSAGE)
    assert (ended.state, ended.message, ended.reasons) == (State.SENT, MESSAGE, ())
    assert await claims.read(key) == ended
    with pytest.raises(LookupError):
        await claims.read(Key(key.tenant, Kind.TURN, "another"))


@pytest.mark.parametrize("name", ["\0", "a\0b", "\\0", "\\\0\\\\", "\ufffd", "\U0001f680" * 512])
async def test_any_name_that_an_agent_chooses_can_be_claimed(claims: Claims, unique: str, name: str) -> None:
    key, place = Key(unique, Kind.TURN, name), Place("mesh", "slack:T1/C1", name)
    await claims.take(key, place, "a", AT)
    assert await claims.begin(key, "a")
    await claims.end(key, "a", State.UNCERTAIN)
    (found,) = [claim for claim in await claims.uncertain(AT) if claim.key.tenant == unique]
    assert (found.key, found.place) == (key, place)


async def test_what_nobody_has_begun_to_send_is_taken_over(claims: Claims, key: Key) -> None:
    await claims.take(key, PLACE, "a", AT)
    again = await claims.take(key, Place("scout", "slack:T1/C2"), "b", AT + 1)
    assert (again.state, again.owner, again.place, again.at) == (State.CLAIMED, "b", PLACE, AT)
    assert not await claims.begin(key, "a")
    assert await claims.begin(key, "b")


async def test_what_somebody_is_sending_is_nobody_elses(claims: Claims, key: Key) -> None:
    await claims.take(key, PLACE, "a", AT)
    assert await claims.begin(key, "a")
    assert await claims.begin(key, "a")  # the first answer may have been lost
    found = await claims.take(key, PLACE, "b", AT)
    assert (found.state, found.owner) == (State.SENDING, "a")
    assert not await claims.begin(key, "b")
    assert not await claims.release(key, "b")
    assert (await claims.end(key, "b", State.WITHHELD, reasons=WHY)).state is State.SENDING
    assert (await claims.end(key, "b", State.FAILED, reasons=WHY)).state is State.SENDING


async def test_what_was_surely_not_sent_can_be_sent_again_or_withheld(claims: Claims, key: Key) -> None:
    await claims.take(key, PLACE, "a", AT)
    assert not await claims.release(key, "a")
    await claims.begin(key, "a")
    assert await claims.release(key, "a")
    assert (await claims.take(key, PLACE, "b", AT)).owner == "b"
    withheld = await claims.end(key, "b", State.WITHHELD, reasons=WHY)
    assert (withheld.state, withheld.reasons) == (State.WITHHELD, WHY)


@pytest.mark.parametrize("state", FINAL)
async def test_what_has_ended_stays_as_it_is(claims: Claims, key: Key, state: State) -> None:
    await claims.take(key, PLACE, "a", AT)
    await claims.begin(key, "a")
    ended = await claims.end(key, "a", state, MESSAGE, WHY)
    assert ended.state is state
    for other in (*FINAL, State.UNCERTAIN):
        assert await claims.end(key, "a", other) == ended
    assert await claims.take(key, PLACE, "b", AT + 9) == ended
    assert not await claims.begin(key, "a")
    assert not await claims.release(key, "a")


async def test_what_is_uncertain_may_turn_out_to_have_been_sent_and_nothing_else(claims: Claims, key: Key) -> None:
    await claims.take(key, PLACE, "a", AT)
    await claims.begin(key, "a")
    assert (await claims.end(key, "b", State.UNCERTAIN)).state is State.UNCERTAIN
    assert not await claims.begin(key, "a")
    assert (await claims.end(key, "a", State.FAILED)).state is State.UNCERTAIN
    mine = [claim for claim in await claims.uncertain(AT) if claim.key == key]
    assert [(claim.state, claim.place) for claim in mine] == [(State.UNCERTAIN, PLACE)]
    assert key not in [claim.key for claim in await claims.uncertain(AT + 1)]
    assert (await claims.end(key, "b", State.SENT, MESSAGE)).message == MESSAGE
    assert key not in [claim.key for claim in await claims.uncertain(AT)]


async def test_a_claim_is_one_things_alone(claims: Claims, key: Key) -> None:
    others = [
        Key(key.tenant, Kind.QUESTION, "t1"),
        Key(key.tenant, Kind.TURN, "t2"),
        Key(f"{key.tenant}x", key.kind, "t1"),
    ]
    await claims.take(key, PLACE, "a", AT)
    await claims.begin(key, "a")
    for other in others:
        assert (await claims.take(other, PLACE, "b", AT)).state is State.CLAIMED


async def test_claims_outlive_their_process(reopen: Callable[[], Claims], key: Key) -> None:
    first = reopen()
    await first.take(key, PLACE, "a", AT)
    await first.begin(key, "a")
    again = reopen()
    assert (await again.take(key, PLACE, "b", AT)).state is State.SENDING


async def test_of_many_processes_at_once_one_sends(postgres: str, key: Key) -> None:
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(PostgresClaims(PostgresSettings(postgres))) for _ in range(8)]

        async def attempt(number: int) -> bool:
            store, owner = stores[number % len(stores)], str(number)
            taken = await store.take(key, PLACE, owner, AT)
            return taken.owner == owner and await store.begin(key, owner)

        begun = await asyncio.gather(*(attempt(n) for n in range(80)))
    assert sum(begun) == 1


async def test_a_lost_connection_is_an_error_once_and_then_made_anew(postgres: str, key: Key) -> None:
    async with PostgresClaims(PostgresSettings(postgres)) as claims:
        await claims.take(key, PLACE, "a", AT)
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with pytest.raises(ClaimsUnavailable, match="Postgres: "):
            await claims.begin(key, "a")
        assert await claims.begin(key, "a")


async def test_a_database_that_is_not_there_is_said_without_its_password() -> None:
    nowhere = PostgresClaims(PostgresSettings("postgresql://u:geheim@127.0.0.1:1/x"))
    with pytest.raises(ClaimsUnavailable) as raised:
        await nowhere.__aenter__()
    assert "geheim" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


def test_how_far_outputs_were_handled_is_remembered(tmp_path: Path) -> None:
    with LocalLog(tmp_path / "log", 2) as log:
        claims = LocalClaims(log)
        claims.reach("outbound", 1, 7)
        claims.reach("outbound", 1, 9)
        assert [claims.reached("outbound", p) for p in (0, 1)] == [0, 9]
        assert claims.reached("grants", 1) == 0
    with LocalLog(tmp_path / "log") as log:
        assert LocalClaims(log).reached("outbound", 1) == 9


async def test_the_questions_about_a_turn_are_found_by_it_alone(claims: Claims, unique: str) -> None:
    room, print_ = "slack:T1/C1", "f" * 64
    for turn, state in (("a", State.SENT), ("a b", State.SENT), ("a", State.FAILED), ("%", State.SENT)):
        key = Key(unique, Kind.QUESTION, question_id(turn, print_, f"{room}{state}"))
        await claims.take(key, PLACE, "o", AT)
        assert await claims.begin(key, "o")
        await claims.end(key, "o", state, MESSAGE)
    await claims.take(Key(unique, Kind.TURN, f"a {print_} {room}"), PLACE, "o", AT)
    for turn in ("a", "a b", "%"):
        (found,) = await claims.questions(unique, turn)
        assert (found.key.id, found.message) == (question_id(turn, print_, f"{room}{State.SENT}"), MESSAGE)
    assert await claims.questions(unique, "b") == []
    assert await claims.questions("another", "a") == []


async def test_what_is_long_past_is_forgotten(claims: Claims, unique: str) -> None:
    old, new = (Key(unique, Kind.TURN, name) for name in ("old", "new"))
    await claims.take(old, PLACE, "a", 1_000)
    await claims.take(new, PLACE, "a", 2_000)
    assert await claims.prune(2_000) == 1
    with pytest.raises(LookupError):
        await claims.read(old)
    assert (await claims.read(new)).at == 2_000
    await claims.prune(3_000)
