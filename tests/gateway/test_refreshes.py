"""How a connector reads which listings are asked for, however many there are."""

from __future__ import annotations

import time

from turngate.gateway.refreshes import KEPT_MS, Place, Refreshes
from turngate.schemas.outputs import Because, RefreshRequested

_MANY = 10_000


def asked(n: int, at: int, tenant: str = "acme") -> RefreshRequested:
    room = f"slack:T1/C{n}"
    return RefreshRequested(tenant=tenant, at=at, agent="mesh", room=room, because=Because.DRAFT, need_by=at + 1)


def test_an_agent_that_names_many_rooms_does_not_hold_up_the_gateway() -> None:
    """Each is learned twice, as at a start; when all were compared with all this took more than half a minute."""
    refreshes, began = Refreshes(), time.process_time()
    for record in 2 * [asked(n, 1_000 + n) for n in range(_MANY)]:
        refreshes.learn(record)
    found, place = refreshes.after("acme", Place(), lambda _: True)
    assert [record.room for record in found] == [f"slack:T1/C{n}" for n in range(_MANY)]
    for _ in range(_MANY):  # whoever has read all of it is not told again, and looks at the newest alone
        assert refreshes.after("acme", place, lambda _: True) == ([], place)
    assert time.process_time() - began < 5


def test_requests_of_one_time_are_told_apart_and_old_ones_are_let_go() -> None:
    refreshes = Refreshes()
    for n in range(3):
        refreshes.learn(asked(n, 1_000))
    _, place = refreshes.after("acme", Place(), lambda _: True)
    assert place == Place(1_000, 3)
    refreshes.learn(asked(3, 1_000))
    refreshes.learn(asked(4, 1_000, "globex"))
    assert refreshes.after("acme", place, lambda _: True) == ([asked(3, 1_000)], Place(1_000, 4))
    newest = asked(5, 1_000 + KEPT_MS)
    for record in (newest, asked(0, 1_000), newest):  # read again from further back, it does not come back
        refreshes.learn(record)
    assert refreshes.after("acme", Place(), lambda _: True) == ([newest], Place(newest.at, 1))
    assert refreshes.after("globex", Place(), lambda _: True)[0] == [asked(4, 1_000, "globex")]
