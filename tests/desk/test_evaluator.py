"""What is scored by hand or served follows the campaign file, and a plain score leaves nothing behind."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from alphaloom.desk.cli.options import DataOptions
from alphaloom.ledger import AlphaloomError, Ledger, SettingsError

FILE = """
seed: 11
market:
  synthetic: {days: 700, names: 40}
  plants: {count: 1}
evidence:
  horizon_days: 3
  returns: raw
  prior_trials: 4
  windows: {search: 0.5, selection: 0.3}
  costs: {bps_per_side: 25.0}
budget: {evaluations: 17, trials: 2}
"""


@pytest.fixture
def place(tmp_path: Path) -> DataOptions:
    """Return a place whose rules are a campaign file's."""
    file = tmp_path / "campaign.yaml"
    file.write_text(FILE)
    return DataOptions(campaign=file, workspace=tmp_path / "workspace")


def test_a_score_follows_the_campaign_file(place: DataOptions) -> None:
    from alphaloom.desk.cli.evaluator import score_factor

    sheet = score_factor("rank(close)", place, gate=False)
    assert sheet["horizon_days"] == 3
    assert sheet["costs"] == {"bps_per_side": 25.0, "borrow_bps_per_year": 50.0}


def test_the_daily_rank_ic_of_a_sheet_has_its_mean(place: DataOptions) -> None:
    from alphaloom.desk.cli.evaluator import score_factor
    from alphaloom.evaluation.closing import FactorSheet

    sheet = FactorSheet.read(score_factor("rank(close)", place, gate=False))
    frame = sheet.to_frame()
    assert frame["rank_ic"].mean() == pytest.approx(sheet.rank_ic)
    assert frame["rank_ic"].count() == sheet.days
    assert sheet.window is not None
    assert [str(frame.index[place].date()) for place in (0, -1)] == [sheet.window.first, sheet.window.last]


def test_what_is_served_has_the_windows_and_the_budget_of_the_file(place: DataOptions) -> None:
    from alphaloom.desk.cli.evaluator import open_evaluator

    with open_evaluator("serve-evaluation", place, recorded=True) as evaluator:
        settings, windows, panel = evaluator.settings, evaluator.windows, evaluator.panel
        assert (settings.prior_trials, settings.returns) == (4, "raw")
        assert (evaluator.budget.evaluations, evaluator.budget.trials) == (17, 2)
        assert windows.search.stop == round(0.5 * panel.days)


def test_without_a_file_the_budget_is_the_default_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from alphaloom.campaign import campaign
    from alphaloom.desk.cli import evaluator as research
    from alphaloom.evaluation import Budget

    small = campaign.Settings.model_validate({"market": {"synthetic": {"days": 700, "names": 40}}})
    monkeypatch.setattr(research, "Settings", lambda: small)
    with research.open_evaluator("serve-factors", DataOptions(workspace=tmp_path / "w"), recorded=True) as evaluator:
        assert evaluator.budget == Budget()


def test_a_plain_score_fixes_no_windows_and_writes_no_run(place: DataOptions, tmp_path: Path) -> None:
    from alphaloom.desk.cli.evaluator import open_evaluator, score_factor

    other = tmp_path / "other.yaml"
    other.write_text(FILE.replace("search: 0.5", "search: 0.6").replace("selection: 0.3", "selection: 0.2"))
    score_factor("rank(close)", place, gate=False)
    with Ledger.open(tmp_path / "workspace", clock=lambda: pytest.fail("a plain score has no time")) as ledger:
        assert ledger.runs.all() == []
    with open_evaluator(
        "serve-market", DataOptions(campaign=other, workspace=place.workspace), recorded=True
    ) as evaluator:
        assert evaluator.windows.search.stop == round(0.6 * evaluator.panel.days)


def test_data_named_on_the_command_line_goes_before_the_file(place: DataOptions, tmp_path: Path) -> None:
    from alphaloom.desk.cli.evaluator import settings_at

    file = tmp_path / "campaign.yaml"
    file.write_text("market: {panel: mine.csv, sectors: of_mine.csv, as_of: 2019-01-31}")
    kept = settings_at(DataOptions(campaign=file)).market
    assert (kept.panel, kept.sectors) == (tmp_path / "mine.csv", tmp_path / "of_mine.csv")
    named = settings_at(DataOptions(file, Path("/p.csv"), Path("/s.csv"), date(2020, 1, 31))).market
    assert (named.panel, named.sectors, named.as_of) == (Path("/p.csv"), Path("/s.csv"), date(2020, 1, 31))


def test_a_mistake_in_the_file_is_told(tmp_path: Path) -> None:
    from alphaloom.desk.cli.evaluator import score_factor

    file = tmp_path / "campaign.yaml"
    file.write_text("budget: {trails: 3}")
    with pytest.raises(SettingsError, match="trails") as caught:
        score_factor("close", DataOptions(campaign=file, workspace=tmp_path / "w"), gate=False)
    assert isinstance(caught.value, AlphaloomError)
    assert not (tmp_path / "w").exists()
