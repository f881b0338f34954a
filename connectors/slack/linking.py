"""Decides when two accounts are proven to be one person's: somebody has answered in both, within ten minutes (R-IDN-1).

`/turngate link` in the first account shows a code, which is typed in the second; that shows another one, which is typed
in the first. Slack shows both to nobody else. A code says what it is about and is signed with the app's secret, so
nothing need be remembered, and any process may go on where another one began.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngate.connectors.slack.directory import Directory
from turngate.connectors.slack.ids import is_id
from turngate.connectors.slack.installations import App, Installation, Installations
from turngate.schemas.inputs import AccountProven, ProofRevoked, Record

COMMAND = "/turngate"
#: Milliseconds for which a code is good, and a proof.
GOOD_FOR, PROVEN_FOR = 600_000, 86_400_000
_FIRST, _SECOND, _END = "1", "2", "3"
_WARNING = "Only if that account is yours: whoever has it may then be told there what you were told here in person."


@dataclass(frozen=True, slots=True)
class Step:
    """What is answered, to be seen by nobody else, and what is to be on the log before that."""

    reply: str
    records: tuple[Record, ...] = ()


HELP = Step(f"`{COMMAND} link`: prove that an account in another workspace is yours too.")
NOT_GOOD = Step(f"This code is not good here, or not any more. Begin again with `{COMMAND} link`.")
NOT_KNOWN = Step("It is not known yet who you are in this organisation. Say something where I am, then try again.")


class Linking:
    """Answers the slash command. A code is of this process' installations, or of another one's with the same file."""

    def __init__(self, installations: Installations, directory: Directory) -> None:
        self._installations = installations
        self._directory = directory

    def answer(self, payload: Mapping[str, Any], home: Installation, now: int) -> Step:
        """What comes of a command that Slack has signed; `now` in milliseconds."""
        user, text = payload.get("user_id"), payload.get("text")
        if not is_id(user) or not isinstance(text, str):
            return HELP
        match text.split():
            case ["link"]:
                return self._begun(home, str(user), now)
            case ["link", code]:
                return self._continued(home, str(user), code, now)
            case ["unlink", code]:
                return self._ended(home, code, now)
        return HELP

    def _begun(self, home: Installation, user: str, now: int) -> Step:
        code = self._code(home.app, now, _FIRST, home.team, user)
        return Step(f"In your other account, within ten minutes: `{COMMAND} link {code}`") if code else HELP

    def _continued(self, home: Installation, user: str, code: str, now: int) -> Step:
        match self._said(code, now, GOOD_FOR):
            case [stage, app, team, account] if stage == _FIRST:
                first = self._installations.of(app, team)
                if first is None or (first.tenant, first.agent) != (home.tenant, home.agent):
                    return NOT_GOOD
                readers = (self._directory.reader(first, account), self._directory.reader(home, user))
                if None in readers:
                    return NOT_KNOWN
                if readers[0] == readers[1]:
                    return Step("That is this very account. Type it in the other one.")
                further = self._code(app, now, _SECOND, team, account, home.app, home.team, user)
                return Step(f"In the account {account} of workspace {team}: `{COMMAND} link {further}`\n{_WARNING}")
            case [stage, *first_account, app, team, account] if stage == _SECOND:
                if first_account == [home.app, home.team, user]:
                    return self._proven(home, user, (app, team, account), code, now)
        return NOT_GOOD

    def _proven(self, home: Installation, user: str, other: tuple[str, str, str], code: str, now: int) -> Step:
        app, team, account = other
        second = self._installations.of(app, team)
        if second is None or (second.tenant, second.agent) != (home.tenant, home.agent):
            return NOT_GOOD
        readers = (self._directory.reader(home, user), self._directory.reader(second, account))
        proof = hashlib.sha256(code.encode()).hexdigest()[:32]
        subject = hashlib.sha256(f"{home.tenant} {home.agent} {readers[0]}".encode()).hexdigest()[:32]
        records = [
            AccountProven(
                tenant=home.tenant,
                at=now,
                agent=home.agent,
                proof=f"slack-link:{proof}:{number}",
                reader=reader,
                subject=f"slack-link:{subject}",
                expires_at=now + PROVEN_FOR,
            )
            for number, reader in enumerate(readers)
            if reader is not None
        ]
        if len(records) < len(readers):
            return NOT_KNOWN
        end = self._code(home.app, now, _END, proof)
        return Step(f"Both accounts are yours, for a day. To end it: `{COMMAND} unlink {end}`", tuple(records))

    def _ended(self, home: Installation, code: str, now: int) -> Step:
        match self._said(code, now, PROVEN_FOR):
            case [stage, app, proof] if stage == _END and app == home.app:
                ends = (ProofRevoked(tenant=home.tenant, at=now, proof=f"slack-link:{proof}:{n}") for n in (0, 1))
                return Step("They are no longer linked.", tuple(ends))
        return NOT_GOOD

    def _code(self, app: str, now: int, stage: str, *said: str) -> str | None:
        known = self._installations.apps.get(app)
        body = ".".join((stage, app, *said, str(now)))
        return None if known is None or _secret(known) is None else f"{body}.{_signature(known, body)}"

    def _said(self, code: str, now: int, good_for: int) -> list[str]:
        """What a code says, nothing where it is not ours or too old."""
        body, _, given = code.rpartition(".")
        match body.split("."):
            case [stage, app, *said, at] if app in self._installations.apps and at.isdecimal():
                signed = _signature(self._installations.apps[app], body)
                ours = hmac.compare_digest(signed.encode(), given.encode("utf-8", "replace"))
                if ours and 0 <= now - int(at) < good_for:
                    return [stage, app, *said]
        return []


def _secret(app: App) -> str | None:
    return app.signing_secret or app.app_token


def _signature(app: App, body: str) -> str:
    """Without a secret, that of nothing, which no code is given with."""
    secret = _secret(app)
    if secret is None:
        return "-"
    return hmac.new(secret.encode(), b"turngate-link:" + body.encode(), hashlib.sha256).hexdigest()[:32]
