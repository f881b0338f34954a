"""Decides whether a request is Slack's: signed with the app's secret over these bytes, within five minutes."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping

#: Seconds by which the request's time and ours may differ, either way.
WINDOW = 300
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def signed(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether the signature (`v0`) is of this body and time. Whatever is odd about it, it is not."""
    when, given = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
    if _TIMESTAMP.fullmatch(when) is None or abs(now - int(when)) > WINDOW:
        return False
    digest = hmac.new(secret.encode(), b"v0:" + when.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={digest}".encode(), given.encode("utf-8", "replace"))
