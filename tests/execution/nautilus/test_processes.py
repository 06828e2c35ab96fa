"""No process of the engine outlives the one that trades, and none ends it: `make nautilus` runs this."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from alphaloom.execution import ExecutionError
from alphaloom.execution.nautilus import NautilusVenue

from .engine import CASH_E4, make_child, make_inputs, make_parents, make_session
from .market import find_nautilus

pytestmark = pytest.mark.slow
TRADER = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without one
from alphaloom.execution.nautilus import NautilusVenue
venue = NautilusVenue(Path(sys.argv[1]), ["AAA"], 10**12, "sandbox")
print(venue.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def python() -> Path:
    return find_nautilus()


def list_children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def await_end(pids: list[int]) -> None:
    """Wait until no process has these ids, or it is a zombie that nobody waits for."""
    until = time.monotonic() + 10
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < until, alive
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_all_end_with_the_process_that_trades(python: Path, sent: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TRADER, str(python)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as trader:
        assert trader.stdout
        gatekeeper = int(trader.stdout.readline())
        engine = list_children(gatekeeper)
        assert len(engine) == 1
        trader.send_signal(sent)
        await_end([gatekeeper, *engine])


@pytest.mark.parametrize("place", ["gatekeeper", "engine"])
def test_the_process_that_trades_survives_the_others(python: Path, place: str) -> None:
    inputs = make_inputs(["AAA"])
    decision, parents = make_parents(inputs)
    with closing(NautilusVenue(python, ["AAA"], CASH_E4, "backtest")) as venue:
        venue.admit(inputs, decision, parents)
        engine = list_children(venue.pid)
        os.kill(venue.pid if place == "gatekeeper" else engine[0], signal.SIGKILL)
        with pytest.raises(ExecutionError, match="ended by SIGKILL"):
            venue.send([make_child(one) for one in parents])
        with pytest.raises(ExecutionError, match="ended by SIGKILL"):
            venue.run_session(make_session(["AAA"]))
        await_end(engine)
