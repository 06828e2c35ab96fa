"""A DataFrame in memory is the panel of the file with the same table, and a panel comes back from its frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from alphaloom.market import Panel, PanelError, PanelSource, Reading, SyntheticConfig, panel_from, read_panel, simulate

from .test_forms import FIELDS, tidy, yahoo


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return tidy()


def test_a_long_frame_is_the_panel_of_its_file(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_csv(tmp_path / "prices.csv", index=False)
    assert panel_from(frame) == read_panel(PanelSource(tmp_path / "prices.csv"))
    assert panel_from(frame.sample(frac=1, random_state=1)) == panel_from(frame)


@pytest.mark.parametrize("names", [["date", "symbol"], [None, None]])
def test_dates_and_symbols_may_be_the_index(frame: pd.DataFrame, names: list[str | None]) -> None:
    indexed = frame.set_index(["date", "symbol"])
    indexed.index.names = names
    assert panel_from(indexed) == panel_from(frame)
    assert panel_from(indexed.swaplevel()) == panel_from(frame)
    by_day = frame.set_index("date")
    by_day.index.name = names[0]
    assert panel_from(by_day) == panel_from(frame)


def test_wide_frames_are_read_with_two_levels_or_one_for_each_field(frame: pd.DataFrame) -> None:
    wide = yahoo(frame)
    assert panel_from(wide) == panel_from(frame)
    assert panel_from(wide.swaplevel(axis=1)) == panel_from(frame)
    assert panel_from(
        {name: frame.pivot(index="date", columns="symbol", values=name) for name in FIELDS}
    ) == panel_from(frame)


def test_a_zone_of_the_index_is_asked_for(frame: pd.DataFrame) -> None:
    midnights = yahoo(frame).tz_localize("America/New_York")
    assert panel_from(midnights) == panel_from(frame)
    wide = midnights.tz_convert("UTC")
    with pytest.raises(PanelError, match="time_zone: America/New_York"):
        panel_from(wide)
    assert panel_from(wide, reading=Reading(time_zone="America/New_York")) == panel_from(frame)


def test_a_panel_comes_back_from_its_frame() -> None:
    panel = simulate(SyntheticConfig(seed=2, days=60, names=20)).panel
    bare = Panel.build(panel.dates, panel.symbols, {k: v for k, v in panel.fields.items() if k != "returns"})
    assert panel_from(bare.to_frame()) == bare


def test_membership_comes_back_from_the_frame(frame: pd.DataFrame) -> None:
    panel = panel_from(frame.assign(in_universe=frame["symbol"] != "AAA"))
    assert not panel.universe[:, panel.symbols.index("AAA")].any()
    assert panel_from(panel.to_frame()) == panel


def test_the_notes_hold_derivations_and_warnings(frame: pd.DataFrame) -> None:
    panel = panel_from(frame, derive={"vwap": "typical"})
    assert panel.notes[0] == "vwap: typical"
    np.testing.assert_allclose(
        panel.fields["vwap"], (panel.fields["high"] + panel.fields["low"] + panel.fields["close"]) / 3
    )


def test_what_is_no_frame_is_refused(frame: pd.DataFrame) -> None:
    for given in ([frame], {}, {"close": 1}):
        with pytest.raises(PanelError, match="a panel is made of a DataFrame"):
            panel_from(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["symbol", "date", "day", "close"])
def test_categories_are_their_values(frame: pd.DataFrame, column: str) -> None:
    given = frame.assign(date=frame["date"].dt.strftime("%Y-%m-%d")) if column == "day" else frame
    assert panel_from(given.astype({"date" if column == "day" else column: "category"})) == panel_from(frame)


def test_sparse_columns_are_read(frame: pd.DataFrame) -> None:
    assert panel_from(frame.astype({"volume": pd.SparseDtype("int64")})) == panel_from(frame)


def test_a_frame_that_cannot_be_read_says_where(frame: pd.DataFrame) -> None:
    wide, fields = yahoo(frame), {name: frame.pivot(index="date", columns="symbol", values=name) for name in FIELDS}
    text = frame.astype({"close": object})
    text.loc[2, "close"] = "halted"
    refused: dict[str, Any] = {
        "the column 'close' is there twice": pd.concat([frame, frame["close"]], axis=1),
        "the column 'Close AAA' is there twice": pd.concat(
            [wide, wide["Close"][["AAA"]].set_axis([("Close", "AAA")], axis=1)], axis=1
        ),
        "the column 'date' is there twice": frame.set_index("date", drop=False),
        "the column 'open 0005.HK' is there twice": fields
        | {"open": pd.concat([fields["open"], fields["open"]], axis=1)},
        r"the dates are periods \(period\[D\]\), not days": wide.to_period("D"),
        "different kinds of days .*volume: datetime64.*UTC": fields | {"volume": fields["volume"].tz_localize("UTC")},
        "2013-01-02 00:00:00 is there twice in the index of 'low'": fields | {"low": fields["low"].iloc[[0, 0, 1]]},
        "'low' holds ndarray": fields | {"low": fields["low"].to_numpy()},
        "row 3, close: 'halted' is text in a column of float": text,
    }
    for message, given in refused.items():
        with pytest.raises(PanelError, match=message):
            panel_from(given)
    with pytest.raises(PanelError, match="in the argument reading"):
        panel_from(frame.rename(columns={"close": "last"}))
