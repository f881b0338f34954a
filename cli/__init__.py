"""How Turngate is started: the `turngate` command. It wires the other parts together and holds nothing itself."""
