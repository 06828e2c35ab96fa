"""A process killed in the middle of writing leaves all it had acknowledged, and several may write at once."""

import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, Run, WindowKey
from alphaloom.ledger.log import KeyFolder, verify_workspace

ROOT = Path(__file__).resolve().parents[2] / ".root"
WRITE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger import Attempt, Ledger, Look, Run, WindowKey
ledger = Ledger.open(Path(sys.argv[2]), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
ledger.runs.start(Run("one", {}, 1, "data", "2026"))
who, count = sys.argv[3], int(sys.argv[4])
window = WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B"))
for index in range(count):
    key = f"{who}{index:06d}"
    body = ledger.objects.put(key.encode() * 100)
    ledger.attempts.add(Attempt("one", key, "h", body, None, "parse", ""))
    ledger.trials.open(Look("one", key, window))
    print(key, flush=True)
"""
WINDOW = WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B"))


def writer(workspace: Path, who: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITE, str(ROOT), str(workspace), who, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("after", [1, 7, 40])
def test_every_acknowledged_write_outlives_kill_9(tmp_path: Path, after: int) -> None:
    with writer(tmp_path, "k", 1_000_000) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(after)]
        process.kill()
        acknowledged += process.stdout.read().split("\n")[:-1]
        process.communicate()
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        attempts = {attempt.key: attempt.text for attempt in ledger.attempts.of("one")}
        assert set(acknowledged) <= set(attempts)
        assert all(ledger.objects.get(body) == key.encode() * 100 for key, body in attempts.items())
        trials = ledger.trials.overlapping(WINDOW)
        assert set(acknowledged) <= {trial.subject for trial in trials}
        assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))


@pytest.mark.slow
def test_fifty_kills_leave_a_log_that_verifies(tmp_path: Path) -> None:
    """`pytest -m slow tests/ledger/test_crash.py`: each process is killed while it writes, often before it signs."""
    chance = random.Random(50)
    for _ in range(50):
        with writer(tmp_path, f"{chance.random()}", 1_000_000) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            process.communicate()
        assert verify_workspace(tmp_path, KeyFolder.of_user()).findings == ()
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.events.record("one", "note", "last", 1)
    reading = verify_workspace(tmp_path, KeyFolder.of_user())
    assert (reading.findings, reading.signed) == ((), reading.size)


def test_several_processes_share_one_workspace_from_its_first_moment(tmp_path: Path) -> None:
    count = 25
    processes = [writer(tmp_path / "new", who, count) for who in "abc"]
    for process in processes:
        _, complaints = process.communicate(timeout=300)
        assert process.returncode == 0, complaints
    with Ledger.open(tmp_path / "new", clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        assert len(ledger.attempts.of("one")) == 3 * count
        numbers = [trial.number for trial in ledger.trials.overlapping(WINDOW)]
    assert numbers == list(range(1, 3 * count + 1))


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda index: ledger.events.record("one", "note", f"{index:03d}", index), range(100)))
    assert [event.body for event in ledger.events.of("one")] == list(range(100))
    ledger.runs.start(Run("after", {}, 1, "data", "2026"))
