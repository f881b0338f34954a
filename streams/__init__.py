"""How records flow: the logs, the fold of stretches over an engine, and the runtimes that carry them."""
