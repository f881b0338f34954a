"""Whatever an export holds, it comes to records of the contract or to an `ExportError`, and to nothing else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.connectors.slack_export.workspace import UNSHARED, archive, content, folder, said, user, workspace
from turngate.connectors.slack_export import ExportError, read_export
from turngate.schemas.codec import Codec

CODEC = Codec()
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def rich() -> dict[str, Any]:
    """An export with one of everything."""
    share = {"is_msg_unfurl": True, "channel_id": "G1", "channel_team": "T1", "ts": "1767500000.000300"}
    return workspace() | {
        "users.json": [user("UALEX"), user("UBOT", is_bot=True), {"id": "W1", "enterprise_user": {"teams": ["T1"]}}],
        "groups.json": [{"id": "G1", "name": "deal", "members": ["UALEX"], "is_private": True, **UNSHARED}],
        "mpims.json": [{"id": "G2", "name": "mpdm-a--b-1", "members": ["UALEX", "W1"], "connected_team_ids": []}],
        "dms.json": [{"id": "D1", "members": ["UALEX", "UBOT"]}],
        "general/2026-01-05.json": [
            said("1767600000.000100", subtype="channel_join", inviter="UBOT"),
            said("1767600001.000100", attachments=[share], thread_ts="1767600000.000100"),
            said("1767600002.000100", edited={"user": "UALEX", "ts": "1767600009.000000"}),
            said("1767600003.000100", subtype="message_changed", message=said("1767600001.000100")),
            said("1767600004.000100", subtype="message_deleted", deleted_ts="1767600001.000100"),
        ],
        "deal/2026-01-05.json": [said("1767600005.000100", subtype="channel_convert_to_private")],
        "D1/2026-01-06.json": [
            said("1767690000.000100", "UBOT", bot_id="B1", user_team="T1", user_profile={"team": "T1"})
        ],
    }


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "C1", "T1", "T9", "UALEX", "UNEW", "../general", "tombstone", "channel_join", "9" * 30 + ".1"]
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "ts", "user", "team", "members", "text"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, v in inner for p in places(v, (*path, key)))]


def put(value: Any, place: tuple[Any, ...], new: Any, drop: bool) -> Any:
    """The value with another one at a place, or with nothing there."""
    if not place:
        return new
    key, *rest = place
    items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    items[key] = put(items[key], tuple(rest), new, drop)
    if drop and not rest:
        del items[key]
    return items if isinstance(value, dict) else list(items.values())


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, bytes]:
    tree = rich()
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(tree)))
        place = draw(st.sampled_from(places(tree[path])))
        tree[path] = put(tree[path], place, draw(JSON), draw(st.booleans()))
    files = {path: json.dumps(value).encode() for path, value in tree.items()}
    if draw(st.integers(0, 4)) == 0:
        path = draw(st.sampled_from(sorted(files)))
        cut = draw(st.integers(0, len(files[path])))
        files[path] = files[path][:cut] + draw(st.binary(max_size=3)) + files[path][cut + draw(st.integers(0, 3)) :]
    return files


def outcome(path: Path, keep_going: bool) -> str:
    try:
        with read_export(path, tenant="acme", agent="mesh", team="T1", keep_going=keep_going) as export:
            last = 0
            for event in export:
                record = CODEC.decode(CODEC.encode_fields(event.record, event.fields))
                assert type(record).__name__ == event.record
                assert last <= event.at == record.at
                last = event.at
    except ExportError as error:
        return str(error)
    return "read"


def test_the_unchanged_export_is_read(tmp_path: Path) -> None:
    assert outcome(folder(tmp_path, rich()), keep_going=False) == "read"


@SETTINGS
@given(mutated())
def test_a_changed_export_is_read_or_refused(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = folder(Path(root), files)
        strict = outcome(path, keep_going=False)
        lenient = outcome(path, keep_going=True)
        assert strict != "read" or lenient == "read"


@SETTINGS
@given(st.data())
def test_a_changed_archive_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = archive(Path(root) / "export.zip", {p: content(v) for p, v in rich().items()})
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
        assert outcome(path, keep_going=False)
