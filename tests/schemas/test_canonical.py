"""Digests are of RFC 8785's canonical JSON, however fast it is written."""

from __future__ import annotations

import hashlib

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from turngate.schemas.avro_schema import versions
from turngate.schemas.canonical import canonical, digest
from turngate.schemas.catalog import RECORDS

_SCALARS = st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.text()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


@given(_VALUES)
def test_it_is_the_canonical_form(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)
    assert digest(value) == hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def test_keys_beyond_the_basic_plane_go_by_utf_16() -> None:
    """U+1F600 is D83D DE00 in UTF-16, so it comes before U+FB33, which has the smaller code point."""
    assert canonical({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


def test_the_fingerprint_of_an_action_as_the_contract_writes_it() -> None:
    action = {"skill": None, "params": {"b": "2", "a": "1"}, "operation": "crm.refund"}
    assert canonical(action) == b'{"operation":"crm.refund","params":{"a":"1","b":"2"},"skill":null}'


@pytest.mark.parametrize("value", [2**53, b"bytes", "\ud800", {"a": {1, 2}}])
def test_what_has_no_canonical_form(value: object) -> None:
    with pytest.raises(ValueError, match=r"exceeds 53-bit range|not JSON serializable|surrogates not allowed"):
        canonical(value)


def test_no_record_has_a_number_that_is_not_whole() -> None:
    """Floats have no one way of writing here, so the wire must not have any."""
    written = "".join(str(schema) for name in RECORDS for schema in versions(name))
    assert "long" in written
    assert "double" not in written
    assert "float" not in written
