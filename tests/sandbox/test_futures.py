"""Another future differs everywhere, agrees in itself, and leaves the past alone."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.sandbox import Frames, SandboxError
from alphaloom.sandbox.causality.futures import Futures

from .panels import frames

PANEL = frames()
DAYS = len(PANEL.dates)


@given(st.integers(0, DAYS - 2), st.integers(0, 2**32))
def test_the_past_and_what_is_missing_stay(day: int, seed: int) -> None:
    other = Futures(PANEL, seed).draw_after(day)
    assert other.names == PANEL.names
    assert other.symbols == PANEL.symbols
    assert np.array_equal(other.dates, PANEL.dates)
    for name, old in PANEL.fields.items():
        assert np.array_equal(other.fields[name][: day + 1], old[: day + 1], equal_nan=True)
        assert np.array_equal(np.isnan(other.fields[name]), np.isnan(old))


@given(st.integers(0, DAYS - 2), st.integers(0, 2**32))
def test_prices_of_a_day_agree(day: int, seed: int) -> None:
    made = {name: values[day + 1 :] for name, values in Futures(PANEL, seed).draw_after(day).fields.items()}
    known = np.isfinite(made["close"])
    low, high = np.minimum(made["open"], made["close"]), np.maximum(made["open"], made["close"])
    assert (made["low"][known] <= low[known]).all()
    assert (made["high"][known] >= high[known]).all()
    assert (made["low"][known] > 0).all()
    assert ((made["low"] <= made["vwap"]) & (made["vwap"] <= made["high"]))[known].all()
    assert np.isin(made["volume"][known], PANEL.fields["volume"]).all()


@pytest.mark.parametrize("day", [0, 5, 100, DAYS - 3, DAYS - 2])
def test_returns_follow_from_the_closes(day: int) -> None:
    other = Futures(PANEL, 3).draw_after(day).fields
    follows = other["close"][1:] / other["close"][:-1] - 1.0
    both = np.isfinite(other["returns"][1:]) & np.isfinite(follows)
    assert np.allclose(other["returns"][1:][both], follows[both], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("day", [0, 5, 100, DAYS - 3, DAYS - 2])
def test_the_next_day_and_whole_sample_figures_differ(day: int) -> None:
    """Sums, extremes and the last price change too: a permutation of the future alone would leave them as they are."""
    for name in ("close", "volume", "returns", "mood"):
        old, new = PANEL.fields[name], Futures(PANEL, 1).draw_after(day).fields[name]
        assert (old[day + 1] != new[day + 1])[np.isfinite(old[day + 1])].mean() > 0.8
        assert not np.isclose(np.nansum(old), np.nansum(new), rtol=1e-9)
        assert (old[-1] != new[-1])[np.isfinite(old[-1])].mean() > 0.8


def test_equal_seeds_give_equal_bytes_and_others_do_not() -> None:
    assert Futures(PANEL, 5).draw_after(50).digest == Futures(PANEL, 5).draw_after(50).digest
    assert Futures(PANEL, 5).draw_after(50).digest != Futures(PANEL, 6).draw_after(50).digest


def test_moves_are_as_wide_as_they_were() -> None:
    old = PANEL.fields["returns"]
    new = np.concatenate([Futures(PANEL, seed).draw_after(20).fields["returns"][21:] for seed in range(5)])
    assert np.nanstd(new) == pytest.approx(np.nanstd(old), rel=0.1)
    assert np.nanmax(np.abs(new)) <= np.nanmax(np.abs(old)) * (1 + 1e-9)


def test_levels_go_on_from_where_they_were() -> None:
    close = PANEL.fields["close"]
    quoted = close * np.where(np.arange(DAYS) < 120, 2.0, 1.0)[:, None]
    panel = Frames({"close": close, "close_raw": quoted}, PANEL.dates, PANEL.symbols)
    other = Futures(panel, 2).draw_after(60).fields["close_raw"]
    step = np.abs(np.log(other[61] / other[60]))
    assert np.nanmax(step) < 1.2
    assert np.nanmedian(step) < 0.1


def test_a_panel_without_prices_is_permuted() -> None:
    panel = Frames({"mood": PANEL.fields["mood"]}, PANEL.dates, PANEL.symbols)
    made = Futures(panel, 2).draw_after(60).fields["mood"]
    for name in range(len(PANEL.symbols)):
        old = panel.fields["mood"][:, name]
        assert np.isin(made[61:, name], old[np.isfinite(old)]).sum() == np.isfinite(old[61:]).sum()


def test_a_name_that_never_traded_stays_missing() -> None:
    close = PANEL.fields["close"].copy()
    close[:, 0] = np.nan
    panel = Frames({"close": close}, PANEL.dates, PANEL.symbols)
    assert np.isnan(Futures(panel).draw_after(9).fields["close"][:, 0]).all()


@pytest.mark.parametrize("day", [-1, DAYS - 1])
def test_a_day_without_a_later_one_is_refused(day: int) -> None:
    with pytest.raises(SandboxError) as caught:
        Futures(PANEL).draw_after(day)
    assert caught.value.field == "day"
