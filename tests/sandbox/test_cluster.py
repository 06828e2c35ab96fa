"""The same jobs on Ray: same bytes, nobody can reach it, and what a dead worker held is done again."""

from __future__ import annotations

import importlib.util
import operator
import os
import signal
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from alphaloom.extras import install_hint
from alphaloom.sandbox import Crashed, Frames, Job, Limits, Outcome, Sandbox, SandboxUnavailable, TimedOut
from alphaloom.sandbox.cluster import Cluster, find_exposed_addresses, list_descendants

MEAN = "def factor(panel):\n    return panel['close'].rolling(5).mean() / panel['volume']"
FAULTY = "def factor(panel):\n    return panel['nothing']"
ENDLESS = "def factor(panel):\n    while True: pass"


@pytest.fixture(scope="module")
def frames() -> Frames:
    close = np.exp(np.random.default_rng(7).normal(size=(60, 7)))
    return Frames(
        {"close": close, "volume": 1e6 * close}, np.datetime64("2020-01-01") + np.arange(60), tuple("ABCDEFG")
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if importlib.util.find_spec("ray") is None:  # imported it must not be: it reads its settings on import
        pytest.skip(f"Ray is not installed: {install_hint('ray')}")
    os.environ["SECRET_KEY"] = "canary-7391"
    try:
        with Cluster(Limits(wall_s=2, memory_mb=256), workers=2) as made:
            yield made
    finally:
        del os.environ["SECRET_KEY"]
    assert named("gcs_server", "raylet", "ray::") == []


def named(*parts: str) -> list[int]:
    """Return the processes under this one whose command line has one of these parts."""
    return [one for one in list_descendants(os.getpid()) if any(part in read(one, "cmdline") for part in parts)]


def read(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def told(outcome: Outcome) -> tuple[bytes, object]:
    return b"" if outcome.values is None else outcome.values.tobytes(), outcome.error and outcome.error.record()


def jobs(frames: Frames, count: int) -> list[Job]:
    return [Job(FAULTY if i % 7 == 3 else MEAN, frames, rows=None if i % 5 == 0 else 10 + i % 50) for i in range(count)]


@pytest.mark.slow
def test_answers_are_those_of_one_machine_to_the_byte_and_in_order(cluster: Cluster, frames: Frames) -> None:
    asked = jobs(frames, 30)
    with Sandbox(Limits(wall_s=2, memory_mb=256)) as sandbox:
        alone = [told(one) for one in sandbox.run_each(asked)]
    assert [told(one) for one in cluster.run_each(asked)] == alone


@pytest.mark.slow
def test_errors_keep_their_type(cluster: Cluster, frames: Frames) -> None:
    with pytest.raises(Crashed, match="nothing"):
        cluster.run(FAULTY, frames)
    with pytest.raises(TimedOut):
        cluster.run(ENDLESS, frames)


@pytest.mark.slow
def test_what_a_killed_worker_held_is_done_again(
    cluster: Cluster, frames: Frames, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = jobs(frames, 40)
    undisturbed = [told(one) for one in cluster.run_each(asked)]
    answers = []
    for i, outcome in enumerate(cluster.run_each(asked)):
        answers.append(told(outcome))
        if i in (5, 20):
            os.kill(named("ray::Station")[0], signal.SIGKILL)
    assert answers == undisturbed
    assert capsys.readouterr().out == ""  # --json prints one object there


@pytest.mark.slow
def test_a_crew_answers_in_order_though_its_workers_die_and_raises_what_a_batch_raises(cluster: Cluster) -> None:
    crew = cluster.crew(partial(partial, operator.truediv, 60.0))
    answers = []
    for i, answer in enumerate(crew.answer_each(range(1, 61))):
        answers.append(answer)
        if i in (10, 30):
            os.kill(named("ray::BatchStation")[0], signal.SIGKILL)
    assert answers == [60.0 / i for i in range(1, 61)]
    with pytest.raises(ZeroDivisionError):
        crew.submit(0).result()
    crew.close()
    with pytest.raises(RuntimeError):
        crew.submit(1)


@pytest.mark.slow
def test_nobody_else_can_reach_it_and_it_sees_no_key(cluster: Cluster, frames: Frames) -> None:
    cluster.run(MEAN, frames)
    processes = list_descendants(os.getpid())
    assert named("ray::Station")
    assert find_exposed_addresses(processes) == []
    assert [one for one in processes[1:] if "canary-7391" in read(one, "environ")] == []


@pytest.mark.slow
def test_a_second_cluster_in_one_process_is_refused(cluster: Cluster) -> None:
    with pytest.raises(SandboxUnavailable, match="already"):
        Cluster()


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SandboxUnavailable) as caught:
        Cluster()
    assert (caught.value.exit_code, caught.value.hint) == (3, install_hint("ray"))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system has no /proc to ask")
def test_a_socket_that_others_can_reach_is_found() -> None:
    with socket.socket() as outside, socket.socket() as inside:
        outside.bind(("0.0.0.0", 0))
        inside.bind(("127.0.0.1", 0))
        outside.listen()
        inside.listen()
        addresses = find_exposed_addresses([os.getpid()])
        assert f"0.0.0.0:{outside.getsockname()[1]}" in addresses
        assert f"127.0.0.1:{inside.getsockname()[1]}" not in addresses
