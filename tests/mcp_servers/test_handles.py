"""Panels by handle: nobody else opens them, not for longer, and the parts are the whole."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alphaloom.mcp_servers import handles as panels
from alphaloom.mcp_servers.errors import McpServerError
from alphaloom.mcp_servers.handles import HANDLE_LIFETIME, MAX_PART_BYTES, Handles

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
WIDE = pa.table({f"n{at}": np.random.default_rng(at).normal(size=600) for at in range(300)})
SMALL = pa.table({"n": [1.0, 2.0]})


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def handles(tmp_path: Path, clock: Clock) -> Handles:
    return Handles(tmp_path / "panels", clock)


def test_the_parts_are_the_whole_and_each_is_small(handles: Handles) -> None:
    handed = handles.hand_over(WIDE, "ann", "2015-12-31")
    files = [handles.fetch(handed.handle, part, "ann", "2015-12-31") for part in range(len(handed.parts))]
    assert len(files) > 1
    assert max(map(len, files)) <= MAX_PART_BYTES
    assert pa.concat_tables(pq.read_table(io.BytesIO(content)) for content in files).equals(WIDE)
    assert handed.rows == 600
    assert handed.sha256 == hashlib.sha256((handles.folder / f"{handed.sha256}.parquet").read_bytes()).hexdigest()


def gaps_then_all() -> np.ndarray:
    """Return values of which the first half is missing: those rows shrink to nothing, the others do not."""
    values = np.random.default_rng(1).normal(size=(900, 200))
    values[:600] = np.nan
    return values


@pytest.mark.parametrize(
    "values", [gaps_then_all(), np.random.default_rng(2).normal(size=(40, 2_500)), np.zeros((3, 1))]
)
def test_no_part_is_large_where_the_rest_of_the_panel_shrinks(handles: Handles, values: np.ndarray) -> None:
    table = pa.table([*values.T], names=[f"name {at}" for at in range(values.shape[1])])
    handed = handles.hand_over(table, "ann", "")
    files = [handles.fetch(handed.handle, part, "ann", "") for part in range(len(handed.parts))]
    assert max(map(len, files)) <= MAX_PART_BYTES
    whole = pa.concat_tables(pq.read_table(io.BytesIO(content)) for content in files)
    assert np.array_equal(np.array([column.to_numpy() for column in whole.columns]).T, values, equal_nan=True)


def test_what_others_hand_over_meanwhile_stays(tmp_path: Path, clock: Clock) -> None:
    """A sweep reads handles, then files: a panel that comes in between has a file and, for it, no handle yet."""
    kept = {who: [pa.table({who: [float(at)]}) for at in range(60)] for who in "abcd"}

    def hand_all(who: str) -> list[str]:
        own = [Handles(tmp_path / "panels", clock) for _ in kept[who]]  # each sweeps, as a server does that begins
        return [each.hand_over(table, who, "").handle for each, table in zip(own, kept[who], strict=True)]

    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(kept, pool.map(hand_all, kept), strict=True))
    anew = Handles(tmp_path / "panels", clock)
    for who, names in found.items():
        for name, table in zip(names, kept[who], strict=True):
            assert pq.read_table(io.BytesIO(anew.fetch(name, 0, who, ""))).equals(table)


@pytest.mark.parametrize(
    ("handle", "caller", "as_of"),
    [(None, "bob", "2015-12-31"), (None, "ann", "2016-12-31"), ("0" * 64, "ann", "2015-12-31"), ("../key", "ann", "x")],
)
def test_what_is_foreign_unknown_or_forged_is_refused_in_the_same_words(
    handles: Handles, handle: str | None, caller: str, as_of: str
) -> None:
    own = handles.hand_over(SMALL, "ann", "2015-12-31").handle
    with pytest.raises(McpServerError, match="no panel of yours has this handle") as caught:
        handles.fetch(handle or own, 0, caller, as_of)
    assert caught.value.code == "unknown_handle"


def test_a_handle_expires_and_its_file_goes(handles: Handles, clock: Clock) -> None:
    handed = handles.hand_over(SMALL, "ann", "2015-12-31")
    assert handles.fetch(handed.handle, 0, "ann", "2015-12-31")
    clock.now += HANDLE_LIFETIME + timedelta(seconds=1)
    with pytest.raises(McpServerError, match="no panel of yours") as caught:
        handles.fetch(handed.handle, 0, "ann", "2015-12-31")
    assert caught.value.code == "unknown_handle"
    handles.hand_over(WIDE, "ann", "2015-12-31")
    assert not (handles.folder / f"{handed.sha256}.parquet").exists()
    with pytest.raises(McpServerError, match="no such part") as caught:
        handles.fetch(handles.hand_over(SMALL, "ann", "2015-12-31").handle, 1, "ann", "2015-12-31")
    assert caught.value.code == "unknown_handle"


def test_another_server_on_the_folder_opens_it_and_one_with_another_key_does_not(
    handles: Handles, clock: Clock, tmp_path: Path
) -> None:
    handed = handles.hand_over(SMALL, "ann", "")
    assert Handles(handles.folder, clock).fetch(handed.handle, 0, "ann", "")
    other = Handles(tmp_path / "other", clock)
    assert other.hand_over(SMALL, "ann", "").handle != handed.handle
    assert (handles.folder / "key").stat().st_mode & 0o077 == 0


def test_what_one_caller_holds_is_limited_and_its_oldest_makes_room(
    handles: Handles, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [pa.table({"n": np.random.default_rng(at).normal(size=2_000)}) for at in range(6)]
    size = handles.hand_over(tables[0], "bob", "x").size_bytes
    monkeypatch.setattr(panels, "MAX_CALLER_BYTES", 3 * size)
    own = [handles.hand_over(table, "ann", "x").handle for table in tables]
    held = []
    for handle in own:
        with suppress(McpServerError):
            handles.fetch(handle, 0, "ann", "x")
            held.append(handle)
    assert held == own[-len(held) :]
    assert 2 <= len(held) <= 3
    assert handles.fetch(handles.hand_over(tables[0], "bob", "x").handle, 0, "bob", "x"), "somebody else's stays"
    assert len(list(handles.folder.glob("*.parquet"))) == len(held) + 1


def test_a_panel_stays_while_a_handle_of_another_server_opens_it(
    handles: Handles, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = Handles(handles.folder, clock).hand_over(SMALL, "bob", "x").handle
    handles.hand_over(SMALL, "ann", "x")
    monkeypatch.setattr(panels, "MAX_CALLER_BYTES", 1)
    handles.hand_over(WIDE, "ann", "x")
    assert Handles(handles.folder, clock).fetch(others, 0, "bob", "x")


def test_what_was_left_half_written_goes(handles: Handles) -> None:
    handles.hand_over(SMALL, "ann", "x")
    left = [handles.folder / f"{'0' * 64}.{kind}.1a2b3c4d" for kind in ("parquet", "json")]
    for place in left:
        place.write_bytes(b"half")
    Handles(handles.folder, handles.clock).hand_over(SMALL, "ann", "x")
    assert not any(place.exists() for place in left)
