"""What is each way to weigh factors worth? Equal, ridge and adaptive beside an oracle, where the truth is known.

python -m bench.combination        five markets whose alphas fade and die, five with some that live in wild months
python -m bench.combination --seeds 1 --days 1500 --names 200
python -m bench.combination --panel prices.parquet --sectors sectors.parquet

On a planted market the factors are what a good search would have: every second alpha itself, of the others the formula
with other windows, and two textbook formulas. Each line is the mean daily correlation of the combination with the
noise-free expected return on the sealed span (the last fifth of the days), and its RankIC and Sharpe ratio after costs
there, at the trading rate that search chose. `search`: labels of the first three fifths teach; `to the seal`: also
those of selection; `day by day`: all that have ended. The oracle holds the true formulas by least squares on search.

On a panel the factors are the published formulas with |t| of 2 on search and pairwise |rank correlation| below 0.7, ten
at most. Search is told in walk-forward, selection with what was learnt up to each day; the sealed span is not read.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence.originality.published import published_expressions
from alphaloom.evidence.originality.redundancy import rank_correlation
from alphaloom.evidence.scoring.exposures import market_return
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.settings import EvidenceSettings
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, Expression, FactorError, PlantSettings, parse
from alphaloom.factors.space.planted import PlantedSignal, draw_plants
from alphaloom.market import Panel, PanelSource, Plant, SyntheticConfig, load_panel, simulate
from alphaloom.portfolio.blend import blend_ranks
from alphaloom.portfolio.combination import bootstrap_difference, market_states
from alphaloom.portfolio.combiners import COMBINER_KINDS, Ridge, build_combiner
from alphaloom.portfolio.moments import RankMoments, measure_moments, standard_ranks
from alphaloom.portfolio.trading_rate import choose_trading_rate, slow_score

Frame = NDArray[np.float32]
Flags = NDArray[np.bool_]
H, GAP = 5, 21
FILLERS = ("ts_mean(volume, 5) / ts_mean(volume, 60)", "-ts_returns(close, 20)")
STRETCHES = (0.7, 0.8, 1.25, 1.4)
WINDOW = re.compile(r"(?<=, )(\d+)(?=\))")
MOST, LEAST_T, CLOSEST = 10, 2.0, 0.7
SETTINGS = EvidenceSettings()


@dataclass(frozen=True)
class InWildMonths:
    """A signal that is silent in months that follow a calm one."""

    inner: PlantedSignal

    def __call__(self, panel: Panel) -> NDArray[np.floating]:
        """Return the values ``[T, N]``."""
        months = panel.dates.astype("datetime64[M]")
        names = np.unique(months)
        moves = np.array([market_return(panel)[months == name].std() for name in names])
        after_wild = np.append(False, moves[:-1] > np.median(moves))
        wild = after_wild[np.searchsorted(names, months)]
        return np.where(wild[:, None], self.inner(panel), np.nan)


@dataclass(frozen=True, eq=False)
class Field:
    """Factors of one panel with all that combiners are told."""

    panel: Panel
    scorer: Scorer
    ranks: Sequence[Frame]
    moments: RankMoments
    states: NDArray[np.float64]

    @classmethod
    def of(cls, panel: Panel, known: Sequence[Expression], scorer: Scorer) -> Field:
        """Compute the factors and their moments."""
        ranks = [standard_ranks(values) for values in Engine(panel, threads=1).stream(known)]
        return cls(panel, scorer, ranks, measure_moments(ranks, scorer.main_label), market_states(panel))

    def span(self, name: str, first: float, last: float) -> Window:
        """Return a window by shares of the days."""
        start, stop = round(first * self.panel.days), round(last * self.panel.days)
        start += GAP if start else 0
        return Window(name, start, stop, str(self.panel.dates[start]), str(self.panel.dates[stop - 1]))

    def taught(self, until: float) -> Flags:
        """Return the days whose labels end within a share of the days."""
        return np.arange(self.panel.days) + 1 + H < round(until * self.panel.days)


def planted(seed: int, days: int, names: int, *, wild: bool) -> Mapping[str, Sequence[float]]:
    """Return likeness to the expected return, and sealed RankIC and Sharpe after costs, by line of the table."""
    plants = draw_plants(seed, PlantSettings(count=9, rank_ic=(0.015, 0.04), fading=0.25, dying=0.2))
    if wild:
        plants = tuple(_wild(each) if place % 3 == 0 else each for place, each in enumerate(plants))
    market = simulate(SyntheticConfig(seed=seed, days=days, names=names), plants)
    rng, texts = np.random.default_rng([seed, 99]), [plant.text for plant in plants]
    near = [_near(text, rng) if place % 2 else text for place, text in enumerate(texts)]
    scorer = Scorer(market.panel, SETTINGS)
    field = Field.of(market.panel, list(map(parse, [*near, *FILLERS])), scorer)
    truth = Field.of(market.panel, list(map(parse, texts)), scorer)
    expected = np.where(market.panel.universe, market.expected_return, np.nan)
    found = {}
    for told, until in (("search", 0.6), ("to the seal", 0.8), ("day by day", 1.1)):
        for kind in COMBINER_KINDS:
            taught = field.taught(until)
            signs = field.moments.signs(field.taught(0.6))
            score = blend_ranks(
                field.ranks, field.moments, taught, build_combiner(kind, H), states=field.states, signs=signs
            ).score
            found[f"{kind}, {told}"] = _sealed(score, field, expected)
    oracle = blend_ranks(truth.ranks, truth.moments, truth.taught(0.6), replace(Ridge(H), strengths=(1.0,)))
    found["oracle, search"] = _sealed(oracle.score, truth, expected)
    return found


def _wild(plant: Plant) -> Plant:
    return replace(plant, signal=InWildMonths(PlantedSignal(plant.text)), rank_ic=min(1.3 * plant.rank_ic, 0.08))


def _near(text: str, rng: np.random.Generator) -> str:
    """Return a formula with other windows, as a search finds one."""
    other = WINDOW.sub(lambda found: str(max(2, round(int(found[1]) * rng.choice(STRETCHES)))), text)
    try:
        return parse(other).text
    except FactorError:
        return text


def _sealed(score: Frame, field: Field, expected: NDArray[np.float64]) -> list[float]:
    rate = choose_trading_rate(score, field.scorer, field.span("search", 0.0, 0.6))
    sealed = field.span("sealed", 0.8, 1.0)
    sheet = field.scorer.score(slow_score(score, rate), sealed, 1)
    return [_likeness(sealed.cut(score), sealed.cut(expected)), sheet.rank_ic, sheet.net_sharpe]


def _likeness(score: Frame, expected: NDArray[np.float64]) -> float:
    """Return the mean daily correlation of two frames."""
    found = []
    for one, other in zip(score, expected, strict=True):
        known = ~np.isnan(one) & ~np.isnan(other)
        if known.sum() >= 10 and np.ptp(other[known]) > 0:
            found.append(np.corrcoef(one[known], other[known])[0, 1])
    return float(np.mean(found))


def print_planted(seeds: Sequence[int], days: int, names: int) -> None:
    """Print the two tables of planted markets."""
    for title, wild in (("alphas that fade and die", False), ("a third of them live in wild months only", True)):
        runs = [planted(seed, days, names, wild=wild) for seed in seeds]
        print(f"\n{title}: {len(seeds)} markets of {days:,} days and {names} names, sealed span")
        print(f"{'':24}{'likeness':>9}{'RankIC':>9}{'Sharpe':>9}   likeness by market")
        for line in runs[0]:
            each = np.array([run[line] for run in runs])
            mean = each.mean(axis=0)
            by_market = " ".join(f"{value:.3f}" for value in each[:, 0])
            print(f"{line:24}{mean[0]:9.3f}{mean[1]:9.4f}{mean[2]:9.2f}   {by_market}", flush=True)


def print_panel(panel: Panel) -> None:
    """Print what combiners give on a panel with published formulas; its sealed span is not read."""
    scorer = Scorer(panel, SETTINGS)
    search = Window("search", 0, round(0.6 * panel.days), "", "")
    known = list(_chosen(panel, scorer, search))
    print(f"{len(known)} published formulas: {'; '.join(factor.shown for factor in known)}")
    field = Field.of(panel, known, scorer)
    taught, signs = field.taught(0.8), field.moments.signs(field.taught(0.6))
    scores = {
        kind: blend_ranks(
            field.ranks, field.moments, taught, build_combiner(kind, H), states=field.states, signs=signs
        ).score
        for kind in COMBINER_KINDS
    }
    for window in (field.span("search", 0.0, 0.6), field.span("selection", 0.6, 0.8)):
        for kind, score in scores.items():
            rate = choose_trading_rate(score, scorer, search)
            plain, slow = scorer.score(score, window, 1), scorer.score(slow_score(score, rate), window, 1)
            less = bootstrap_difference(plain.daily, scorer.score(scores["equal"], window, 1).daily, H)
            said = f"{less.mean:+.4f} ({less.low:+.4f} to {less.high:+.4f}){', a tie' if less.is_tie else ''}"
            print(
                f"{window.name:10}{kind:9} RankIC {plain.rank_ic:+.4f} t {plain.t:+.1f}, less equal {said}; "
                f"after costs {plain.net_sharpe:+.2f} at once, {slow.net_sharpe:+.2f} at rate {rate:.2f}, "
                f"turnover {slow.turnover:.3f}"
            )


def _chosen(panel: Panel, scorer: Scorer, search: Window) -> Iterator[Expression]:
    """Yield the strongest published formulas that are not alike, by search alone."""
    known = [one for _, one, _ in published_expressions() if one.fields <= set(panel.fields) and not one.warnings]
    engine = Engine(panel, threads=1)
    strength = [abs(scorer.proof(column, search).t) for column in engine.stream(known)]
    ranked = np.argsort([-t if np.isfinite(t) else 0.0 for t in strength])
    strong = [known[place] for place in ranked if strength[place] >= LEAST_T]
    kept: list[Frame] = []
    for one, values in zip(strong, engine.stream(strong), strict=True):
        if len(kept) < MOST and all(abs(rank_correlation(values, other, search)) < CLOSEST for other in kept):
            kept.append(values.copy())
            yield one


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--days", type=int, default=2520)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--panel", type=Path)
    parser.add_argument("--sectors", type=Path)
    asked = parser.parse_args()
    if asked.panel:
        print_panel(load_panel(PanelSource(asked.panel, asked.sectors)))
    else:
        print_planted(asked.seeds, asked.days, asked.names)


if __name__ == "__main__":
    main()
