"""Qlib: ``Corr($close, Log($volume + 1), 20) / Std($close, 20)``.

The meaning of its operators is that of `qlib/data/ops.py` of pyqlib 0.9.7 and its rolling helpers:

- Windows are those of pandas with ``min_periods=1``: a value from the first row on, gaps ignored. `Std`, `Var` and
  `Cov`
  divide by n - 1.
- `IdxMax` and `IdxMin` count places from 1, the oldest row of the window first; a gap in the window is taken for the
  best.
- `WMA` is the mean, not the sum, of normalised weights 1 to n times values: 1 / n of a weighted mean. (Old releases
  began the weights at 0.) `EMA` has an infinite window.
- `Corr` and `Rsquare` are missing where a standard deviation is below 2e-5, whatever the unit. Here the test is
  relative.
- A comparison with a missing value is false, `Ne` true; a missing condition takes the first branch of `If`. A
  division by zero and the logarithm of zero are infinite.
- A window of 0 is all rows from the first one on, and one between 0 and 1 the weight of today. Both are infinite; only
  the second fades, so it is translated for `EMA` and refused otherwise.

Names such as `CSRank` are not Qlib's own: they are custom operators of other projects, with the same meaning in most.
So are `Sqrt`, `Exp`, `Square`, `Reciprocal`, `Tanh` and `Clip`, which AlphaBench adds.
"""

from __future__ import annotations

from .dialect import ARITHMETIC_SYMBOLS, COMPARISONS, PREC_POWER, Dialect, Symbol

QLIB_INFINITE_NOTE = "a division by zero is infinite in Qlib and missing here"
QLIB_FALSE_NOTE = "a comparison with a missing value is false in Qlib and missing here"
GAP_PLACE_NOTE = "around a gap in the window Qlib gives the place of the gap, here it is that of the best value"
QLIB_FLAT_NOTE = (
    "Qlib takes a standard deviation below 2e-5 for zero, whatever the unit; here the test is relative to the level"
)
EQUAL_WINDOW_NOTE = "where all values of a window are equal, Qlib gives a number and here it is missing"
QLIB_EMA_NOTE = "Qlib's EMA never ends; this one ends at 8 times the span, which shows after a gap longer than the span"
EXTENSION = "Qlib itself compares no names: register this one as a custom operator"

QLIB_SIGNS = {"Gt": ">", "Ge": ">=", "Lt": "<", "Le": "<=", "Eq": "=="}

CONDITIONS = {
    **{f"x {sign} y": f"holds(x {sign} y)" for sign in QLIB_SIGNS.values()},
    "x != y": "~holds(x == y)",
}
CALL_CONDITIONS = {f"{name}(x, y)": f"holds(x {sign} y)" for name, sign in QLIB_SIGNS.items()} | {
    "Ne(x, y)": "~holds(x == y)"
}
LOGIC_CONDITIONS = {"And(x, y)": "x & y", "Or(x, y)": "x | y", "Not(x)": "~x"}

CHOICES = "\n".join(
    [f"If({theirs}, x1, y1) -> where({ours}, x1, y1)" for theirs, ours in (CONDITIONS | LOGIC_CONDITIONS).items()]
    + [f"If({theirs}, x1, y1) >> where({ours}, x1, y1)" for theirs, ours in CALL_CONDITIONS.items()]
    + [f"If({condition}, x1, y1) >> where({condition}, x1, y1)" for condition in ("x & y", "x | y", "~x")]
)
TRUTH_RULES = "\n".join(
    [f"{theirs} -> {ours}" for theirs, ours in (CONDITIONS | LOGIC_CONDITIONS).items()]
    + [f"{theirs} >> {ours}" for theirs, ours in CALL_CONDITIONS.items()]
    + [f"x {sign} y << x {sign} y # {QLIB_FALSE_NOTE}" for sign in (*QLIB_SIGNS.values(), "!=")]
)
QLIB_FIELD_RULES = "\n".join(
    f"Feature({mark}{field}{mark}) >> {field}"
    for field in ("open", "high", "low", "close", "volume", "vwap", "amount")
    for mark in "'\""
)

ALL_ROWS = (
    "A window of 0 is every row since the first one, which depends on where the data begin. Write a number of days."
)
ALL_ROWS_RULES = "\n".join(
    f"{name}(x, 0) !! {ALL_ROWS}"
    for name in (
        "Ref", "Delta", "Mean", "Sum", "Std", "Var", "Skew", "Kurt", "Max", "Min", "IdxMax", "IdxMin", "Med", "Mad",
        "Rank", "Count", "Slope", "Resi", "Rsquare", "WMA", "EMA",
    )
)  # fmt: skip  # a table

QLIB_RULES = f"""
# Fields
$change -> returns # $change of Qlib's data counts from the last close there was; returns here need yesterday's
$money >> amount
{QLIB_FIELD_RULES}

# Arithmetic
Add(x, y) >> x + y
Sub(x, y) >> x - y
Mul(x, y) >> x * y
-1 * x << -x
x / n -> x / n
Div(x, n) >> x / n
x / y -> x / y # {QLIB_INFINITE_NOTE}
Div(x, y) >> x / y # {QLIB_INFINITE_NOTE}
Power(x, 2) >> x ** 2
Power(x, 3) >> x ** 3
Power(x, 0.5) >> x ** 0.5
Power(x, y) >> x ** y # 0 to a negative power is infinite in Qlib and missing here
Abs(x) -> abs(x)
Sign(x) -> sign(x)
Log(x) -> log(x) # the logarithm of 0 is infinite in Qlib and missing here
Greater(x, y) -> max(x, y)
Less(x, y) -> min(x, y)
Power(x, 0.5) << sqrt(x)
Sign(x) * Power(Abs(x), y) -> signed_power(x, y)
Less(Greater(x, n), m) << clip(x, n, m) # clip is written as two comparisons

# Conditions
{CHOICES}
If(c, x, y) -> where(~holds(~c), x, y)
If(c, x, y) << where(c, x, y) # where the condition is missing, Qlib takes a branch, and here the choice is missing
x != x -> is_missing(x)
x == x >> ~is_missing(x)
{TRUTH_RULES}

# Windows
{ALL_ROWS_RULES}
Quantile(x, 0, q) !! {ALL_ROWS}
Corr(x, y, 0) !! {ALL_ROWS}
Cov(x, y, 0) !! {ALL_ROWS}
Ref(x, d) -> delay(x, d)
Delta(x, d) -> delta(x, d)
x / Ref(x, d) - 1 << ts_returns(x, d) # {QLIB_INFINITE_NOTE}
x / Max(x, d) - 1 << ts_drawdown(x, d, min_periods=1) # {QLIB_INFINITE_NOTE}
Mean(x, d) -> ts_mean(x, d, min_periods=1)
Sum(x, d) -> ts_sum(x, d, min_periods=1)
Std(x, d) -> ts_std(x, d, min_periods=1)
Var(x, d) -> ts_var(x, d, min_periods=1)
Skew(x, d) -> ts_skew(x, d, min_periods=1) # {EQUAL_WINDOW_NOTE}
Kurt(x, d) -> ts_kurt(x, d, min_periods=1) # {EQUAL_WINDOW_NOTE}
Max(x, d) -> ts_max(x, d, min_periods=1)
Min(x, d) -> ts_min(x, d, min_periods=1)
IdxMax(x, d) -> ts_argmax(x, d, min_periods=1, counted=position) # {GAP_PLACE_NOTE}
IdxMin(x, d) -> ts_argmin(x, d, min_periods=1, counted=position) # {GAP_PLACE_NOTE}
d - IdxMax(x, d) << ts_argmax(x, d) # the first rows differ, and {GAP_PLACE_NOTE}
d - IdxMin(x, d) << ts_argmin(x, d) # the first rows differ, and {GAP_PLACE_NOTE}
Med(x, d) -> ts_median(x, d, min_periods=1)
Mad(x, d) -> ts_mad(x, d, min_periods=1)
Quantile(x, d, q) -> ts_quantile(x, d, q, min_periods=1)
Rank(x, d) -> ts_rank(x, d, min_periods=1)
Count(x, d) -> ts_count(~is_missing(x), d, min_periods=1)
Sum(c, d) << ts_count(c, d, min_periods=1) # a count is written as a sum of truth values
Slope(x, d) -> ts_slope(x, d, min_periods=1)
Resi(x, d) -> ts_residual(x, d, min_periods=1)
Rsquare(x, d) -> ts_rsquare(x, d, min_periods=1) # {QLIB_FLAT_NOTE}
(x - Mean(x, d)) / Std(x, d) << ts_zscore(x, d, min_periods=1) # {QLIB_INFINITE_NOTE}
WMA(x, d) -> decay_linear(x, d) / d # Qlib has a value in the first rows and around gaps, where this is missing
WMA(x, d) * d << decay_linear(x, d) # Qlib has a value in the first rows and around gaps, where this is missing
EMA(x, 1) >> x # on a missing day Qlib repeats the value before it
EMA(x, d) -> ema(x, 8 * d, min_periods=1, span=d) # {QLIB_EMA_NOTE}
EMA(x, n) >> ema(x, 16 / n - 8, min_periods=1, span=2 / n - 1) # {QLIB_EMA_NOTE}
Corr(x, y, d) -> ts_corr(x, y, d, min_periods=1) # {QLIB_FLAT_NOTE}
Cov(x, y, d) -> ts_cov(x, y, d, min_periods=1)
Cov(y, x, d) / Var(x, d) << ts_beta(y, x, d, min_periods=1) # gaps of one that the other does not have differ

# Names, as others extend Qlib
CSRank(x) >> rank(x)
CSRank(x) << rank(x) # {EXTENSION}
CsRank(x) >> rank(x)
Rank(x) >> rank(x)
CSZScore(x) >> zscore(x)
CSZScore(x) << zscore(x) # {EXTENSION}
CsZScore(x) >> zscore(x)
CSScale(x) >> scale(x)
CSScale(x) << scale(x) # {EXTENSION}
CsScale(x) >> scale(x)
CSDemean(x) >> demean(x)
CSDemean(x) << demean(x) # {EXTENSION}
CSMean(x) >> mean_across(x)
CSMean(x) << mean_across(x) # {EXTENSION}
Sqrt(x) >> sqrt(x)
1 / (1 + Power(2.718281828459045, -1 * x)) << sigmoid(x) # written as a power of e
Exp(x) >> exp(x) # what is too large is infinite in Qlib and missing here
Power(2.718281828459045, x) << exp(x) # written as a power of e
Tanh(x) >> tanh(x)
Tanh(x) << tanh(x) # {EXTENSION}
Clip(x, n, m) >> clip(x, n, m)
Square(x) >> x ** 2
Reciprocal(x) >> 1 / x # {QLIB_INFINITE_NOTE}
"""

OTHER_INSTRUMENT_NOTE = (
    "It reads another instrument, and a formula here reads each name by itself. Add what it reads as a column."
)
PERIODS = "It reads statements by reporting period. Add the figure to the panel, as known each day, as a column."

DIALECT = Dialect(
    name="qlib",
    title="Qlib",
    grammar="qlib.lark",
    rules=QLIB_RULES,
    symbols={
        **{name: ARITHMETIC_SYMBOLS[name] for name in ("add", "sub", "mul", "div")},
        **COMPARISONS,
        "power": Symbol("**", PREC_POWER),
    },
    sign="$",
    refused={
        "Mask": OTHER_INSTRUMENT_NOTE,
        "ChangeInstrument": OTHER_INSTRUMENT_NOTE,
        "P": PERIODS,
        "PRef": PERIODS,
        "PFeature": PERIODS,
        "TResample": "It changes the days themselves. Resample the data before the panel is made.",
        "Rolling": "It names no statistic. Write Mean, Sum, Std, ...",
    },
    example="Corr($close, Log($volume + 1), 20) / Std($close, 20)",
)
"""The dialect of Qlib."""
