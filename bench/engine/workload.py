"""The sixty factors that every engine computes: 36 look at one name over time, 24 compare the names of a day.

They are written in the style of the two published sets, Alpha158 (candles, rolling statistics) and the 101 formulaic
alphas (ranks, correlations), with the windows that those use. No operator is here that KunQuant lacks, but for the
z-score, the mean of the day and the mean of a group, which it lets its user write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from alphaloom.factors import Expression, Node, parse, walk

FIELDS = ("open", "high", "low", "close", "vwap", "volume", "returns")
GROUPINGS = ("sector",)
RANK_SHARE = 0.14
"""Largest share of cross-sectional ranks among the distinct operator nodes: engines differ most there."""

TIME_SERIES: tuple[str, ...] = (
    "(close - open) / open",
    "(high - max(open, close)) / open",
    "(min(open, close) - low) / (high - low)",
    "(2 * close - high - low) / open",
    "delay(close, 20) / close",
    "ts_mean(close, 10) / close",
    "ts_std(close, 20) / close",
    "ts_slope(close, 20) / close",
    "ts_rsquare(close, 30)",
    "ts_residual(close, 10) / close",
    "ts_max(high, 30) / close",
    "ts_min(low, 10) / close",
    "ts_rank(close, 60)",
    "(close - ts_min(low, 20)) / (ts_max(high, 20) - ts_min(low, 20))",
    "ts_argmax(high, 20) / 20",
    "(ts_argmax(high, 30) - ts_argmin(low, 30)) / 30",
    "ts_corr(close, log(volume), 20)",
    "ts_corr(close / delay(close, 1), log(volume / delay(volume, 1)), 10)",
    "ts_count(close > delay(close, 1), 20) / 20 - ts_count(close < delay(close, 1), 20) / 20",
    "ts_sum(max(delta(close, 1), 0), 20) / ts_sum(abs(delta(close, 1)), 20)",
    "ts_mean(volume, 5) / volume",
    "ts_std(abs(returns) * volume, 20) / ts_mean(abs(returns) * volume, 20)",
    (
        "(ts_sum(max(delta(volume, 1), 0), 10) - ts_sum(max(-delta(volume, 1), 0), 10))"
        " / ts_sum(abs(delta(volume, 1)), 10)"
    ),
    "sign(delta(volume, 1)) * -delta(close, 1)",
    "where(ts_min(delta(close, 1), 5) > 0, 1, where(ts_max(delta(close, 1), 5) < 0, 1, -1)) * delta(close, 1)",
    "where(ts_mean(high, 20) < high, -delta(high, 2), 0)",
    "-ts_max(ts_corr(ts_rank(volume, 5), ts_rank(high, 5), 5), 3)",
    "ts_rank(volume, 32) * (1 - ts_rank(close + high - low, 16)) * (1 - ts_rank(returns, 32))",
    "ts_rank(volume / ts_mean(volume, 20), 20) * ts_rank(-delta(close, 7), 8)",
    "-delta((2 * close - high - low) / (close - low), 9)",
    "sqrt(high * low) / vwap - 1",
    "ts_rank(decay_linear(ts_corr(vwap, volume, 5), 16), 4) - ts_rank(decay_linear(delta(close, 3), 10), 15)",
    "signed_power(delta(close, 5) / close, 0.5) * ts_zscore(volume, 20)",
    "ts_product(1 + returns, 20) - 1",
    "clip(ts_skew(returns, 60), -2, 2) - ts_kurt(returns, 60)",
    "ts_cov(returns, delay(returns, 1), 20) / ts_var(returns, 20)",
)
CROSS_SECTION: tuple[str, ...] = (
    "-ts_corr(rank(delta(log(volume), 2)), rank((close - open) / open), 6)",
    "-ts_corr(rank(open), rank(volume), 10)",
    "-ts_rank(rank(low), 9)",
    "rank(open - ts_mean(vwap, 10)) * -abs(rank(close - vwap))",
    "-rank(ts_sum(open, 5) * ts_sum(returns, 5) - delay(ts_sum(open, 5) * ts_sum(returns, 5), 10))",
    "-rank(ts_cov(rank(close), rank(volume), 5))",
    "-rank(delta(returns, 3)) * ts_corr(open, volume, 10)",
    "-rank(ts_rank(close, 10)) * rank(delta(delta(close, 1), 1)) * rank(ts_rank(volume / ts_mean(volume, 20), 5))",
    "-rank((ts_std(abs(close - open), 5) + close - open) / close + ts_corr(close, open, 10))",
    "-rank(open - delay(high, 1)) * rank(open - delay(close, 1)) * rank(open - delay(low, 1))",
    "-delta(ts_corr(high, volume, 5), 5) * rank(ts_std(close, 20))",
    "rank(-returns * ts_mean(volume, 20) * vwap * (high - close))",
    "rank(open / close - 1)",
    "rank(1 - rank(ts_std(returns, 2) / ts_std(returns, 5)) + 1 - rank(delta(close, 1)))",
    "scale(ts_corr(ts_mean(volume, 20), low, 5) + (high + low - 2 * close) / close)",
    "-rank(ts_std(high, 10)) * ts_corr(high, volume, 10)",
    "rank(vwap - close) / rank(vwap + close)",
    "-ts_corr(rank((close - ts_min(low, 12)) / (ts_max(high, 12) - ts_min(low, 12))), rank(volume), 6)",
    "-rank(ts_cov(rank(high), rank(volume), 5))",
    "zscore(ts_sum(returns, 20)) - zscore(ts_std(returns, 20))",
    "demean(ts_mean(abs(returns), 10)) * sign(returns)",
    "group_demean(ts_sum(returns, 10), sector)",
    "-ts_rank(decay_linear(ts_corr(group_demean(vwap / close, sector), volume, 4), 8), 6)",
    "(rank(ts_max(vwap - close, 3)) + rank(ts_min(vwap - close, 3))) * rank(delta(volume, 3))",
)
SINGLE: tuple[str, ...] = (
    "close + open",
    "close / open",
    "max(close, open)",
    "log(volume)",
    "signed_power(returns, 0.5)",
    "where(close > open, close, open)",
    "delay(close, 5)",
    "delta(close, 5)",
    "ts_sum(close, 20)",
    "ts_mean(close, 20)",
    "ts_std(close, 20)",
    "ts_skew(returns, 20)",
    "ts_kurt(returns, 20)",
    "ts_max(high, 20)",
    "ts_argmax(high, 20)",
    "ts_rank(close, 20)",
    "ts_rank(close, 60)",
    "ts_quantile(close, 20, 0.8)",
    "ts_product(returns, 20)",
    "ts_corr(close, volume, 20)",
    "ts_cov(returns, volume, 20)",
    "ts_slope(close, 20)",
    "ts_residual(close, 20)",
    "ts_rsquare(close, 20)",
    "decay_linear(close, 20)",
    "ts_count(close > open, 20)",
    "rank(close)",
    "rank(ts_rank(close, 5))",
    "scale(returns)",
    "zscore(returns)",
    "group_demean(returns, sector)",
)
"""Operators that are timed alone. The quantile is here only: KunQuant's takes longer than its other 35 time-series
factors together, and one formula must not decide the ratio of a set."""


@dataclass(frozen=True)
class Workload:
    """Formulas in the order in which every engine returns them.

    Attributes
    ----------
    names : tuple of str
        ``ts01`` to ``ts36`` and ``cs01`` to ``cs24``.
    expressions : tuple of Expression
        The formulas, read and typed.
    """

    names: tuple[str, ...]
    expressions: tuple[Expression, ...]

    def group(self, name: str) -> list[int]:
        """Return the places of ``ts``, ``cs`` or ``all``."""
        return [place for place, each in enumerate(self.names) if name == "all" or each.startswith(name)]


@dataclass(frozen=True)
class Nodes:
    """How many operator nodes a set of trees has, leaves not counted.

    Attributes
    ----------
    trees : int
        Counted in every tree on its own.
    distinct : int
        Counted once for each distinct subtree.
    ranks : int
        Distinct cross-sectional ranks.
    by_operator : dict
        Distinct nodes by operator.
    """

    trees: int
    distinct: int
    ranks: int
    by_operator: dict[str, int]


def workload() -> Workload:
    """Read the sixty formulas."""
    names = [f"ts{place:02d}" for place in range(1, len(TIME_SERIES) + 1)]
    names += [f"cs{place:02d}" for place in range(1, len(CROSS_SECTION) + 1)]
    return Workload(tuple(names), tuple(parse(text) for text in (*TIME_SERIES, *CROSS_SECTION)))


def count(trees: Sequence[Node]) -> Nodes:
    """Count the operator nodes of trees."""
    nodes = [node for tree in trees for _, node in walk(tree) if not node.is_leaf]
    distinct = Counter(node.op for node in set(nodes))
    return Nodes(len(nodes), distinct.total(), distinct["rank"] + distinct["group_rank"], dict(distinct))
