"""The command that looks into prices says what is wrong in words, and all of it in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import yaml

from alphaloom.desk.cli.main import run_command
from alphaloom.factors.space.market_settings import MarketSettings
from alphaloom.market import Panel, SyntheticConfig, simulate

from ..market.test_fetch import vendor_frame

Capture = pytest.CaptureFixture[str]


def saved(folder: Path, panel: Panel, names: list[int] | None = None) -> Path:
    """Write the universe's cells of a panel as a tidy file, perhaps of some names only."""
    kept = np.zeros(panel.universe.shape, np.bool_)
    kept[:, names if names is not None else slice(None)] = True
    day, name = np.nonzero(panel.universe & kept)
    columns = {key: values[day, name] for key, values in panel.fields.items() if key != "returns"}
    table = {"date": panel.dates[day], "symbol": [panel.symbols[i] for i in name], **columns}
    pa_parquet.write_table(pa.table(table), folder / "prices.parquet")
    return folder / "prices.parquet"


@pytest.fixture(scope="module")
def panel() -> Panel:
    return simulate(SyntheticConfig(seed=2, days=300, names=80)).panel


def test_a_clean_file_has_no_finding(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    assert run_command(["data", "audit", str(saved(tmp_path, panel)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"] == []
    assert (told["days"], told["names"]) == (300, 80)


def test_findings_say_what_where_why_and_what_to_do(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    file = saved(tmp_path, panel, np.flatnonzero(panel.universe[-1]).tolist())
    assert run_command(["data", "audit", str(file)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 suspicion; nothing was changed" in text
    assert "survivorship: all" in text
    assert "why it matters names that vanished are missing" in text
    assert "what to do use a panel with the names that were there each day" in text
    assert run_command(["data", "audit", str(file), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["trap"] == "survivorship"
    assert found["figures"]["left"] == 0


def test_a_look_says_form_span_units_and_the_yaml_on_one_screen(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    frame = panel.to_frame().drop(columns="in_universe")
    frame["date"] = frame["date"].dt.strftime("%d.%m.%Y")
    frame.to_csv(tmp_path / "prices.csv", index=False, sep=";")
    command = ["data", "look", str(tmp_path / "prices.csv"), "--read", "dates=day_first"]
    assert run_command(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prices.csv: tidy, one row for each date and symbol"
    assert lines[1].startswith("300 days of 80 symbols, 2010-01-04 to ")
    assert "note: date: day_first" in lines
    assert "note: cells: separated by semicolons" in lines
    assert sum("█" in line for line in lines) == 3
    assert len(lines) <= 40
    assert next(line.split() for line in lines if line.startswith("volume "))[1] == "volume"
    written = yaml.safe_load("\n".join(lines[lines.index("market:") :]))
    settings = MarketSettings.model_validate(written["market"])
    assert settings.read.dates == "day_first"
    assert settings.open(seed=7)[0].days == 300
    assert run_command([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["market"]["read"] == {"dates": "day_first"}
    assert told["units"]["close"] == "price"
    assert len(told["series"]["symbols"]) == 48


def test_a_look_at_what_cannot_be_read_names_the_setting(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    frame = panel.rows(0, 5).to_frame()
    frame.assign(date=frame["date"].dt.strftime("%d/%m/%Y")).to_csv(tmp_path / "prices.csv", index=False)
    assert run_command(["data", "look", str(tmp_path / "prices.csv")]) == 2
    assert "say dates: day_first or dates: month_first" in capsys.readouterr().err
    assert run_command(["data", "look", str(tmp_path / "prices.csv"), "--read", "dates=day"]) == 2
    assert "day_first" in capsys.readouterr().err


def test_a_score_reads_a_table_and_the_files_beside_it(tmp_path: Path, capsys: Capture) -> None:
    panel = simulate(SyntheticConfig(seed=2, days=600, names=60)).panel
    frame = panel.to_frame().drop(columns="in_universe")
    frame.assign(date=frame["date"].dt.strftime("%d/%m/%y")).to_csv(tmp_path / "prices.csv", index=False)
    members = "".join(f"{symbol},2010-01-04,\n" for symbol in panel.symbols[:40])
    (tmp_path / "members.csv").write_text(f"symbol,from,to\n{members}", encoding="utf-8")
    command = ["factor", "score", "rank(-returns)", "--json", "--workspace", str(tmp_path / "desk")]
    beside = ["--members", str(tmp_path / "members.csv"), "--read", "dates=day_first"]
    assert run_command([*command, *beside, "--panel", str(tmp_path / "prices.csv")]) == 0
    notes = [warning["message"] for warning in json.loads(capsys.readouterr().out)["warnings"]]
    assert "date: day_first" in notes
    assert "universe: members" in notes
    assert run_command([*command, *beside]) == 2
    assert "there is none" in capsys.readouterr().out


class FrameSource:
    """A vendor that has a frame of the shape of Yahoo's and asks no network."""

    name, licence = "a vendor", "for tests only"

    def download(self, tickers: Sequence[str], since: date) -> pd.DataFrame:
        assert (list(tickers), since) == (["AAA", "BBB", "GONE"], date(2014, 1, 1))
        return vendor_frame()


def test_tickers_become_a_panel_with_its_campaign_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("alphaloom.desk.cli.data.fetch.choose_source", FrameSource)
    command = ["data", "fetch", "AAA,BBB", "GONE", "--since", "2014", "--out", str(tmp_path / "us")]
    assert run_command(command) == 0
    text = capsys.readouterr().out
    assert "2 symbols, 2014-01-02 to 2014-01-13: 2 splits, 3 dividends, from a vendor" in text
    assert "without any price: GONE" in text
    assert "licence: for tests only" in text
    assert "volumes: as traded that day, like close_raw; the prices are adjusted (market.volumes: quoted)" in text
    assert "left out" not in text
    assert "survivorship: These are tickers of today" in text
    settings = MarketSettings.model_validate(yaml.safe_load((tmp_path / "us" / "campaign.yaml").read_text())["market"])
    panel, _ = settings.beside(tmp_path / "us").open(seed=7)
    assert (panel.symbols, panel.days, panel.volumes) == (("AAA", "BBB"), 8, "quoted")
    assert pa_parquet.read_schema(tmp_path / "us" / "prices.parquet").metadata[b"source"] == b"a vendor"
    assert run_command(command) == 1
    assert "is there already" in capsys.readouterr().err
    assert run_command([*command, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["absent"] == ["GONE"]


class OpenSession(FrameSource):
    """The same vendor, on the last day of its frame."""

    def download(self, tickers: Sequence[str], since: date) -> pd.DataFrame:
        frame = super().download(tickers, since)
        return frame.set_index(pd.date_range(end=datetime.now(UTC).date(), periods=len(frame)))


def test_an_unfinished_session_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("alphaloom.desk.cli.data.fetch.choose_source", OpenSession)
    assert run_command(["data", "fetch", "AAA,BBB,GONE", "--since", "2014", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    today = str(datetime.now(UTC).date())
    assert (told["cut"], told["volumes"]) == ([today], "quoted")
    assert told["last_day"] < today


def test_a_first_day_that_is_none_is_bad_input(capsys: Capture) -> None:
    assert run_command(["data", "fetch", "AAA", "--since", "soon"]) == 2
    assert "2010 or 2010-01-04" in capsys.readouterr().err


def test_a_derivation_that_is_not_known_is_bad_input(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    assert run_command(["data", "audit", str(saved(tmp_path, panel)), "--derive", "vwap=mean"]) == 2
    assert "this derivation is not known" in capsys.readouterr().err


STEERING = "\x1b]0;gone\x07\x9b2J"


@pytest.mark.parametrize("command", ["look", "audit"])
def test_no_header_and_no_symbol_steers_the_terminal(
    tmp_path: Path, panel: Panel, capsys: Capture, command: str
) -> None:
    frame = panel.rows(0, 30).to_frame()
    frame["symbol"] = frame["symbol"].astype(str) + STEERING
    frame.assign(**{f"note{STEERING}": "x"}).to_csv(tmp_path / "prices.csv", index=False)
    assert run_command(["data", command, str(tmp_path / "prices.csv")]) == 0
    assert "note: note?]0;gone?" in (text := capsys.readouterr().out)
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
    assert run_command(["data", command, f"{tmp_path / 'prices.csv'}", "--read", f"dates={STEERING}"]) == 2
    assert "cannot be seen" in (text := capsys.readouterr().err)
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
    frame["symbol"] += " "
    frame.to_csv(tmp_path / "prices.csv", index=False)
    assert run_command(["data", command, str(tmp_path / "prices.csv")]) == 2
    assert not {"\x1b", "\x07", "\x9b"} & set(capsys.readouterr().err)


@pytest.mark.parametrize("command", ["check", "explain"])
def test_no_formula_steers_the_terminal_in_its_error(capsys: Capture, command: str) -> None:
    assert run_command(["factor", command, f"rank(close {STEERING})"]) != 0
    assert not {"\x1b", "\x07", "\x9b"} & set("".join(capsys.readouterr()))
