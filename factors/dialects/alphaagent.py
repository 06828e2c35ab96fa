"""The formulas of AlphaAgent (Tang et al. 2025) and of QuantaAlpha, which took its language over.

The operators mean what their shared function library computes, as of 2025 and 2026:

- Rolling operators start with the first value (`min_periods` 1, correlation and covariance 2), and ``DECAYLINEAR``,
  ``PROD``, ``WMA`` and the ``ARG`` family use all rows of a window, gaps included; their values around gaps and in the
  first rows cannot be reproduced, and a note says so.
- ``LOG(x)`` is the logarithm of 1 + x.
- ``EMA(x, n)`` and ``SMA(x, m, n)`` have infinite windows there; here they end where a weight is below 1e-6 of the
  newest.
- ``WMA`` has weights 0.9^k, not linear ones.
- ``REGBETA`` and ``REGRESI`` count missing values as 0, and ``TS_PCTCHANGE`` gives 0 where it would be missing.
- ``BB_UPPER`` and ``BB_LOWER`` are one standard deviation away from the mean, not two.
- ``RSI`` smooths by ``EMA``.
- Comparisons with a missing value are false (``holds``); in ``&&``, ``||`` and ``?:`` any number but 0 is true,
  a missing one too.
- ``RANK``, ``ZSCORE``, ``SCALE`` compare all instruments of a day; here, the members of the universe.
- ``MAX`` and ``MIN`` compare their two or three arguments; the library overwrites its cross-sectional ones.
- Division by zero and the logarithm of 0 are infinite there, and missing here.
- A day without a row for an instrument does not exist there; here every date is a row, and its value is missing.
"""

from __future__ import annotations

from types import MappingProxyType

from .dialect import C_LIKE, Dialect

ALPHAAGENT_RULES = """
ABS(x) -> abs(x)
SIGN(x) -> sign(x)
EXP(x) -> exp(x)
SQRT(x) -> sqrt(x)
LOG(x) -> log(1 + x)
LOG(x - 1) << log(x)
FLOOR(x) -> floor(x)
INV(x) -> 1 / x
POW(x, y) -> x ** y
MAX(x, y) -> max(x, y)
MIN(x, y) -> min(x, y)
MAX(x, y, z) >> max(x, y, z)
MIN(x, y, z) >> min(x, y, z)
MAX(x) !! The library overwrites its cross-sectional maximum by MAX(x, y).
MIN(x) !! The library overwrites its cross-sectional minimum by MIN(x, y).
ADD(x, y) >> x + y
SUBTRACT(x, y) >> x - y
MULTIPLY(x, y) >> x * y
DIVIDE(x, y) >> x / y

# Comparisons with a missing value are false.
x > y -> holds(x > y)
x < y -> holds(x < y)
x >= y -> holds(x >= y)
x <= y -> holds(x <= y)
x == y -> holds(x == y)
x != x -> is_missing(x)
x != y -> ~holds(x == y)
x > y << x > y # where a value is missing, the comparison is false there, and missing here
x < y << x < y # where a value is missing, the comparison is false there, and missing here
x >= y << x >= y # where a value is missing, the comparison is false there, and missing here
x <= y << x <= y # where a value is missing, the comparison is false there, and missing here
x == y << x == y # where a value is missing, the comparison is false there, and missing here
x != y << x != y # where a value is missing, != is true there, and missing here
c << holds(c) # where a value is missing, a comparison is false there, and so is all of the condition here
AND(c, c1) >> c & c1
OR(c, c1) >> c | c1
WHERE(c, x, y) >> where(c, x, y)
GT(x, y) >> holds(x > y)
LT(x, y) >> holds(x < y)
GE(x, y) >> holds(x >= y)
LE(x, y) >> holds(x <= y)
EQ(x, y) >> holds(x == y)
NE(x, y) >> ~holds(x == y)
FILTER(x, c) >> x * c

# Across the names of a day.
RANK(x) -> rank(x)
ZSCORE(x) -> zscore(x)
SCALE(x, a=1) -> scale(x, to=a)
MEAN(x) -> mean_across(x) # MEAN has a value for each name there; here a name has one where x has
STD(x) -> std_across(x) # STD has a value for each name there; here a name has one where x has
MEDIAN(x) -> median_across(x) # MEDIAN has a value for each name there; here a name has one where x has
x - MEAN(x) -> demean(x)

# Over the days of a name.
DELAY(x, b=1) -> delay(x, b)
DELTA(x, d=1) -> delta(x, d)
TS_PCTCHANGE(x, d=1) -> fill(ts_returns(x, d), 0) \
# AlphaAgent's TS_PCTCHANGE repeats the last value over a gap; QuantaAlpha's, and this, do not
x / DELAY(x, d) - 1 << ts_returns(x, d) # ts_returns is written out
TS_MEAN(x, d=5) -> ts_mean(x, d, min_periods=1)
TS_SUM(x, d=5) -> ts_sum(x, d, min_periods=1)
SUMAC(x, d=10) >> ts_sum(x, d, min_periods=1)
TS_MIN(x, d=5) -> ts_min(x, d, min_periods=1)
TS_MAX(x, d=5) -> ts_max(x, d, min_periods=1)
TS_MEDIAN(x, d=5) -> ts_median(x, d, min_periods=1)
TS_RANK(x, d=5) -> ts_rank(x, d, min_periods=1)
TS_STD(x, d=20) -> ts_std(x, d, min_periods=1)
TS_VAR(x, d=5, n=1) -> ts_var(x, d, min_periods=1, ddof=n)
TS_ZSCORE(x, d=5) -> ts_zscore(x, d, min_periods=1)
TS_QUANTILE(x, d=5, q=0.5) -> ts_quantile(x, d, q, min_periods=1)
PERCENTILE(x, q, d) >> ts_quantile(x, d, q, min_periods=1)
PERCENTILE(x, q) !! Without a window it is taken over all days, later ones too. Give it one: PERCENTILE(x, q, d).
TS_CORR(x, SEQUENCE(d), d=5) -> sign(ts_slope(x, d)) * sqrt(ts_rsquare(x, d)) \
# TS_CORR with a SEQUENCE begins at the second row there, and with a whole window here
TS_CORR(x, y, d=5) -> ts_corr(x, y, d, min_periods=2)
TS_COVARIANCE(x, y, d=5) -> ts_cov(x, y, d, min_periods=2)
TS_SKEW(x, d=5) -> ts_skew(x, d) * ((d - 2) * (d - 2) / (d * (d - 1))) ** 0.5 \
# TS_SKEW begins at the third row there, and with a whole window here
TS_KURT(x, d=5) -> (ts_kurt(x, d) * ((d - 2) * (d - 3) / (d - 1)) - 6) / (d + 1) \
# TS_KURT begins at the fourth row there, and with a whole window here
TS_ARGMAX(x, d=5) -> ts_argmax(x, d, min_periods=1) \
# where a window has a gap, TS_ARGMAX points at the gap there, and at the largest value here
TS_ARGMIN(x, d=5) -> ts_argmin(x, d, min_periods=1) \
# where a window has a gap, TS_ARGMIN points at the gap there, and at the smallest value here
HIGHDAY(x, d=5) -> ts_argmax(x, d, min_periods=1) + 1 \
# where a window has a gap, HIGHDAY points at the gap there, and at the largest value here
LOWDAY(x, d=5) -> ts_argmin(x, d, min_periods=1) + 1 \
# where a window has a gap, LOWDAY points at the gap there, and at the smallest value here
PROD(x, d=5) -> ts_product(x, d, min_periods=1) \
# where a window has a gap, PROD is missing there, and counts what is present here
PROD(x, y) >> x * y
COUNT(c, d=20) -> ts_count(c, d, min_periods=1)
SUMIF(x, d, c) >> ts_sum(x * c, d, min_periods=1)
DECAYLINEAR(x, d=5) -> decay_linear(x, d) \
# in the first rows DECAYLINEAR gives a part of the mean; here it is missing until the window is full
WMA(x, d=20) -> ema(x, d, min_periods=1, span=19) \
# where a window has a gap, WMA is missing there, and weighs what is present here
EMA(x, d) -> ema(x, 8 * d, min_periods=1, span=d)
SMA(x, d) >> ts_mean(x, d, min_periods=1)
SMA(x, m, n) -> ema(x, 16 * m, min_periods=1, span=2 * m / n - 1)
REGBETA(x, SEQUENCE(d), d=5) -> ts_slope(fill(x, 0), d)
REGBETA(x, y, d=5) -> ts_beta(fill(x, 0), fill(y, 0), d)
REGBETA(x, SEQUENCE(d), d) << ts_slope(x, d) # REGBETA counts a missing value as 0
REGBETA(x, y, d) << ts_beta(x, y, d) # REGBETA counts a missing value as 0
REGRESI(x, SEQUENCE(d), d=5) -> ts_residual(fill(x, 0), d)
REGRESI(x, SEQUENCE(d), d) << ts_residual(x, d) # REGRESI counts a missing value as 0
REGRESI(x, y, d=5) -> ts_resid(fill(x, 0), fill(y, 0), d)
REGRESI(x, y, d) << ts_resid(x, y, d) # REGRESI counts a missing value as 0

# Words of ours that the library lacks, written out.
SIGN(x) * POW(ABS(x), y) << signed_power(x, y) # signed_power is written out
MIN(MAX(x, n), m) << clip(x, n, m) # clip is written as two comparisons
1 / (1 + EXP(-x)) << sigmoid(x) # sigmoid is written out
1 - 2 / (1 + EXP(2 * x)) << tanh(x) # tanh is written out
x / TS_MAX(x, d) - 1 << ts_drawdown(x, d) # ts_drawdown is written out, and begins with the first value there
POW(TS_CORR(x, SEQUENCE(d), d), 2) << ts_rsquare(x, d) # ts_rsquare is written as the square of a correlation with time
c == 0 << ~c \
# a condition is denied by comparing it with 0; where it is missing, the answer is no there, and missing here

# Indicators.
MACD(x, d1=12, d2=26) -> ema(x, 8 * d1, min_periods=1, span=d1) - ema(x, 8 * d2, min_periods=1, span=d2)
RSI(x, d=14) -> 100 * ema(max(delta(x, 1), 0), 8 * d, min_periods=1, span=d) \
/ (ema(max(delta(x, 1), 0), 8 * d, min_periods=1, span=d) \
+ ema(max(-delta(x, 1), 0), 8 * d, min_periods=1, span=d))
BB_MIDDLE(x, d) >> ts_mean(x, d, min_periods=1)
BB_UPPER(x, d) -> ts_mean(x, d, min_periods=1) + ts_std(x, d, min_periods=1)
BB_LOWER(x, d) -> ts_mean(x, d, min_periods=1) - ts_std(x, d, min_periods=1)
"""
"""The operators of the function library, with the defaults of the library."""

DIALECT = Dialect(
    name="alphaagent",
    title="AlphaAgent",
    grammar="alphaagent.lark",
    rules=ALPHAAGENT_RULES,
    symbols=C_LIKE,
    sign="$",
    sign_optional=True,
    fields=MappingProxyType({"return": "returns"}),
    truth="~holds(x == 0)",
    refused=MappingProxyType(
        {
            "SKEW": "The skewness of a day's names has no operator here; over days it is TS_SKEW(x, d).",
            "KURT": "The kurtosis of a day's names has no operator here; over days it is TS_KURT(x, d).",
            "TS_MAD": "The median distance from the window's median has no operator here; TS_STD(x, d) is near.",
            "SEQUENCE": "It only stands in REGBETA, REGRESI and TS_CORR, as long as their window: "
            "REGBETA(x, SEQUENCE(20), 20).",
        }
    ),
    example="RANK(TS_CORR($close, $volume, 10))",
)
