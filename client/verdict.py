"""Decides what an agent is told of a turn that it drafted."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.schemas import outputs
from turngate.schemas.canonical import digest
from turngate.schemas.digests import content_digest
from turngate.schemas.inputs import TurnDrafted
from turngate.schemas.outputs import TurnDecided
from turngate.schemas.shapes import Reason, Rendering

#: What passes, and what may still be decided otherwise.
_PASSES = (outputs.Verdict.DELIVER, outputs.Verdict.DOWNGRADE)
_WAITS = (outputs.Verdict.HOLD, outputs.Verdict.ASK)


def is_final(decided: TurnDecided) -> bool:
    """Whether this is a turn's last decision (R-TURN-9)."""
    return decided.verdict not in _WAITS


def is_of(decided: TurnDecided, draft: TurnDrafted) -> bool:
    """Whether it decides just this draft, and no other one that was given the same id (R-TURN-8).

    A decision's id is made of the turn and its content (contract section 4).
    """
    return decided.decision == digest({"turn": draft.turn, "content": content_digest(draft)})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a turn.

    `verdict`: what was decided (`turngate.schemas.outputs.Verdict`); None: nothing is known, so nothing is said.
    `text`: what may be said, None: nothing. `rendering`: the number of the rendering that passed; of a `downgrade`
    without one the policy's notice is said. `reasons`: why not (docs/refusals.md says the way on from each).
    `fingerprint`: what an approval must name, of a turn that asks. `observed`: the agent speaks regardless, and `text`
    is the first rendering.
    """

    turn: str
    verdict: outputs.Verdict | None = None
    text: str | None = None
    rendering: int | None = None
    reasons: tuple[Reason, ...] = ()
    fingerprint: str | None = None
    observed: bool = False

    @property
    def passed(self) -> bool:
        """Whether a rendering, the policy's notice or the action was let out."""
        return self.verdict in _PASSES

    @property
    def waits(self) -> bool:
        """Whether it may still pass: the room is being listed (`hold`), or somebody is asked (`ask`)."""
        return self.verdict in _WAITS


def verdict_of(turn: str, decided: TurnDecided | None, renderings: tuple[Rendering, ...], *, observed: bool) -> Verdict:
    """What a decision comes to, None: that there is none, for an agent that drafted these renderings."""
    text = renderings[0].text if observed and renderings else None
    if decided is None:
        return Verdict(turn, text=text, observed=observed)
    number = decided.rendering if decided.verdict in _PASSES else None
    if not observed and number is not None and 0 <= number < len(renderings):
        text = renderings[number].text
    return Verdict(turn, decided.verdict, text, number, decided.reasons, decided.fingerprint, observed=observed)
