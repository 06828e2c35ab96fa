"""Every call is on record, in order, a moment after it was appended; and none is answered where that fails."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import WorkspaceError, compute_digest
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall, digest_of_arguments, read_latest, verify_calls
from alphaloom.ledger.calls.heads import read_heads
from alphaloom.ledger.calls.log import STALL_SECONDS, WaitingLine
from alphaloom.ledger.calls.segment import CallSegment, ChainLink
from alphaloom.ledger.errors import CallsDamaged, CallsUnwritable

ROOT = Path(__file__).resolve().parents[2] / ".root"
WRITE = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall
log = CallLog.open(Path(sys.argv[2]), clock=lambda: datetime.now(UTC))
for index in range(int(sys.argv[3])):
    number = log.append(ToolCall("stdio", "market", f"{sys.argv[4]}{index}", CallOutcome.OK))
    print(number, time.monotonic(), flush=True)
    time.sleep(0.0003)
log.close()
"""
FULL = """
import resource, sys, time
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger.calls import CallLog, CallOutcome, ToolCall
from alphaloom.ledger.errors import CallsUnwritable
log = CallLog.open(Path(sys.argv[2]), clock=lambda: datetime.now(UTC))
call = ToolCall("stdio", "market", "preview", CallOutcome.OK)
log.append(call)
log.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 700, resource.RLIM_INFINITY))
end, taken = time.monotonic() + 20, 1
while time.monotonic() < end:
    try:
        log.append(call)
        taken += 1
    except CallsUnwritable as error:
        print(error.code, error.message, flush=True)
        break
    time.sleep(0.001)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
while time.monotonic() < end:
    try:
        log.append(call)
        break
    except CallsUnwritable:
        time.sleep(0.05)
log.close()
print(taken + 1)
"""


def now() -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC)


def call(name: str = "preview") -> ToolCall:
    return ToolCall("stdio", "market", name, CallOutcome.OK)


def started(code: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, str(ROOT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_call_is_on_the_disk_after_two_syncs_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of another line may be under way; the next one brings this line to the disk."""
    synced: list[int] = []

    def sync(handle: int) -> None:
        os.fsync(handle)
        synced.append(handle)

    monkeypatch.setattr("alphaloom.ledger.calls.segment._sync", sync)
    with CallLog.open(tmp_path, clock=now) as log:
        for _ in range(20):
            before = len(synced)
            number = log.append(call())
            log.flush()
            assert log.durable == number
            assert 1 <= len(synced) - before <= 2


def asked_until_kept(log: CallLog, name: str) -> int:
    """Append a line; while a busy disk does not answer for a second, calls are refused, and a caller asks again."""
    for _ in range(600):
        try:
            return log.append(call(name))
        except CallsUnwritable:
            time.sleep(0.05)
    raise AssertionError("the disk did not answer for half a minute")


def test_two_hundred_threads_lose_nothing_and_keep_the_order(tmp_path: Path) -> None:
    with CallLog.open(tmp_path, clock=now) as log, ThreadPoolExecutor(200) as pool:
        numbers = dict(pool.map(lambda index: (asked_until_kept(log, str(index)), str(index)), range(4_000)))
    rows = read_latest(tmp_path, 5_000)
    assert [row["sequence"] for row in rows] == list(range(1, 4_001))
    assert [row["tool"] for row in rows] == [numbers[number] for number in range(1, 4_001)]
    assert not verify_calls(tmp_path).findings


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("after", [3, 400])
def test_a_killed_process_loses_the_last_moment_and_no_more(tmp_path: Path, after: int) -> None:
    with started(WRITE, tmp_path, 1_000_000, "k") as process:
        assert process.stdout is not None
        told = [process.stdout.readline().split() for _ in range(after)]
        time.sleep(1.5 * STALL_SECONDS)
        process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        told += [line.split() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        process.communicate()
    rows = read_latest(tmp_path, 10**6)
    assert [row["tool"] for row in rows] == [f"k{index}" for index in range(len(rows))]
    due = max(int(number) for number, moment in told if float(moment) < killed - STALL_SECONDS)
    assert len(rows) >= due > 0  # on a slow disk too: a line that waits for longer is refused
    assert not verify_calls(tmp_path).findings


def test_a_torn_line_is_seen_and_the_next_process_cuts_it_off(tmp_path: Path) -> None:
    with started(WRITE, tmp_path, 1_000_000, "k") as process:
        assert process.stdout is not None
        [process.stdout.readline() for _ in range(300)]
        process.kill()
        process.communicate()
    (segment,) = tmp_path.glob("calls-*")
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole.splitlines()[-1][:100])
    reading = verify_calls(tmp_path)
    assert not reading.findings
    assert "100 bytes was cut short" in " ".join(reading.notes)
    with CallLog.open(tmp_path, clock=now):
        assert segment.read_bytes() == whole
    reading = verify_calls(tmp_path)
    assert (reading.findings, len(reading.heads)) == ((), 2)


def test_several_processes_write_to_one_folder(tmp_path: Path) -> None:
    processes = [started(WRITE, tmp_path / "audit", 100, name) for name in "abc"]
    for process in processes:
        _, complaints = process.communicate(timeout=300)
        assert process.returncode == 0, complaints
    reading = verify_calls(tmp_path / "audit")
    assert (reading.calls, reading.findings, len(reading.heads)) == (300, (), 3)
    assert {row["tool"] for row in read_latest(tmp_path / "audit", 300)} == {
        f"{a}{n}" for a in "abc" for n in range(100)
    }


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_refuses_calls_until_there_is_room_again(tmp_path: Path) -> None:
    with started(FULL, tmp_path) as process:
        said, complaints = process.communicate(timeout=300)
    assert process.returncode == 0, complaints
    refusal, taken = said.splitlines()
    assert refusal.startswith("calls_unwritable calls cannot be recorded, so none is answered: no space is left")
    reading = verify_calls(tmp_path)
    assert (reading.calls, reading.findings) == (int(taken), ())


def test_on_a_busy_machine_a_call_waits_for_a_writer_that_had_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = CallLog._chain

    def without_a_turn(log: CallLog, batch: list[WaitingLine]) -> tuple[bytes, ChainLink]:
        time.sleep(STALL_SECONDS + 0.5)  # before any write: no disk is slow
        return chain(log, batch)

    with CallLog.open(tmp_path, clock=now) as log, monkeypatch.context() as patched:
        patched.setattr(CallLog, "_chain", without_a_turn)
        log.append(call())
        time.sleep(STALL_SECONDS + 0.2)
        assert log.append(call()) == 2
    assert verify_calls(tmp_path).calls == 2


def test_a_slow_disk_refuses_calls_and_a_dead_one_is_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CallLog.open(tmp_path, clock=now)
    monkeypatch.setattr(CallSegment, "add", lambda *_: time.sleep(STALL_SECONDS + 0.5))
    log.append(call())
    time.sleep(STALL_SECONDS + 0.1)
    with pytest.raises(CallsUnwritable, match="the disk has not answered"):
        log.append(call())

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(CallSegment, "add", broken)
    with pytest.raises(CallsUnwritable, match="Input/output error"):
        log.close()


def test_what_refuses_says_so_before_the_work_too(tmp_path: Path) -> None:
    log = CallLog.open(tmp_path, clock=now)
    log.check()
    log.close()
    log.close()
    for refused in (log.check, lambda: log.append(call())):
        with pytest.raises(CallsUnwritable, match="is closed") as caught:
            refused()
    assert str(tmp_path) not in caught.value.placeless


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="a file is in the way"):
        CallLog.open(tmp_path / "file", clock=now)


def test_no_record_goes_on_where_its_heads_are_gone(tmp_path: Path) -> None:
    CallLog.open(tmp_path, clock=now).close()
    (tmp_path / "heads.json").unlink()
    with pytest.raises(CallsDamaged, match="is gone"):
        CallLog.open(tmp_path, clock=now)


def test_only_heads_that_no_segment_names_yet_are_kept(tmp_path: Path) -> None:
    for _ in range(5):
        with CallLog.open(tmp_path, clock=now) as log:
            log.append(call())
    assert len(read_heads(tmp_path)) == 1
    assert verify_calls(tmp_path).findings == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork of POSIX")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    with CallLog.open(tmp_path, clock=now) as log:
        child = os.fork()
        if not child:
            try:
                log.append(call())
            except CallsUnwritable:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


texts = st.text(st.characters(), max_size=300)


def deep() -> dict[str, object]:
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    return nested


@given(texts, texts, texts, st.integers(0, 10**12))
def test_a_call_is_spelled_as_json_whatever_its_names_are(who: str, tool: str, code: str, size: int) -> None:
    spelled = ToolCall(who, "market", tool, CallOutcome.REFUSED, code=code, bytes=size).spell()
    told = json.loads("{" + spelled + "}")
    assert (told["who"], told["tool"], told["code"], told["bytes"]) == (who[:200], tool[:100], code[:100], size)
    assert "\n" not in spelled


def test_what_stands_in_place_of_a_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="kept as SHA-256"):
        ToolCall("stdio", "market", "preview", CallOutcome.OK, arguments='{"secret": 1}').spell()


def test_equal_arguments_have_one_digest() -> None:
    assert digest_of_arguments({"b": [1, 2.5], "a": "µ"}) == digest_of_arguments({"a": "µ", "b": [1, 2.5]})
    assert digest_of_arguments({"a": 1}) == compute_digest({"a": 1})
    assert digest_of_arguments({"a": 1}) != digest_of_arguments({"a": "1"})


@pytest.mark.parametrize("odd", [{"a": math.nan}, {"a": "\ud800"}, {"a": b"x"}])
def test_arguments_that_are_no_json_have_a_digest_too(odd: dict[str, object]) -> None:
    assert len(digest_of_arguments(odd)) == 64
    assert digest_of_arguments(odd) != digest_of_arguments({"a": "other"})


def test_arguments_nested_too_deeply_have_a_digest_too() -> None:
    assert len(digest_of_arguments(deep())) == 64
