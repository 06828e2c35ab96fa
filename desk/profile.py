"""The secondary lines of a factor's sheet, and its stress tests, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .figures import DASH, basis_points, format_share_kept, number, percent

if TYPE_CHECKING:
    from ..evaluation.closing import (
        BookCapacity,
        FactorProfile,
        Figure,
        NeutralisedIC,
        RegimeIC,
        StressScenario,
        StyleExposures,
        WindowMetrics,
    )


BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN_HORIZONS = ("1", "2", "3", "5", "10", "20")
REGIME_ORDER = ("rising", "falling", "calm", "usual", "stormy")
EXPOSURE_WORDS = {
    "size": "size",
    "beta": "beta",
    "momentum": "momentum",
    "volatility": "volatility",
    "price": "price level",
}
MAX_SHARE_SHOWN_OF_IC = 2.0
"""Share of a RankIC beyond which it is not shown: a share of a RankIC near zero means nothing."""
STRESS_GROUP_TITLES = {
    "history": "historical stretches, against all other days",
    "regime": "synthetic regimes, against the same days without",
    "data": "spoiled data",
    "fill": "fills and costs",
}
NO_SHARE_TEXT = "\N{MIDDLE DOT} %"


def curve_rows(metrics: WindowMetrics) -> list[tuple[str, str]]:
    """Return label and text of RankIC by horizon and year, and of returns by quintile; unknown rows are left out."""
    rows = [
        ("RankIC by horizon, every fifth day", _format_decay(metrics.decay)),
        ("RankIC by year", ", ".join(f"{year} {_format_ic(value)}" for year, value in sorted(metrics.by_year.items()))),
        ("quintiles, low to high", _format_quintiles(metrics)),
    ]
    return [(label, text) for label, text in rows if text]


def profile_rows(profile: FactorProfile) -> list[tuple[str, str]]:
    """Return label and text of regimes, exposures and capacity; unknown rows are left out."""
    rows = [
        ("RankIC by the market's regime", _format_regimes(profile.by_regime)),
        ("rank correlation with", _format_exposures(profile.exposures)),
        ("after removing styles and sectors", _format_neutralised(profile.neutralised)),
        ("capacity of each side", _format_capacity(profile.capacity)),
    ]
    return [(label, text) for label, text in rows if text]


def spark(values: Sequence[Figure]) -> str:
    """Return one block per value, scaled from the lowest (or zero) to the highest (or zero); a dot for None."""
    finite = [0.0, *(value for value in values if value is not None)]
    low, span = min(finite), (max(finite) - min(finite)) or 1.0
    top = len(BLOCKS) - 1
    return "".join("·" if value is None else BLOCKS[round((value - low) / span * top)] for value in values)


def _format_ic(value: Figure) -> str:
    return number(value, 4, sign=True)


def _format_decay(decay: Mapping[str, Figure]) -> str:
    days = sorted(decay, key=int)
    text = ", ".join(f"{day} d {_format_ic(decay[day])}" for day in days if day in SHOWN_HORIZONS)
    return f"{text}  {spark([decay[day] for day in days])}" if len(days) > len(SHOWN_HORIZONS) else text


def _format_quintiles(metrics: WindowMetrics) -> str:
    returns = ", ".join(basis_points(value) for value in metrics.quantile_returns)
    return f"{returns} over {metrics.horizon_days} days" if returns else ""


def _format_regimes(regimes: Mapping[str, RegimeIC]) -> str:
    present = [(name, regimes[name]) for name in REGIME_ORDER if name in regimes]
    return ", ".join(f"{name} {_format_ic(regime.rank_ic)} (t {number(regime.t, 1)})" for name, regime in present)


def _format_exposures(exposures: StyleExposures | None) -> str:
    if exposures is None:
        return ""
    recorded = exposures.model_fields_set
    parts = [
        f"{word} {number(getattr(exposures, name), 2, sign=True)}"
        for name, word in EXPOSURE_WORDS.items()
        if name in recorded
    ]
    if exposures.sector is not None:
        parts.append(f"sectors explain {percent(exposures.sector, 0)} of its ranks' variance")
    return ", ".join(parts)


def _format_neutralised(neutralised: NeutralisedIC | None) -> str:
    if neutralised is None:
        return ""
    if neutralised.t is None:
        return "nothing is left"
    share = neutralised.kept
    remark = (
        f" ({percent(share, 0)} of the original)" if share is not None and abs(share) <= MAX_SHARE_SHOWN_OF_IC else ""
    )
    return f"RankIC {_format_ic(neutralised.rank_ic)}, t {number(neutralised.t, 2, sign=True)}{remark}"


def _format_capacity(capacity: BookCapacity | None) -> str:
    if capacity is None:
        return ""
    volume = f"trades stay below a tenth of a day's volume up to {_format_amount(capacity.at_10_percent_of_volume)}"
    if not capacity.break_even:
        return f"0: it earns nothing after costs to start with ({volume})"
    first = f"{_format_amount(capacity.break_even)}; with more, market impact costs all that it earns"
    return f"{first} ({volume}), in the currency of the prices"


def _format_amount(amount: Figure) -> str:
    """Return an amount of the panel's currency in millions, or billions."""
    if amount is None:
        return DASH
    return f"{amount / 1e9:,.1f} billion" if amount >= 1e9 else f"{amount / 1e6:,.3g} million"


def describe_scenario(scenario: StressScenario) -> str:
    """Return the stress in words; a historical one with its days."""
    return f"{scenario.words}, {scenario.first} to {scenario.last}" if scenario.first else scenario.words


def format_stressed_figures(scenario: StressScenario) -> list[str]:
    """Return a scenario's seven cells: RankIC, clean, kept, net Sharpe, clean, kept, values left.

    A figure that the stress does not affect is empty.
    """
    cells = []
    for figure, digits in ((scenario.rank_ic, 4), (scenario.net_sharpe, 2)):
        if figure is None:
            cells += ["", "", ""]
        else:
            share = f"{format_share_kept(figure.keeps)} %".replace(NO_SHARE_TEXT, "")
            cells += [number(figure.stressed, digits, sign=True), number(figure.clean, digits, sign=True), share]
    return [*cells, percent(scenario.coverage, 0) if scenario.coverage is not None else ""]
