"""AlphaGen: ``Add(CSRank($volume), Mean($close, 20d))``.

The meaning of its operators is that of `alphagen/data/expression.py` at commit 1c187544 of RL-MLDM/alphagen; other
commits differ in names more than in meanings:

- Windows are complete: a missing value makes the result missing, except for `Rank`.
- `Rank` counts from the top: 1 / n for the highest value of the window, average ties. `CSRank` is argsort of argsort
  over n: from 0, ties by column.
- `WMA` has weights 0 to n - 1: the oldest day has none. `EMA` ends with its window. `Med` is the lower of the two
  middle values.
- `Skew` and `Kurt` are moments without correction for bias (`Kurt` over the variance with n - 1).
- `Corr` of a side whose squared deviations sum to less than 1e-6 is the sum of products. Here the test is relative, and
  a side that fails it gives a missing value.
- Divisions by zero and logarithms of zero are infinite.

Names that begin with `Ts`, and `SLog1p`, `Inv`, `GetGreater`, `GetLess` and `Rank` with one argument, are those of its
descendant AlphaForge.
"""

from __future__ import annotations

from .dialect import Dialect

ALPHAGEN_INFINITE_NOTE = "a division by zero is infinite in AlphaGen and missing here"
LOG_OF_ZERO_NOTE = "the logarithm of 0 is infinite in AlphaGen and missing here"
GAP_RANK_NOTE = "a window with a gap has a rank in AlphaGen and none here"
OLDEST_GAP_NOTE = (
    "a gap on the oldest day of the window, whose weight is 0, makes AlphaGen's value missing, and not this one"
)
ALPHAGEN_FLAT_NOTE = (
    "where one side hardly moves (squared deviations below 1e-6) AlphaGen gives the sum of products; "
    "here it is a true correlation, or missing"
)
WEIGHTLESS_NOTE = "Over one day all its weights are 0, and every value is missing. Give it more days."

MOMENTS = """
{0}Skew(x, d) {1} ts_skew(x, d) * (d - 2) / (d * (d - 1)) ** 0.5
{0}Kurt(x, d) {1} ts_kurt(x, d) * ((d - 1) / (d + 1) * ((d - 2) * (d - 3)) / (d * d)) \
+ (3 * ((d - 1) * ((d - 1) * (d - 1))) / (d * (d * (d + 1))) - 3)
"""
WINDOWED = f"""
{{0}}Mean(x, d) {{1}} ts_mean(x, d)
{{0}}Sum(x, d) {{1}} ts_sum(x, d)
{{0}}Std(x, d) {{1}} ts_std(x, d)
{{0}}Var(x, d) {{1}} ts_var(x, d)
{MOMENTS}
{{0}}Max(x, d) {{1}} ts_max(x, d)
{{0}}Min(x, d) {{1}} ts_min(x, d)
{{0}}Med(x, e) {{1}} ts_quantile(x, e, 0.5 - 0.5 / (e - 1))
{{0}}Med(x, d) {{1}} ts_median(x, d)
{{0}}Mad(x, d) {{1}} ts_mad(x, d)
{{0}}Rank(x, d) {{1}} ts_rank(-x, d) # {GAP_RANK_NOTE}
{{0}}Delta(x, d) {{1}} delta(x, d)
{{0}}WMA(x, 1) !! {WEIGHTLESS_NOTE}
{{0}}WMA(x, d) {{1}} decay_linear(x, d - 1) # {OLDEST_GAP_NOTE}
{{0}}EMA(x, 1) !! {WEIGHTLESS_NOTE}
{{0}}EMA(x, d) {{1}} ema(x, d)
{{0}}Cov(x, y, d) {{1}} ts_cov(x, y, d)
{{0}}Corr(x, y, d) {{1}} ts_corr(x, y, d) # {ALPHAGEN_FLAT_NOTE}
"""
ALPHAGEN_FIELDS = ("open", "high", "low", "close", "volume", "vwap")
ALPHAGEN_FIELD_RULES = "\n".join(
    f"{name} >> {field}" for field in ALPHAGEN_FIELDS for name in (field, f"FeatureType.{field.upper()}")
)
PYTHON_OPEN_RULE = "open_ >> open"
"""The name of the field in Python scripts with AlphaGen, since `open` is a function there."""

ALPHAGEN_RULES = f"""
# Leaves
{ALPHAGEN_FIELD_RULES}
{PYTHON_OPEN_RULE}
Feature(x) >> x

# Arithmetic
Add(x, y) -> x + y
Sub(x, y) -> x - y
Mul(Sign(x), Pow(Abs(x), y)) -> signed_power(x, y)
Mul(x, y) -> x * y
Mul(-1, x) << -x
Div(x, n) -> x / n
Div(x, y) -> x / y # {ALPHAGEN_INFINITE_NOTE}
Div(x, y) << where(holds(abs(y) > 0), x / y, 0) \
# a ratio that is 0 where its divisor is 0 or missing is infinite or missing in AlphaGen
x / n >> x / n
x / y >> x / y # {ALPHAGEN_INFINITE_NOTE}
Pow(x, 2) -> x ** 2
Pow(x, 3) -> x ** 3
Pow(x, 0.5) -> x ** 0.5
Pow(x, y) -> x ** y # 0 to a negative power is infinite in AlphaGen and missing here
Abs(x) -> abs(x)
Sign(x) -> sign(x)
Log(x) -> log(x) # {LOG_OF_ZERO_NOTE}
Greater(x, y) -> max(x, y)
Less(x, y) -> min(x, y)
Pow(x, 0.5) << sqrt(x)
Pow(2.718281828459045, x) << exp(x) # written as a power of e
Less(Greater(x, n), m) << clip(x, n, m) # clip is written as two comparisons

# Names
CSRank(x) -> rank(x, ties=first, scaled=zero)

# Windows
Ref(x, b) -> delay(x, b)
Div(Sub(Med(x, e), Med(Mul(-1, x), e)), 2) << ts_median(x, e) # the mean of both middle values
Sub(Div(x, Ref(x, d)), 1) << ts_returns(x, d) # {ALPHAGEN_INFINITE_NOTE}
{WINDOWED.format("", "->")}
Rank(Mul(-1, x), d) << ts_rank(x, d) # {GAP_RANK_NOTE}
Div(Sub(x, Mean(x, d)), Std(x, d)) << ts_zscore(x, d) # {ALPHAGEN_INFINITE_NOTE}

# AlphaForge
{WINDOWED.format("Ts", ">>")}
Rank(x) >> rank(x, ties=first, scaled=zero)
GetGreater(x, y) >> max(x, y)
GetLess(x, y) >> min(x, y)
Inv(x) >> 1 / x # {ALPHAGEN_INFINITE_NOTE}
SLog1p(x) >> slog1p(x)
Mul(Sign(x), Log(Add(1, Abs(x)))) << slog1p(x) # written with its sign apart
TsIr(x, d) >> ts_mean(x, d) / ts_std(x, d) # {ALPHAGEN_INFINITE_NOTE}
TsMinMaxDiff(x, d) >> ts_max(x, d) - ts_min(x, d)
TsMaxDiff(x, d) >> x - ts_max(x, d)
TsMinDiff(x, d) >> x - ts_min(x, d)
TsDiv(x, d) >> x / ts_mean(x, d) # {ALPHAGEN_INFINITE_NOTE}
TsPctChange(x, d) >> ts_returns(x, d - 1) # {ALPHAGEN_INFINITE_NOTE}
"""

DIALECT = Dialect(
    name="alphagen",
    title="AlphaGen",
    grammar="alphagen.lark",
    rules=ALPHAGEN_RULES,
    symbols={},
    sign="$",
    example="Add(CSRank($volume), Mean($close, 20d))",
)
"""The dialect of AlphaGen."""
