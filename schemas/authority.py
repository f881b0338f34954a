"""Decides who may write and who may read each topic: authority is by topic (R-EVI-10; contract section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPICS, TICKS


class Role(StrEnum):
    """What a program or a person is to the pipeline. Whoever is two things is given both."""

    #: Brings in what happened in rooms, and lists them when asked.
    CONNECTOR = "connector"
    #: The runtime in which a model drafts; what it reads are answers to what it asked.
    AGENT = "agent"
    #: Labels memory writes; its word can only restrict (R-SEN-2).
    ASSESSOR = "assessor"
    #: Commands, publishes policies, and may look at everything.
    OPERATOR = "operator"
    #: Decides. Nobody else writes what it writes.
    WORKER = "worker"
    #: Sends what was authorized, or executes it, and says so.
    SINK = "sink"
    #: Keeps the record of decisions: ids and digests, no text and no code (R-RET-2).
    AUDITOR = "auditor"
    #: Fills the store, of which texts are a part: those of memories, which an erasure reaches there too (R-RET-3).
    STORE = "store"
    #: Writes for whoever has a token, what that may write (`turngate gateway`), and reads what came of it.
    GATEWAY = "gateway"


_WORKERS_OWN = (TICKS, *OUTPUT_TOPICS)

#: The one role that may write each topic, beside the gateway; and assessors write beside agents.
WRITERS: Mapping[str, frozenset[Role]] = MappingProxyType(
    {
        "membership-refreshes": frozenset({Role.CONNECTOR, Role.GATEWAY}),
        "observed-messages": frozenset({Role.CONNECTOR, Role.GATEWAY}),
        "identity-proofs": frozenset({Role.CONNECTOR, Role.GATEWAY}),
        "tool-results": frozenset({Role.AGENT, Role.GATEWAY}),
        "memory-writes": frozenset({Role.AGENT, Role.ASSESSOR, Role.GATEWAY}),
        "operator-commands": frozenset({Role.OPERATOR}),
        "turn-drafts": frozenset({Role.AGENT, Role.GATEWAY}),
        "approvals": frozenset({Role.CONNECTOR, Role.GATEWAY}),
        "deliveries": frozenset({Role.SINK, Role.GATEWAY}),
        "policies": frozenset({Role.OPERATOR}),
        **dict.fromkeys(_WORKERS_OWN, frozenset({Role.WORKER})),
    }
)

#: What the store reads. Of messages it keeps what quotes what and what was deleted, of offers no share code.
STORED = (
    "membership-refreshes",
    "observed-messages",
    "memory-writes",
    "operator-commands",
    "deliveries",
    "policies",
    "source-evidence",
    "memory-revisions",
    "grants",
    "turn-verdicts",
    "outbound",
    "audit",
    "room-lifecycle",
)

#: What the gateway reads: requests, by which it knows one that is sent again, their answers, policies and pauses.
ANSWERED = (
    "policies",
    "operator-commands",
    "membership-refreshes",
    "identity-proofs",
    "tool-results",
    "memory-writes",
    "turn-drafts",
    "approvals",
    "deliveries",
    "memory-revisions",
    "grants",
    "turn-verdicts",
    "outbound",
    "refresh-requests",
)

#: Who reads a topic beside operators, and beside workers, which read every input.
_READERS: Mapping[str, frozenset[Role]] = MappingProxyType(
    {
        "membership-refreshes": frozenset({Role.CONNECTOR, Role.SINK}),  # who was listed; who joined since (R-DLV-1)
        "observed-messages": frozenset({Role.CONNECTOR}),  # in which rooms something is said
        "identity-proofs": frozenset({Role.SINK}),  # a proof must live when it is sent (R-DLV-1)
        "memory-writes": frozenset({Role.ASSESSOR}),
        "operator-commands": frozenset({Role.ASSESSOR, Role.SINK}),  # a pause withholds (R-POL-4)
        "turn-drafts": frozenset({Role.SINK}),  # what a question is about
        "approvals": frozenset({Role.SINK}),  # one may be withdrawn before it is sent (R-POL-2)
        "deliveries": frozenset({Role.SINK}),  # what has been sent before (R-DLV-2)
        "policies": frozenset({Role.CONNECTOR, Role.SINK, Role.ASSESSOR, Role.AUDITOR}),  # `freshness`, `sensitivity`
        "refresh-requests": frozenset({Role.CONNECTOR}),
        "source-evidence": frozenset({Role.AUDITOR}),
        "memory-revisions": frozenset({Role.AGENT, Role.AUDITOR}),
        "grants": frozenset({Role.AGENT, Role.SINK}),  # share codes: nobody else's (R-GRT-10)
        "turn-verdicts": frozenset({Role.AGENT, Role.SINK, Role.AUDITOR}),
        "outbound": frozenset({Role.SINK}),
        "audit": frozenset({Role.AUDITOR}),
        "room-lifecycle": frozenset({Role.SINK, Role.AUDITOR}),  # what was erased is not sent (R-RET-3)
        "applied": frozenset({Role.SINK, Role.AUDITOR}),  # whether a command or `unshare` has been carried out
        "dead-letters": frozenset({Role.AUDITOR}),
    }
)


def _readers(topic: str) -> frozenset[Role]:
    workers = {Role.WORKER} if topic in INPUT_TOPICS else set()
    stores = {Role.STORE} if topic in STORED else set()
    gateways = {Role.GATEWAY} if topic in ANSWERED else set()
    return frozenset({Role.OPERATOR, *workers, *stores, *gateways, *_READERS.get(topic, ())})


READERS: Mapping[str, frozenset[Role]] = MappingProxyType({t: _readers(t) for t in (*INPUT_TOPICS, *OUTPUT_TOPICS)})
