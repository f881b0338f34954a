"""A small CRM as an MCP server: orders are read, and paid back."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer

crm = MCPServer("crm")


@crm.tool()
def read_order(order: str) -> dict[str, Any]:
    """One order and its customer."""
    customer = {"name": "Robin Doe", "mail": "robin@example.com"}
    return {"order": order, "amount": "120.00", "customer": customer, "api_key": "xk-42-ABCD"}


@crm.tool()
def refund(order: str, amount: str) -> str:
    """Pay an order back."""
    return f"{amount} paid back"


if __name__ == "__main__":
    crm.run()
