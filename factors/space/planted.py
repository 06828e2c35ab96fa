"""Draw alphas from the operators of the language, and plant them in a synthetic market.

A planted formula is a fair puzzle: no textbook lists it, it spreads the names of a day, it persists for about a week,
it survives its own effect on prices, and it is no near-copy of another plant or of volatility, size, momentum or
reversal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...market import MarketError, Panel, Plant, SyntheticConfig, SyntheticMarket, draw_world, plant_alphas, simulate
from ..engine.engine import Engine
from ..engine.ranks import RowOrder, order_rows, row_rank_correlation
from ..errors import FactorError, ParseError
from ..language.expression import Expression
from ..language.node import Node, walk
from ..language.parse import parse
from ..operators import OPERATORS
from .sampling import Grammar, sample

TRIAL_DAYS, TRIAL_NAMES = 400, 120
"""Size of the small market on which candidates are tested."""
PLANT_STREAM = 0x9147
"""Second part of the seed, which makes the draw independent of others with the same seed."""
MAX_PLANT_CORRELATION = 0.5
MIN_COVERAGE, MIN_DISTINCT_SHARE, MIN_PERSISTENCE, MIN_CONSISTENCY = 0.7, 0.5, 0.4, 0.8
MAX_PLANT_CANDIDATES = 5_000

TEXTBOOK = (
    "ts_std(returns, 20)", "ts_std(returns, 60)", "log(cap)", "log(close)", "log(amount)", "ts_mean(amount, 20) / cap",
    "ts_mean(volume, 5) / ts_mean(volume, 60)", "ts_returns(close, 5)", "ts_returns(close, 20)",
    "ts_returns(close, 60)", "delay(ts_returns(close, 100), 20)", "close / ts_max(high, 60)", "returns", "close / open",
)  # fmt: skip  # a table
"""Volatility, size, liquidity, reversal and momentum: plants may not resemble them."""

GRAMMAR = Grammar(
    fields=("amount", "close", "high", "low", "open", "returns", "volume", "vwap"),
    groups=(),
    windows=tuple(range(3, 61)),
    operators=(
        "abs", "add", "decay_linear", "delay", "delta", "div", "ema", "log", "max", "min", "mul", "rank", "sub",
        "ts_argmax", "ts_argmin", "ts_corr", "ts_cov", "ts_kurt", "ts_mad", "ts_max", "ts_mean", "ts_median",
        "ts_min", "ts_rank",
        "ts_returns", "ts_rsquare", "ts_skew", "ts_slope", "ts_std", "ts_sum", "ts_zscore", "zscore",
    ),
)  # fmt: skip  # a table
"""The part of the language that plants are drawn from."""
SHAPE_OPERATORS = frozenset({"ts_argmax", "ts_argmin", "ts_kurt", "ts_rsquare", "ts_skew"})
"""Statistics of which a plant has at most one: nested ones are meaningless."""


class PlantSettings(BaseModel):
    """States how many alphas a synthetic market holds, and how strong they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(default=5, ge=0, le=20, description="alphas drawn by the market's seed")
    rank_ic: tuple[float, float] = Field(
        default=(0.01, 0.04), description="lowest and highest five-day RankIC at full life; each is drawn between"
    )
    nodes: tuple[int, int] = Field(default=(4, 10), description="smallest and largest formula, in nodes")
    fading: float = Field(default=0.2, ge=0, le=1, description="share of them that fade, in about two years")
    dying: float = Field(default=0.2, ge=0, le=1, description="share of them that stop within the span")

    @model_validator(mode="after")
    def _check_bounds(self) -> PlantSettings:
        low, high = self.rank_ic
        if not 0 < low <= high <= 0.08:
            raise ValueError("rank_ic must be a lower and an upper bound, above 0 and at most 0.08")
        small, large = self.nodes
        if not 3 <= small <= large <= 20:
            raise ValueError("nodes must be a smallest and a largest number of nodes, from 3 to 20")
        if self.fading + self.dying > 1:
            raise ValueError("fading and dying are shares of the same alphas: together at most 1")
        return self


def build_planted_market(
    config: SyntheticConfig, settings: PlantSettings | None = None, extra: Sequence[Plant] = ()
) -> SyntheticMarket:
    """Simulate a market with alphas drawn by its seed.

    Parameters
    ----------
    config : SyntheticConfig
        The market; a null market has no plants, whatever `settings` say.
    settings : PlantSettings, optional
        Number and strength of the plants.
    extra : sequence of Plant
        Further plants, before the drawn ones.

    Returns
    -------
    SyntheticMarket
        The panel, its noise-free expected return, and the plants.
    """
    return simulate(config, (*extra, *list_plants(config, settings or PlantSettings())))


def list_plants(config: SyntheticConfig, settings: PlantSettings) -> tuple[Plant, ...]:
    """Return the plants that a configuration asks for; none in a null market."""
    return () if config.nothing else _draw_for(config.seed, settings)


@lru_cache(maxsize=8)
def _draw_for(seed: int, settings: PlantSettings) -> tuple[Plant, ...]:
    """Draw the plants of a seed once in a process: a campaign opens its market, and reveals it at the close."""
    return draw_plants(seed, settings)


def draw_plants(
    seed: int, settings: PlantSettings | None = None, exclude: Collection[Expression | str] = ()
) -> tuple[Plant, ...]:
    """Draw alphas from the grammar.

    Parameters
    ----------
    seed : int
        Determines every draw.
    settings : PlantSettings, optional
        Number, strength, and shares that fade or die.
    exclude : collection of Expression or str
        Formulas that no plant may resemble: absolute mean rank correlation above 0.5 on a small trial market.

    Returns
    -------
    tuple of Plant
        Formulas in canonical form, of as many nodes as the settings say, with their signals.

    Raises
    ------
    FactorError
        If too few candidates pass, because `exclude` is too long.
    """
    chosen = settings or PlantSettings()
    rng = np.random.default_rng([seed, PLANT_STREAM])
    fates = _draw_fates(rng, chosen)
    if not fates:
        return ()
    trial = _TrialMarket(seed, exclude)
    plants: list[Plant] = []
    for expression in draw_plausible(rng, chosen.nodes):
        plant = _build_plant(expression, rng, chosen, fates[len(plants)])
        if trial.passes(expression, plant):
            plants.append(plant)
        if len(plants) == len(fates):
            return tuple(plants)
    raise FactorError(f"only {len(plants)} of {len(fates)} plants could be drawn", hint="Exclude fewer formulas.")


@dataclass(frozen=True)
class PlantedSignal:
    """Computes a formula on a panel."""

    text: str

    def __call__(self, panel: Panel) -> NDArray[np.float32]:
        """Return the values ``[T, N]``, NaN outside the universe."""
        return Engine(panel, cache_bytes=0, threads=1).evaluate([self.text])[0]


def _draw_fates(rng: np.random.Generator, settings: PlantSettings) -> list[str]:
    """Return the fates of all plants (lasts, fades, dies) in random order."""
    fading, dying = (round(share * settings.count) for share in (settings.fading, settings.dying))
    fates = ["fades"] * fading + ["dies"] * dying
    fates = ["lasts"] * (settings.count - len(fates)) + fates
    return [fates[place] for place in rng.permutation(len(fates))]


def _build_plant(expression: Expression, rng: np.random.Generator, settings: PlantSettings, fate: str) -> Plant:
    """Draw strength and lifetime; all fates take the same draws, so that later draws do not depend on them."""
    rank_ic = round(float(rng.uniform(*settings.rank_ic)), 4)
    half_life, end = float(rng.integers(200, 601)), round(float(rng.uniform(0.5, 0.9)), 2)
    text = expression.canonical_text
    return Plant(
        text=text,
        signal=PlantedSignal(text),
        rank_ic=rank_ic,
        end=end if fate == "dies" else 1.0,
        half_life_days=half_life if fate == "fades" else None,
    )


def draw_plausible(rng: np.random.Generator, nodes: tuple[int, int] = (4, 10)) -> Iterator[Expression]:
    """Draw candidates for plants, not yet tested: they compare names by a statistic over time."""
    small, large = nodes
    for _ in range(MAX_PLANT_CANDIDATES):
        inner = sample(rng, max_size=large - 1, grammar=GRAMMAR)
        wrapper = "rank" if rng.random() < 0.7 else "zscore"
        compares = inner.canonical.op in ("rank", "zscore")
        try:
            expression = inner if compares else parse(f"{wrapper}({inner.text})")
        except ParseError:
            continue
        if small <= expression.size <= large and expression.warmup <= TRIAL_DAYS // 3 and _is_plain(expression.core):
            yield expression


def _is_plain(node: Node) -> bool:
    """Return whether a person could have written a formula: it nests one or two time series operators."""
    operators = [OPERATORS[step.op] for _, step in walk(node) if not step.is_leaf]
    shapes = sum(operator.name in SHAPE_OPERATORS for operator in operators)
    return len(operators) >= 2 and shapes <= 1 and 1 <= _lookback_depth(node) <= 2


def _lookback_depth(node: Node) -> int:
    """Return the nesting depth of time series operators."""
    own = not node.is_leaf and OPERATORS[node.op].family == "time series"
    return own + max((_lookback_depth(arg) for arg in node.args), default=0)


class _TrialMarket:
    """A small market without alphas, on which candidates are tested and compared."""

    def __init__(self, seed: int, exclude: Collection[Expression | str]) -> None:
        self.config = SyntheticConfig(seed=seed, days=TRIAL_DAYS, names=TRIAL_NAMES)
        self.world = draw_world(self.config)
        self.panel = self.world.build_panel()
        self.engine = Engine(self.panel, threads=1)
        self.known = [order_rows(values) for values in self.engine.evaluate([*TEXTBOOK, *exclude])]

    def passes(self, expression: Expression, plant: Plant) -> bool:
        """Return whether a candidate is a fair puzzle; if so, later candidates are compared with it."""
        values = self.engine.evaluate([expression])[0]
        order = order_rows(values)
        fair = self._has_spread(values, expression.warmup) and self._is_new(order)
        if fair and _measure_persistence(values) >= MIN_PERSISTENCE and self._survives(plant):
            self.known.append(order)
            return True
        return False

    def _has_spread(self, values: NDArray[np.float32], warmup: int) -> bool:
        """Return whether most names have a value, and most values of a day differ."""
        after = values[warmup + 40 :: 20]
        present = np.isfinite(after)
        if present.sum() < MIN_COVERAGE * self.panel.universe[warmup + 40 :: 20].sum():
            return False
        distinct = [np.unique(day[there]).size / max(there.sum(), 1) for day, there in zip(after, present, strict=True)]
        return bool(min(distinct) >= MIN_DISTINCT_SHARE)

    def _is_new(self, order: RowOrder) -> bool:
        """Return whether no known order of the names is close to this one, or to its opposite."""
        return all(abs(_average(row_rank_correlation(order, known))) <= MAX_PLANT_CORRELATION for known in self.known)

    def _survives(self, plant: Plant) -> bool:
        """Return whether the alpha keeps its rank order on a market that it moves."""
        try:
            alone = Plant(plant.text, plant.signal, plant.rank_ic)
            stated = plant_alphas(self.config, self.world, (alone,)).plants[0]
        except MarketError:
            return False
        return stated.consistency >= MIN_CONSISTENCY


def _measure_persistence(values: NDArray[np.float32]) -> float:
    """Return the mean rank correlation of a signal with itself a week later."""
    return _average(row_rank_correlation(np.ascontiguousarray(values[:-5]), np.ascontiguousarray(values[5:])))


def _average(correlations: NDArray[np.float64]) -> float:
    finite = correlations[np.isfinite(correlations)]
    return float(finite.mean()) if finite.size else 0.0
