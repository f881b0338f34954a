"""The MCP proxy: it stands between a model and one MCP server, for one agent (docs/mcp.md)."""
