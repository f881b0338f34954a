"""Which scope may do what: the table of docs/gateway.md, walked whole, and every route of the API is in it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.gateway.conftest import AT_ONCE, Running
from turngate.gateway.tokens import Scope

_PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
_ROW = re.compile(r"\| `(GET|POST) (\S+)` \| (yes|no) \| (yes|no) \| (yes|no) \| (yes|no) \|")
_ORDER = (Scope.AGENT, Scope.CONNECTOR, Scope.EXECUTOR, Scope.OPERATOR)


def table() -> dict[tuple[str, str], frozenset[Scope]]:
    """Who may use each route, as the page says."""
    rows = [match.groups() for match in _ROW.finditer(_PAGE.read_text("utf-8"))]
    return {
        (row[0], row[1]): frozenset(s for s, may in zip(_ORDER, row[2:], strict=True) if may == "yes") for row in rows
    }


async def test_the_table_has_every_route(running: Running) -> None:
    described = (await running.client(None).get("/openapi.json")).json()["paths"]
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert routes == set(table())


async def test_every_scope_may_do_what_the_table_says_and_nothing_else(running: Running) -> None:
    """A request that is let in is refused for its body, which holds nothing, or for what it names."""
    clients = {}
    for scope in Scope:
        namespaces = ("slack:T1",) if scope is Scope.CONNECTOR else ()
        agent = None if scope is Scope.OPERATOR else "mesh"
        clients[scope] = running.client(running.keyring.make(scope, agent=agent, namespaces=namespaces))
    nobody = running.client(None)
    for (method, path), may in table().items():
        url = path.replace("{kind}", "drafts").replace("{", "").replace("}", "")
        body = {} if method == "GET" else {"json": {}}
        assert (await nobody.request(method, url, **body)).status_code == 401, (method, path)
        for scope, client in clients.items():
            answer = await client.request(method, url, params=AT_ONCE, **body)
            assert (answer.status_code == 403) is (scope not in may), (method, path, scope)
            assert answer.status_code in ((403,) if scope not in may else (200, 404, 422)), (method, path, scope)
