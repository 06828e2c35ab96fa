"""Whatever is done to the record is found: a byte, a line, a segment."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall, anchors_of, export_calls, verify_calls
from alphaloom.ledger.calls.heads import list_segments, read_heads, write_heads
from alphaloom.ledger.calls.segment import KIND_CALL, ChainLink, build_line

law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
CALLS = 6


def now() -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC)


def record(folder: Path, count: int = 2) -> list[Path]:
    for _ in range(count):
        with CallLog.open(folder, clock=now) as log:
            for index in range(CALLS):
                log.append(ToolCall("stdio", "market", f"tool{index}", CallOutcome.OK))
    return list_segments(folder)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return record(tmp_path / "audit")


def kinds(paths: list[Path], body: bytes, at: int = 0) -> set[str]:
    """Return what is found where a segment holds other bytes; it holds its own again afterwards."""
    whole = paths[at].read_bytes()
    try:
        paths[at].write_bytes(body)
        return {finding.kind for finding in verify_calls(paths[0].parent).findings}
    finally:
        paths[at].write_bytes(whole)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_whole_record_is_found_whole(paths: list[Path]) -> None:
    reading = verify_calls(paths[0].parent)
    assert (reading.calls, reading.findings, reading.notes) == (2 * CALLS, (), ())
    assert reading.root == verify_calls(paths[0].parent).root


@law
@given(st.data())
def test_any_byte_that_is_changed_is_found(paths: list[Path], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, 1))
    body = bytearray(paths[at].read_bytes())
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    assert kinds(paths, bytes(body), at)


@law
@given(st.integers(0, 1), st.integers(0, CALLS + 1))
def test_any_line_that_is_removed_is_found(paths: list[Path], at: int, gone: int) -> None:
    kept = lines(paths[at])
    del kept[gone]
    assert "removed" in kinds(paths, b"".join(kept), at)


@law
@given(st.integers(0, 1), st.integers(0, CALLS + 1), st.integers(0, CALLS + 1))
def test_any_two_lines_that_are_swapped_are_found(paths: list[Path], at: int, one: int, other: int) -> None:
    swapped = lines(paths[at])
    swapped[one], swapped[other] = swapped[other], swapped[one]
    assert bool(kinds(paths, b"".join(swapped), at)) == (one != other)


@law
@given(st.integers(0, CALLS + 1), st.integers(0, CALLS + 2))
def test_any_line_that_is_put_in_again_is_found(paths: list[Path], one: int, place: int) -> None:
    more = lines(paths[0])
    more.insert(place, more[one])
    assert kinds(paths, b"".join(more)) & {"moved", "inserted"}


@law
@given(st.integers(1, 5_000))
def test_any_end_that_is_cut_off_is_found(paths: list[Path], cut: int) -> None:
    whole = paths[0].read_bytes()
    assert kinds(paths, whole[: max(len(whole) - cut, 0)])


def test_a_line_that_is_written_anew_with_its_hash_is_found(paths: list[Path]) -> None:
    old = lines(paths[0])
    previous = json.loads(old[1])["hash"]
    forged, _ = build_line(
        KIND_CALL, ChainLink(1, previous), "2026-01-02T00:00:00.000000+00:00", '"who":"somebody else"'
    )
    assert kinds(paths, b"".join([*old[:2], forged, *old[3:]])) == {"changed"}


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_segment_that_is_removed_is_found(tmp_path: Path, gone: int) -> None:
    paths = record(tmp_path, 3)
    paths[gone].unlink()
    (finding,) = verify_calls(tmp_path).findings
    assert (finding.kind, finding.segment) == ("removed", paths[gone].name)


def test_a_segment_that_is_put_in_is_found(tmp_path: Path, paths: list[Path]) -> None:
    (other,) = record(tmp_path / "other", 1)
    shutil.copy(other, paths[0].with_name("calls-20260101T000000.000000Z-1.jsonl"))
    found = {finding.message for finding in verify_calls(paths[0].parent).findings}
    assert "no other segment and no head file names it" in found


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_text('{"heads": []}')])
def test_a_head_file_that_is_gone_or_changed_is_found(paths: list[Path], harm: Callable[[Path], object]) -> None:
    harm(paths[0].parent / "heads.json")
    (finding,) = verify_calls(paths[0].parent).findings
    assert (finding.kind, finding.segment) == ("changed", "heads.json")


def test_what_was_taken_back_with_the_head_file_is_found_by_an_earlier_export(tmp_path: Path) -> None:
    record(tmp_path / "audit", 1)
    kept = (tmp_path / "audit" / "heads.json").read_bytes()
    record(tmp_path / "audit", 1)
    written = export_calls(tmp_path / "audit", tmp_path / "calls.jsonl", by="Ann", now=now())
    list_segments(tmp_path / "audit")[1].unlink()
    (tmp_path / "audit" / "heads.json").write_bytes(kept)
    assert not verify_calls(tmp_path / "audit").findings
    (finding,) = verify_calls(tmp_path / "audit", anchors_of(written.summary)).findings
    assert finding.kind == "removed"


def test_a_record_that_is_written_all_anew_is_found_by_an_earlier_export(tmp_path: Path) -> None:
    record(tmp_path / "audit", 1)
    written = export_calls(tmp_path / "audit", tmp_path / "calls.jsonl", by="Ann", now=now())
    (name,) = (path.name for path in (tmp_path / "audit").glob("calls-*"))
    shutil.rmtree(tmp_path / "audit")
    with CallLog.open(tmp_path / "audit", clock=now) as log:
        for _ in range(CALLS):
            log.append(ToolCall("stdio", "market", "nothing to see", CallOutcome.OK))
    assert log.path.name == name
    (finding,) = verify_calls(tmp_path / "audit", anchors_of(written.summary)).findings
    assert finding.kind == "changed"


def test_a_record_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with CallLog.open(tmp_path, clock=now) as log:
        for _ in range(300):
            log.append(ToolCall("stdio", "market", "tool", CallOutcome.OK))
            if log.durable % 7 == 0:
                assert not verify_calls(tmp_path).findings
    assert not verify_calls(tmp_path).findings


def remade(paths: list[Path], keeps: Callable[[dict[str, Any]], bool]) -> None:
    """Leave lines out and make the whole chain again, as somebody can who may write to the folder: it takes no key."""
    folder, tips = paths[0].parent, dict[str, ChainLink]()
    for path in paths:
        link, body = ChainLink(-1, ""), b""
        for raw in lines(path):
            record = json.loads(raw)
            if record["kind"] == KIND_CALL and not keeps(record):
                continue
            for head in record.get("before", ()):
                head |= {"sequence": tips[head["segment"]].sequence, "hash": tips[head["segment"]].hash}
            record |= {"calls": link.sequence} if "calls" in record else {}
            members = {
                key: record[key] for key in record if key not in ("kind", "sequence", "time", "previous", "hash")
            }
            line, link = build_line(record["kind"], link, record["time"], json.dumps(members)[1:-1])
            body += line
        path.write_bytes(body)
        tips[path.name] = link
    heads = {head.segment: head for head in read_heads(folder).values()}
    write_heads(
        folder,
        {name: replace(head, sequence=tips[name].sequence, hash=tips[name].hash) for name, head in heads.items()},
    )


def test_a_chain_made_again_whole_is_shown_by_a_head_that_was_noted_elsewhere_and_by_nothing_else(
    paths: list[Path],
) -> None:
    folder = paths[0].parent
    noted = [tip.hash for tip in verify_calls(folder).tips]
    remade(paths, lambda record: record["tool"] != "tool3")
    assert verify_calls(folder).findings == ()
    assert verify_calls(folder).calls == 2 * (CALLS - 1)
    (found,) = verify_calls(folder, noted=noted).findings
    assert noted[0] in found.message


def test_a_noted_head_stays_valid_while_the_record_grows(paths: list[Path]) -> None:
    folder = paths[0].parent
    (tip,) = verify_calls(folder).tips
    assert (tip.segment, tip.final) == (paths[-1].name, True)
    record(folder)
    reading = verify_calls(folder, noted=[tip.hash])
    assert reading.findings == ()
    assert tip not in reading.tips


def test_a_time_that_goes_back_by_days_is_noted(tmp_path: Path) -> None:
    times = iter([now(), now(), now() - timedelta(days=3), *[now()] * 9])
    with CallLog.open(tmp_path / "audit", clock=lambda: next(times)) as log:
        log.append(ToolCall("stdio", "market", "one", CallOutcome.OK))
        log.append(ToolCall("stdio", "market", "two", CallOutcome.OK))
    assert any("its time 2025-12-30" in note for note in verify_calls(tmp_path / "audit").notes)
