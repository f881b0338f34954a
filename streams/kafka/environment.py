"""Decides where a setting's value comes from, what is wrong with it, and how the files of a TLS client are used."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from turngate.streams.log import LogError

E = TypeVar("E", bound=StrEnum)


class SettingsError(LogError):
    """A setting that cannot work as it is. The message names the setting, what is wrong with it, and what to do."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a TLS client: the authority that it trusts (None: the system's), and its own certificate and key."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)

    def context(self, prefix: str) -> ssl.SSLContext:
        """A context that verifies the server and its name. Raises `SettingsError`, which names the file at fault."""
        self.check(prefix)
        if self.ca is None:
            context = ssl.create_default_context()
        else:
            try:
                context = ssl.create_default_context(cafile=str(self.ca))
            except ssl.SSLError:
                raise SettingsError(f"{prefix}_CA_FILE: {self.ca}: is no PEM file with certificates") from None
        if self.certificate is not None:
            try:
                # Without a password OpenSSL would ask for one at the terminal.
                context.load_cert_chain(self.certificate, self.key, self.key_password or "")
            except ssl.SSLError:
                files = self.certificate if self.key is None else f"{self.certificate} and {self.key}"
                raise SettingsError(
                    f"{prefix}_CLIENT_CERT: {files}: not a PEM certificate and its private key, or the key has "
                    f"another password than {prefix}_CLIENT_KEY_PASSWORD says"
                ) from None
        return context

    def check(self, prefix: str) -> None:
        """Raises `SettingsError` where a file is missing or cannot be read, or a key has no certificate."""
        if self.certificate is None and self.key is not None:
            raise SettingsError(f"{prefix}_CLIENT_KEY is set without {prefix}_CLIENT_CERT")
        for name, path in (("CA_FILE", self.ca), ("CLIENT_CERT", self.certificate), ("CLIENT_KEY", self.key)):
            readable(f"{prefix}_{name}", path)

    @property
    def given(self) -> bool:
        """Whether any file is named."""
        return (self.ca, self.certificate, self.key) != (None, None, None)


NO_TLS = TlsFiles()


class Environment:
    """Variables of one prefix behind the values that were given."""

    def __init__(self, prefix: str, variables: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._variables = variables

    def text(self, name: str, given: str | None) -> str | None:
        """A value. An empty one counts as none, since that is what deployment files leave behind."""
        value = given if given is not None else self._variables.get(f"{self._prefix}_{name}")
        return value if value != "" else None

    def path(self, name: str, given: str | None) -> Path | None:
        """A file's path."""
        value = self.text(name, given)
        return None if value is None else Path(value)

    def one_of(self, kind: type[E], name: str, given: str | None) -> E | None:
        """A value of a closed set, in any case. Raises `SettingsError` with the set for any other."""
        value = self.text(name, given)
        if value is None:
            return None
        for member in kind:
            if member.value.lower() == value.lower():
                return member
        raise SettingsError(f"{self._prefix}_{name}: must be one of {', '.join(m.value for m in kind)}")

    def tls(self, ca: str | None, certificate: str | None, key: str | None, password: str | None) -> TlsFiles:
        """The four settings of a TLS client."""
        return TlsFiles(
            self.path("CA_FILE", ca),
            self.path("CLIENT_CERT", certificate),
            self.path("CLIENT_KEY", key),
            self.text("CLIENT_KEY_PASSWORD", password),
        )


def readable(name: str, path: Path | None) -> None:
    """Raises `SettingsError` where the file that this setting names is missing or may not be read."""
    if path is None:
        return
    try:
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise SettingsError(f"{name}: {path}: no such file") from None
    except OSError as error:
        raise SettingsError(f"{name}: {path}: {error.strerror}") from None
