"""Decides which files an export has, and that none of them lies outside it or is too large to read."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from turngate.connectors.slack_export.errors import ExportError

T = TypeVar("T")
MIB = 1024 * 1024
#: A workspace's list of accounts; where it lies is where the export begins.
USERS = "users.json"
#: An organisation's (Enterprise Grid) list of accounts.
ORG_USERS = "org_users.json"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read, in bytes after decompression. Slack's own files are days of one conversation, far below.

    `values`: of one file, lists, objects and what is in them, each of which takes memory of its own: a few bytes of an
    archive can be a gigabyte of empty objects.
    """

    file: int = 128 * MIB
    values: int = 8_000_000
    total: int = 16 * 1024 * MIB
    files: int = 2_000_000


class Files(Protocol):
    """The JSON files of an export by path, `/` between folder and file, with their sizes in bytes."""

    sizes: dict[str, int]

    def read(self, path: str) -> bytes:
        """The bytes of one of them. Raises `ExportError` where they cannot be read."""

    def close(self) -> None:
        """Let go of what is open."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Closing:
    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Folder(_Closing):
    """An export that was unpacked. Links are refused: Slack writes none, and one may lead out of the folder."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self._limits = limits
        paths: dict[str, tuple[Path, int]] = {}
        for path, entry in _walk(root, depth=3):
            info = _lstat(entry, path)
            if stat.S_ISLNK(info.st_mode):
                raise ExportError(path, "is a symbolic link; an export has none, so unpack it again without links")
            if not stat.S_ISREG(info.st_mode):
                raise ExportError(path, "is no regular file")
            _add(paths, path, (Path(entry.path), info.st_size))
        base = _base(paths, str(root))
        self._paths = {p: at for p, (at, _) in _under(base, paths).items()}
        self.sizes = {p: size for p, (_, size) in _under(base, paths).items()}
        _check(self.sizes, limits, str(root))

    def read(self, path: str) -> bytes:
        """See `Files`."""
        try:
            with open(os.open(self._paths[path], os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                data = file.read(self._limits.file + 1)
        except OSError as error:
            raise ExportError(path, f"cannot be read: {error.strerror}") from error
        return _bounded(path, data, self._limits)


class Zip(_Closing):
    """An export as Slack hands it out. Sizes that the archive states are not trusted: reading stops at the limit."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self._limits = limits
        try:
            self._zip = zipfile.ZipFile(archive)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise ExportError(archive.name, "is no zip archive that can be read; download the export again") from error
        try:
            paths: dict[str, tuple[zipfile.ZipInfo, int]] = {}
            for info in self._zip.infolist():
                path = _entry_name(info)
                if _wanted(path, depth=3):
                    if stat.S_ISLNK(info.external_attr >> 16):
                        raise ExportError(path, "is a symbolic link; an export has none")
                    _add(paths, path, (info, info.file_size))
            base = _base(paths, archive.name)
            self._infos = {p: info for p, (info, _) in _under(base, paths).items()}
            self.sizes = {p: size for p, (_, size) in _under(base, paths).items()}
            _check(self.sizes, limits, archive.name)
        except ExportError:
            self.close()
            raise

    def read(self, path: str) -> bytes:
        """See `Files`."""
        try:
            with self._zip.open(self._infos[path]) as file:
                data = file.read(self._limits.file + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise ExportError(path, "is damaged inside the archive; download the export again") from error
        except (RuntimeError, NotImplementedError) as error:
            raise ExportError(path, "is encrypted, or packed in a way that cannot be read; unpack it first") from error
        return _bounded(path, data, self._limits)

    def close(self) -> None:
        """See `Files`."""
        self._zip.close()


def open_files(path: Path, limits: Limits) -> Files:
    """The export at `path`, a folder or a zip archive. Raises `ExportError` where there is none."""
    if path.is_dir():
        return Folder(path, limits)
    if path.is_file():
        return Zip(path, limits)
    raise ExportError(str(path), "is neither a folder nor a zip archive")


def load(files: Files, path: str) -> list[dict[str, Any]]:
    """The entries of a file, every one of them an object.

    Raises `ExportError` where the file is not that, naming the line or the entry, counted from 1.
    """
    data = files.read(path)
    try:
        entries = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ExportError(path, f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ExportError(path, f"byte {error.start}: no UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ExportError(path, "no JSON that can be read: nested too deeply, or a number too long") from error
    if not isinstance(entries, list):
        raise ExportError(path, "no list of entries")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise ExportError(path, f"entry {number} is no object")
    return entries


def _walk(root: Path, depth: int, under: str = "") -> list[tuple[str, os.DirEntry[str]]]:
    found: list[tuple[str, os.DirEntry[str]]] = []
    try:
        entries = sorted(os.scandir(root), key=lambda e: e.name)
    except OSError as error:
        raise ExportError(under or str(root), f"cannot be read: {error.strerror}") from error
    for entry in entries:
        path = under + _printable(entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                found += _walk(Path(entry.path), depth - 1, path + "/")
        elif _wanted(path, depth=3) or (entry.is_symlink() and entry.is_dir()):
            found.append((path, entry))
    return found


def _lstat(entry: os.DirEntry[str], path: str) -> os.stat_result:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError as error:
        raise ExportError(path, f"cannot be read: {error.strerror}") from error


def _entry_name(info: zipfile.ZipInfo) -> str:
    name = info.filename
    if not info.flag_bits & 0x800:  # not marked as UTF-8, which some archivers forget although it is
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.filename
    name = _printable(name)
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        raise ExportError(name, "names a place outside the export; nothing of this archive is read")
    return name


def _printable(name: str) -> str:
    """A name as it is compared: composed, as Slack writes it, whatever the file system made of it."""
    return unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode("utf-8"))


def _wanted(path: str, depth: int) -> bool:
    """JSON files, at most one folder below the export, which may itself be one folder below the top."""
    parts = PurePosixPath(path).parts
    return path.endswith(".json") and 0 < len(parts) <= depth and parts[0] != "__MACOSX"


def _add(paths: dict[str, Any], path: str, value: object) -> None:
    if path in paths:
        raise ExportError(path, "is there twice, so which one counts is not known")
    paths[path] = value


def _base(paths: dict[str, Any], where: str) -> str:
    """The folder in which the export begins: the top, or the only folder there that has a list of accounts."""
    if USERS in paths:
        return ""
    bases = sorted(p.removesuffix(USERS) for p in paths if p.count("/") == 1 and p.endswith("/" + USERS))
    if len(bases) == 1:
        return bases[0]
    if bases:
        raise ExportError(where, f"{len(bases)} folders have a {USERS}; name the one that is the export")
    if ORG_USERS in paths:
        raise ExportError(ORG_USERS, "is the export of a whole organisation; export each workspace on its own")
    raise ExportError(USERS, "is missing, so nobody's account and no workspace is known")


def _under(base: str, paths: dict[str, tuple[T, int]]) -> dict[str, tuple[T, int]]:
    """The files of the export by their path inside it: those at its top and those one folder below."""
    inside = {p.removeprefix(base): found for p, found in paths.items() if p.startswith(base)}
    return {p: found for p, found in inside.items() if p.count("/") <= 1}


def _check(sizes: dict[str, int], limits: Limits, where: str) -> None:
    if len(sizes) > limits.files:
        raise ExportError(where, f"has more than {limits.files:,} files")
    if sum(sizes.values()) > limits.total:
        raise ExportError(where, f"has more than {limits.total:,} bytes of JSON")


def _bounded(path: str, data: bytes, limits: Limits) -> bytes:
    if len(data) > limits.file:
        raise ExportError(path, f"is larger than {limits.file:,} bytes, the most that is read of one file")
    if sum(map(data.count, (b"{", b"[", b","))) > limits.values:
        raise ExportError(path, f"has more than {limits.values:,} values, the most that are read of one file")
    return data
