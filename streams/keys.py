"""Decides where the tenants' keys come from, and how new ones are made (R-GRT-10; docs/operations.md, "Keys").

Keys are a JSON document, `{"current": "2", "keys": {"1": {"*": HEX}, "2": {"*": HEX, "acme": HEX}}}`: by key id and
tenant, `*` for every tenant without one of its own, 32 bytes each. No key is in a message, a log or a `repr`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngate.processors.keys import ANY_TENANT, KEY_BYTES, NO_KEYS, Keys, KeysError
from turngate.streams.kafka.environment import Environment, SettingsError
from turngate.streams.private import private_text, write_private

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TENANT = re.compile(r"\*|[a-z][a-z0-9-]{0,62}")
_HEX = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}")


def read_keys(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Keys:
    """The keys of this file, else those that `TURNGATE_KEYS_FILE` or `TURNGATE_KEYS` (the document itself) names.

    `NO_KEYS` where nothing does: nobody is then offered to share. Raises `SettingsError` for a file that is missing,
    that others could read, or that holds no keys, and where both variables are set.
    """
    env = Environment("TURNGATE", environment)
    path, text = env.path("KEYS_FILE", None if file is None else str(file)), env.text("KEYS", None)
    if path is not None and text is not None and file is None:
        raise SettingsError("TURNGATE_KEYS_FILE and TURNGATE_KEYS are both set: keep one of them")
    if path is not None:
        return _parsed(f"keys file {path}", private_text("keys file", path, group=True))
    return NO_KEYS if text is None else _parsed("TURNGATE_KEYS", text)


def add_key(path: Path) -> Keys:
    """Make a new key and the file where there is none; where there is, the new key is current and the old ones stay.

    Every tenant that had a current key of its own gets a new one of its own. Old keys are needed for as long as a
    code made with them may be used, and `unshare` has no end (R-GRT-4). Raises `SettingsError` as `read_keys` does, or
    where the file cannot be written; it is then as it was.
    """
    known = read_keys(path, {}) if path.exists() else None
    ids = [] if known is None else list(known.secrets)
    fresh = str(1 + max((int(i) for i in ids if i.isdecimal()), default=0))
    tenants = {ANY_TENANT} if known is None else {ANY_TENANT, *known.secrets[known.current]}
    made = {fresh: {tenant: secrets.token_bytes(KEY_BYTES) for tenant in sorted(tenants)}}
    keys = Keys({} | made if known is None else {**known.secrets, **made}, fresh)
    _write(path, keys)
    return keys


def _write(path: Path, keys: Keys) -> None:
    listed = {i: {t: secret.hex() for t, secret in tenants.items()} for i, tenants in keys.secrets.items()}
    write_private("keys file", path, json.dumps({"current": keys.current, "keys": listed}, indent=2) + "\n")


def _parsed(source: str, text: str) -> Keys:
    """Raises `SettingsError`, whose message names the place and quotes no key."""
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        raise SettingsError(f"{source}: is no JSON, or names something twice") from None
    if not isinstance(document, dict) or document.keys() != {"current", "keys"}:
        raise SettingsError(f'{source}: must be {{"current": KEY_ID, "keys": {{KEY_ID: {{TENANT or *: KEY}}}}}}')
    listed = document["keys"]
    if not isinstance(listed, dict) or not isinstance(document["current"], str):
        raise SettingsError(f"{source}: current must be a key id, and keys a map by key id")
    found = {key_id: _tenants(source, key_id, tenants) for key_id, tenants in listed.items()}
    try:
        return Keys(found, document["current"])
    except KeysError:
        raise SettingsError(f"{source}: current names none of the keys") from None


def _tenants(source: str, key_id: str, tenants: Any) -> dict[str, bytes]:
    if _KEY_ID.fullmatch(key_id) is None:
        raise SettingsError(f"{source}: a key id has 1 to 64 characters of A-Z a-z 0-9 . _ -")
    if not isinstance(tenants, dict) or not tenants:
        raise SettingsError(f"{source}: key id {key_id}: must be a map from tenants, or *, to keys")
    for tenant, key in tenants.items():
        if _TENANT.fullmatch(tenant) is None:
            raise SettingsError(f"{source}: key id {key_id}: a name is no tenant's, and not *")
        if not isinstance(key, str) or _HEX.fullmatch(key) is None:
            raise SettingsError(
                f"{source}: key id {key_id}: {tenant}: a key is {2 * KEY_BYTES} hexadecimal digits; "
                "make one with `turngate keys new`"
            )
    return {tenant: bytes.fromhex(key) for tenant, key in tenants.items()}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made
