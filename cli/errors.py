"""Decides how a command ends that cannot do what it was asked: one line on stderr, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

#: Everything was as asked; the answer is no (a scenario failed, a policy is invalid); it could not be done.
DONE, NO, IMPOSSIBLE = 0, 1, 2


class Impossible(Exception):
    """What was asked cannot be done. The message says what was wrong, where, and what to do."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports inside need the extra of this name; without it the command says which installation brings it.

    Raises `Impossible` for a missing package of somebody else's; one of Turngate's own is a fault and stays one.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = "" if error.name is None else error.name.split(".")[0]
        if package in ("", "turngate"):
            raise
        message = f"this needs the package {package}: pip install 'turngate[{name}]'"
        raise Impossible(message) from None
