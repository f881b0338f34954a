"""What is no record, or no part of one, is not quoted in the error that says so: it may be a text or a secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from turngate.schemas import inputs, outputs
from turngate.schemas.shapes import Shape


def kinds(kind: type[Shape] = Shape) -> Iterator[type[Shape]]:
    for made in kind.__subclasses__():
        yield made
        yield from kinds(made)


KINDS = {kind.__name__: kind for kind in kinds() if kind.__module__.startswith("turngate.schemas.")}


def test_these_are_all_records_and_their_parts() -> None:
    assert {inputs.ToolReturned, inputs.TurnDrafted, outputs.TurnDecided, inputs.ValueField} <= set(KINDS.values())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_error_quotes_nothing(kind: type[Shape]) -> None:
    names = {info.alias or name for name, info in kind.model_fields.items()}
    given = {name: [["hunter2"]] for name in names}
    with pytest.raises(ValidationError) as refused:
        kind.model_validate(given)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(refused.value)
