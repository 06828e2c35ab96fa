"""Days of a panel are compared with the sessions of an exchange, where one is named."""

from __future__ import annotations

import pickle
import sys
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from alphaloom.campaign.trade import next_trading_day
from alphaloom.market import (
    MarketError,
    Panel,
    PanelError,
    PanelSource,
    Reading,
    find_data_warnings,
    panel_from,
    read_panel,
)

from .test_forms import DAYS, tidy

HOLIDAYS = pd.to_datetime(["2013-01-21", "2013-02-18"])
"""Of New York, and the second one after the last day of the table."""


def calendar(name: str, start: date, end: date) -> SimpleNamespace:
    """Return what `exchange_calendars.get_calendar` does, of the weekdays without two holidays."""
    assert name == "XNYS"
    return SimpleNamespace(sessions=pd.bdate_range(start, end).difference(HOLIDAYS))


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(
        get_calendar=calendar, get_calendar_names=lambda include_aliases: ["XNYS", "XLON", "NYSE"]
    )
    monkeypatch.setitem(sys.modules, "exchange_calendars", stand_in)


def prices(folder: Path, *left_out: str, **reading: Any) -> PanelSource:
    frame = tidy()
    path = folder / "prices.csv"
    frame[~frame["date"].isin(pd.to_datetime(list(left_out)))].to_csv(path, index=False)
    return PanelSource(path, reading=Reading(**reading), calendar="XNYS")


@pytest.mark.usefixtures("package")
def test_a_day_that_is_no_session_is_refused_or_left_out(tmp_path: Path) -> None:
    with pytest.raises(PanelError) as error:
        read_panel(prices(tmp_path))
    assert "date: 1 of 30 days are no session of XNYS: 2013-01-21; check dates and time_zone" in str(error.value)
    assert "say closed_days: leave_out" in str(error.value)
    read = read_panel(prices(tmp_path, closed_days="leave_out"))
    assert (read.days, read.calendar) == (29, "XNYS")
    assert "calendar: 1 of 30 days are no session of XNYS: 2013-01-21; 3 rows left out" in read.notes


@pytest.mark.usefixtures("package")
def test_a_missing_session_is_told(tmp_path: Path) -> None:
    read = read_panel(prices(tmp_path, "2013-01-21", "2013-01-15"))
    (found,) = [warning for warning in find_data_warnings(read) if warning.kind == "missing sessions"]
    assert (found.observation, found.where) == ("1 of 29 sessions of XNYS have no row", "2013-01-15")
    whole = read_panel(prices(tmp_path, "2013-01-21"))
    assert not [warning for warning in find_data_warnings(whole) if "session" in warning.kind]


@pytest.mark.usefixtures("package")
def test_the_calendar_stays_with_a_panel_and_is_not_in_its_digest(tmp_path: Path) -> None:
    read = read_panel(prices(tmp_path, "2013-01-21"))
    assert read.rows(0, 5).calendar == pickle.loads(pickle.dumps(read)).calendar == "XNYS"
    assert read == panel_from(tidy()[tidy()["date"] != "2013-01-21"])


@pytest.mark.usefixtures("package")
def test_the_next_trading_day_is_the_next_session() -> None:
    dates = DAYS.append(pd.DatetimeIndex(["2013-02-13", "2013-02-14", "2013-02-15"])).to_numpy().astype("datetime64[D]")
    assert next_trading_day(dates) == date(2013, 2, 18)
    assert next_trading_day(dates, "XNYS") == date(2013, 2, 19)


@pytest.mark.usefixtures("package")
def test_an_exchange_that_is_not_known_is_refused(tmp_path: Path) -> None:
    tidy().to_csv(tmp_path / "prices.csv", index=False)
    with pytest.raises(MarketError) as error:
        read_panel(PanelSource(tmp_path / "prices.csv", calendar="XNYX"))
    assert error.value.field == "market.calendar"
    assert "such as XNYS" in str(error.value.allowed)


def test_the_package_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "exchange_calendars", None)
    with pytest.raises(MarketError, match="exchange-calendars, which is not installed") as error:
        read_panel(prices(tmp_path))
    assert "leave market.calendar away" in error.value.hint


def test_the_sessions_of_new_york(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("exchange_calendars", reason="exchange-calendars is not installed")
    frame = tidy()
    with pytest.raises(PanelError, match="1 of 30 days are no session of XNYS: 2013-01-21"):
        panel_from(frame, calendar="XNYS")
    read: Panel = panel_from(frame[frame["date"] != "2013-01-21"], calendar="XNYS")
    assert not [warning for warning in find_data_warnings(read) if "session" in warning.kind]
    assert next_trading_day(np.array(["2012-10-26"], "datetime64[D]"), "XNYS") == date(
        2012, 10, 31
    )  # two days of a storm
    with pytest.raises(MarketError, match="this exchange is not known"):
        panel_from(frame, calendar="NEW YORK")
