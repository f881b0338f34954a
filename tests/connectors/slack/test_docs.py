"""The manifest of docs/slack.md subscribes to what is understood, and asks for what is called."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from turngate.connectors.slack import events
from turngate.connectors.slack.installing import SCOPES

DOCS = (Path(__file__).parents[3] / "docs" / "slack.md").read_text("utf-8")


def test_the_manifest_subscribes_to_every_event_that_is_understood() -> None:
    found = re.search(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    assert found is not None
    manifest = yaml.safe_load(found[1])
    subscribed = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    messages = {f"message.{kind}" for kind in ("channels", "groups", "im", "mpim")}
    unasked = {"app_rate_limited"}  # comes without a subscription
    understood = {*events.MEMBERSHIP, *events.ROOM, *events.WORKSPACE, "channel_id_changed", "user_change"}
    assert subscribed == messages | understood - unasked
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert scopes == set(SCOPES)
