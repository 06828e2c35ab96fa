"""Declare the operators that look back over the rows of one name."""

from __future__ import annotations

from typing import Unpack

from .signature import DDOF, MIN_PERIODS, WINDOW, Argument, Operator, Prose, Traits, panels


def _lag(name: str, unit: str, prose: Prose, **more: Unpack[Traits]) -> Operator:
    """Declare an operator that looks at two rows, or one, a fixed distance away."""
    return Operator(name, "time series", (*panels("x"), WINDOW), *prose, unit, **more)


def _rolling(
    name: str, unit: str, prose: Prose, *extra: Argument, takes: str = "x", **more: Unpack[Traits]
) -> Operator:
    """Declare an operator over the last `window` rows, today's included; its keywords end with `min_periods`."""
    places = [argument for argument in extra if not argument.keyword]
    keywords = [argument for argument in extra if argument.keyword]
    more.setdefault("interval", "window")
    arguments = (*panels(takes), WINDOW, *places, MIN_PERIODS, *keywords)
    return Operator(name, "time series", arguments, *prose, unit, **more)


LINEAR, ABSOLUTE, ODD, EVEN, ORDER, MIRROR = (
    (rule,) for rule in ("linear", "absolute", "odd", "even", "order", "mirror")
)

TIME_SERIES: tuple[Operator, ...] = (
    _lag("delay", "same", Prose("x as it was `window` rows ago.", "{x} of {window} days ago", "delay(close, 5)"),
         interval="shift", scaling=LINEAR, nan="A value that was missing then is NaN now."),
    _lag("delta", "same",
         Prose("x minus x of `window` rows ago.", "the {window}-day change of {x}", "delta(close, 5)"),
         interval="lag", scaling=LINEAR, nan="Both ends must be present."),
    _lag("ts_returns", "return",
         Prose("x over x of `window` rows ago, minus 1.", "the {window}-day return of {x}", "ts_returns(close, 5)"),
         interval="lag", scaling=EVEN, nan="Both ends must be present; an earlier value of 0 gives NaN."),
    _rolling("ts_sum", "same", Prose("Sum over the window.", "the {window}-day sum of {x}", "ts_sum(volume, 20)"),
             scaling=LINEAR),
    _rolling("ts_mean", "same",
             Prose("Mean over the window.", "the {window}-day mean of {x}", "ts_mean(returns, 20)"), scaling=LINEAR),
    _rolling("ts_std", "same",
             Prose("Standard deviation over the window.",
                   "the {window}-day standard deviation of {x}", "ts_std(returns, 20)"),
             DDOF, scaling=ABSOLUTE),
    _rolling("ts_var", "square",
             Prose("Variance over the window.", "the {window}-day variance of {x}", "ts_var(returns, 20)"),
             DDOF, scaling=("square",)),
    _rolling("ts_skew", "ratio",
             Prose("Skewness over the window, corrected for bias as pandas does.",
                   "the {window}-day skewness of {x}", "ts_skew(returns, 60)"),
             scaling=ODD, nan="A constant window, or fewer than 3 values, gives NaN."),
    _rolling("ts_kurt", "ratio",
             Prose("Excess kurtosis over the window, corrected for bias as pandas does.",
                   "the {window}-day kurtosis of {x}", "ts_kurt(returns, 60)"),
             scaling=EVEN, nan="A constant window, or fewer than 4 values, gives NaN."),
    _rolling("ts_min", "same",
             Prose("Smallest value of the window.", "the {window}-day low of {x}", "ts_min(low, 20)"),
             scaling=MIRROR, mirror="ts_max"),
    _rolling("ts_max", "same",
             Prose("Largest value of the window.", "the {window}-day high of {x}", "ts_max(high, 20)"),
             scaling=MIRROR, mirror="ts_min"),
    _rolling("ts_argmin", "number",
             Prose("Bars since the smallest value of the window, 0 for today; the oldest wins a tie.",
                   "the number of days since the {window}-day low of {x}", "ts_argmin(low, 20)"),
             scaling=ORDER, mirror="ts_argmax"),
    _rolling("ts_argmax", "number",
             Prose("Bars since the largest value of the window, 0 for today; the oldest wins a tie.",
                   "the number of days since the {window}-day high of {x}", "ts_argmax(high, 20)"),
             scaling=ORDER, mirror="ts_argmin"),
    _rolling("ts_rank", "rank",
             Prose("Rank of today's value in the window: ascending, average ties, percentile in (0, 1].",
                   "the rank of {x} within its last {window} days", "ts_rank(volume, 20)"),
             scaling=ORDER, nan="Today's value must be present."),
    _rolling("ts_median", "same",
             Prose("Median over the window.", "the {window}-day median of {x}", "ts_median(returns, 20)"),
             scaling=LINEAR),
    _rolling("ts_quantile", "same",
             Prose("The q-quantile of the window, interpolated linearly.",
                   "the {q} quantile of the last {window} days of {x}", "ts_quantile(returns, 20, 0.8)"),
             Argument("q", "number", low=0, high=1), scaling=MIRROR),
    _rolling("ts_mad", "same",
             Prose("Mean absolute deviation from the mean of the window.",
                   "the {window}-day mean absolute deviation of {x}", "ts_mad(returns, 20)"),
             scaling=ABSOLUTE),
    _rolling("ts_zscore", "ratio",
             Prose("Today's value less the mean of the window, over its standard deviation.",
                   "how many {window}-day standard deviations {x} is from its mean", "ts_zscore(volume, 20)"),
             DDOF, scaling=ODD, nan="Today's value must be present; a constant window gives NaN."),
    _rolling("ts_product", "pure",
             Prose("Product over the window.", "the {window}-day product of {x}", "ts_product(1 + returns, 20)")),
    _rolling("ts_corr", "ratio",
             Prose("Pearson correlation of x and y over the window.",
                   "the {window}-day correlation of {x} with {y}", "ts_corr(returns, volume, 20)"),
             takes="x y", scaling=("odd", "odd"), symmetric=True,
             nan="Rows where both are present count; either constant, by a relative test, gives NaN."),
    _rolling("ts_cov", "product",
             Prose("Covariance of x and y over the window.",
                   "the {window}-day covariance of {x} with {y}", "ts_cov(returns, volume, 20)"),
             DDOF, takes="x y", scaling=("linear", "linear"), symmetric=True,
             nan="Rows where both are present count."),
    _rolling("ts_beta", "quotient",
             Prose("Slope of the least-squares line of y on x over the window.",
                   "the {window}-day slope of {y} on {x}", "ts_beta(returns, delay(returns, 1), 20)"),
             takes="y x", scaling=("linear", "inverse"),
             nan="Rows where both are present count; a constant x gives NaN."),
    _rolling("ts_slope", "same",
             Prose("Slope of the least-squares line of x on time over the window, per day.",
                   "the slope of the {window}-day trend of {x}", "ts_slope(close, 20)"),
             scaling=LINEAR),
    _rolling("ts_residual", "same",
             Prose("Today's distance from the least-squares line of x on time over the window.",
                   "how far {x} is above its {window}-day trend", "ts_residual(close, 20)"),
             scaling=LINEAR, nan="Today's value must be present."),
    _rolling("ts_rsquare", "ratio",
             Prose("R squared of the least-squares line of x on time over the window.",
                   "how well a straight line fits the last {window} days of {x}", "ts_rsquare(close, 20)"),
             scaling=EVEN, nan="A constant window gives NaN."),
    _rolling("decay_linear", "same",
             Prose("Weighted mean with weights 1 to `window`, the newest heaviest, sum 1.",
                   "the {window}-day linearly weighted mean of {x}", "decay_linear(returns, 10)"),
             scaling=LINEAR, nan="The weights of values that are present are scaled to sum 1."),
    _rolling("ema", "same",
             Prose("Exponentially weighted mean over the last `window` rows: weight (1 - 2 / (window + 1)) ** k for "
                   "the value k rows ago, scaled to sum 1. It reads no further back, so it has an end.",
                   "the {window}-day exponentially weighted mean of {x}", "ema(close, 20)"),
             scaling=LINEAR, nan="The weights of values that are present are scaled to sum 1."),
    _rolling("ts_count", "number",
             Prose("Number of rows of the window on which the condition held.",
                   "the number of the last {window} days on which {condition}", "ts_count(close > open, 20)"),
             takes="condition?"),
    _rolling("ts_drawdown", "quotient_self",
             Prose("Fall from the highest value of the window: x / ts_max(x, window) - 1.",
                   "the fall of {x} from its {window}-day high", "ts_drawdown(close, 60)"),
             scaling=ORDER, nan="Today's value must be present; a highest value of 0 gives NaN."),
)  # fmt: skip
