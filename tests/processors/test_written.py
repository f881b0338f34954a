"""A row stands in a checkpoint as pydantic writes it without its defaults, byte for byte."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.processors.streams import examples
from turngate.processors.rows import Ask, Context, Evidence, Revision, Turn, Value
from turngate.processors.squeezed import Squeeze
from turngate.processors.state import adapter
from turngate.schemas.inputs import ContextRequested, TurnDrafted
from turngate.schemas.shapes import FieldClass, Reason, Rendering

DRAFT = TurnDrafted(tenant="acme", at=1, agent="mesh", turn="t", room="a:b/c", renderings=(Rendering(text='"so"\n'),))
REQUEST = ContextRequested(tenant="acme", at=1, agent="mesh", request="q", turn="t", room="a:b/c")
REASONS = st.builds(Reason, code=st.text(), ref=st.none() | st.text())
#: Fields that hold records and rows, whose defaults are left out as well.
WITHIN: dict[Any, st.SearchStrategy[Any]] = {
    TurnDrafted | None: st.sampled_from([None, DRAFT]),
    ContextRequested | None: st.sampled_from([None, REQUEST]),
    Ask | None: st.none() | st.builds(Ask, st.tuples(st.text()), st.tuples(REASONS)),
    tuple[Value, ...]: st.lists(
        st.builds(Value, st.text(), st.sampled_from(FieldClass), marks=st.none() | st.tuples(st.text())), max_size=2
    ).map(tuple),
}


def rows(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Rows of a kind, with some fields left at their defaults."""
    hints = get_type_hints(kind)
    some = {f.name: WITHIN[h] if (h := hints[f.name]) in WITHIN else st.from_type(h) for f in fields(kind)}
    needed = {f.name: some.pop(f.name) for f in fields(kind) if f.default is MISSING}
    return st.fixed_dictionaries(needed, optional=some).map(lambda given: kind(**given))


@examples(100)
@given(rows(Turn) | rows(Context) | rows(Evidence) | rows(Revision), st.data())
def test_rows(row: Any, data: st.DataObject) -> None:
    squeeze, pydantic = Squeeze(type(row), adapter(type(row))), adapter(type(row))
    written = squeeze.plain(row)
    assert written == pydantic.dump_json(row, exclude_defaults=True)
    assert squeeze.row(written) == row
    without = data.draw(st.sets(st.sampled_from([f.name for f in fields(row)])))
    assert squeeze.plain(row, without) == pydantic.dump_json(row, exclude_defaults=True, exclude=without)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(tuple(map(chr, (*range(0xD800), *range(0xE000, 0x110000)))), id="every character"),
        ("", "\\u0000", "\r\n", "</script>", '"'),
    ],
)
def test_texts(texts: tuple[str, ...]) -> None:
    row = Turn(agent="".join(texts), refs=texts)
    assert Squeeze(Turn, adapter(Turn)).plain(row) == adapter(Turn).dump_json(row, exclude_defaults=True)


@pytest.mark.parametrize("number", [0, -1, 2**53, -(2**63), 2**64 - 1, 2**64, -(2**80)])
def test_numbers(number: int) -> None:
    row = Turn(seen=number, arrived=number)
    assert Squeeze(Turn, adapter(Turn)).plain(row) == adapter(Turn).dump_json(row, exclude_defaults=True)


def test_what_is_no_text_is_refused_by_both() -> None:
    row = Turn(agent="\ud800")
    for write in (Squeeze(Turn, adapter(Turn)).plain, adapter(Turn).dump_json):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            write(row)
