"""Decides which files may hold secrets, and how these and a company's records are written."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from turngate.streams.kafka.environment import SettingsError


def private_text(what: str, path: Path, *, group: bool = False) -> str:
    """What a file holds that nobody else may read; `what` names it in the `SettingsError` raised where others may.

    `group`: whether its group may read it, as it does where secrets are mounted; nobody but its owner may write it.
    """
    forbidden = stat.S_IRWXO | (stat.S_IWGRP if group else stat.S_IRWXG)
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & forbidden:
                raise SettingsError(
                    f"{what} {path}: others may use it (mode {stat.S_IMODE(mode):o}): chmod 600, and replace what it "
                    "holds if that may have been read"
                )
            return file.read()
    except UnicodeDecodeError:
        raise SettingsError(f"{what} {path}: is not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{what} {path}: {error.strerror}") from None


def for_owner(path: str, flags: int) -> int:
    """An `opener` for `open`: a file that it makes is its owner's alone; one that is there keeps its mode."""
    return os.open(path, flags, 0o600)


def write_private(what: str, path: Path, text: str) -> None:
    """All of it or nothing, and never readable by others in between. Raises `SettingsError` where it cannot be."""
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            beside.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise SettingsError(f"{what} {path}: {error.strerror}") from None
