"""Frozen records of a run's close in `results.json`: combination, sealed exam, book, stress, signals, spend.

Units are those of `factor_records`; days are YYYY-MM-DD.
"""

from __future__ import annotations

from collections.abc import Mapping

from .factor_records import BookCapacity, DatedSpan, FactorStress, Figure, ResultsPart, WindowMetrics
from .search_records import EarlierOpening


class CombinerFigures(ResultsPart):
    """A combination on one window at its trading rate; `half_life_days` is of the score's autocorrelation."""

    rank_ic: Figure = None
    t: Figure = None
    turnover: Figure = None
    gross_sharpe: Figure = None
    net_sharpe: Figure = None
    half_life_days: Figure = None
    capacity: BookCapacity | None = None


class IntervalEstimate(ResultsPart):
    """A mean of paired daily differences with its 95 % bootstrap interval; `tie`: the interval holds zero."""

    mean: Figure = None
    low: Figure = None
    high: Figure = None
    days: int | None = None
    tie: bool = True


class CombinerDifference(ResultsPart):
    """Combiner `of` less combiner `less`: daily RankIC before any trading rate, and daily return after costs."""

    of: str
    less: str
    rank_ic: IntervalEstimate
    net_return: IntervalEstimate


class CombinersOnWindow(ResultsPart):
    """Every combiner's figures on one window, and the difference of each pair."""

    combiners: Mapping[str, CombinerFigures] = {}
    differences: tuple[CombinerDifference, ...] = ()


class CombinerComparison(ResultsPart):
    """The combiners compared; `trading_rate` is the share of the way to the score that each trades a day."""

    note: str = ""
    trading_rate: Mapping[str, Figure] = {}
    search: CombinersOnWindow = CombinersOnWindow()
    selection: CombinersOnWindow = CombinersOnWindow()


class CombinationSummary(ResultsPart):
    """The accepted factors combined into one score.

    Attributes
    ----------
    file, rows
        The Parquet file beside the results (date, symbol, score), and its rows.
    weights, weights_of
        Signed weight of each factor on a day, and that day.
    weights_at
        Weights on the last day of each window.
    combiner, chosen
        The combiner, and who chose it; None in runs older than the choice.
    trading_rate
        Share of the way to the score that is traded each day, in (0, 1].
    tested
        True where the gate tested exactly this; else its weights were learnt after the tests.
    """

    file: str
    rows: int | None = None
    factors: tuple[str, ...] = ()
    weights: Mapping[str, Figure] = {}
    weights_of: str | None = None
    weights_at: Mapping[str, Mapping[str, Figure]] = {}
    combiner: str | None = None
    chosen: str | None = None
    trading_rate: Figure = None
    compared: CombinerComparison | None = None
    tested: bool = False


class SealedFactor(ResultsPart):
    """One factor on the sealed days; `sign` is the direction in which it is held, and of its p-value."""

    sign: int
    days: int | None = None
    rank_ic: Figure = None
    t: Figure = None
    net_sharpe: Figure = None
    p_value: Figure = None
    test: str = ""
    p_labels: Figure = None


class SealedExam(WindowMetrics):
    """The combination on the sealed (hold-out) days.

    Attributes
    ----------
    number
        Number of this opening among all of these days in the workspace; only number 1 is an exam on unseen days.
    p_value
        One-sided; None after too few days.
    test
        "held" where holdings were tested; empty where labels were.
    factors
        Each accepted factor, and each part of the combination, by id.
    earlier
        Openings of shared days by other runs.
    """

    opened: bool = False
    number: int | None = None
    reason: str = ""
    p_value: Figure = None
    test: str = ""
    p_labels: Figure = None
    factors: Mapping[str, SealedFactor] = {}
    earlier: tuple[EarlierOpening, ...] = ()


class BookResult(ResultsPart):
    """The combination's book after costs on one window; `unavailable` says why there is none.

    Attributes
    ----------
    accepted_on_these_days
        True where the factors were chosen on the same days.
    sharpe, plain_sharpe
        Annual Sharpe ratios; the second is computed without vectorbt.
    annual_return, max_drawdown
        Both decimal.
    turnover_per_day
        One-way traded notional over gross.
    costs_paid, borrow_paid
        Costs over the window, as shares of capital.
    """

    window: str | None = None
    accepted_on_these_days: bool | None = None
    days: int | None = None
    sharpe: Figure = None
    annual_return: Figure = None
    max_drawdown: Figure = None
    turnover_per_day: Figure = None
    costs_paid: Figure = None
    borrow_paid: Figure = None
    plain_sharpe: Figure = None
    unavailable: str = ""
    hint: str = ""


class StressTable(ResultsPart):
    """The stresses that break each accepted factor on search days; `rule` defines breaking, `seed` is of every draw."""

    window: DatedSpan = DatedSpan()
    seed: int | None = None
    rule: str = ""
    factors: Mapping[str, FactorStress] = {}


class SignalLine(ResultsPart):
    """One signal before the risk gate; exposures are basis points of equity, `refusals` the rules that refused it."""

    asset: str
    target_bp: int | float | None = None
    lo_bp: int | float | None = None
    hi_bp: int | float | None = None
    approved: bool = False
    refusals: tuple[str, ...] = ()


class RuleCheckLine(ResultsPart):
    """One risk rule on the whole book or on the evidence, in the unit of the rule (basis points for exposures).

    `about` is the id that decides a rule of evidence.
    """

    rule: str
    actual: int | float | None = None
    limit: int | float | None = None
    passed: bool = False
    binds: bool = True
    about: str = ""


class ExposureLine(ResultsPart):
    """What the last audit of one attribute said, in the units of `risk.Exposure`."""

    attribute: str
    found: bool = False
    statistic: str = ""
    group: str = ""
    gap_e4: int = 0
    smallest_gap_e4: int = 0
    weakest_gap_e4: int = 0
    p_e9: int = 0
    level_e9: int = 0
    p_with_size_e9: int | None = None
    number: int = 0
    day: str = ""


class StandingLine(ResultsPart):
    """What the record said of one factor or combination behind the signals, when the risk gate decided."""

    verdict: str = ""
    digest: str = ""
    trial: int | None = None
    similarity_bp: int | None = None
    nearest: str = ""
    correlation_bp: int | None = None
    review: str = ""
    status: str = ""
    leak_alarm: bool = False
    contained: bool = True
    members: tuple[str, ...] = ()
    exposures: tuple[ExposureLine, ...] = ()


class RefusedTarget(ResultsPart):
    """A target that the risk gate refused, with the rules."""

    asset: str
    rules: tuple[str, ...] = ()


class GateDay(ResultsPart):
    """One of the last days of the backtest, on which the risk gate was asked about a book that lives.

    Attributes
    ----------
    day
        The session that was decided for.
    asked, approved
        Counts of targets.
    refused
        The first targets that were refused.
    held, kept
        Names held at the close before, and those of them that were bought on the first day and never sold.
    gross
        Exposure at that close, as a share of equity.
    """

    day: str = ""
    asked: int = 0
    approved: int = 0
    refused: tuple[RefusedTarget, ...] = ()
    held: int = 0
    kept: int = 0
    gross: Figure = None


class SignalSummary(ResultsPart):
    """The risk gate's decision for the trading day after the panel's last.

    Attributes
    ----------
    day, after
        The day that signals are for, and the panel's last.
    bounds
        Meaning of the bounds of the signals.
    approved, refused
        Counts.
    withheld_for
        In runs of before the gate knew the evidence: factors whose leak alarm withheld every signal after the decision.
    doubt_e8
        Relative standard error of the forecast in 1e-8, which sets the bounds; None in older runs.
    scale
        Share of the book's weights that the policy has room for; 1 in older runs, whose book was not sized.
    rounding_bp
        Largest distance of a target from its scaled weight, in basis points of equity.
    evidence, standings
        The rules of evidence, which are those of every signal, and what the record said, by id.
    policy_notes
        Limits of the campaign file that are looser than the workspace's policy, which holds.
    days
        What the gate would have said on the last days of the backtest, given what was held; empty without a backtest.
    """

    id: str = ""
    day: str | None = None
    after: str | None = None
    bounds: str = ""
    approved: int = 0
    refused: int = 0
    withheld_for: tuple[str, ...] = ()
    doubt_e8: int | None = None
    scale: float = 1.0
    rounding_bp: float = 0.0
    book: tuple[RuleCheckLine, ...] = ()
    evidence: tuple[RuleCheckLine, ...] = ()
    standings: Mapping[str, StandingLine] = {}
    policy_notes: tuple[str, ...] = ()
    days: tuple[GateDay, ...] = ()
    decisions: tuple[SignalLine, ...] = ()


class ModelBill(ResultsPart):
    """Use of models: calls, tokens in and out, US dollars."""

    calls: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: Figure = None


class SpendSummary(ModelBill):
    """The whole bill, and a bill for each role of the agents and each model."""

    by_role: Mapping[str, ModelBill] = {}
    by_model: Mapping[str, ModelBill] = {}


class DecisionLine(ResultsPart):
    """A person's decision on a case: "approve", "reject" or "ask", with the comment."""

    id: str
    decision: str
    comment: str = ""
    by: str = ""
