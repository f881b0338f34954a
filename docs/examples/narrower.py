"""One inference for one set of readers: why the first answer is refused, and how the second passes (docs/agents.md).

    python docs/examples/narrower.py

Everything is decided by the real engine in this process; the model is a function, so that you can see what it sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from turngate.client import Gate
from turngate.client.testing import Workplace

ALEX, BO = "slack:T1/UALEX", "slack:T1/UBO"
DIRECT, GENERAL = "slack:T1/D1", "slack:T1/C1"


def model(seen: Mapping[str, str]) -> str:
    """What a model makes of what it is handed: it answers from all of it."""
    return " ".join(seen.values())


async def careless(gate: Gate, asked: str, known: Mapping[str, str]) -> None:
    """One inference over everything, and two texts made of it."""
    async with gate.turn(room=GENERAL, trigger=asked) as turn:
        turn.saw(*known)
        verdict = await turn.say(f"You are away from the 14th on ({model(known)})", "I would rather not say")
        print("over everything:  ", verdict.text, sorted({reason.code for reason in verdict.reasons}))


async def careful(gate: Gate, asked: str, known: Mapping[str, str]) -> None:
    """The gate hands over what this room may hear, and the model answers from that."""
    async with gate.turn(room=GENERAL, trigger=asked) as turn:
        context = await turn.context(known)
        verdict = await turn.say(f"You told me nothing that I may say here ({model(context)})")
        print("what it may hear: ", verdict.text)


async def two_inferences(gate: Gate, asked: str, known: Mapping[str, str]) -> None:
    """A full answer that uses a tool, and a narrower one made without it, from a context of its own."""
    async with gate.turn(room=GENERAL, trigger=asked) as turn:
        wide = await turn.context(known)
        await turn.tool_returned("diary", "read", context=wide)
        narrow = await turn.context(known)
        verdict = await turn.say(
            wide.rendering("Your diary says: Lisbon, from the 14th on"),
            narrow.rendering("Ask me in a direct message, and I look into your diary"),
        )
        print("two inferences:   ", verdict.text, f"(rendering {verdict.rendering})")


async def main() -> None:
    """Alex has told the agent something in private, and asks about it where Bo reads along."""
    with Workplace(policy={"tools": {"diary": {"adapter": "mcp", "audience": {"readers": [ALEX]}}}}) as workplace:
        workplace.room(DIRECT, ALEX, kind="direct")
        workplace.room(GENERAL, ALEX, BO)
        private = workplace.said(DIRECT, "I fly to Lisbon on the 14th, keep that to yourself", by=ALEX)
        asked = workplace.said(GENERAL, "@mesh when am I away?", by=ALEX)
        known = {private: "I fly to Lisbon on the 14th, keep that to yourself", asked: "@mesh when am I away?"}
        for answer in (careless, careful, two_inferences):
            await answer(workplace.gate(), asked, known)


if __name__ == "__main__":
    asyncio.run(main())
