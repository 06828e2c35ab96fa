"""The control as a person runs it: small, stopped half way, gone on with, and wrong when it must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation.checks.negative_control import ControlTally, NullRun
from alphaloom.evaluation.submissions import Submissions

pytestmark = pytest.mark.integration

Capture = pytest.CaptureFixture[str]
TINY = ["--seeds", "2", "--days", "450", "--names", "40", "--evaluations", "40"]


def control(capsys: Capture, workspace: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    """Run the smallest control and return its exit code, its object and what it told on the way."""
    code = run_command(["evidence", "control", *TINY, "--workspace", str(workspace), "--json", *more])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else {}, printed.err


def test_a_control_goes_on_where_it_was_stopped(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, calls = Submissions.submit, []

    def stopped(self: Submissions, ids: Any) -> Any:
        calls.append(ids)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return submit(self, ids)

    monkeypatch.setattr(Submissions, "submit", stopped)
    code, told, err = control(capsys, tmp_path)
    assert (code, told) == (130, {})
    assert "the same command goes on" in err
    code, told, err = control(capsys, tmp_path)
    assert code == 0
    (found,) = told["controls"]
    assert (found["markets"], found["trials"], found["accepted"], found["holds"]) == (2, 20, 0, True)
    count = len(calls)
    assert control(capsys, tmp_path)[1] == told
    assert len(calls) == count
    assert control(capsys, tmp_path.with_name("in one go"))[1] == told  # no evaluation or trial was counted twice


def test_a_panel_is_made_null_too(tmp_path: Path, capsys: Capture) -> None:
    from alphaloom.market import SyntheticConfig, simulate
    from tests.campaign.markets import tidy, write

    panel = write(tidy(simulate(SyntheticConfig(seed=1, days=450, names=40)).panel), tmp_path / "mine.parquet")
    code, told, _ = control(capsys, tmp_path / "w", "--only", "panel", "--panel", str(panel))
    assert code == 0
    assert [entry["kind"] for entry in told["controls"]] == ["mine.parquet made null"]
    assert told["controls"][0]["trials"] == 20


def test_too_many_acceptances_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    from alphaloom.desk.cli.evidence.null_runs import NullRuns

    monkeypatch.setattr(
        NullRuns, "outcomes", lambda self, seeds: iter([NullRun(seed, 14, 10, 1) for seed in range(seeds)])
    )
    code, told, err = control(capsys, tmp_path)
    assert (code, told["holds"]) == (1, False)
    assert "DOES NOT HOLD" in err


def test_only_a_panel_needs_a_panel(tmp_path: Path, capsys: Capture) -> None:
    code, told, _ = control(capsys, tmp_path, "--only", "panel")
    assert (code, told["code"]) == (2, "usage")


def test_a_panel_that_is_not_there_is_refused_before_any_work(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alphaloom.desk.cli.evidence.null_runs import NullRuns

    def worked(self: NullRuns, seeds: int) -> Any:
        raise AssertionError("a market was made")

    monkeypatch.setattr(NullRuns, "outcomes", worked)
    for option in ("--panel", "--sectors"):
        code, told, _ = control(capsys, tmp_path / "w", option, str(tmp_path / "typo.parquet"))
        assert (code, told["code"]) == (2, "panel")  # as for every other command
        assert "typo.parquet: there is no such file" in told["message"]
    assert not (tmp_path / "w").exists()


def test_the_words_name_count_expectation_and_interval() -> None:
    from alphaloom.desk.cli.evidence.control import describe_tally

    text = describe_tally(ControlTally("null", [NullRun(seed, 60, 10, 0) for seed in range(200)]))
    assert "of 200: expected 0.83 at most, found 0," in text
    assert "95 % interval of the share 0.00 % to 1.83 %" in text
    assert "(0 accepted of 2,000 trials)" in text
    assert "at most 3" in text
    assert text.endswith("holds, nothing was accepted.")


def test_one_acceptance_in_twenty_is_not_passed_over() -> None:
    from alphaloom.desk.cli.evidence.control import describe_tally

    tally = ControlTally("null", [NullRun(seed, 60, 10, int(seed == 7)) for seed in range(20)])
    assert tally.holds
    assert tally.record()["clean"] is False
    text = describe_tally(tally)
    assert "expected 0.08 at most, found 1, 95 % interval of the share 0.13 % to 24.87 %" in text
    assert "BUT NOT CLEAN: what was accepted on 1 market is false" in text
