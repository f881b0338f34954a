"""An agent as a process of its own, to be killed: says one text in a named turn, and prints what it may say.

`python -m tests.client.agent_process ROOM TRIGGER NAME TEXT`, with `TURNGATE_URL` and `TURNGATE_TOKEN`.
"""

from __future__ import annotations

import sys

from turngate.client.sync import connect


def main() -> None:
    room, trigger, name, text = sys.argv[1:]
    with connect() as gate, gate.turn(room=room, trigger=trigger, name=name) as turn:
        sys.stdout.write(f"{turn.say(text).text}\n")


if __name__ == "__main__":
    main()
