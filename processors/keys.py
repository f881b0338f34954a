"""Decides how a tenant's keys make codes that nobody can guess, and tags by which a code is found again (R-GRT-10)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

#: A share code: twelve characters of RFC 4648's base32 alphabet, at least one of them a digit; 58 bits (R-GRT-2).
CODE_LENGTH = 12
_CODE = re.compile(r"[A-Z2-7]{12}")
#: Stands for every tenant that has no key of its own; each gets one derived from it.
ANY_TENANT = "*"
KEY_BYTES = 32


class KeysError(ValueError):
    """Keys that cannot be used. The message names the tenant and the key id, never a key."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Secrets of 32 bytes by key id and tenant (or `*`). `current` is the id that makes new codes; all find old ones.

    Raises `KeysError` where a secret has another length or `current` is none of the ids.
    """

    secrets: Mapping[str, Mapping[str, bytes]] = field(repr=False)
    current: str

    def __post_init__(self) -> None:
        if self.current not in self.secrets:
            raise KeysError(f"key id {self.current}: there is no such key")
        for key_id, tenants in self.secrets.items():
            for tenant, secret in tenants.items():
                if len(secret) != KEY_BYTES:
                    raise KeysError(f"key id {key_id}, tenant {tenant}: a key has {KEY_BYTES} bytes, not {len(secret)}")

    def code(self, tenant: str, request: str) -> str | None:
        """The share code of a request, the same each time; None where the tenant has no current key."""
        secret = self._secret(tenant, self.current)
        if secret is None:
            return None
        for attempt in range(1_000):
            made = base64.b32encode(_mac(secret, f"share-code:{attempt}:{request}")).decode()[:CODE_LENGTH]
            if is_code(made):
                return made
        raise KeysError("no code in a thousand attempts")  # the chance of it is below 1 in 10**1000

    def tags(self, tenant: str, code: str) -> list[str]:
        """The tags under which a code may be kept, one for each key id, the current one first."""
        found = ((key_id, self._secret(tenant, key_id)) for key_id in self._ids())
        return [f"{key_id}:{_mac(s, f'share-tag:{code}').hex()}" for key_id, s in found if s is not None]

    def fingerprint_keys(self, tenant: str) -> list[tuple[str, bytes]]:
        """The keys of a tenant's value fingerprints with their ids, the current one first; none where it has no key."""
        found = ((key_id, self._secret(tenant, key_id)) for key_id in self._ids())
        return [(key_id, _mac(secret, "fingerprint")) for key_id, secret in found if secret is not None]

    def claims(self, tenant: str, name: str, value: str) -> list[str]:
        """The tags under which a value may be claimed once (R-ACT-4), the current key's first."""
        return [f"{key_id}:{_mac(key, f'claim:{name}:{value}').hex()}" for key_id, key in self.fingerprint_keys(tenant)]

    def _ids(self) -> list[str]:
        return [self.current, *sorted(k for k in self.secrets if k != self.current)]

    def _secret(self, tenant: str, key_id: str) -> bytes | None:
        tenants = self.secrets[key_id]
        if tenant in tenants:
            return tenants[tenant]
        shared = tenants.get(ANY_TENANT)
        return None if shared is None else _mac(shared, f"tenant:{tenant}")


#: Without keys there are no codes, and nobody can be offered to share.
NO_KEYS = Keys({"none": {}}, "none")
#: Published, so that tests and golden streams can be repeated by anyone. Never for a tenant's secrets.
TEST_KEYS = Keys({"test": {ANY_TENANT: hashlib.sha256(b"turngate test key").digest()}}, "test")


def is_code(word: str) -> bool:
    """Whether a word in capitals has a code's form."""
    return _CODE.fullmatch(word) is not None and any(c.isdigit() for c in word)


def _mac(secret: bytes, message: str) -> bytes:
    return hmac.new(secret, message.encode(), hashlib.sha256).digest()
