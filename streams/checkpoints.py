"""Decides what a signed checkpoint is: where every tenant's chain stood at some time, under an Ed25519 signature.

Kept elsewhere, it shows what no log can show of itself: that its end was not cut off, and nothing written anew.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from turngate.schemas.canonical import canonical
from turngate.streams.chain import Link
from turngate.streams.kafka.environment import SettingsError
from turngate.streams.log import LogError
from turngate.streams.private import private_text, write_private

FORMAT = "turngate checkpoint 1"


@dataclass(frozen=True, slots=True)
class Stand:
    """Where the chains of one partition stood: up to which offset of `audit`, and the last link of each tenant."""

    end: int
    heads: Mapping[str, Link]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where every chain stood. `at`: when that was, by the clock of whoever signed it, ISO 8601."""

    at: str
    partitions: Mapping[int, Stand]

    def signed(self, key: Ed25519PrivateKey) -> str:
        """As it is kept: JSON, with the signature of its canonical form (RFC 8785)."""
        body = self._body()
        signature = base64.b64encode(key.sign(canonical(body))).decode()
        return json.dumps(body | {"signature": signature}, indent=1, sort_keys=True) + "\n"

    def _body(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "at": self.at,
            "partitions": {
                str(number): {"end": stand.end, "heads": {tenant: list(link) for tenant, link in stand.heads.items()}}
                for number, stand in self.partitions.items()
            },
        }


def read_checkpoint(path: Path, key: Ed25519PublicKey) -> Checkpoint:
    """The checkpoint in a file. Raises `LogError` where it is none, or was not signed with this key."""
    try:
        body: dict[str, Any] = json.loads(path.read_text("utf-8"))
        signature = base64.b64decode(body.pop("signature"), validate=True)
        key.verify(signature, canonical(body))
        if body["format"] != FORMAT:
            raise LogError(f"{path}: is a checkpoint of another form; use the version of Turngate that made it")
        partitions = {
            int(number): Stand(stand["end"], {tenant: Link(*link) for tenant, link in stand["heads"].items()})
            for number, stand in body["partitions"].items()
        }
        return Checkpoint(body["at"], partitions)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}") from None
    except InvalidSignature:
        raise LogError(f"{path}: was not signed with this key, or is not what was signed") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LogError(f"{path}: is no checkpoint; `turngate audit checkpoint` makes one") from None


def make_key(path: Path) -> Path:
    """Make a key of which only the owner may read the secret part; the file of the public one, for who checks.

    Raises `SettingsError` where there is a file already, or where it cannot be written.
    """
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise SettingsError(f"{file}: is there already; checkpoints signed with it need it")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    write_private("signing key", path, secret)
    shown = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    write_private("public key", public, shown)
    return public


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The key in a PEM file. Raises `SettingsError` where there is none, or where others may read it."""
    try:
        found = load_pem_private_key(private_text("signing key", path).encode(), None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise SettingsError(f"signing key {path}: is no Ed25519 key in PEM without a passphrase")
    return found


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file. Raises `SettingsError` where there is none."""
    try:
        found = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"public key {path}: {error.strerror}") from None
    except ValueError:
        found = None
    if not isinstance(found, Ed25519PublicKey):
        raise SettingsError(f"public key {path}: is no Ed25519 public key in PEM")
    return found
