import csv
import hashlib
import json
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pa_parquet
import pytest

from alphaloom.ledger import LedgerError
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall, export_calls, follow, read_latest
from alphaloom.ledger.calls.segment import read_line

NAMES = ["tool", "=1+1", "half \ud800", "line\nbreak"]


def now() -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with CallLog.open(tmp_path / "audit", clock=now) as log:
        for name in NAMES:
            log.append(ToolCall("1a2b", "market", name, CallOutcome.OK, as_of=date(2015, 12, 31), rows=3, bytes=10))
    return tmp_path / "audit"


def test_exported_lines_prove_themselves(folder: Path, tmp_path: Path) -> None:
    written = export_calls(folder, tmp_path / "calls.jsonl", by="Ann", now=now())
    found = [read_line(raw) for raw in written.file.read_bytes().splitlines()]
    assert [line.kind for line in found if line] == ["begun", *["call"] * 4, "ended"]
    summary = json.loads(written.summary.read_text())
    assert (summary["by"], summary["calls"], summary["findings"]) == ("Ann", 4, [])
    assert summary["sha256"] == hashlib.sha256(written.file.read_bytes()).hexdigest()


def test_tables_have_a_row_for_each_call(folder: Path, tmp_path: Path) -> None:
    table = pa_parquet.read_table(export_calls(folder, tmp_path / "calls.parquet", by="Ann", now=now()).file)
    with export_calls(folder, tmp_path / "calls.csv", by="Ann", now=now()).file.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert table.column_names == list(rows[0])
    assert table["tool"].to_pylist()[:3] == ["tool", "=1+1", "half \\ud800"]
    assert [row["tool"] for row in rows][:3] == [
        "tool",
        "'=1+1",
        "half \\ud800",
    ]  # no spreadsheet takes it for a formula
    assert (table["rows"].to_pylist(), rows[0]["as_of"]) == ([3] * 4, "2015-12-31")


def test_an_export_of_a_record_at_work_holds_what_its_summary_says(folder: Path, tmp_path: Path) -> None:
    with CallLog.open(folder, clock=now) as log:
        for _ in range(30):
            log.append(ToolCall("stdio", "factors", "next", CallOutcome.OK))
            written = export_calls(folder, tmp_path / "calls.jsonl", by="Ann", now=now())
            assert written.file.read_bytes().count(b'"kind":"call"') == written.reading.calls


def test_another_ending_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"\.jsonl, \.csv, \.parquet"):
        export_calls(folder, tmp_path / "calls.xlsx", by="Ann", now=now())


def test_the_newest_calls_of_all_segments_are_told(folder: Path) -> None:
    with CallLog.open(folder, clock=lambda: datetime(2026, 1, 3, tzinfo=UTC)) as log:
        log.append(ToolCall("stdio", "factors", "newest", CallOutcome.OK))
    assert [row["tool"] for row in read_latest(folder, 2)] == ["line\nbreak", "newest"]
    assert read_latest(folder, 0) == []


def test_calls_that_come_are_followed_in_every_segment(folder: Path) -> None:
    with CallLog.open(folder, clock=now) as log:

        def one_more() -> None:
            log.append(ToolCall("stdio", "factors", "next", CallOutcome.OK))
            log.flush()

        coming = follow(folder, one_more)
        assert [row["tool"] for row in islice(coming, 3)] == ["next"] * 3
