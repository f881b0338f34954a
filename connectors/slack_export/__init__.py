"""Decides what a Slack workspace export says, and leaves unknown what it does not (docs/slack-export.md)."""

from turngate.connectors.slack.entries import RoomEvent
from turngate.connectors.slack_export.errors import ExportError
from turngate.connectors.slack_export.files import Limits
from turngate.connectors.slack_export.reader import Export, Summary, read_export

__all__ = ["Export", "ExportError", "Limits", "RoomEvent", "Summary", "read_export"]
