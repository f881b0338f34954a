"""Decides how the tests reach Postgres over TLS: the server that they have has none, so a front before it speaks it.

It answers what libpq asks for before a session (`SSLRequest`, `GSSENCRequest`), and passes on what comes over TLS.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict

_SSL, _GSS = 80_877_103, 80_877_104


@contextmanager
def fronted(dsn: str, context: ssl.SSLContext | None) -> Iterator[int]:
    """The port on loopback at which the database of a DSN answers over TLS; without a context, to nobody who wants it.

    Who does not ask for TLS is not let in.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, dsn, context), daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # which ends `accept`


def _accept(listening: socket.socket, dsn: str, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError):
        while True:
            came, _ = listening.accept()
            threading.Thread(target=_serve, args=(came, dsn, context), daemon=True).start()


def _serve(came: socket.socket, dsn: str, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError, struct.error), came:  # whoever goes away before asking is not missed
        while (wanted := struct.unpack("!II", came.recv(8, socket.MSG_WAITALL))[1]) == _GSS:
            came.sendall(b"N")
        if wanted != _SSL or context is None:
            came.sendall(b"N")
            return
        came.sendall(b"S")
        with context.wrap_socket(came, server_side=True) as session, _database(dsn) as behind:
            threading.Thread(target=_pass_on, args=(behind, session), daemon=True).start()
            _pass_on(session, behind)


def _database(dsn: str) -> socket.socket:
    of = conninfo_to_dict(dsn)
    host, port = str(of["host"]), int(of.get("port") or 5432)
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    made = socket.socket(socket.AF_UNIX)
    made.connect(f"{host}/.s.PGSQL.{port}")
    return made


def _pass_on(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            to.sendall(data)
    for one in (source, to):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
