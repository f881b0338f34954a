"""Decides whether a published policy comes into force (R-POL-3)."""

from __future__ import annotations

from turngate.processors.errors import Refused
from turngate.processors.ledger import Ledger
from turngate.schemas.inputs import PolicyPublished
from turngate.schemas.policy import PolicyInvalid, parse_policy
from turngate.schemas.shapes import Code


def published(ledger: Ledger, record: PolicyPublished) -> None:
    """Put a policy in force. The same version with the same document again changes nothing (R-RUN-4).

    Raises `Refused` with `policy_invalid`, the line and the reason, where the document does not validate, where its
    number is not the record's version, or where that version is not newer than every one before.
    """
    known = ledger.documents()
    try:
        policy = parse_policy(record.document)
    except PolicyInvalid as error:
        raise Refused(Code.POLICY_INVALID, str(error)) from None
    if record.version != str(policy.version):
        raise Refused(Code.POLICY_INVALID, "line 1: version: the record carries another version than the document")
    if (policy.version, record.document) in known:
        return
    if known and policy.version <= max(number for number, _ in known):
        raise Refused(Code.POLICY_INVALID, f"line 1: version: must be greater than {max(n for n, _ in known)}")
    ledger.publish((*known, (policy.version, record.document)))
