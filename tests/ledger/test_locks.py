import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, RunLocked
from alphaloom.ledger.database.locks import Wait

ROOT = Path(__file__).resolve().parents[2] / ".root"
HOLD = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger.database.locks import hold_lock
with hold_lock(Path(sys.argv[2]), "one"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_with_the_first_ones_number(ledger: Ledger) -> None:
    with (
        ledger.runs.lock("one"),
        pytest.raises(RunLocked, match=f"process {os.getpid()} is working on run one") as caught,
    ):
        ledger.runs.lock("one").__enter__()
    assert caught.value.exit_code == 1


def test_the_lock_is_free_again_afterwards(ledger: Ledger) -> None:
    for _ in range(2):
        with ledger.runs.lock("one"):
            assert (ledger.runs.folder("one") / "lock").read_text() == f"{os.getpid()}\n"


def test_a_killed_process_holds_nothing(ledger: Ledger) -> None:
    path = str(ledger.runs.folder("one") / "lock")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(ROOT), path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RunLocked, match=f"process {other.pid} "):
            ledger.runs.lock("one").__enter__()
        other.send_signal(signal.SIGKILL)
        other.wait()
    with ledger.runs.lock("one"):
        pass


def test_a_wait_is_told_at_once_and_then_every_ten_seconds() -> None:
    now, told = [100.0], list[str]()
    wait = Wait(lambda: now[0], told.append)
    assert wait.waited == 0.0
    pauses = []
    for _ in range(30):
        pauses.append(wait.note("since run a works"))
        now[0] += pauses[-1]
    assert told[0] == "waiting, since run a works"
    assert [line.rpartition("(")[2] for line in told[1:]] == ["11 s so far)", "21 s so far)"]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.05, 1.0)
    assert wait.waited == pytest.approx(sum(pauses))
    assert [wait.note("still") for _ in range(2000)][-1] == 1.0
