"""Decides how the tests run a Confluent-compatible schema registry: Apicurio, in memory, on loopback."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from tests.jvm import JAVA, Server, free_port, tarball

#: The newest that runs on Java 17; 3.1 and later need 21.
VERSION = "3.0.9"


class Registry:
    """An Apicurio registry, empty at every start; `url` speaks the Confluent schema registry's API.

    Raises `Unavailable` where the jars cannot be had.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        home = tarball("io.apicurio", "apicurio-registry-app", VERSION, "all")
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        address = ("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}")
        jar = ("-jar", str(home / f"apicurio-registry-app-{VERSION}-runner.jar"))
        self._server = Server((*JAVA, *address, *jar), folder / "output", self._answers)

    def __enter__(self) -> Registry:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, without any subjects, and wait until it answers."""
        self._server.start()

    def stop(self) -> None:
        """SIGTERM; returns when the process has ended."""
        self._server.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
