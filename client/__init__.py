"""The agent's side: what a runtime hands in before and after its model is asked, and what it may say (docs/agents.md).

    async with connect("http://127.0.0.1:8080", token=TOKEN) as gate:
        async with gate.turn(room=room, trigger=ref) as turn:
            context = await turn.context(history)
            verdict = await turn.say(await draft(context))

`turngate.client.sync` is the same without `async`, `turngate.client.kafka` goes straight to a broker, and
`turngate.client.testing` decides in process, for tests.
"""

from turngate.client.context import Context
from turngate.client.gate import Gate, Mode
from turngate.client.http import connect
from turngate.client.inference import Inference
from turngate.client.memories import Remembered
from turngate.client.transport import Transport, Unreachable
from turngate.client.turn import Turn
from turngate.client.verdict import Verdict
from turngate.schemas.shapes import Action, Audience, FieldClass, Origin, Param, Reason, Rendering
from turngate.schemas.shapes import ValueField as Field

__all__ = [
    "Action",
    "Audience",
    "Context",
    "Field",
    "FieldClass",
    "Gate",
    "Inference",
    "Mode",
    "Origin",
    "Param",
    "Reason",
    "Remembered",
    "Rendering",
    "Transport",
    "Turn",
    "Unreachable",
    "Verdict",
    "connect",
]
