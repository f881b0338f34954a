"""Decides which policy a scenario's tenants have (contract sections 5 and 8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

#: Contract section 5's document, with the two agents of section 8.
DEFAULT: Mapping[str, Any] = {
    "version": 1,
    "agents": {"mesh": {"accounts": ["slack:T1/UBOT"]}, "scout": {"accounts": ["slack:T1/USCOUT"]}},
    "freshness": {"destination": "60s", "observation": "1h", "settle": "30s", "clock_skew": "5s", "delivery": "5s"},
    "stale": {"hold": "5s", "then": "downgrade"},
    "trusted_bots": [],
    "open_rooms": "refuse",
    "notice": "I can't check who can read this room right now.",
    "sharing": {"code_ttl": "15m", "audiences": ["workspace", "public"]},
    "sensitivity": {"enabled": False, "deadline": "2s"},
    "evidence": {"max_leaves": 5000},
    "tools": {
        "wiki": {
            "adapter": "mcp",
            "audience": {"workspace": "slack:T1"},
            "restrict": None,
            "private": False,
            "untrusted": False,
        }
    },
    "operations": {
        "gmail.sendEmail": {"access": "write", "audience": "external"},
        "crm.refund": {"access": "write", "audience": "internal"},
        "crm.read": {"access": "read", "audience": "internal"},
    },
    "skills": {
        "refund": {
            "operation": "crm.refund",
            "params": {
                "amount": {"type": "price", "max": 500, "set_by": ["read", "person"]},
                "invoice": {"type": "id", "set_by": ["read"]},
            },
            "unique": "$params.invoice",
            "valid_for": "30d",
            "approval": "required",
            "recent_read": {"operation": "crm.read", "within": "10m"},
        }
    },
    "interlock": {
        "mode": "refuse",
        "outward": "ask",
        "untrusted_writes": "ask",
        "ask_ttl": "15m",
        "taint_ttl": "24h",
        "approvers": [],
        "leak_guard": False,
        "link_hosts": [],
    },
    "retention": {"room_empty": "24h", "room_inactive": "90d", "messages": "180d", "log": "7y"},
}


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with what `over` says; maps are merged key by key, everything else of `over` stands instead."""
    out = deepcopy(dict(base))
    for key, value in over.items():
        inner = out.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        out[key] = merged(inner, value) if both and inner is not None else deepcopy(value)
    return out


def document(policy: Mapping[str, Any]) -> str:
    """A policy as the JSON text that `PolicyPublished` carries."""
    return json.dumps(policy, ensure_ascii=False)
