"""Decides how a turn's id travels in its message's metadata, by which the message is known again (R-AUD-7, R-DLV-3).

The form is Slack's: anybody in a workspace can read it, so it holds the id and nothing else.
"""

from __future__ import annotations

from typing import Any

#: What marks a message as a turn, and what as a question or an offer, which is evidence of no turn.
TURN, NOTE = "turngate_turn", "turngate_note"


def metadata(kind: str, name: str) -> dict[str, Any]:
    """The metadata of a message that is this turn, or this note."""
    return {"event_type": kind, "event_payload": {"id": name}}


def named_in(found: object, kind: str = TURN) -> str | None:
    """The id in a message's metadata; None where that is of another kind, or of no form of ours.

    Any app may set metadata: it counts only on a message of the agent's own account.
    """
    match found:
        case {"event_type": str(said), "event_payload": {"id": str(name)}} if said == kind and name:
            return name
    return None
