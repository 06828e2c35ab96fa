"""A whole small campaign: what it leaves behind, that it is the same each time, and that it survives what stops it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from alphaloom import Campaign
from alphaloom.campaign import campaign
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import close
from alphaloom.evaluation.search_scoring import SearchScoring
from alphaloom.evidence.gate.acceptance_gate import AcceptanceGate
from alphaloom.factors import parse
from alphaloom.ledger import AlphaloomError
from alphaloom.ledger.runs import RunRecord
from alphaloom.router.calls.recorded_calls import Calls

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

PARTS = {
    "accepted", "attempts", "combination", "evaluations", "power", "rejected", "report", "spend", "trials", "watchlist",
}  # fmt: skip  # a table
ENTRY = {"id", "form", "text", "hypothesis", "reasons", "metrics"}
MEASURES = {"rank_ic", "t", "turnover", "net_sharpe"}


def ready(files: Files, workspace: Path, *more: str, **given: Any) -> Campaign:
    return Campaign.from_yaml(files.campaign, workspace=workspace, overrides=[*markets.CLOSING, *more], **given)


def written(result: CampaignResult) -> bytes:
    return (result.folder / "results.json").read_bytes()


def every_entry(record: dict[str, Any]) -> list[dict[str, Any]]:
    lists = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
    return [entry for name in lists for entry in record[name]]


# What a campaign leaves behind.


def test_results_have_their_shape(finished: CampaignResult) -> None:
    record = json.loads(written(finished))
    assert record == finished.record
    assert set(record) >= PARTS
    assert record["evaluations"] == 45
    assert 0 < record["trials"] <= 9
    entries = every_entry(record)
    assert len(entries) >= 45
    for entry in entries:
        assert set(entry) >= ENTRY
        assert entry["form"] == "expression"
        assert entry["reasons"]
        assert set(entry["metrics"]) == {"search", "selection"}
        assert set(entry["metrics"]["search"]) >= MEASURES
        assert (entry["metrics"]["selection"] is None) == (entry["trial"] is None)
        assert entry["metrics"]["selection"] is None or set(entry["metrics"]["selection"]) >= MEASURES


def test_lists_are_in_the_order_of_their_ids(finished: CampaignResult) -> None:
    for word in ("accepted", "proven", "watchlist", "rejected"):
        ids = [entry["id"] for entry in finished.record[word]]
        assert ids == sorted(set(ids))


def test_a_text_parses_back_to_its_id(finished: CampaignResult) -> None:
    fields = (*markets.COLUMNS, "returns", "mood")
    for entry in every_entry(finished.record):
        assert parse(entry["text"], fields=fields).id == entry["id"]


def test_attempts_add_up(finished: CampaignResult) -> None:
    attempts = finished.record["attempts"]
    singles = [entry for entry in every_entry(finished.record) if not entry["members"]]
    assert attempts["total"] == sum(attempts["refused"].values()) + len(singles)


def test_results_hold_no_clock_no_path_and_no_run(finished: CampaignResult, files: Files) -> None:
    for name in ("results.json", "curves.json"):
        text = (finished.folder / name).read_text()
        for secret in (
            "2199-",
            finished.run[:8],
            *map(str, (finished.folder.parents[1], files.panel.parent, Path.home())),
        ):
            assert secret not in text


def test_what_was_accepted_is_combined_examined_traded_and_put_before_the_risk_gate(finished: CampaignResult) -> None:
    record = finished.record
    accepted = [entry["id"] for entry in finished.accepted]
    assert accepted
    (tested,) = (entry for entry in finished.accepted if entry["members"])
    assert (record["combination"]["tested"], record["combination"]["factors"]) == (True, sorted(tested["members"]))
    assert sorted(record["stress"]["factors"]) == sorted({*accepted, *tested["members"]})
    assert set(record["sealed"]["factors"]) >= {*accepted, *tested["members"]} - {tested["id"]}
    assert record["stress"]["window"]["last"] == record["windows"]["search"]["last"]
    assert (record["sealed"]["opened"], record["sealed"]["number"]) == (True, 1)
    assert record["book"]["days"] > 80
    assert record["book"]["sharpe"] == pytest.approx(record["book"]["plain_sharpe"], rel=1e-6)
    signals = record["signals"]
    assert signals["approved"] > 0
    assert signals["approved"] + signals["refused"] == len(signals["decisions"])
    assert all(rule["passed"] for rule in signals["book"])
    assert signals["after"] == record["data"]["last_day"]
    assert signals["after"] < signals["day"]
    assert date.fromisoformat(signals["day"]).weekday() < 5


def test_the_combination_is_a_tidy_file(finished: CampaignResult, files: Files) -> None:
    assert finished.combination is not None
    frame = pd.read_parquet(finished.combination)
    assert list(frame.columns) == ["date", "symbol", "score"]
    assert len(frame) == finished.record["combination"]["rows"]
    assert not frame.duplicated(["date", "symbol"]).any()
    assert frame["score"].between(-0.5, 0.5).all()
    assert set(frame["symbol"]) <= set(pd.read_parquet(files.panel)["symbol"])


def test_curves_are_of_what_was_tested_or_accepted(finished: CampaignResult) -> None:
    curves = json.loads((finished.folder / "curves.json").read_text())
    tested = [entry for entry in finished.rejected if entry["trial"]]
    shown = [*finished.accepted, *finished.proven, *finished.watchlist, *tested]
    assert set(curves) == {"book"} | {entry["id"] for entry in shown}
    for entry in shown:
        daily = [value for value in curves[entry["id"]]["search"]["rank_ic"] if value is not None]
        assert sum(daily) / len(daily) == pytest.approx(entry["metrics"]["search"]["rank_ic"], abs=1e-6)
    assert len(curves["book"]["dates"]) == len(curves["book"]["equity"]) == len(curves["book"]["drawdown"])


def test_the_report_stands_alone_and_names_the_researcher(finished: CampaignResult) -> None:
    assert finished.report is not None
    page = finished.report.read_text()
    for reach in ("<script src", "<link ", "@import", 'src="http'):
        assert reach not in page
    assert "heuristic" in page
    assert all(entry["id"] in page for entry in finished.accepted)
    assert finished.record["power"]["sentence"] in page


def test_a_result_has_its_attributes(finished: CampaignResult) -> None:
    assert finished.accepted == finished.record["accepted"]
    assert finished.watchlist == finished.record["watchlist"]
    assert finished.rejected == finished.record["rejected"]
    assert finished.trials == finished.record["trials"]
    assert finished.report == finished.folder / "report.html"


def test_nothing_but_results_is_left_in_the_folder(finished: CampaignResult) -> None:
    names = {path.name for path in finished.folder.iterdir()}
    left = {name for name in names if not name.startswith("checkpoints.sqlite")}
    assert left == {"combination.parquet", "curves.json", "lock", "now.json", "report.html", "results.json"}


# The same each time.


def test_elsewhere_with_another_hash_seed_and_clock_the_bytes_are_the_same(
    finished: CampaignResult, files: Files, tmp_path: Path
) -> None:
    place = tmp_path / "a deeper" / "place"
    place.mkdir(parents=True)
    for path in (files.campaign, files.panel, files.sectors):
        (place / path.name).write_bytes(path.read_bytes())
    code = f"from alphaloom import Campaign; Campaign.from_yaml('campaign.yaml', overrides={markets.CLOSING!r}).run()"
    environment = {**os.environ, "PYTHONHASHSEED": "4", "PYTHONPATH": str(ROOT / ".root")}
    subprocess.run([sys.executable, "-c", code], cwd=place, env=environment, check=True, capture_output=True)
    for name in ("results.json", "curves.json"):
        (again,) = (place / ".alphaloom").glob(f"runs/*/{name}")
        assert again.read_bytes() == (finished.folder / name).read_bytes()


def test_another_seed_gives_other_results_and_a_feared_leak_refuses_every_signal(
    finished: CampaignResult, files: Files, tmp_path: Path
) -> None:
    other = ready(files, tmp_path, "evidence.leak_rank_ic=0.01", seed=10).run()
    assert written(other) != written(finished)
    assert other.record["seed"] == 10
    alarmed = {entry["id"] for entry in other.accepted}  # a combination too: it is what would be traded
    assert alarmed
    signals = other.record["signals"]
    assert {name for name, standing in signals["standings"].items() if standing["leak_alarm"]} & alarmed
    assert signals["decisions"]
    assert all("unalarmed" in ruling["refusals"] for ruling in signals["decisions"])
    assert signals["approved"] == 0


# What stops it.


def test_resuming_a_finished_run_reads_it_again(finished: CampaignResult) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.folder.iterdir()}
    again = Campaign.resume(finished.run, workspace=finished.folder.parents[1])
    assert again.record == finished.record
    assert {path: path.stat().st_mtime_ns for path in finished.folder.iterdir()} == before


class Crash(Exception):
    pass


def failing(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return the function, which fails instead of answering from the given call on."""
    made = 0

    def failed(*arguments: Any, **options: Any) -> Any:
        nonlocal made
        made += 1
        if made >= calls:
            raise Crash
        return function(*arguments, **options)

    return failed


PLACES = {
    "a model's reply": (Calls, "_record", 7),
    "a score": (SearchScoring, "record", 20),
    "a look at selection": (AcceptanceGate, "_test_on_selection", 2),
    "the close": (campaign, "close", 1),
    "the combination": (campaign, "write_closing", 1),
    "the risk gate": (campaign, "trade", 1),
    "results.json": (campaign, "write_json", 2),
    "the last word": (RunRecord, "finish", 1),
}


def test_crashed_at_each_place_in_turn_it_ends_with_the_same_bytes(
    finished: CampaignResult, files: Files, tmp_path: Path, monkeypatch: Patch
) -> None:
    def go_on() -> CampaignResult:
        return (
            Campaign.resume("latest", workspace=tmp_path) if list(tmp_path.iterdir()) else ready(files, tmp_path).run()
        )

    for owner, name, calls in PLACES.values():
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, failing(getattr(owner, name), calls))
            with pytest.raises((Crash, AlphaloomError)):
                go_on()
    assert written(go_on()) == written(finished)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".draft-") or "unfinished" in path.name]


def test_a_panel_that_changed_is_refused_in_words(
    files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    frame = pd.read_parquet(files.panel)
    path = markets.write(frame, tmp_path / "prices.parquet")
    with monkeypatch.context() as broken:
        broken.setattr(campaign, "close", failing(close, 1))
        with pytest.raises(Crash):
            ready(files, tmp_path / "w", "agents.rounds=1", panel=path).run()
    one_price = frame.copy()
    one_price.loc[frame.index[-1], "volume"] += 1
    for changed in (one_price, frame[frame["date"] < frame["date"].unique()[-200]]):
        markets.write(changed, path)
        capsys.readouterr()
        assert run_command(["resume", "latest", "--workspace", str(tmp_path / "w")]) == 2
        errors = capsys.readouterr().err
        assert "not the one that this run began with" in errors
        assert "Restore the file, or start a new run." in errors


def test_an_ended_model_budget_still_gives_a_report(files: Files, tmp_path: Path, capsys: Capture) -> None:
    options = [part for text in (*markets.CLOSING, "models.budget.calls=6") for part in ("--set", text)]
    assert run_command(["run", str(files.campaign), "--workspace", str(tmp_path), "--json", *options]) == 4
    record = json.loads(capsys.readouterr().out)
    assert "6 of 6 calls" in record["ended"]
    assert record["spend"]["calls"] == 6
    assert record["evaluations"] > 0
    assert "6 of 6 calls" in Path(record["report"]).read_text()


# The doors.


@pytest.mark.parametrize(
    ("file", "seed"),
    [
        ("examples/us_daily.yaml", 7),
        ("examples/long_search.yaml", 7),
        ("examples/desk_demo.yaml", 6),
        ("desk/cli/campaign/demo.yaml", 7),
        ("desk/cli/campaign/template.yaml", 7),
    ],
)
def test_the_campaign_files_that_ship_can_be_read(file: str, seed: int) -> None:
    assert Campaign.from_yaml(ROOT / file).settings.seed == seed


def test_what_is_given_goes_before_the_file(files: Files, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Campaign.from_yaml(files.campaign, panel="mine.csv", seed=11).settings
    assert (settings.seed, settings.market.panel) == (11, tmp_path / "mine.csv")
    assert settings.market.sectors == files.sectors


def test_prices_from_a_file_with_a_column_of_ones_own(files: Files, tmp_path: Path, capsys: Capture) -> None:
    frame = pd.read_parquet(files.panel).drop(columns=["vwap", "cap"])
    days = frame["date"].unique()
    sheets = []
    for suffix in (".parquet", ".csv"):
        prices = str(markets.write(frame[frame["date"] < days[420]], tmp_path / f"your{suffix}"))
        place = ["--panel", prices, "--workspace", str(tmp_path / "w"), "--json"]
        assert run_command(["factor", "score", "rank(mood) - rank(ts_mean(mood, 5))", *place]) == 0
        sheets.append(json.loads(capsys.readouterr().out))
    assert sheets[0]["rank_ic"] == pytest.approx(sheets[1]["rank_ic"])
    assert abs(sheets[1]["rank_ic"]) < 0.2
    assert 200 < sheets[1]["days"] <= 252
    brief = ["agents.rounds=1", "agents.hypotheses=2", "agents.steps=0", "evidence.windows.min_sealed_days=40"]
    options = [part for text in brief for part in ("--set", text)]
    command = ["run", str(ROOT / "examples" / "us_daily.yaml"), "--sectors", str(files.sectors), *place, *options]
    assert run_command(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["run"]
    assert set(record) >= PARTS
    assert any("vwap: typical" in note for note in record["data"]["notes"])
    assert Path(record["report"]).is_file()


def real(name: str) -> Path:
    folder = Path(os.environ.get("ALPHALOOM_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / name).is_file():
        pytest.skip(f"no {name} in {folder}: set ALPHALOOM_DATA to the folder that holds it")
    return folder / name


def test_a_factor_on_real_prices(tmp_path: Path, capsys: Capture) -> None:
    prices, groups = real("us_sp500_2008_2017.parquet"), real("us_sp500_sectors.parquet")
    place = ["--panel", str(prices), "--sectors", str(groups), "--workspace", str(tmp_path), "--json"]
    assert run_command(["factor", "score", "rank(ts_std(returns, 30)) * -1", *place]) == 0
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["days"] > 1_400
    assert abs(sheet["rank_ic"]) < 0.05
    assert sheet["by_year"].keys() >= {"2009", "2012"}
