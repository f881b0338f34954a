"""Decides what a scenario sends, step by step, and when it has failed (contract section 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from turngate.schemas.catalog import INPUT_TOPICS, topic_of
from turngate.schemas.codec import Codec, Unencodable
from turngate.streams.scenarios.backend import Backend, Incoming, Session, emitted
from turngate.streams.scenarios.document import Scenario, Step
from turngate.streams.scenarios.errors import ScenarioError, Wrong
from turngate.streams.scenarios.expectations import Emitted
from turngate.streams.scenarios.patterns import substituted
from turngate.streams.scenarios.policies import document, merged
from turngate.streams.scenarios.shapes import filled
from turngate.streams.scenarios.times import EPOCH, instant


@dataclass(frozen=True, slots=True)
class Failure:
    """The step after which a scenario was not as it says: which expectations did not hold, and all that came."""

    step: Step
    unmet: tuple[str, ...]
    came: tuple[Emitted, ...]

    def lines(self) -> list[str]:
        """The failure in lines of text."""
        came = [str(e) for e in self.came] or ["nothing"]
        return [self.step.title, *(f"  expected  {u}" for u in self.unmet), *(f"  came      {c}" for c in came)]


@dataclass(slots=True)
class _Clock:
    """Times of steps: `last` is the broker time of the step before, `greatest` of all of them (R-TIME-1)."""

    last: int = EPOCH
    greatest: int = EPOCH

    def move(self, to: int) -> None:
        self.last = to
        self.greatest = max(self.greatest, to)


@dataclass(slots=True)
class _Run:
    scenario: Scenario
    session: Session
    codec: Codec
    clock: _Clock = field(default_factory=_Clock)
    captured: dict[str, Any] = field(default_factory=dict)


def run(scenario: Scenario, backend: Backend, codec: Codec | None = None) -> Failure | None:
    """Run a scenario; None where everything came as it says, else the first step where it did not.

    Raises `ScenarioError` where a step cannot be sent, `turngate.streams.log.LogError` where the runtime is not usable.
    """
    with backend.session() as session:
        state = _Run(scenario, session, Codec() if codec is None else codec)
        _publish(state)
        for step in scenario.steps:
            try:
                incoming = _incoming(state, step)
            except Wrong as error:
                raise ScenarioError(scenario.path, f"step {step.number}", str(error)) from None
            came = emitted(state.codec, session.send([incoming] * step.repeat))
            failure = _judged(state, step, came)
            if failure is not None:
                return failure
    return None


def run_all(scenarios: Sequence[Scenario], backend: Backend) -> Iterator[Failure | None]:
    """As `run`, of each scenario in order; as many at once as the backend likes."""
    if backend.at_once == 1:
        yield from (run(scenario, backend) for scenario in scenarios)
        return
    with ThreadPoolExecutor(backend.at_once) as pool:
        yield from pool.map(lambda scenario: run(scenario, backend), scenarios)


def _publish(state: _Run) -> None:
    """The scenario's policy for each of its tenants, at the epoch."""
    if state.scenario.policy is None:
        return
    text, version = document(state.scenario.policy), str(state.scenario.policy["version"])
    for tenant in state.scenario.tenants:
        fields = {"tenant": tenant, "at": EPOCH, "version": version, "document": text}
        state.session.send([_encoded(state, "PolicyPublished", fields, None, EPOCH)])


def _judged(state: _Run, step: Step, came: list[Emitted]) -> Failure | None:
    unmet = [str(e) for e in step.expected if not e.holds(came, state.captured)]
    for capture in step.captures:
        value = capture.take(came)
        if value is None:
            unmet.append(f"capture: {{{capture.name}: {capture.record}.{capture.field}}}")
        else:
            state.captured[capture.name] = value
    return Failure(step, tuple(unmet), tuple(came)) if unmet else None


def _incoming(state: _Run, step: Step) -> Incoming:
    if step.name == "wait":
        at = state.clock.greatest + step.wait_ms
        state.clock.move(at)
        return _encoded(state, "Tick", {"tenant": str(state.session.partition), "at": at}, None, at)
    fields = dict(substituted(step.fields, state.captured))
    at = instant(fields["at"]) if "at" in fields else state.clock.last + 1000
    broker_at = instant(fields.pop("broker_at")) if "broker_at" in fields else at
    state.clock.move(broker_at)
    fields["at"] = at
    topic = fields.pop("topic", None)
    record = step.name
    if record == "room":
        record, fields = "MembershipPage", _page(step, fields)
    elif record == "MembershipPage":
        fields.setdefault("started_at", at)
    elif record == "Tick":
        fields.setdefault("tenant", str(state.session.partition))
    elif record == "PolicyPublished":
        fields["document"] = _document(state.scenario, fields)
    return _encoded(state, record, filled(record, fields), topic, broker_at)


def _page(step: Step, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A complete listing of one page, from the shorthand `room:`."""
    info = {k: fields[k] for k in ("kind", "visibility", "workspaces", "archived") if k in fields}
    page = {k: v for k, v in fields.items() if k not in info}
    return {"refresh": f"step-{step.number}", "started_at": fields["at"], "info": info} | page


def _document(scenario: Scenario, fields: Mapping[str, Any]) -> Any:
    """The text of a policy: as given, or a map merged over the scenario's own policy."""
    own = fields.get("document")
    if not isinstance(own, Mapping):
        return own
    whole = merged({} if scenario.policy is None else scenario.policy, own)
    version = str(fields.get("version", ""))
    if "version" not in own and version.isdecimal():
        whole["version"] = int(version)  # the record's version is the document's number as text
    return document(whole)


def _encoded(state: _Run, record: str, fields: Mapping[str, Any], topic: Any, timestamp: int) -> Incoming:
    """A record's bytes; of one that its schema cannot say its JSON, which the pipeline refuses (R-RUN-5)."""
    topic = topic_of(record, dict(fields)) if topic is None else topic
    if topic not in INPUT_TOPICS:
        raise Wrong(f"{topic!r} is no input topic; write topic: one of {', '.join(INPUT_TOPICS)}")
    key = str(fields.get("tenant"))
    try:
        value = state.codec.encode_fields(record, fields)
    except Unencodable:
        value = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode()
    return Incoming(topic, key.encode(), value, timestamp)
