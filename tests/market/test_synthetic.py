"""The synthetic market holds what its configuration says, and nothing besides."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from alphaloom.market import MarketError, Panel, Plant, SyntheticConfig, measure_traded_money, simulate
from alphaloom.market.synthetic.market import compute_daily_rank_ic

SMALL = SyntheticConfig(seed=3, days=300, names=60)
HORIZON = 5
Floats = NDArray[np.float64]


def fallen(panel: Panel) -> Floats:
    """Twenty days' fall in price: slow, and made of the very prices that hold its drift."""
    close = panel.fields["close"]
    out = np.full(close.shape, np.nan)
    out[20:] = 1.0 - close[20:] / close[:-20]
    return out


def traded(panel: Panel) -> Floats:
    return panel.fields["amount"] / panel.fields["cap"]


def label(panel: Panel) -> Floats:
    """The five-day return from the next open, NaN at the end."""
    price = panel.fields["open"]
    out = np.full(price.shape, np.nan)
    out[: -HORIZON - 1] = price[1 + HORIZON :] / price[1:-HORIZON] - 1.0
    return out


def t_value(signal: Floats, panel: Panel) -> tuple[float, float]:
    """The mean RankIC on every fifth day, whose labels do not overlap, and its t."""
    daily = compute_daily_rank_ic(signal[::HORIZON], label(panel)[::HORIZON])
    daily = daily[np.isfinite(daily)]
    return float(daily.mean()), float(daily.mean() / (daily.std() / np.sqrt(len(daily))))


def trailing(values: Floats, window: int) -> Floats:
    """Means over the last days, the missing ones left out."""
    sums = np.cumsum(np.nan_to_num(values), axis=0)
    counts = np.cumsum(np.isfinite(values), axis=0).astype(np.float64)
    out = np.full(values.shape, np.nan)
    have = counts[window:] - counts[:-window]
    np.divide(sums[window:] - sums[:-window], have, out=out[window:], where=have > window / 2)
    return out


def trailing_beta(returns: Floats, window: int) -> Floats:
    market = np.broadcast_to(np.nan_to_num(returns).mean(axis=1, keepdims=True), returns.shape)
    return trailing(returns * market, window) - trailing(returns, window) * trailing(market, window)


def test_equal_configurations_give_equal_bytes() -> None:
    plants = [Plant("fallen", fallen, 0.03)]
    first, second = simulate(SMALL, plants), simulate(SMALL, plants)
    assert first.panel.digest == second.panel.digest
    assert first.expected_return.tobytes() == second.expected_return.tobytes()
    assert first.plants == second.plants


def test_two_seeds_share_no_names() -> None:
    seeds = (0, 1, 25, 26, 27, 701, 702)
    symbols = [
        symbol for seed in seeds for symbol in simulate(SyntheticConfig(seed=seed, days=60, names=20)).panel.symbols
    ]
    assert len(set(symbols)) == 20 * len(seeds)


def test_the_panel_has_every_field_and_sane_prices() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=500, names=80)).panel
    fields = panel.fields
    wanted = "amount cap close close_raw high low open returns volume vwap"
    assert sorted(fields) == wanted.split()
    assert set(panel.groups) == {"sector", "industry"}
    here = panel.universe
    for name in set(fields) - {"returns"}:
        np.testing.assert_array_equal(np.isfinite(fields[name]), here)
        assert fields[name][here].min() >= 0
    assert np.all(fields["high"][here] >= np.maximum(fields["open"], fields["close"])[here])
    assert np.all(fields["low"][here] <= np.minimum(fields["open"], fields["close"])[here])
    assert np.all((fields["vwap"] <= fields["high"])[here] & (fields["vwap"] >= fields["low"])[here])
    assert str(panel.dates[0]) == "2010-01-04"


def test_names_come_go_and_pause_and_shares_split() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=1500, names=100)).panel
    first, last = panel.universe.argmax(axis=0), panel.days - 1 - panel.universe[::-1].argmax(axis=0)
    assert 5 <= np.sum(first > 10) <= 30
    assert 5 <= np.sum(last < panel.days - 10) <= 30
    inside = (np.arange(panel.days)[:, None] >= first) & (np.arange(panel.days)[:, None] <= last)
    assert 0.0005 < 1 - panel.universe[inside].mean() < 0.01
    ratio = panel.fields["close_raw"] / panel.fields["close"]
    changes = ratio[1:] / ratio[:-1]
    steps = set(np.round(changes[np.isfinite(changes)], 6).tolist())
    assert {1.0, 0.25} <= steps <= {1.0, 0.25, 10.0}
    np.testing.assert_allclose(measure_traded_money(panel), panel.fields["amount"], rtol=0.2)  # a split leaves it alone


def test_returns_have_fat_tails_clustered_volatility_and_factors() -> None:
    panel = simulate(SyntheticConfig(seed=2, days=1500, names=100)).panel
    returns = panel.fields["returns"][1:]
    scaled = returns / np.nanstd(returns, axis=0)
    assert np.nanmean(scaled**4) > 4.5
    size = np.abs(np.log1p(returns))
    moves = np.nan_to_num(size - np.nanmean(size, axis=0))
    assert np.mean(moves[1:] * moves[:-1]) / np.mean(moves**2) > 0.05
    filled = np.nan_to_num(returns)
    together = np.asarray(np.corrcoef(filled.T))
    same = panel.groups["sector"][:, None] == panel.groups["sector"]
    np.fill_diagonal(same, False)
    other = panel.groups["sector"][:, None] != panel.groups["sector"]
    assert together[same].mean() > together[other].mean() + 0.03 > 0.1
    gaps = panel.fields["open"][1:] / panel.fields["close"][:-1] - 1
    assert 0.3 < np.nanstd(gaps) / np.nanstd(returns) < 0.7


def test_a_market_without_plants_expects_nothing() -> None:
    market = simulate(SyntheticConfig(seed=5, days=100, names=20, nothing=True))
    assert not market.expected_return.any()
    assert not market.expected_return.flags.writeable
    assert market.plants == ()
    assert market.panel.notes == ("synthetic market, seed 5, null: nothing is in it",)


def test_in_the_null_market_nothing_known_orders_later_returns() -> None:
    panel = simulate(SyntheticConfig(seed=11, days=20_000, names=70, nothing=True)).panel
    returns = panel.fields["returns"]
    listed = np.where(panel.universe, np.arange(panel.days)[:, None] - panel.universe.argmax(axis=0), np.nan)
    known = {
        "volatility": trailing(returns**2, 60),
        "beta": trailing_beta(returns, 250),
        "size": panel.fields["cap"],
        "age": listed,
        "momentum": trailing(returns, 20),
        "turnover": traded(panel),
        "quoted price": panel.fields["close_raw"],
    }
    ts = {name: t_value(values, panel)[1] for name, values in known.items()}
    assert max(map(abs, ts.values())) < 4, ts


def test_a_planted_alpha_has_the_rank_ic_that_was_asked_for() -> None:
    lifts, bare_means = [], []
    for seed in range(4):
        config = SyntheticConfig(seed=seed, days=800, names=150)
        market, bare = simulate(config, [Plant("fallen", fallen, 0.06)]), simulate(config).panel
        (stated,) = market.plants
        assert stated.joint_rank_ic == pytest.approx(0.06, rel=0.05)
        assert stated.consistency > 0.99
        bare_means.append(t_value(fallen(bare), bare)[0])
        lifts.append(t_value(fallen(market.panel), market.panel)[0] - bare_means[-1])
    # The same noise without the plant takes most of the luck out; what is left is small against 0.06.
    error = np.std(lifts, ddof=1) / np.sqrt(len(lifts))
    assert error < 0.002
    assert abs(np.mean(lifts) - 0.06) < max(4 * error, 0.002)
    assert abs(np.mean(bare_means)) < 0.02


def test_the_expected_return_is_what_returns_do_on_average() -> None:
    slopes = []
    for seed in range(4):
        market = simulate(SyntheticConfig(seed=seed, days=800, names=150), [Plant("fallen", fallen, 0.08)])
        price = np.log(market.panel.fields["open"])
        expected = np.log1p(market.expected_return[:-2])
        push = np.nansum(expected * (price[2:] - price[1:-1]), axis=1)
        slopes.append((push.sum() / np.sum(expected**2), push.std() * np.sqrt(len(push)) / np.sum(expected**2)))
    mean, errors = np.mean([slope for slope, _ in slopes]), [error for _, error in slopes]
    assert abs(mean - 1.0) < 3 * np.sqrt(np.mean(np.square(errors)) / 4)
    assert mean > 0.5


def test_an_alpha_lives_and_fades_as_stated() -> None:
    plants = [Plant("fallen", fallen, 0.03, start=0.2, end=0.6, half_life_days=50)]
    market = simulate(SyntheticConfig(seed=4, days=500, names=60), plants)
    strength = np.abs(market.expected_return).max(axis=1)
    assert not strength[:100].any()
    assert not strength[300:].any()
    assert strength[100:120].mean() > 3 * strength[280:300].mean() > 0
    (stated,) = market.plants
    assert (stated.first_day, stated.end_day, stated.half_life_days) == (100, 300, 50)


def test_a_plant_leaves_listings_and_turnover_alone() -> None:
    bare, planted = simulate(SMALL).panel, simulate(SMALL, [Plant("traded", traded, 0.04)]).panel
    np.testing.assert_array_equal(bare.universe, planted.universe)
    np.testing.assert_allclose(traded(bare), traded(planted), rtol=1e-2)
    assert bare.symbols == planted.symbols
    assert bare.digest != planted.digest


@pytest.mark.parametrize(
    ("config", "plant", "message"),
    [
        ({"nothing": True}, {}, "plants: a null market holds nothing (got fallen)"),
        ({}, {"rank_ic": 0.2}, "rank_ic: plant 'fallen' (got 0.2); allowed: above 0, at most 0.08"),
        ({}, {"start": 0.5, "end": 0.5}, "start: plant 'fallen' (got 0.5, 0.5); allowed: 0 <= start < end <= 1"),
        ({}, {"half_life_days": 0.0}, "half_life_days: plant 'fallen' (got 0.0); allowed: above 0"),
        ({}, {"signal": lambda panel: np.zeros(3)}, "its signal does not fit the panel (got 3); allowed: 300, 60"),
        ({}, {"signal": lambda panel: np.ones((300, 60))}, "plant 'fallen': its signal orders no names"),
        ({}, {"signal": lambda panel: np.full((300, 60), np.nan)}, "plant 'fallen': its signal orders no names"),
    ],
)
def test_an_impossible_plant_is_refused(config: dict[str, bool], plant: dict[str, object], message: str) -> None:
    asked = {"text": "fallen", "signal": fallen, "rank_ic": 0.03, **plant}
    with pytest.raises(MarketError) as refused:
        simulate(SMALL.model_copy(update=config), [Plant(**asked)])  # type: ignore[arg-type]
    assert message in str(refused.value)


def test_a_signal_that_reverses_itself_is_refused() -> None:
    def flips(panel: Panel) -> Floats:
        sign = np.where(np.arange(panel.days) % 2, 1.0, -1.0)[:, None]
        return np.asarray(sign * np.arange(panel.names) * np.array([[1.0]]))

    def hurts(panel: Panel) -> Floats:
        sign = np.where(np.arange(panel.days) % 5 == 0, -1.0, 1.0)[:, None]
        return np.asarray(sign * np.arange(panel.names))

    assert simulate(SMALL, [Plant("flips", flips, 0.02)]).plants[0].strength > 0
    with pytest.raises(MarketError, match="takes its own push back within five days"):
        simulate(SMALL, [Plant("hurts", hurts, 0.02)])


def test_the_configuration_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValidationError):
        SyntheticConfig(days=10)
    with pytest.raises(ValidationError):
        SyntheticConfig.model_validate({"dayz": 100})
