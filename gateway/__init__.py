"""How anyone asks: an HTTP API for agents, for connectors of other chat systems, and for whoever carries out a turn."""
