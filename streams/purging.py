"""Decides which records of an embedded log lose their texts when a room, an author or a memory is erased (R-RET-3).

What is removed is texts and values; ids, times and places stay, so that offsets stay and a replay is possible.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from turngate.schemas.catalog import INPUT_TOPICS, OUTPUT_TOPIC
from turngate.schemas.codec import Codec, Undecodable
from turngate.schemas.inputs import ErasureCommanded, MemoryWrite, MessageObserved, Record, ToolReturned, TurnDrafted
from turngate.schemas.outputs import SharingOffered, TurnAuthorized, TurnDecided
from turngate.schemas.shapes import Action
from turngate.streams.local_log import LocalLog
from turngate.streams.log import Message

#: Topics with texts, but that of the decisions, which tell what each turn was made of.
_WITH_TEXTS = (*INPUT_TOPICS, OUTPUT_TOPIC["SharingOffered"], OUTPUT_TOPIC["TurnAuthorized"])


def purge(log: LocalLog, command: ErasureCommanded, refs: Set[str]) -> int:
    """Remove from the log's file every text that the command concerns; the number of records that lost one.

    `refs` are those that `ErasureApplied` names. Harmless when repeated. Raises `LogError` where the file cannot be
    rewritten; the command itself stays applied.
    """
    codec = Codec()
    emptied: list[Message] = []
    for partition in range(log.partitions):
        concerned = _Concerned(command, refs, _turns(log, codec, partition, command, refs))
        for topic in _WITH_TEXTS:
            for message in log.scan(topic, partition):
                record = _decoded(codec, message)
                if record is None or record.tenant != command.tenant or not concerned.by(record):
                    continue
                value = codec.encode(without_texts(record))
                if value != message.value:
                    emptied.append(replace(message, value=value))
    log.erase(emptied)
    return len(emptied)


def _turns(log: LocalLog, codec: Codec, partition: int, command: ErasureCommanded, refs: Set[str]) -> Set[str]:
    """The turns that were made of something erased, or were to be said in an erased room."""
    records = (_decoded(codec, message) for message in log.scan(OUTPUT_TOPIC["TurnDecided"], partition))
    decided = (r for r in records if isinstance(r, TurnDecided) and r.tenant == command.tenant)
    return {r.turn for r in decided if r.room == command.room or not refs.isdisjoint(r.provenance)}


class _Concerned:
    """Whether a record's text is one that was erased, or was made of one."""

    def __init__(self, command: ErasureCommanded, refs: Set[str], turns: Set[str]) -> None:
        self._command = command
        self._refs = refs
        self._turns = turns

    def by(self, record: Record) -> bool:
        """Of one record of the tenant's."""
        command, turns = self._command, self._turns
        match record:
            case MessageObserved():
                wrote = command.reader is not None and record.author == command.reader
                return (
                    wrote or self._there(record.room) or record.turn in turns or self._any(f"message:{record.message}")
                )
            case ToolReturned():
                return self._there(record.room) or self._any(f"tool:{record.call}")
            case MemoryWrite():
                made_of = (f"revision:{record.revision}", f"revision:{record.base}", *record.sources)
                return record.memory == command.memory or record.turn in turns or self._any(*made_of)
            case SharingOffered():
                return self._any(f"revision:{record.revision}")
            case TurnDrafted():
                shown = (ref for rendering in record.renderings for ref in rendering.exposed or ())
                named = (f"revision:{name}" for name in (*record.wrote, *record.retired))
                made_of = (record.trigger or "", *record.exposed, *shown, *named)
                return self._there(record.room) or record.turn in turns or self._any(*made_of)
            case TurnAuthorized():
                return record.turn in turns or self._any(*record.provenance)
        return False

    def _there(self, room: str) -> bool:
        return room == self._command.room

    def _any(self, *refs: str) -> bool:
        return not self._refs.isdisjoint(refs)


def without_texts(record: Record) -> Record:
    """The same record with every text and value in it replaced by an empty one; absent ones stay absent."""
    match record:
        case MessageObserved() | MemoryWrite():
            return record.model_copy(update={"text": _empty(record.text)})
        case ToolReturned():
            fields = tuple(field.model_copy(update={"value": ""}) for field in record.fields)
            return record.model_copy(update={"fields": fields, "error": _empty(record.error)})
        case SharingOffered():
            return record.model_copy(update={"text": ""})
        case TurnDrafted():
            renderings = tuple(r.model_copy(update={"text": ""}) for r in record.renderings)
            return record.model_copy(update={"renderings": renderings, "action": _no_values(record.action)})
        case TurnAuthorized():
            return record.model_copy(update={"text": _empty(record.text), "action": _no_values(record.action)})
    return record


def _no_values(action: Action | None) -> Action | None:
    if action is None:
        return None
    return action.model_copy(update={"params": tuple(p.model_copy(update={"value": ""}) for p in action.params)})


def _empty(text: str | None) -> str | None:
    return None if text is None else ""


def _decoded(codec: Codec, message: Message) -> Record | None:
    """The record, or None of what is none: what was never understood was never remembered either."""
    try:
        return codec.decode(message.value)
    except Undecodable:
        return None
