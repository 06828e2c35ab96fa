"""What was known of a panel on a day: the same bytes as if nothing had come after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import MarketSettings
from alphaloom.market import MarketError, Panel, Reading
from alphaloom.market.actions import Actions, read_actions
from alphaloom.market.adjusted import adjust_forwards, reset_volume_levels
from alphaloom.market.errors import PanelError
from alphaloom.market.point_in_time import NOT_POINT_IN_TIME, keep_members, take_panel_as_of

from .vendor import SPLITS, Draw, Vendor

VENDOR = Vendor.of(120, 20, comes=70)
RAW = VENDOR.raw
VOLUMES = ("quoted", "adjusted")


@given(
    st.lists(
        st.tuples(st.integers(1, 119), st.integers(0, 19), st.integers(0, 90), st.sampled_from(SPLITS)), max_size=8
    ),
    st.integers(30, 120),
    st.sampled_from(VOLUMES),
    st.sampled_from(("", *VOLUMES)),
)
def test_what_was_known_is_what_would_be_if_nothing_had_come_after(
    draws: list[Draw], stop: int, volume: str, own: str
) -> None:
    found, day = VENDOR.actions([*draws, (110, 0, 30, 2.0)]), RAW.dates[stop - 1].astype(object)
    then = VENDOR.until(found, stop)
    of_all = take_panel_as_of(VENDOR.sold(120, found, volume, own), day, found, volume)
    of_then = take_panel_as_of(VENDOR.sold(stop, then, volume, own), day, then, volume)
    assert of_all.digest == of_then.digest
    assert of_all.notes == of_then.notes
    assert of_all.back_adjusted == of_then.back_adjusted
    assert "new" not in of_all.group_labels["sector"] or stop > VENDOR.comes


@pytest.mark.parametrize("later", [[], [(90, 5, 1, 1.0)], [(90, name, 0, 4.0) for name in range(12)]])
@pytest.mark.parametrize("volume", VOLUMES)
@pytest.mark.parametrize("own", VOLUMES)
def test_a_vendors_own_vwap_and_amount_stay_what_they_are(own: str, volume: str, later: list[Draw]) -> None:
    """Quoted ones to the bit or adjusted ones anew, whatever the size of what comes later; never a third thing."""
    before: list[Draw] = [(40, name, 90, 2.0) for name in range(8)]
    actions = VENDOR.actions([*before, *later])
    seen = take_panel_as_of(VENDOR.sold(120, actions, volume, own), RAW.dates[79].astype(object), actions, volume)
    truth = VENDOR.sold(80, VENDOR.actions(before), volume, own)
    for name in ("vwap", "amount"):
        np.testing.assert_allclose(seen.fields[name], truth.fields[name], rtol=1e-9)


def test_a_vwap_that_no_earlier_event_tells_about_is_left_out_and_it_is_said() -> None:
    actions = VENDOR.actions([(110, 3, 30, 2.0)])
    seen = take_panel_as_of(VENDOR.sold(120, actions, own="quoted"), RAW.dates[99].astype(object), actions, "adjusted")
    assert not {"vwap", "amount"} & {*seen.fields}
    assert sum("left out" in note for note in seen.notes) == 2


def test_with_actions_the_volumes_must_be_declared() -> None:
    actions = VENDOR.actions([(60, 3, 0, 2.0)])
    with pytest.raises(MarketError, match=r"market\.volumes.*quoted, adjusted"):
        take_panel_as_of(VENDOR.sold(120, actions), RAW.dates[99].astype(object), actions)
    with pytest.raises(ValueError, match="with actions say what the panel's volumes are"):
        MarketSettings(actions=Path("actions.csv"))


def test_actions_after_the_files_last_day_change_nothing() -> None:
    found, day = VENDOR.actions([(60, 3, 0, 2.0), (110, 3, 0, 7.0)]), RAW.dates[79].astype(object)
    then = VENDOR.until(found, 100)
    sold = VENDOR.sold(100, then)
    assert take_panel_as_of(sold, day, found, "adjusted").digest == take_panel_as_of(sold, day, then, "adjusted").digest


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    """Return a folder with quoted prices: the fourth name splits 4:1 on row 60, the fifth pays on row 80."""
    frame = VENDOR.sold(120, VENDOR.actions([])).to_frame().drop(columns=["in_universe", "vwap", "amount"])
    late = (frame["symbol"] == RAW.symbols[3]) & (frame["date"] >= RAW.dates[60])
    frame.loc[late, ["open", "high", "low", "close", "close_raw"]] /= 4
    frame.loc[late, "volume"] *= 4
    frame.to_csv(tmp_path / "prices.csv", index=False)
    paid = f"{RAW.dates[80]},{RAW.symbols[4]},0.5,"
    (tmp_path / "actions.csv").write_text(f"date,symbol,dividend,split\n{RAW.dates[60]},{RAW.symbols[3]},,4\n{paid}\n")
    return tmp_path


def open_market(folder: Path, **settings: object) -> tuple[MarketSettings, Panel]:
    """Return the settings of quoted prices with actions, and the panel that they open."""
    paths = {"panel": "prices.csv", "actions": "actions.csv", "volumes": "quoted"}
    market = MarketSettings.model_validate(paths | settings).beside(folder)
    return market, market.open(seed=7)[0]


def test_quoted_prices_are_adjusted_once_wherever_a_market_is_opened(quotes: Path) -> None:
    market, panel = open_market(quotes)
    before, close = RAW.fields["close"][79, 4], RAW.fields["close"]
    assert panel.fields["returns"][60, 3] == pytest.approx(close[60, 3] / close[59, 3] - 1)
    assert panel.fields["returns"][80, 4] == pytest.approx(close[80, 4] / (before - 0.5) - 1)
    assert panel.fields["close"][0, 3] == pytest.approx(close[0, 3] / 4)
    assert panel.back_adjusted
    assert f"prices: quoted ones of 2 symbols, adjusted for splits and dividends until {RAW.dates[-1]}" in panel.notes
    assert not any("unadjusted splits" in note for note in panel.notes)
    served = take_panel_as_of(panel, RAW.dates[-1].astype(object), market.read_actions(), panel.volumes)
    np.testing.assert_allclose(served.fields["close"], panel.fields["close"], rtol=1e-9)
    assert open_market(quotes, nulled={})[0].read_actions() is None, "its prices are not those of the actions"


@given(st.integers(1, 60), st.sampled_from([0.1, 0.25, 0.5, 1.5, 2.0, 4.0, 10.0]), st.sampled_from([0.01, 0.0001]))
def test_a_split_of_a_name_of_a_few_cents_is_never_refused_for_rounding(count: int, split: float, step: float) -> None:
    day, before = RAW.dates[1:2], count * step
    after = max(round(before / split / step), 1) * step
    found = Actions(day, ("A",), np.zeros(1), np.array([split]))
    found.check_splits(RAW.dates[:3], ("A",), np.array([[before], [after], [after]]))
    if count > 9 and split != 1.5:  # a quote that stood still is told from one that moved
        with pytest.raises(MarketError, match="would make the day's return larger"):
            found.check_splits(RAW.dates[:3], ("A",), np.full((3, 1), before))


def test_a_split_that_the_quotes_contradict_is_refused(quotes: Path) -> None:
    (quotes / "actions.csv").write_text(f"date,symbol,split\n{RAW.dates[60]},{RAW.symbols[3]},0.25\n")
    with pytest.raises(MarketError, match=rf"{RAW.symbols[3]} on {RAW.dates[60]}: a split of 0\.25"):
        open_market(quotes)


def test_quotes_that_are_not_called_so_are_refused_where_a_split_shows_it(quotes: Path) -> None:
    frame = pd.read_csv(quotes / "prices.csv").drop(columns="close_raw")
    frame.to_csv(quotes / "prices.csv", index=False)
    with pytest.raises(MarketError, match="there is no close_raw") as raised:
        open_market(quotes)
    assert "give the close a second time as a column close_raw" in str(raised.value)


def test_a_dividend_that_leaves_no_price_is_refused() -> None:
    close = RAW.fields["close"][59, 3]
    actions = VENDOR.actions([(60, 3, 100 * np.ceil(close), 1.0)])
    with pytest.raises(MarketError, match=rf"{RAW.symbols[3]} on {RAW.dates[60]}: a dividend of .* leaves no price"):
        actions.compute_factors(RAW.dates, RAW.symbols, RAW.fields["close"])


def test_a_split_and_a_dividend_move_what_came_before_them_alone() -> None:
    actions = VENDOR.actions([(60, 3, 0, 2.0), (80, 3, 50, 1.0)])
    seen = take_panel_as_of(VENDOR.sold(120, actions), RAW.dates[99].astype(object), actions, "adjusted")
    at = seen.symbols.index(RAW.symbols[3])
    paid = 1.0 - 0.5 / RAW.fields["close"][79, 3]
    ratio = seen.fields["close"][:, at] / RAW.fields["close"][:100, 3]
    assert ratio[80:] == pytest.approx(1.0)
    assert ratio[60:80] == pytest.approx(paid)
    assert ratio[:60] == pytest.approx(paid / 2)
    assert seen.fields["volume"][:60, at] == pytest.approx(2 * RAW.fields["volume"][:60, 3])
    assert seen.fields["returns"][60, at] == pytest.approx(
        2 * RAW.fields["close"][60, 3] / RAW.fields["close"][59, 3] - 1
    )
    before = take_panel_as_of(VENDOR.sold(120, actions), RAW.dates[50].astype(object), actions, "adjusted")
    at = before.symbols.index(RAW.symbols[3])
    assert before.fields["close"][:, at] == pytest.approx(RAW.fields["close"][:51, 3])
    assert before.fields["volume"][:, at] == pytest.approx(RAW.fields["volume"][:51, 3])


def test_without_actions_levels_end_at_the_quote_and_it_is_said() -> None:
    actions = VENDOR.actions([(60, 3, 0, 2.0), (110, 3, 50, 1.0)])
    seen = take_panel_as_of(VENDOR.sold(120, actions), RAW.dates[99].astype(object))
    assert NOT_POINT_IN_TIME in seen.notes
    assert seen.fields["close"][99, seen.symbols.index(RAW.symbols[3])] == pytest.approx(RAW.fields["close"][99, 3])
    assert not any("sold on row" in note for note in seen.notes), "other notes may tell of any day"


@given(
    st.lists(
        st.tuples(st.integers(1, 119), st.integers(0, 19), st.integers(0, 90), st.sampled_from(SPLITS)), max_size=8
    ),
    st.integers(40, 110),
    st.sampled_from(VOLUMES),
    st.sampled_from(("", *VOLUMES)),
)
def test_prices_that_are_adjusted_forwards_are_those_of_a_file_that_ends_earlier(
    draws: list[Draw], stop: int, volume: str, own: str
) -> None:
    """And so is what is left of volumes, whatever the vendor did with them."""
    actions = VENDOR.actions([*draws, (30, 1, 30, 2.0), (115, 0, 30, 2.0)])
    then = VENDOR.until(actions, stop)
    seen = [
        reset_volume_levels(keep_members(adjust_forwards(sold, stop).rows(0, stop)))
        for sold in (VENDOR.sold(120, actions, volume, own), VENDOR.sold(stop, then, volume, own))
    ]
    assert seen[0].digest == seen[1].digest
    assert seen[0].back_adjusted == seen[1].back_adjusted


def test_a_forward_price_begins_at_the_quote_and_keeps_every_return() -> None:
    sold = VENDOR.sold(120, VENDOR.actions([(60, 3, 0, 2.0), (80, 3, 50, 1.0)]))
    seen = adjust_forwards(sold)
    there = np.isfinite(sold.fields["close"]).argmax(axis=0), np.arange(sold.names)
    np.testing.assert_allclose(seen.fields["close"][there], sold.fields["close_raw"][there], rtol=1e-7)
    np.testing.assert_allclose(seen.fields["returns"], sold.fields["returns"], atol=1e-7)
    assert seen.fields["volume"] is sold.fields["volume"]
    assert seen.back_adjusted
    assert not adjust_forwards(sold, 50).back_adjusted, "until then nothing happened"


def test_what_is_adjusted_forwards_already_is_left_alone() -> None:
    assert adjust_forwards(RAW) is RAW
    plain = replace(RAW, fields={name: RAW.fields[name] for name in RAW.fields if name != "close_raw"})
    assert adjust_forwards(plain) is plain


def test_the_level_of_volumes_is_shown_where_they_are_said_to_be_quoted() -> None:
    sold = VENDOR.sold(120, VENDOR.actions([(60, 3, 0, 2.0)]))
    for said, level in (("quoted", True), ("adjusted", False), ("", False)):
        panel = reset_volume_levels(adjust_forwards(replace(sold, volumes=said)))
        same = np.array_equal(panel.fields["volume"], sold.fields["volume"], equal_nan=True)
        assert same == level
        first = panel.fields["volume"][np.isfinite(sold.fields["volume"]).argmax(axis=0), np.arange(sold.names)]
        assert level or np.allclose(first, 1e6)


def test_before_the_first_day_nothing_was_known() -> None:
    with pytest.raises(MarketError, match="nothing was known yet"):
        take_panel_as_of(RAW, (RAW.dates[0] - np.timedelta64(1, "D")).astype(object))


def test_actions_are_read_and_mistakes_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "actions.csv"
    file.write_text("date,symbol,dividend,split\n2015-01-02,A,0.5,\n2015-01-05,B,,2\n")
    actions = read_actions(file)
    assert actions.symbols == ("A", "B")
    assert actions.dividends.tolist() == [0.5, 0.0]
    assert actions.splits.tolist() == [1.0, 2.0]
    file.write_text("date,symbol,dividend,split\n2015-13-02,A,-0.5,1\n2015-01-05,B,1,0\n")
    with pytest.raises(PanelError) as raised:
        read_actions(file)
    assert len(raised.value.findings) == 3


def test_a_symbol_has_one_row_of_actions_a_day(tmp_path: Path) -> None:
    file = tmp_path / "actions.csv"
    file.write_text("date,symbol,dividend,split\n2015-01-05,B,,2\n2015-01-02,A,0.5,\n2015-01-05,B,,2\n")
    with pytest.raises(PanelError, match="row 3, symbol: B on 2015-01-05 is in row 1 too"):
        read_actions(file)


def test_dates_of_actions_are_read_as_the_settings_say(tmp_path: Path) -> None:
    file = tmp_path / "actions.csv"
    file.write_text("date,symbol,split\n04/05/2015,A,2\n")
    with pytest.raises(PanelError, match="say dates: day_first or dates: month_first"):
        read_actions(file)
    assert str(read_actions(file, Reading(dates="day_first")).days[0]) == "2015-05-04"
    market = MarketSettings.model_validate({"actions": file, "volumes": "quoted", "read": {"dates": "month_first"}})
    actions = market.read_actions()
    assert actions is not None
    assert str(actions.days[0]) == "2015-04-05"
