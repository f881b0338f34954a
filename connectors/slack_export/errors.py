"""Decides what is said of an export that cannot be read as it is."""

from __future__ import annotations


class ExportError(Exception):
    """A file of an export that cannot be used. `file` is its path inside the export, `what` what is wrong with it.

    Neither holds anything out of the file: no text, no value, no name of a person.
    """

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what
