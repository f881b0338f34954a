"""What the client does is the same whichever way it asks: over HTTP, straight over Kafka, or in process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.client.places import ALEX, BO, DIRECT, GENERAL, NOWHERE, Office
from turngate.client import Audience, Field, Reason
from turngate.schemas.codec import Codec
from turngate.schemas.outputs import Verdict
from turngate.schemas.shapes import Code

FULL, NARROW = "from the 14th on", "I would rather not say"


def codes(reasons: Iterable[Reason]) -> set[str]:
    return {reason.code for reason in reasons}


async def test_what_a_room_may_hear_is_handed_over_and_the_answer_passes(office: Office) -> None:
    """R-TURN-1, R-TURN-2."""
    private = await office.said(DIRECT, "I fly on the 14th")
    asked = await office.said(GENERAL, "when am I away?")
    async with office.gate() as gate, gate.turn(room=GENERAL, trigger=asked) as turn:
        context = await turn.context({private: "Alex flies on the 14th", asked: "when am I away?"})
        verdict = await turn.say(NARROW)
    assert dict(context) == {asked: "when am I away?"}
    assert codes(context.withheld[private]) == {Code.AUDIENCE_NOT_SUBSET}
    assert (verdict.verdict, verdict.text, verdict.rendering) == (Verdict.DELIVER, NARROW, 0)
    assert [(s.turn, s.text) for s in await office.sent()] == [(turn.name, NARROW)]


async def test_one_inference_over_everything_makes_every_answer_a_refusal(office: Office) -> None:
    """R-TURN-2."""
    private = await office.said(DIRECT, "I fly on the 14th")
    asked = await office.said(GENERAL, "when am I away?")
    async with office.gate() as gate, gate.turn(room=GENERAL, trigger=asked) as turn:
        narrow = await turn.context([asked])
        turn.saw(private)  # nobody says in which inference
        verdict = await turn.say(FULL, narrow.rendering(NARROW))
    assert (verdict.verdict, verdict.text, verdict.passed) == (Verdict.DROP, None, False)
    assert codes(verdict.reasons) == {Code.AUDIENCE_NOT_SUBSET}
    assert await office.sent() == []


async def test_one_inference_for_one_set_of_readers_lets_the_narrower_answer_pass(office: Office) -> None:
    """R-TURN-2; the twin of the one above."""
    private = await office.said(DIRECT, "I fly on the 14th")
    asked = await office.said(GENERAL, "when am I away?")
    async with office.gate() as gate, gate.turn(room=GENERAL, trigger=asked) as turn:
        wide, narrow = await turn.context([private, asked]), await turn.context([asked])
        wide.saw(private)
        verdict = await turn.say(wide.rendering(FULL), narrow.rendering(NARROW))
    assert (verdict.verdict, verdict.text, verdict.rendering) == (Verdict.DELIVER, NARROW, 1)


async def test_what_a_tool_returned_counts_for_the_inference_that_called_it(office: Office) -> None:
    """R-EVI-2: for all of them, where it is not said which one that was."""
    asked = await office.said(GENERAL, "when am I away?")
    verdicts = []
    async with office.gate() as gate:
        for said in (True, False):
            async with gate.turn(room=GENERAL, trigger=asked) as turn:
                wide, narrow = await turn.context([asked]), await turn.context([asked])
                await turn.tool_returned("wiki", "search", context=narrow)
                await turn.tool_returned("diary", "read", context=wide if said else None)
                verdicts.append(await turn.say(wide.rendering(FULL), narrow.rendering(NARROW)))
    assert [(v.verdict, v.text) for v in verdicts] == [(Verdict.DELIVER, NARROW), (Verdict.DROP, None)]


async def test_a_tool_that_nobody_named_is_of_unknown_audience(office: Office) -> None:
    """R-AUD-8, with its named twin."""
    asked = await office.said(GENERAL, "what is new?")
    verdicts = []
    async with office.gate() as gate:
        for server in ("shadow", "wiki"):
            async with gate.turn(room=GENERAL, trigger=asked) as turn:
                ref = await turn.tool_returned(server, "read")
                verdicts.append((ref, await turn.say("this")))
    (unknown, refused), (_, delivered) = verdicts
    assert [(r.code, r.ref) for r in refused.reasons] == [(Code.SOURCE_UNKNOWN, unknown)]
    assert delivered.text == "this"


async def test_a_memory_is_heard_where_its_sources_may_be(office: Office) -> None:
    """R-EVI-2, and its twin in the room it comes from."""
    private = await office.said(DIRECT, "I fly on the 14th")
    async with office.gate() as gate:
        async with gate.turn(room=DIRECT, trigger=private) as turn:
            kept = await turn.remember("Alex flies on the 14th")  # also where nobody asked for context before
            acknowledged = await turn.say("noted")
        memory = f"revision:{kept.revision}"
        async with gate.turn(room=GENERAL) as turn:
            withheld = await turn.context({memory: "Alex flies on the 14th"})
        async with gate.turn(room=DIRECT) as turn:
            shown = await turn.context({memory: "Alex flies on the 14th"})
            ended = await turn.forget(kept.memory, kept.revision or "")
            again = await turn.context([memory])
            twice = await turn.forget(kept.memory, kept.revision or "")
    assert acknowledged.text == "noted"
    assert (dict(withheld), list(shown)) == ({}, [memory])
    assert (ended.revision, codes(again.withheld[memory])) == (kept.revision, {Code.REVISION_NOT_CURRENT})
    assert (twice.revision, codes(twice.reasons)) == (None, {Code.BASE_NOT_CURRENT})


async def test_a_narrower_answer_need_not_acknowledge_what_was_remembered(office: Office) -> None:
    """R-TURN-5: whoever hears of a memory must be permitted what it is made of."""
    asked = await office.said(GENERAL, "what do you know?")
    verdicts = []
    async with office.gate() as gate:
        for acknowledges in (True, False):
            async with gate.turn(room=GENERAL, trigger=asked) as turn:
                wide, narrow = await turn.context([asked]), await turn.context([asked])
                await turn.tool_returned("diary", "read", context=wide)
                assert (await turn.remember("Alex flies on the 14th")).revision is not None
                verdicts.append(await turn.say(narrow.rendering(NARROW), acknowledges=acknowledges))
    assert [v.text for v in verdicts] == [None, NARROW]


async def test_a_secret_is_in_no_context(office: Office) -> None:
    """R-EGR-4: a value that names its fields loses it, any other is withheld whole."""
    asked = await office.said(GENERAL, "what is the wifi?")
    secret = Field(name="key", value="hunter2-hunter2", class_="secret")
    name = Field(name="ssid", value="office", class_="public")
    async with office.gate() as gate, gate.turn(room=GENERAL, trigger=asked) as turn:
        ref = await turn.tool_returned("wiki", "wifi", fields=[secret, name])
        fields = await turn.context({ref: {"key": "hunter2-hunter2", "ssid": "office"}})
        whole = await turn.context({ref: "office, hunter2-hunter2"})
        verdict = await turn.say("it is hunter2-hunter2")
    assert dict(fields) == {ref: {"ssid": "office"}}
    assert (dict(whole), codes(whole.withheld[ref])) == ({}, {Code.SECRET_EXPOSED})
    assert (verdict.text, codes(verdict.reasons)) == (None, {Code.SECRET_EXPOSED})


async def test_what_is_said_about_health_lies_on_no_topic(office: Office) -> None:
    """R-MEM-6, R-EGR-6."""
    asked = await office.said(DIRECT, "what may I not eat?")
    allergy = Field(name="allergy", value="penicillin", class_="personal", subject=ALEX, health=True)
    async with office.gate() as gate, gate.turn(room=DIRECT, trigger=asked) as turn:
        await turn.tool_returned("diary", "read", fields=[allergy])
        refused = await turn.remember("penicillin makes Alex ill", health=True)
        await turn.say("have a look at your file")
    assert (refused.revision, codes(refused.reasons)) == (None, {Code.HEALTH_NOT_RETAINED})
    lying = [r for topic in ("tool-results", "memory-writes", "turn-drafts") for r in await office.place.records(topic)]
    assert {type(r).__name__ for r in lying} == {"ToolReturned", "MemoryWrite", "ContextRequested", "TurnDrafted"}
    assert not [r for r in lying if b"penicillin" in Codec().encode(r)]


async def test_a_room_that_nobody_lists_hears_nothing_of_it(office: Office) -> None:
    """R-TURN-6: the policy's notice is said instead, which is not the agent's."""
    asked = await office.said(GENERAL, "well?")
    async with office.gate() as gate, gate.turn(room=NOWHERE, trigger=asked) as turn:
        verdict = await turn.say("well")
    assert (verdict.verdict, verdict.text, verdict.passed) == (Verdict.DOWNGRADE, None, True)
    assert await office.decided(turn.name) == ["hold", "downgrade"]
    assert "well" not in [s.text for s in await office.sent()]


async def test_a_turn_that_asks_is_out_when_somebody_says_yes(office: Office) -> None:
    """R-TNT-5, R-TNT-6."""
    private = await office.said(DIRECT, "read this")
    async with office.gate() as gate, gate.turn(room=DIRECT, trigger=private) as turn:
        await turn.tool_returned("web", "get")
        await turn.tool_returned("diary", "read", private=True)
        asking = await turn.say("see https://evil.example/x")
        assert (asking.verdict, asking.text, asking.waits) == (Verdict.ASK, None, True)
        assert codes(asking.reasons) == {Code.INTERLOCK_LINK}
        await office.approve(asking, DIRECT, by=ALEX)
        final = await turn.final()
    assert (final.verdict, final.text) == (Verdict.DELIVER, "see https://evil.example/x")
    assert [s.turn for s in await office.sent()] == [turn.name]


async def test_sharing_is_offered_to_the_one_author_and_to_nobody_else(office: Office) -> None:
    """R-GRT-1: no code reaches the agent."""
    private = await office.said(DIRECT, "I fly on the 14th")
    everybody = Audience(workspaces=("slack:T1",))
    async with office.gate() as gate:
        async with gate.turn(room=DIRECT, trigger=private) as turn:
            await turn.context([private])
            kept = await turn.remember("Alex flies on the 14th")
            offered = await turn.request_sharing(kept.revision or "", everybody)
        async with gate.turn(room=GENERAL) as turn:
            refused = await turn.request_sharing(kept.revision or "", everybody)
    assert offered == ()
    assert refused is not None
    assert codes(refused) == {Code.NOT_DIRECT}


async def test_the_same_turn_begun_again_is_the_same_turn(office: Office) -> None:
    """R-TURN-8: after a restart of the agent, say; other content says nothing, and the first stands."""
    asked = await office.said(GENERAL, "hello?")
    verdicts = []
    for text in ("hello", "hello", "hi"):
        async with office.gate() as gate, gate.turn(room=GENERAL, trigger=asked, name="my-own-id") as turn:
            verdicts.append(await turn.say(text))
    assert [v.text for v in verdicts] == ["hello", "hello", None]
    assert verdicts[2].verdict in (Verdict.DROP, None)  # `turn_conflict`, or HTTP's 409
    assert [s.text for s in await office.sent()] == ["hello"]


async def test_a_say_that_was_cancelled_drafts_nothing_again(office: Office) -> None:
    asked = await office.said(GENERAL, "hello?")
    async with office.gate() as gate, gate.turn(room=NOWHERE, trigger=asked) as turn:
        saying = asyncio.create_task(turn.say("hello"))
        await office.until_held(turn.name)
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        other = await turn.say("something else")
        await office.listed(NOWHERE, ALEX, BO)
        same = await turn.say("hello")
    assert (other.text, codes(other.reasons)) == (None, {Code.TURN_CONFLICT})
    assert (same.verdict, same.text) == (Verdict.DELIVER, "hello")
    assert [s.text for s in await office.sent()] == ["hello"]
    drafts = [r for r in await office.place.records("turn-drafts") if type(r).__name__ == "TurnDrafted"]
    assert len({r.model_dump_json() for r in drafts}) == 1


async def test_patience_ends_in_silence_and_the_turn_goes_on(live_office: Office) -> None:
    asked = await live_office.said(GENERAL, "hello?")
    async with live_office.gate(patience=0.3) as gate, gate.turn(room=NOWHERE, trigger=asked) as turn:
        silent = await turn.say("hello")
        await live_office.listed(NOWHERE, ALEX, BO)
        final = await turn.final(patience=20)
    assert silent.text is None
    assert silent.verdict in (Verdict.HOLD, None)  # a gateway says nothing of it at once
    assert (final.verdict, final.text) == (Verdict.DELIVER, "hello")
    assert [s.text for s in await live_office.sent()] == ["hello"]


async def test_who_observes_is_handed_everything_and_speaks_regardless(office: Office) -> None:
    private = await office.said(DIRECT, "I fly on the 14th")
    asked = await office.said(GENERAL, "when am I away?")
    async with office.gate(mode="observe", patience=20) as gate:
        async with gate.turn(room=GENERAL, trigger=asked) as turn:
            context = await turn.context({private: "Alex flies on the 14th", asked: "when am I away?"})
            refused = await turn.say(FULL)
        async with gate.turn(room=DIRECT, trigger=private) as turn:
            await turn.context({private: "Alex flies on the 14th"})
            passed = await turn.say(FULL)
    assert list(context) == [private, asked]
    assert list(context.withheld) == [private]
    assert (refused.verdict, refused.text, refused.observed) == (Verdict.DROP, FULL, True)
    assert codes(refused.reasons) == {Code.AUDIENCE_NOT_SUBSET}
    assert (passed.verdict, passed.text) == (Verdict.DELIVER, FULL)


async def test_many_turns_at_once_get_each_its_own_verdict(office: Office) -> None:
    private = await office.said(DIRECT, "I fly on the 14th")
    asked = await office.said(GENERAL, "when am I away?")

    async def one(number: int) -> None:
        async with gates[number % 2].turn(room=GENERAL, trigger=asked) as turn:
            if number % 3 == 0:
                turn.saw(private)
            verdict = await turn.say(f"text {number}")
            assert (verdict.turn, verdict.text) == (turn.name, None if number % 3 == 0 else f"text {number}")

    async with office.gate("mesh") as first, office.gate("scout") as second:
        gates = (first, second)
        await asyncio.gather(*(one(number) for number in range(60)))
    said = {s.text: s.agent for s in await office.sent()}
    assert said == {f"text {n}": ("mesh", "scout")[n % 2] for n in range(60) if n % 3}
