"""Decides how the tests get and run the servers that are Java programs: jars through Maven, kept in `.cache/`."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache"
POM = Path(__file__).parent / "pom.xml"
#: Small heaps and only the quick compiler: a node is up in three seconds, where the default takes five.
JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: The first fetch brings 43 MB of jars for the broker, or 109 MB for the registry.
FETCH_SECONDS = 900


class Unavailable(Exception):
    """A server that cannot be had here. The message says what is missing."""


class DiedError(RuntimeError):
    """A server that ended on its own, or did not get ready. The message ends with its last words."""


def broker_jars() -> Path:
    """The folder with Apache Kafka's jars. Raises `Unavailable` where Java or Maven is missing or fails."""
    mark = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    wanted = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-f", str(POM))
    return _kept(f"kafka-{mark}", lambda into: _maven(*wanted, f"-DoutputDirectory={into}"))


def tarball(group: str, artifact: str, version: str, classifier: str) -> Path:
    """The folder with the contents of an artifact that is a tar.gz. Raises `Unavailable` as `broker_jars` does."""

    def fetch(into: Path) -> None:
        name = f"{group}:{artifact}:{version}:tar.gz:{classifier}"
        _maven("dependency:copy", f"-Dartifact={name}", f"-DoutputDirectory={into}")
        (archive,) = into.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(into, filter="data")
        archive.unlink()

    return _kept(f"{artifact}-{version}", fetch)


def jar(group: str, artifact: str, version: str) -> Path:
    """The folder with one jar, without what it needs. Raises `Unavailable` as `broker_jars` does."""
    wanted = f"-Dartifact={group}:{artifact}:{version}"
    return _kept(f"{artifact}-{version}", lambda into: _maven("dependency:copy", wanted, f"-DoutputDirectory={into}"))


def _kept(name: str, fetch: Callable[[Path], None]) -> Path:
    """A folder of the cache, fetched where it is not there yet; whole or not at all, whoever else fetches it."""
    if shutil.which("java") is None:
        raise Unavailable("java is not installed (Java 17 or newer)")
    kept = CACHE / name
    if not kept.is_dir():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            fetch(Path(temporary))
            try:
                Path(temporary).rename(kept)
                Path(temporary).mkdir()
            except OSError:  # another run was first
                if not kept.is_dir():
                    raise
    return kept


def _maven(*arguments: str) -> None:
    if shutil.which("mvn") is None:
        raise Unavailable("mvn is not installed (Maven 3.8 or newer)")
    try:
        done = subprocess.run(
            ["mvn", "-B", "-q", "-ntp", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"mvn did not end within {FETCH_SECONDS} seconds") from None
    if done.returncode != 0:
        raise Unavailable("mvn failed: " + " ".join(done.stdout.split())[-500:])


def free_port() -> int:
    """A port that nothing listens on; below those of outgoing connections, so that it stays free over a restart."""
    for _ in range(1000):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


class Server:
    """A Java process: its output goes to a file, and it is ready when a question to it is answered."""

    def __init__(
        self,
        command: Sequence[str],
        output: Path,
        ready: Callable[[], bool],
        *,
        log: Path | None = None,
        seconds: float = 60,
    ) -> None:
        self._command = list(command)
        self._output = output
        self._log = log
        self._ready = ready
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id; for signals of one's own, SIGSTOP say."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until ready. Raises `DiedError` where it ends or does not get ready in time."""
        assert not self.running, "already running"
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        deadline = time.monotonic() + self._seconds
        while not self._ready():
            if self._process.poll() is not None:
                raise DiedError(f"ended with {self._process.returncode}: {self.last_words()}")
            if time.monotonic() > deadline:
                self.kill()
                raise DiedError(f"not ready after {self._seconds} seconds: {self.last_words()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that does not end it."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL: nothing is written any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """The end of what it printed, and of its log."""
        files = [path for path in (self._output, self._log) if path is not None and path.exists()]
        return "\n".join(path.read_text("utf-8", "replace")[-2000:] for path in files)


def required() -> bool:
    """Whether a missing server is a failure: in CI it is, elsewhere its tests are skipped."""
    return bool(os.environ.get("CI"))
