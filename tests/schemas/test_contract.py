"""The contract's text, the pydantic models and the Avro schemas say the same."""

from __future__ import annotations

import re
import types
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
import yaml

from tests.schemas import contract_text
from tests.schemas.contract_text import Said
from turngate.schemas import outputs, shapes
from turngate.schemas.avro_schema import FOLDER, RESTRICTIVE, schema_of, versions
from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS, RECORDS, topic_of
from turngate.schemas.policy import Policy, parse_policy

IN_TOPICS, IN_FIELDS = contract_text.records(3)
OUT_TOPICS, OUT_FIELDS = contract_text.records(4)
FIELDS = IN_FIELDS | OUT_FIELDS
SHAPES = {"Field": shapes.ValueField} | {
    kind.__name__: kind for kind in vars(shapes).values() if isinstance(kind, type) and issubclass(kind, shapes.Shape)
}
#: Shapes inside a record's field: `{ref, reasons}` and the like.
NESTED = {
    ("ContextDecided", "permitted"): outputs.Permitted,
    ("ContextDecided", "withheld"): outputs.Withheld,
    ("DecisionTraced", "refs"): outputs.TracedRef,
    ("ShadowDecided", "was"): outputs.ShadowOutcome,
    ("ShadowDecided", "now"): outputs.ShadowOutcome,
}
#: Optional fields of shapes whose being so is said in the contract's words, not by a mark.
IN_WORDS = {
    "Rendering.request",
    "Rendering.exposed",
    "Param.evidence",
    "Field.subject",
    "Reason.ref",
    "Reason.detail",
    "DecisionTraced.previous",  # a tenant's first decision has none
}


def test_the_parser_has_found_the_whole_contract() -> None:
    assert len(FIELDS) == 38
    assert len(contract_text.shapes()) == 10
    assert len(contract_text.codes()) == 67


def test_each_topic_carries_the_contracts_records_in_its_order() -> None:
    ours = {topic: [model.__name__ for model in models] for topic, models in INPUT_TOPICS.items()}
    assert list(ours.items()) == list(IN_TOPICS.items())
    ours = {topic: [model.__name__ for model in models] for topic, models in OUTPUT_TOPICS.items()}
    assert list(ours.items()) == list(OUT_TOPICS.items())


def test_each_record_belongs_on_its_topic() -> None:
    for topic, names in (IN_TOPICS | OUT_TOPICS).items():
        for name in names:
            if name != "MemoryWrite":
                assert topic_of(name, {}) == topic
    assert topic_of("MemoryWrite", {"by": "turn", "op": "create"}) == "memory-writes"
    for operators in ({"by": "operator"}, {"op": "promote"}, {"op": "reject"}, {"op": "review"}):
        assert topic_of("MemoryWrite", {"by": "turn", "op": "create"} | operators) == "operator-commands"
    with pytest.raises(KeyError):
        topic_of("Nothing", {})


def test_no_model_is_without_a_line_in_the_contract() -> None:
    assert set(RECORDS) == set(FIELDS)
    assert {folder.name for folder in FOLDER.iterdir()} == set(FIELDS)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_record_has_the_contracts_fields(name: str) -> None:
    _compare(name, RECORDS[name], [Said("tenant", False, None), Said("at", False, None), *FIELDS[name]])


@pytest.mark.parametrize("name", sorted(contract_text.shapes()))
def test_a_shape_has_the_contracts_fields(name: str) -> None:
    _compare(name, SHAPES[name], contract_text.shapes()[name])


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_the_newest_avro_schema_is_the_models(name: str) -> None:
    assert versions(name)[-1] == schema_of(RECORDS[name]), "run `python -m turngate.schemas.avro_schema`"


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        ("Audience", "scope"),
        ("RoomInfo", "kind"),
        ("RoomInfo", "visibility"),
        ("Member", "kind"),
        ("Param", "origin"),
        ("Field", "class"),
    ],
)
def test_a_shapes_values_are_the_contracts(shape: str, field: str) -> None:
    kind = _hint(SHAPES[shape], field)
    assert [member.value for member in _bare(kind)] == contract_text.symbols(shape, field)


def test_the_reason_codes_are_the_contracts() -> None:
    assert [code.value for code in shapes.Code] == contract_text.codes()


def test_every_enum_has_a_restrictive_default() -> None:
    kinds = {_bare(hint) for model in [*RECORDS.values(), *SHAPES.values()] for hint in _hints(model).values()}
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            assert RESTRICTIVE[kind] in kind


def test_ids_are_as_long_as_the_contract_says() -> None:
    (said,) = re.findall(r"^At most, in characters: (.+);", contract_text.sections()[1], flags=re.MULTILINE)
    assert re.findall(r"[0-9]+", said) == [
        str(_most(form)) for form in (shapes.Namespace, shapes.ReaderId, shapes.MessageId, shapes.Ref)
    ]
    assert _most(shapes.ReaderId) == _most(shapes.RoomId) == _most(shapes.Id)
    assert _most(shapes.CommandId) == _most(shapes.MessageId)


def _most(form: Any) -> int:
    (constraints,) = form.__metadata__
    return int(constraints.max_length)


def test_what_is_not_said_is_the_restrictive_value_of_an_enum() -> None:
    """But for an audience, which lists nobody then, and for what the pipeline alone writes, and always says."""
    found = {
        f"{model.__name__}.{name}": info.default
        for model in {*RECORDS.values(), *SHAPES.values(), *NESTED.values()}
        for name, info in model.model_fields.items()
        if isinstance(info.default, StrEnum)
    }
    loose = {"Audience.scope": shapes.Scope.LISTED, "Permitted.attribution": outputs.Attribution.SHOWN}
    assert {name: RESTRICTIVE[type(value)] for name, value in found.items()} | loose == found
    assert set(found) == {*loose, "Param.origin", "ValueField.class_"}


def test_the_policys_defaults_are_the_contracts() -> None:
    shown = yaml.safe_load(contract_text.policy())
    for key in ("agents", "tools", "operations", "skills"):
        assert shown.pop(key), "the contract shows an example"
    assert parse_policy(yaml.safe_dump(shown)) == parse_policy("version: 1") == Policy(version=1)
    for key, value in shown.items():
        if isinstance(value, dict):
            assert set(value) == set(type(getattr(Policy(version=1), key)).model_fields), f"every key of {key} is shown"
    assert set(shown) | {"agents", "tools", "operations", "skills"} == set(Policy.model_fields)


def test_the_contracts_example_policy_is_valid() -> None:
    example = parse_policy(contract_text.policy())
    assert example.skills["refund"].params["amount"].max == 500
    assert example.tools["wiki"].audience == shapes.Audience(workspaces=("slack:T1",))


def _compare(name: str, model: type[shapes.Shape], said: list[Said]) -> None:
    """Names in their order, what may be null, lists, and the values of enums: of the model and of its Avro schema."""
    avro = schema_of(model)
    assert isinstance(avro, dict)
    hints = _hints(model)
    assert list(hints) == [field.name for field in said] == [field["name"] for field in avro["fields"]]
    for field, written in zip(said, avro["fields"], strict=True):
        hint = hints[field.name]
        where = f"{name}.{field.name}"
        assert _nullable(hint) == (field.optional or where in IN_WORDS), f"{where} may be null"
        assert (isinstance(written["type"], list) and "null" in written["type"]) == _nullable(hint), where
        if (
            field.symbols is not None
            and "[" not in str(field.type)
            and not all(symbol.isdigit() for symbol in field.symbols)
        ):
            assert [member.value for member in _bare(hint)] == field.symbols, where
        if field.type is not None and field.type.startswith("["):
            assert get_origin(_bare(hint)) is tuple, f"{where} is a list"
            item = _bare(get_args(_bare(hint))[0])
            inner = field.type[1:-1]
            if inner.startswith("{"):
                _compare(f"{name}.{field.name}", NESTED[name, field.name], contract_text.fields(inner[1:-1]))
            elif inner in SHAPES:
                assert item is SHAPES[inner], where
            else:
                assert item is str, where
        elif field.type is not None and field.type.startswith("{"):
            assert _bare(hint) is NESTED[name, field.name], where
            _compare(where, _bare(hint), contract_text.fields(field.type[1:-1]))
        elif field.type in SHAPES:
            assert _bare(hint) is SHAPES[field.type], where


def _hints(model: type[shapes.Shape]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {info.alias or key: hints[key] for key, info in model.model_fields.items()}


def _hint(model: type[shapes.Shape], name: str) -> Any:
    return _hints(model)[name]


def _nullable(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _bare(hint: Any) -> Any:
    """A hint without `| None` and without constraints."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if _nullable(hint):
        (inner,) = (arg for arg in get_args(hint) if arg is not type(None))
        return _bare(inner)
    return hint
