"""Decides what a live Slack workspace says: its events, and who can read its conversations (docs/slack.md)."""
