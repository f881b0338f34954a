"""Decides what the gateway is measured beside: the same server, which reads a body and answers a constant."""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, Request, Response

#: As long as what the gateway answers to the drafts that are measured: a `TurnDecided` with nine refs.
LENGTH = 750


def main() -> None:
    """Answer on this port of loopback until SIGTERM."""
    app, constant = FastAPI(), b'{"turn":"' + b"t" * (LENGTH - 11) + b'"}'

    @app.post("/v1/drafts")
    async def drafts(request: Request) -> Response:
        await request.body()
        return Response(constant, media_type="application/json")

    uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False, server_header=False, lifespan="off")


if __name__ == "__main__":
    main()
