"""FactorMiner: ``Neg(CsRank(Div(Sub($close, $vwap), $vwap)))``.

The meaning of its operators is that of `factorminer/core/expression_tree.py` at commit 2290d0e2 of
minihellboy/factorminer, which computes the values that its formulas are scored by; names and defaults are those of
`factorminer/core/types.py`. The kernels in `factorminer/operators` compute some of them differently (`TsRank`, `Skew`,
`Corr`, `KAMA`).

- A window needs as many rows as it has days, and ignores gaps: one value is enough. `WMA` and `Decay` are missing where
  a value is. A `Sum` of no values is 0, a `Prod` of none 1.
- `Div`, `Inv` and `Return` are 0 where the divisor is missing or closer to 0 than 1e-10.
- `Log` is sign(x) * log(1 + |x|), and `Sqrt` and `Pow` keep the sign too; `Power` does not.
- `Greater`, `Less` and the other comparisons are 1 or 0, and 0 where a value is missing. A condition holds where it is
  above 0.
- `Cov` divides by n, `Std` and `Var` by n - 1, and `Corr` is their ratio: (n - 1) / n of a correlation, and 0 where a
  side hardly moves.
- `CsRank` is (place + 1) / n, with ties in the order of numpy's sort, and by column here. `TsRank` is the share of the
  window's days whose value is not above today's: ties count, gaps do not, and it is 0 where today's is missing.
- `CsQuantile` is that rank times the number of bins, rounded up; here without the error of a product such as 0.55 * 20.
- `TsArgMax` and `TsArgMin` count places from 0, the oldest row of the window first.
- `Decay` weighs by powers of (d - 1) / (d + 1), and its weights sum to less than 1. `EMA` begins with the first value,
  has an infinite window, and stays missing after a gap; `KAMA` is the same there.
- `CsNeutralize` ignores industries: it is `CsDemean`.

Its formulas are nested calls without signs. AlphaGen's grammar reads them, and signs are refused.
"""

from __future__ import annotations

from types import MappingProxyType

from .dialect import Dialect

FIRST_ROWS_NOTE = (
    "in its first rows a window is missing in FactorMiner until it is full; here it begins with the first value"
)
DIVISOR = "a divisor closer to 0 than 1e-10 counts as 0 in FactorMiner; here 0 alone does"
RETURN_NOTE = (
    "in its first rows Return is missing in FactorMiner and 0 here, and an earlier value below 1e-10 counts as 0 there"
)
ZERO_DIVISOR_NOTE = "where the divisor is 0 or missing, FactorMiner gives 0, and here the value is missing"
EARLIER_VALUE_NOTE = (
    "where the earlier value is 0 or missing, FactorMiner takes the logarithm of today's, and here it is missing"
)
PAIRED_GAP_NOTE = (
    f"{FIRST_ROWS_NOTE}; where only one side has a gap, the mean of the other counts that day there, and not here"
)
FLAT_SIDE_NOTE = f"{PAIRED_GAP_NOTE}, and a side that hardly moves (1e-10) counts as constant there"
CONSTANT_Y_NOTE = f"{FLAT_SIDE_NOTE}; where y is constant, FactorMiner gives x less its mean, and here it is missing"
MOMENT_NOTE = "where a window has a gap or equal values, FactorMiner gives a number, and here it is missing"
LINE_GAP_NOTE = "where a window has a gap, FactorMiner takes the mean for it, and here the line is missing"
LINE_FIT_NOTE = f"{LINE_GAP_NOTE}; squared deviations that sum to less than 1e-10 are missing there"
FACTORMINER_EMA_NOTE = (
    "FactorMiner's EMA begins with the first value, never ends and is missing for good after a gap; "
    "this one ends at 8 times the span and leaves gaps out"
)
KAMA_NOTE = f"FactorMiner computes KAMA as its EMA; {FACTORMINER_EMA_NOTE}"
NEAR_EQUAL_NOTE = "values closer than 1e-10 are equal in FactorMiner"
FACTORMINER_FALSE_NOTE = "a comparison with a missing value is false in FactorMiner and missing here"
TIED_RANKS_NOTE = "FactorMiner gives tied values different ranks, and here they share one"
TIE_ORDER_NOTE = (
    "FactorMiner ranks tied values in whatever order numpy's sort leaves them; "
    "here the first column has the lowest rank"
)
EQUAL_DAY_NOTE = "on a day when all values are equal, FactorMiner gives 0, and here they are missing"
INDUSTRY = "FactorMiner's CsNeutralize knows no industries; group_demean(x, industry) does"
SHORT_WINDOW_NOTE = "Over so few days it is the same number on every day. Give it more days."
NO_SIGNS_NOTE = "FactorMiner writes calls and no signs. Write {}."
FROM_FIRST_ROW_NOTE = (
    "It begins with the first row of the data, so its value depends on where they begin. Write a window: {}."
)

FACTORMINER_SIGNS = {"Greater": ">", "GreaterEqual": ">=", "Less": "<", "LessEqual": "<=", "Equal": "==", "Ne": "!="}
COMPARISON_NOTES = {name: f" # {NEAR_EQUAL_NOTE}" if name in ("Equal", "Ne") else "" for name in FACTORMINER_SIGNS}
COMPARISON_RULES = "\n".join(
    line
    for name, sign in FACTORMINER_SIGNS.items()
    for line in (
        f"IfElse({name}(x, y), x1, y1) -> where(holds(x {sign} y), x1, y1){COMPARISON_NOTES[name]}",
        f"Not({name}(x, y)) -> ~holds(x {sign} y){COMPARISON_NOTES[name]}",
        f"{name}(x, y) -> holds(x {sign} y){COMPARISON_NOTES[name]}",
        f"{name}(x, y) << x {sign} y # {FACTORMINER_FALSE_NOTE}",
    )
)
SHORT_WINDOW_RULES = "\n".join(
    f"{name}(x, {days}) !! {SHORT_WINDOW_NOTE}"
    for name, most in (
        ("Skew", 2), ("Kurt", 3), ("TsLinReg", 1), ("TsLinRegSlope", 1), ("TsLinRegIntercept", 1), ("TsLinRegResid", 1),
        ("Slope", 1), ("Resi", 1), ("Rsquare", 2),
    )
    for days in range(1, most + 1)
)  # fmt: skip  # a table

FACTORMINER_RULES = f"""
# Signs
x + y !! {NO_SIGNS_NOTE.format("Add(x, y)")}
x - y !! {NO_SIGNS_NOTE.format("Sub(x, y)")}
x * y !! {NO_SIGNS_NOTE.format("Mul(x, y)")}
x / y !! {NO_SIGNS_NOTE.format("Div(x, y)")}
x ** y !! {NO_SIGNS_NOTE.format("Pow(x, y)")}
-x !! {NO_SIGNS_NOTE.format("Neg(x)")}

# Arithmetic
Add(x, y) -> x + y
Sub(x, y) -> x - y
Mul(x, y) -> x * y
Neg(x) -> -x
Div(x, 0) !! It is 0 there for every x.
Div(x, n) -> x / n
Div(x, y) -> where(holds(abs(y) > 0), x / y, 0) # {DIVISOR}
Inv(x) >> where(holds(abs(x) > 0), 1 / x, 0) # {DIVISOR}
Div(x, y) << x / y # {ZERO_DIVISOR_NOTE}
Abs(x) -> abs(x)
Sign(x) -> sign(x)
Log(x) -> slog1p(x)
Sqrt(x) -> signed_power(x, 0.5)
Square(x) >> x ** 2
Pow(x, y) -> signed_power(x, y)
SignedPower(x, n=2) >> signed_power(x, n)
Power(x, 2) -> x ** 2
Power(x) >> x ** 2
Power(x, 3) -> x ** 3
Power(x, 0.5) -> x ** 0.5
Power(x, 0.5) << sqrt(x)
Power(x, n) -> x ** n # 0 to a negative power is infinite in FactorMiner and missing here
Exp(x) -> exp(clip(x, -50, 50))
Exp(x) << exp(x) # FactorMiner holds the exponent between -50 and 50
Tanh(x) -> tanh(x)
Max(x, y) -> max(x, y)
Min(x, y) -> min(x, y)
Max2(x, y) >> max(x, y)
Min2(x, y) >> min(x, y)
Clip(x, n=-3, m=3) -> clip(x, n, m)

# Conditions
Not(GreaterEqual(x, x)) -> is_missing(x)
GreaterEqual(x, x) -> ~is_missing(x)
{COMPARISON_RULES}
Eq(x, y) >> holds(x == y) # {NEAR_EQUAL_NOTE}
And(c, c1) -> c & c1
Or(c, c1) -> c | c1
Not(x) -> holds(x <= 0)
Not(c) << ~c # where the condition is missing, FactorMiner's Not is 0, and here it is missing
IfElse(c, x, y) >> where(c, x, y)
IfElse(c, x, y) << where(c, x, y) \
# where the condition is missing, FactorMiner takes the second branch, and here the choice is missing

# Windows
{SHORT_WINDOW_RULES}
Mean(x, d=10) -> ts_mean(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
SMA(x, d=10) >> ts_mean(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
Std(x, d=10) -> ts_std(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
Var(x, d=10) -> ts_var(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
Skew(x, d=20) -> ts_skew(x, d) # {MOMENT_NOTE}
Kurt(x, d=20) -> ts_kurt(x, d) * ((d - 1) / (d + 1) * ((d - 2) * (d - 3)) / (d * d)) \
+ (3 * ((d - 1) * ((d - 1) * (d - 1))) / (d * (d * (d + 1))) - 3) \
# {MOMENT_NOTE}
Median(x, d=10) -> ts_median(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
Med(x, d=10) >> ts_median(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
Sum(x, d=10) -> fill(ts_sum(x, d, min_periods=1), 0) # {FIRST_ROWS_NOTE}
Sum(x, d) << ts_sum(x, d) # a sum of no values is 0 in FactorMiner and missing here
Sum(c, d) << ts_count(c, d, min_periods=1) # a count is written as a sum of conditions
Prod(x, d=10) -> fill(ts_product(x, d, min_periods=1), 1) # {FIRST_ROWS_NOTE}
Product(x, d=10) >> fill(ts_product(x, d, min_periods=1), 1) # {FIRST_ROWS_NOTE}
Prod(x, d) << ts_product(x, d) # a product of no values is 1 in FactorMiner and missing here
TsMax(x, d=10) -> ts_max(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
TsMin(x, d=10) -> ts_min(x, d, min_periods=1) # {FIRST_ROWS_NOTE}
TsArgMax(x, d=10) -> ts_argmax(x, d, min_periods=1, counted=position) - 1 # {FIRST_ROWS_NOTE}
TsArgMin(x, d=10) -> ts_argmin(x, d, min_periods=1, counted=position) - 1 # {FIRST_ROWS_NOTE}
Sub(Sub(d, TsArgMax(x, d)), 1) << ts_argmax(x, d) # {FIRST_ROWS_NOTE}
Sub(Sub(d, TsArgMin(x, d)), 1) << ts_argmin(x, d) # {FIRST_ROWS_NOTE}
TsRank(x, d=10) -> fill(ts_rank(x, d, min_periods=1, ties=max, scaled=count), 0) / d # {FIRST_ROWS_NOTE}
TsRank(x, d) << ts_rank(x, d) # FactorMiner gives tied days the highest rank, and 0 where today's value is missing
Quantile(x, d=10, q=0.5) -> ts_quantile(x, d, q, min_periods=1) # {FIRST_ROWS_NOTE}
CountNaN(x, d=10) -> ts_count(is_missing(x), d)
CountNotNaN(x, d=10) -> ts_count(~is_missing(x), d)
Delta(x, d=1) -> delta(x, d)
Delay(x, d=1) -> delay(x, d)
Return(x, d=1) -> where(holds(abs(delay(x, d)) > 0), ts_returns(x, d), 0) # {RETURN_NOTE}
Return(x, d) << ts_returns(x, d) # {ZERO_DIVISOR_NOTE}
LogReturn(x, d=1) -> log(abs(x / delay(x, d)) + 1e-10) # {EARLIER_VALUE_NOTE}
Corr(x, y, d=10) -> fill(ts_cov(x, y, d, min_periods=1, ddof=0) \
/ (ts_std(x, d, min_periods=1) * ts_std(y, d, min_periods=1)), 0) \
# {FLAT_SIDE_NOTE}
Div(Cov(x, y, d), Mul(Sqrt(Cov(x, x, d)), Sqrt(Cov(y, y, d)))) << ts_corr(x, y, d) # {ZERO_DIVISOR_NOTE}
Cov(x, y, d=10) -> ts_cov(x, y, d, min_periods=1, ddof=0) # {PAIRED_GAP_NOTE}
Beta(x, y, d=10) -> fill(ts_beta(x, y, d, min_periods=1), 0) # {FLAT_SIDE_NOTE}
Beta(x, y, d) << ts_beta(x, y, d) # where y is constant, FactorMiner gives 0, and here it is missing
Resid(x, y, d=10) -> ts_resid(x, y, d, min_periods=1) # {CONSTANT_Y_NOTE}
Div(Sub(x, Mean(x, d)), Std(x, d)) << ts_zscore(x, d) # {ZERO_DIVISOR_NOTE}
WMA(x, d=10) -> decay_linear(x, d)
Decay(x, d=10) -> ema(x, d) * (1 - ((d - 1) / (d + 1)) ** d)
TsDecay(x, d=10) >> ema(x, d) * (1 - ((d - 1) / (d + 1)) ** d)
EMA(x, d=10) -> ema(x, 8 * d, min_periods=1, span=d) # {FACTORMINER_EMA_NOTE}
KAMA(x, d=10) >> ema(x, 8 * d, min_periods=1, span=d) # {KAMA_NOTE}
DEMA(x, d=10) -> 2 * ema(x, 8 * d, min_periods=1, span=d) \
- ema(ema(x, 8 * d, min_periods=1, span=d), 8 * d, min_periods=1, span=d) \
# {FACTORMINER_EMA_NOTE}
HMA(x, 10) -> decay_linear(2 * fill(decay_linear(x, 5), 0) - fill(decay_linear(x, 10), 0), 3)
HMA(x) >> decay_linear(2 * fill(decay_linear(x, 5), 0) - fill(decay_linear(x, 10), 0), 3)
HMA(x, d) !! Its inner windows are d / 2 and the root of d in whole days, known here for 10 alone. \
Write it out: HMA(x, 20) is WMA(Sub(Mul(2, WMA(x, 10)), WMA(x, 20)), 4).

# Lines over the days of a window
TsLinReg(x, d=20) -> ts_mean(x, d) + ts_slope(x, d) * ((d - 1) / 2) # {LINE_GAP_NOTE}
TsLinRegIntercept(x, d=20) -> ts_mean(x, d) - ts_slope(x, d) * ((d - 1) / 2) # {LINE_GAP_NOTE}
TsLinRegSlope(x, d=20) -> ts_slope(x, d) # {LINE_GAP_NOTE}
TsLinRegResid(x, d=20) -> ts_residual(x, d) # {LINE_GAP_NOTE}
Slope(x, d=20) >> ts_slope(x, d) # {LINE_GAP_NOTE}
Resi(x, d=20) >> ts_residual(x, d) # {LINE_GAP_NOTE}
Rsquare(x, d=20) -> ts_rsquare(x, d) # {LINE_FIT_NOTE}

# Names
CsRank(x) -> rank(x, ties=first) # {TIE_ORDER_NOTE}
CsRank(x) << rank(x) # {TIED_RANKS_NOTE}
CsZScore(x) -> zscore(x) # {EQUAL_DAY_NOTE}
CsDemean(x) -> demean(x)
CsNeutralize(x) >> demean(x) # {INDUSTRY}
CsScale(x) -> scale(x) # on a day when all values are 0, FactorMiner gives 0, and here they are missing
Scale(x) >> scale(x) # on a day when all values are 0, FactorMiner gives 0, and here they are missing
CsQuantile(x, d=5) -> ceil(d * rank(x, ties=first, scaled=count) / count_across(x)) # {TIE_ORDER_NOTE}
CsQuantile(x, n) << quantile_bucket(x, n) # {TIED_RANKS_NOTE}
"""

DIALECT = Dialect(
    name="factorminer",
    title="FactorMiner",
    grammar="alphagen.lark",
    rules=FACTORMINER_RULES,
    symbols={},
    sign="$",
    fields=MappingProxyType({"amt": "amount"}),
    truth="holds(x > 0)",
    refused=MappingProxyType(
        {
            "CumSum": FROM_FIRST_ROW_NOTE.format("Sum(x, 60)"),
            "CumProd": FROM_FIRST_ROW_NOTE.format("Prod(x, 60)"),
            "CumMax": FROM_FIRST_ROW_NOTE.format("TsMax(x, 60)"),
            "CumMin": FROM_FIRST_ROW_NOTE.format("TsMin(x, 60)"),
        }
    ),
    example="Neg(CsRank(Div(Sub($close, $vwap), $vwap)))",
)
"""The dialect of FactorMiner."""
