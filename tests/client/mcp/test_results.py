"""What a model sees of a tool's result, and what is recorded of it, by the policy's entry of its server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp.types import CallToolResult, EmbeddedResource, TextContent, TextResourceContents

from tests.client.mcp.conftest import ROOM, Desk, proxied, shown, text_of
from tests.client.mcp.shop import ORDER
from tests.gateway.conftest import Running
from turngate.client.mcp.classified import WITHHELD, Classifier, Unclassifiable
from turngate.client.mcp.proxy import NOT_MADE, REF
from turngate.schemas.tooling import ServerTerms

SEEN = {"invoice": "INV-7", "amount": "120.00", "customer": {"name": "Robin Doe", "diagnosis": "broken ankle"}}
TERMS = ServerTerms(named=True, fields={"$.key": "secret", "$.name": "public"})


async def test_a_model_sees_no_secret_and_no_masked_class_and_the_log_has_the_values(desk: Desk) -> None:
    result = await desk.call("read", invoice="INV-7")
    assert (shown(result), result.structured_content) == (SEEN, SEEN)
    (record,) = await desk.results()
    assert (record.room, record.turn, record.server, record.operation) == (ROOM, "t1", "shop", "read")
    assert (record.private, record.untrusted, record.error) == (None, None, None)
    assert (result.meta or {})[REF] == f"tool:{record.call}"
    assert {(f.name, f.value, f.class_.value) for f in record.fields if not f.health} == {
        ("$.invoice", "INV-7", "public"),
        ("$.amount", "120.00", "internal"),  # no path names it
        ("$.key", ORDER["key"], "secret"),
        ("$.customer.name", "Robin Doe", "internal"),
        ("$.customer.mail", "robin@example.com", "personal"),
    }


async def test_what_is_about_health_is_named_on_the_log_and_not_said(desk: Desk) -> None:
    await desk.call("read", invoice="INV-7")
    fields = (await desk.results())[0].fields
    assert [(f.name, f.value, f.health) for f in fields if f.health] == [("$.customer.diagnosis", "", True)]


async def test_what_cannot_be_classified_is_withheld_where_it_may_hold_what_nobody_is_to_see(desk: Desk) -> None:
    """A text may quote the secret; an image shows what it shows; an error is a text."""
    story = await desk.call("story")
    assert (text_of(story), story.structured_content) == (WITHHELD, {"result": WITHHELD})
    assert text_of(await desk.call("picture")) == WITHHELD
    jammed = await desk.call("jam")
    assert (text_of(jammed), jammed.is_error) == (WITHHELD, True)
    recorded = [(r.operation, [f.class_.value for f in r.fields], r.untrusted) for r in await desk.results()]
    assert recorded == [("story", ["internal"], None), ("picture", [], None), ("jam", ["internal"], True)]


def test_a_text_is_shown_where_nothing_is_to_be_hidden_or_texts_have_a_class_of_their_own() -> None:
    """The delivered twin."""
    told = CallToolResult(content=[TextContent(text="the door is open")])
    for fields in ({}, {"$.name": "internal"}, {"$.key": "secret", "$": "public"}):
        taken = Classifier(ServerTerms(named=True, fields=fields)).take(told)
        assert [block.text for block in taken.content] == ["the door is open"]
        assert [f.value for f in taken.fields] == ["the door is open"]
    wrapped = CallToolResult(content=[], structured_content={"result": "the door is open"})
    for path, left in (("$.result", "the door is open"), ("$.other", WITHHELD)):
        terms = ServerTerms(named=True, fields={"$.key": "secret", path: "public"})
        assert Classifier(terms).take(wrapped).structured == {"result": left}


@pytest.mark.parametrize(
    ("document", "left"),
    [
        ({"key": {"a": 1, "b": [2]}, "name": "N"}, {"name": "N"}),
        ({"key": None, "name": "N"}, {"name": "N"}),
        ([{"key": "k"}], [{"key": "k"}]),  # the path names another place
        ({"a": {"key": "k"}, "name": ["x", {"key": 2}]}, {"a": {"key": "k"}, "name": ["x", {"key": 2}]}),
    ],
)
def test_a_whole_part_goes_with_its_place(document: object, left: object) -> None:
    taken = Classifier(TERMS).take(CallToolResult(content=[TextContent(text=json.dumps(document))]))
    assert json.loads(taken.content[0].text) == left


def test_a_value_that_is_hidden_is_hidden_where_the_server_repeats_it() -> None:
    """In another field, a name of one, or the text beside it; what only looks alike stays."""
    document = {"key": 'x"k-42', "url": 'https://x.example/?k=x"k-42', 'x"k-42': 1, "all": ['a x"k-42', "xk-42"]}
    blocks = [
        TextContent(text=json.dumps(document)),
        TextContent(text='the key is x"k-42'),
        TextContent(text="the key"),
    ]
    terms = ServerTerms(named=True, fields={"$.key": "secret", "$.result": "public"})
    taken = Classifier(terms).take(CallToolResult(content=blocks, structured_content=document))
    left = {"url": WITHHELD, "all": [WITHHELD, "xk-42"]}
    assert taken.structured == left
    assert [json.loads(taken.content[0].text), *(block.text for block in taken.content[1:])] == [
        left,
        WITHHELD,
        "the key",
    ]


@pytest.mark.parametrize("texts", ["one for each item", "one of all"])
@pytest.mark.parametrize("structured", [True, False])
def test_paths_hold_in_texts_too_where_sdks_lay_them_differently(texts: str, structured: bool) -> None:
    """A list is structured as `{"result": […]}`, and its texts are its items (R-MEM-6 for what is about health)."""
    items = [{"pin": 123456, "dx": "gout", "id": 7}, {"pin": 12, "dx": "flu", "id": 8}]
    said = [json.dumps(item) for item in items] if texts == "one for each item" else [json.dumps(items)]
    fields = {"$.result[*].pin": "secret", "$.result[*].dx": "personal", "$.result": "public"}
    terms = ServerTerms(named=True, mask=("personal",), fields=fields, health=("$.result[*].dx",))
    content = [TextContent(text=text) for text in said]
    taken = Classifier(terms).take(
        CallToolResult(content=content, structured_content={"result": items} if structured else None)
    )
    left = [json.loads(block.text) for block in taken.content]
    assert left in ([{"id": 7}, {"id": 8}], [[{"id": 7}, {"id": 8}]])
    assert taken.structured == ({"result": [{"id": 7}, {"id": 8}]} if structured else None)
    found = {(f.value, f.class_.value, f.health) for f in taken.fields}
    assert {one for one in found if one[0] not in "78"} == {
        ("123456", "secret", False),
        ("12", "secret", False),
        ("gout", "personal", True),
        ("flu", "personal", True),
    }
    assert ("7", "internal", False) in found  # what lies elsewhere is not made public by it


def test_a_number_that_repeats_what_is_hidden_is_hidden() -> None:
    document = {"pin": 123456, "echo": 123456, "text": "123456", "other": 98765}
    result = CallToolResult(content=[], structured_content=document)
    taken = Classifier(ServerTerms(named=True, fields={"$.pin": "secret"})).take(result)
    assert taken.structured == {"echo": WITHHELD, "text": WITHHELD, "other": 98765}


def test_of_two_classes_the_higher_holds_and_a_key_that_is_data_is_no_name() -> None:
    terms = ServerTerms(named=True, fields={"$..pay": "confidential", "$.staff": "personal", "$..name": "public"})
    document = {"staff": {"ann@example.com": {"pay": 9000, "name": "Ann"}}, "bob@example.com": {"ok": True, "n": 4711}}
    taken = Classifier(terms).take(CallToolResult(content=[], structured_content=document))
    assert [(f.name, f.value, f.class_.value) for f in taken.fields] == [
        ("$..pay", "9000", "confidential"),
        ("$.staff", "Ann", "personal"),
        ("$.*.n", "4711", "internal"),
    ]


def test_a_path_that_is_none_and_a_document_that_is_too_deep_are_not_guessed_at() -> None:
    with pytest.raises(Unclassifiable):
        Classifier(ServerTerms(named=True, fields={"key": "secret"}))
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(Unclassifiable):
        Classifier(TERMS).take(CallToolResult(content=[], structured_content=deep))


def test_what_may_quote_what_is_about_health_is_recorded_as_if_it_were() -> None:
    """A text and an error; a JSON text inside a structured result is classified as any other."""
    told = Classifier(ServerTerms(named=True, health=("$.diagnosis",)))
    for taken in (
        told.take(CallToolResult(content=[TextContent(text="a broken ankle")])),
        told.error("a broken ankle"),
    ):
        assert [field.health for field in taken.fields] == [True]
        assert "ankle" not in str(taken.error)
    wrapped = {"result": json.dumps({"diagnosis": "broken ankle", "desk": "by the door"})}
    taken = told.take(CallToolResult(content=[], structured_content=wrapped))
    assert taken.structured == {"result": json.loads(wrapped["result"])}
    assert [(f.name, f.health) for f in taken.fields] == [("$.diagnosis", True), ("$.desk", False)]


def test_an_embedded_resource_is_withheld() -> None:
    resource = EmbeddedResource(resource=TextResourceContents(uri="shop://key", text=ORDER["key"]))
    taken = Classifier(ServerTerms(named=True)).take(CallToolResult(content=[resource]))
    assert ([block.text for block in taken.content], taken.fields) == ([WITHHELD], [])


async def test_a_server_that_the_policy_does_not_name_works_and_is_private_and_untrusted(
    shopped: Running, counted: Path
) -> None:
    """R-AUD-8. Its operation is named in one case; else somebody has said that it may be called."""
    for server, more in (("market", {}), ("bazaar", {"call_unnamed": True})):
        async with proxied(shopped, counted, server, **more) as desk:
            assert shown(await desk.call("read", invoice="INV-7")) == ORDER
            record = (await desk.results())[-1]
            assert (record.server, record.private, record.untrusted) == (server, True, True)
            assert {f.class_.value for f in record.fields} == {"confidential"}
    async with proxied(shopped, counted, "bazaar") as desk:
        assert text_of(await desk.call("read", invoice="INV-7")) == NOT_MADE
    assert desk.calls == ["read"] * 2


async def test_an_operation_that_a_policy_leaves_out_of_a_server_that_it_names_is_not_called(
    shopped: Running, counted: Path
) -> None:
    async with proxied(shopped, counted, "market", call_unnamed=True) as desk:
        assert text_of(await desk.call("story")) == NOT_MADE  # the policy names another operation of it
    async with proxied(shopped, counted, call_unnamed=True) as desk:
        assert text_of(await desk.call("nothing")) == NOT_MADE
        assert text_of(await desk.call("story")) == WITHHELD
