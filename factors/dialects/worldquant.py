"""The formulas of "101 Formulaic Alphas" (Kakushadze 2016, arXiv 1601.00991), whose appendix A defines the operators.

Where the paper is ambiguous, these choices are made:

- ``rank`` and ``ts_rank`` are percentiles in (0, 1] with average ties: alphas 27, 35 and 95 compare a rank with 0.5,
  subtract it from 1, and compare the two kinds of rank with each other, so both have that range.
- ``min(x, d)`` and ``max(x, d)`` are `ts_min` and `ts_max` by definition, if d is a literal number of at least 1 (alpha
  29: ``min(..., 5)``); for any other second argument they are the smaller or larger of two panels, as in alphas 71, 73,
  77, 82, 88, 92, 96. To compare with a number of at least 1, write it first: ``max(5, x)``.
- ``signedpower(x, a)`` is defined as x^a, but its name suggests ``sign(x) * abs(x)^a``, which is its meaning here; in
  the published formulas with it (1 and 84) x is never negative, so both are equal.
- ``ts_argmax(x, d)`` is "which day": the number of days since, 0 today, as WorldQuant's own platform documents
  ``ts_arg_max``. Many ports count the place in the window from its oldest row instead, which reverses its ranks; a note
  says so.
- ``stddev`` and ``covariance`` divide by d - 1. A window needs all its rows.
- ``adv20`` is money: the mean of `amount` over 20 days. Alpha 7 compares it with `volume`, which gives a warning.
- Windows that are not whole are floored, as the paper says, with a note.
- ``scale(x)`` makes the absolute values of the day sum to 1.
- ``IndClass.subindustry`` is the panel's grouping of that name where it is among the `groups` given to `parse`;
  otherwise `industry` stands in, with a note.
- Comparisons with a missing value are missing, as in our language; the paper does not say.
"""

from __future__ import annotations

from types import MappingProxyType

from .dialect import C_LIKE, PREC_POWER, PREC_SIGNED, Dialect, Symbol

WORLDQUANT_RULES = """
rank(x) -> rank(x)
delay(x, b) -> delay(x, b)
correlation(x, y, d) -> ts_corr(x, y, d)
corr(x, y, d) >> ts_corr(x, y, d)
covariance(x, y, d) -> ts_cov(x, y, d)
scale(x) -> scale(x, to=1)
scale(x, a) -> scale(x, to=a)
delta(x, d) -> delta(x, d)
signedpower(x, y) -> signed_power(x, y)
decay_linear(x, d) -> decay_linear(x, d)
indneutralize(x, g) -> group_demean(x, g)
ts_min(x, d) -> ts_min(x, d)
ts_max(x, d) -> ts_max(x, d)
ts_argmax(x, d) -> ts_argmax(x, d) \
# ts_argmax counts days since, 0 today; many ports count the place in the window instead, which turns its ranks around
ts_argmin(x, d) -> ts_argmin(x, d) \
# ts_argmin counts days since, 0 today; many ports count the place in the window instead, which turns its ranks around
ts_rank(x, d) -> ts_rank(x, d)
min(x, d) >> ts_min(x, d) \
# min with a number in the second place is read as the rolling minimum over that many days, as in the paper; to \
compare with a number write it first
max(x, d) >> ts_max(x, d) \
# max with a number in the second place is read as the rolling maximum over that many days, as in the paper; to \
compare with a number write it first
min(x, y) -> min(x, y)
max(x, y) -> max(x, y)
min(n, x) << min(x, n)
max(n, x) << max(x, n)
sum(x, d) -> ts_sum(x, d)
ts_sum(x, d) >> ts_sum(x, d)
sum(x, d) / d << ts_mean(x, d)
product(x, d) -> ts_product(x, d)
ts_product(x, d) >> ts_product(x, d)
stddev(x, d) -> ts_std(x, d)
abs(x) -> abs(x)
log(x) -> log(x)
sign(x) -> sign(x)
x ^ y -> x ** y
power(x, y) >> x ** y
x ^ 0.5 << sqrt(x)
adv{d} -> ts_mean(amount, d)

# Words of ours that the paper lacks, written out.
x / delay(x, d) - 1 << ts_returns(x, d) # ts_returns is written out
(x - sum(x, d) / d) / stddev(x, d) << ts_zscore(x, d) \
# ts_zscore is written out: a constant window may give another number than a missing one
stddev(x, d) ^ 2 << ts_var(x, d) # ts_var is written as the square of stddev
x / ts_max(x, d) - 1 << ts_drawdown(x, d) # ts_drawdown is written out
c << holds(c) # where a value is missing, the condition is missing there, and false in what this stands for
sum(c ? 1 : 0, d) << ts_count(c, d) # ts_count is written as a sum of ones
2.718281828459045 ^ x << exp(x) # exp is written as a power of e
1 / (1 + 2.718281828459045 ^ (-x)) << sigmoid(x) # sigmoid is written out
1 - 2 / (1 + 2.718281828459045 ^ (2 * x)) << tanh(x) # tanh is written out
min(m, max(n, x)) << clip(x, n, m) # clip is written as two comparisons
"""
"""The operators of appendix A, some of their later spellings, and expansions of further operators of ours."""

DIALECT = Dialect(
    name="worldquant",
    title="WorldQuant 101",
    grammar="worldquant.lark",
    rules=WORLDQUANT_RULES,
    symbols=MappingProxyType({**C_LIKE, "not": Symbol("!", PREC_SIGNED), "power": Symbol("^", PREC_POWER)}),
    any_case=True,
    group_sign="IndClass.",
    stand_ins=MappingProxyType({"subindustry": "industry"}),
    example="(-1 * correlation(rank(open), rank(volume), 10))",
)
