"""How agent frameworks are hooked: what a tool returns, what a memory holds, and the final answer (docs/agents.md)."""
