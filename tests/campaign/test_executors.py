"""Where Python factors run changes no result, even when workers die; a missing executor ends the run at once."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom import Campaign
from alphaloom.desk.cli.main import run_command
from alphaloom.extras import install_hint
from alphaloom.sandbox.cluster import list_descendants

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

PYTHON = [*markets.BRIEF, "agents.python=true", "agents.rounds=1", "agents.min_search_t=0", "sandbox.workers=2"]


FORMULAS = [*markets.BRIEF, "agents.candidates=8", "budget.evaluations=90"]
SANDBOXES, FORMULA_WORKERS = "ray::Station", "ray::BatchStation"


class Killer(threading.Thread):
    """Kills a Ray worker of one kind, and another one when the first was replaced."""

    def __init__(self, kills: int, kind: str = SANDBOXES, after_s: float = 4.0) -> None:
        super().__init__(daemon=True)
        self.kills, self.kind, self.after_s, self.over = kills, kind, after_s, threading.Event()
        self.killed: list[int] = []

    def run(self) -> None:
        while len(self.killed) < self.kills and not self.over.wait(0.3):
            stations = [one for one in list_stations(self.kind) if one not in self.killed]
            if len(stations) == 2 and not self.over.wait(self.after_s):
                os.kill(stations[0], signal.SIGKILL)
                self.killed.append(stations[0])


def list_stations(kind: str) -> list[int]:
    """Return the Ray workers of one kind under this process."""
    return [process for process in list_descendants(os.getpid()) if kind in read_command(process)]


def read_command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def results(files: Files, workspace: Path, overrides: list[str], *where: str | None) -> dict[str, bytes]:
    ready = Campaign.from_yaml(files.campaign, workspace=workspace, overrides=overrides).contained(*where)
    done = replace(ready, clock=lambda: datetime(2199, 7, 9, 11, 13, 17, tzinfo=UTC)).run()
    return {name: (done.folder / name).read_bytes() for name in ("results.json", "curves.json")}


@pytest.mark.slow
def test_a_campaign_on_a_cluster_whose_workers_die_ends_with_the_same_bytes(files: Files, tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: make ray")
    undisturbed = results(files, tmp_path / "here", PYTHON)
    assert b"def factor(panel)" in undisturbed["results.json"]
    killer = Killer(2)
    killer.start()
    disturbed = results(files, tmp_path / "there", PYTHON, "ray")
    killer.over.set()
    killer.join()
    assert killer.killed
    assert disturbed == undisturbed
    assert list_stations(SANDBOXES) == []


@pytest.mark.slow
def test_a_campaign_whose_formulas_workers_score_ends_with_the_same_bytes_though_one_dies(
    files: Files, tmp_path: Path
) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: make ray")
    undisturbed = results(files, tmp_path / "here", FORMULAS)
    killer = Killer(1, FORMULA_WORKERS, after_s=2.0)
    killer.start()
    disturbed = results(files, tmp_path / "there", FORMULAS, "ray")
    killer.over.set()
    killer.join()
    assert killer.killed
    assert disturbed == undisturbed
    assert list_stations(FORMULA_WORKERS) == []


def test_ray_that_is_missing_ends_a_run_before_it_begins(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code = run_command(["run", str(files.campaign), "--workspace", str(tmp_path / "w"), "--executor", "ray"])
    assert code == 3
    assert install_hint("ray") in capsys.readouterr().err
    assert not list((tmp_path / "w").glob("runs/*"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--executor", "dask"], "sandbox.executor"),
        (["--sandbox-backend", "chroot"], "sandbox.backend"),
        (["--executor", "ray", "--sandbox-backend", "gvisor"], "native sandboxes"),
    ],
)
def test_what_is_not_offered_is_bad_input(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", *options]) == 2
    assert said.rpartition(".")[2] in capsys.readouterr().err


def test_what_ran_without_isolation_is_stamped_wherever_it_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "reversal.py"
    source.write_text("def factor(panel):\n    return -panel['close'].pct_change(5, fill_method=None)\n")
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text("market:\n  synthetic: {days: 500, names: 50}\n")
    backend = "unsafe_no_isolation_i_accept_the_risk"
    with pytest.warns(UserWarning, match="every right of this account"):
        code = run_command(["factor", "score", str(source), "--campaign", str(campaign), "--sandbox-backend", backend,
                        "--workspace", str(tmp_path / "w"), "--json"])  # fmt: skip  # a table
    output = capsys.readouterr().out
    assert code == 0
    assert '"uncontained"' in output
    assert "ran without isolation" in output


def test_a_formula_carries_no_stamp_whatever_the_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(
        "market:\n  synthetic: {days: 500, names: 50}\nsandbox: {backend: unsafe_no_isolation_i_accept_the_risk}\n"
    )
    with pytest.warns(UserWarning, match="every right of this account"):
        assert (
            run_command(
                ["factor", "score", "rank(close)", "--campaign", str(campaign), "--workspace", str(tmp_path), "--json"]
            )
            == 0
        )
    assert "uncontained" not in capsys.readouterr().out
