"""What was remembered under an old key is known under a new one; what no key can tell is refused."""

from __future__ import annotations

from tests.processors.feed import D1, codes, ref, verdicts
from tests.processors.remembering import PAYING, ROTATED, Memories, pay, remembering
from turngate.processors.keys import NO_KEYS


def paid(feed: Memories, turn: str, invoice: str) -> set[str]:
    """The codes against a draft that pays an invoice; none: it is authorized."""
    out = feed.draft(D1, turn, trigger=ref(D1, 1), action=pay(invoice))
    assert verdicts(out) == [(turn, "drop" if codes(out) else "deliver")]
    return codes(out)


def test_what_was_claimed_under_an_old_key_is_claimed() -> None:  # R-ACT-4
    feed = remembering(PAYING)
    assert paid(feed, "t1", "INV-7") == set()
    feed.restart(ROTATED)
    assert paid(feed, "t2", "INV-7") == {"not_unique"}
    assert paid(feed, "t3", "INV-8") == set()


def test_without_a_key_nothing_can_be_claimed() -> None:  # R-ACT-4
    feed = remembering(PAYING)
    feed.restart(NO_KEYS)
    assert paid(feed, "t1", "INV-7") == {"not_unique"}
    feed.restart()
    assert paid(feed, "t2", "INV-7") == set()


def test_a_value_that_was_read_under_an_old_key_is_found() -> None:  # R-EGR-1, R-EGR-4
    feed = remembering()
    feed.tool(D1, "c", server="wiki", fields=[{"name": "code", "value": "heron-4711", "class": "secret"}])
    feed.restart(ROTATED)
    for turn, text, expected in (("t1", "It is heron-4711.", {"secret_exposed"}), ("t2", "It is a secret.", set())):
        assert codes(feed.draft(D1, turn, trigger=ref(D1, 1), renderings=[{"text": text}])) == expected
