"""The guards' stories: what is refused, and beside it the twin that is delivered."""

from __future__ import annotations

import io

from rich.console import Console

from turngate.demo.guards import Guards


def test_each_refusal_stands_beside_its_delivered_twin() -> None:
    out = io.StringIO()
    guards = Guards(Console(file=out, width=160))
    guards.play()
    assert guards.decided == [
        ("drop", ("class_egress",)),  # R-EGR-2
        ("deliver", ()),
        ("deliver", ()),
        ("deliver", ()),
        ("drop", ("not_unique",)),  # R-ACT-4
        ("deliver", ()),
        ("drop", ("interlock_link",)),  # R-TNT-5
        ("deliver", ()),
    ]
    assert "5 were let out" in out.getvalue()
