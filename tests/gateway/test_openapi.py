"""The API is as it describes itself: Schemathesis asks what the description allows, and what it does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.gateway.conftest import Keyring, begin, day, embedded, gateway_on
from turngate.gateway.app import described_by
from turngate.gateway.guard import Gate, Limits
from turngate.gateway.tokens import Scope

#: A token of all scopes that may ask for something here.
SCOPES = (Scope.AGENT, Scope.CONNECTOR, Scope.EXECUTOR)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Where a gateway that waits for nothing answers, and a token."""
    folder = tmp_path_factory.mktemp("gateway")
    keyring = Keyring(folder / "tokens.json")
    token = keyring.make(*SCOPES, namespaces=["slack:T1"])
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    url = []

    async def serve() -> None:
        limits = Limits(rate=100_000, wait=0.01, longest_wait=0.01, behind=0.01)
        async with embedded(folder / "log") as feed, gateway_on(feed, keyring, limits) as running:
            await begin(feed, day())
            url.append(running.url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(60)
    yield url[0], token
    loop.call_soon_threadsafe(stop.set)
    thread.join()


DESCRIPTION = schemathesis.openapi.from_dict(described_by(Gate(None, None)))  # type: ignore[arg-type]
ROUTES = [(path, method) for path, methods in DESCRIPTION.raw_schema["paths"].items() for method in methods]


#: Records have rules between their fields, which no schema can say: a message lies under its room.
UNSAID = (positive_data_acceptance,)


def unjudged(case: schemathesis.Case) -> tuple[Any, ...]:
    """A query may hold names that nobody knows, so a request in which only these are wrong may be accepted."""
    body = case.meta.components.get(ParameterLocation.BODY) if case.meta is not None else None
    return () if body is not None and body.mode is GenerationMode.NEGATIVE else (negative_data_rejection,)


@pytest.mark.parametrize(
    ("path", "method", "mode"),
    [(*route, mode) for route in ROUTES for mode in GenerationMode if (route[1], mode) != ("get", "negative")],
)
def test_it_is_as_it_describes_itself(served: tuple[str, str], path: str, method: str, mode: GenerationMode) -> None:
    """What is not allowed is refused, but for a name in a query that nobody knows."""
    url, token = served

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(DESCRIPTION[path][method].as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        case.call_and_validate(base_url=url, headers=headers, excluded_checks=(*UNSAID, *unjudged(case)))

    holds()
