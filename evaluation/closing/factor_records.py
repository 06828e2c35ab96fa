"""Frozen records of one factor in `results.json`.

A figure is None where it is undefined or where a run of an older version did not record it. Rank ICs and correlations
are in [-1, 1]; returns, shares and turnover are decimal; Sharpe ratios are annual; p-values are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from ...evidence import DATA_MINED_TITLE

if TYPE_CHECKING:
    from pandas import DataFrame

Figure = float | None


class ResultsPart(BaseModel):
    """A frozen record of a run's results; reading drops keys that this version does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object.

        Raises
        ------
        pydantic.ValidationError
            A required key is missing, or a value is of another type.
        """
        return cls.model_validate(record)

    def record(self) -> dict[str, Any]:
        """Return the JSON object: the keys that were set, without defaults."""
        return self.model_dump(mode="json", exclude_unset=True)


class Note(ResultsPart):
    """A warning: its `code` is for programs, its `message` for people."""

    code: str = ""
    message: str = ""

    @property
    def text(self) -> str:
        """Return the message, or the code without one."""
        return self.message or self.code


class FactorWeakness(Note):
    """A weakness on search days; `value` is the figure that shows it, in the unit of that figure."""

    value: Figure = None


class DatedSpan(ResultsPart):
    """A named window: first and last day as YYYY-MM-DD."""

    name: str = ""
    first: str | None = None
    last: str | None = None


class WindowMetrics(ResultsPart):
    """Figures of a factor or combination on one window (see `evidence.scoring.FactorMetrics`).

    Attributes
    ----------
    days
        Days with a RankIC.
    rank_ic, ic
        Mean daily Spearman and Pearson correlation of factor and label.
    icir
        `rank_ic` over the standard deviation of its daily values, not annualised.
    t
        Newey-West t of `rank_ic`.
    turnover
        One-way traded notional per day over gross.
    gross_sharpe, net_sharpe
        Annual Sharpe ratios before and after costs.
    coverage
        Share of the window's universe cells that have a value.
    decay
        Mean RankIC by horizon; keys are days.
    quantile_returns
        Mean return over the horizon by quintile, decimal, lowest factor values first.
    by_year
        Mean RankIC by calendar year.
    """

    window: DatedSpan | None = None
    days: int | None = None
    horizon_days: int | None = None
    rank_ic: Figure = None
    ic: Figure = None
    icir: Figure = None
    t: Figure = None
    turnover: Figure = None
    gross_sharpe: Figure = None
    net_sharpe: Figure = None
    coverage: Figure = None
    decay: Mapping[str, Figure] = {}
    quantile_returns: tuple[Figure, ...] = ()
    by_year: Mapping[str, Figure] = {}
    warnings: tuple[Note, ...] = ()


class SearchMetrics(WindowMetrics):
    """Figures on search days; `merit` is the absolute t less the price of the formula's complexity."""

    merit: Figure = None
    weaknesses: tuple[FactorWeakness, ...] = ()


class DeflatedSharpe(ResultsPart):
    """Probability that the Sharpe ratio exceeds the expected best of worthless tries, for three counts of tries."""

    by_trials: Figure = None
    by_evaluations: Figure = None
    by_clusters: Figure = None


class TrialPower(ResultsPart):
    """Power of a trial: its test ("labels" or "held"), t, the required t, and the smallest significant RankIC."""

    test: str = ""
    days: int | None = None
    t: Figure = None
    t_required: Figure = None
    rank_ic_provable: Figure = None


class CostVerdict(ResultsPart):
    """Whether a proven factor pays its costs, and its Sharpe ratios after costs on both windows."""

    paid: bool = True
    search: Figure = None
    selection: Figure = None


class AddedRankIC(ResultsPart):
    """RankIC, t and days of what a factor adds on selection to what was looked at or accepted before."""

    rank_ic: Figure = None
    t: Figure = None
    days: int | None = None


class FigureByWindow(ResultsPart):
    """One figure on search and on selection."""

    search: Figure = None
    selection: Figure = None


class MemberTest(ResultsPart):
    """The closed test of one member of an accepted combination.

    Attributes
    ----------
    p_value, weakest_p_value
        One-sided p-value of the member alone, and the largest among the tested subsets that hold it.
    weakest
        Ids of that subset.
    proven, accepted
        Whether every subset that holds it is significant; and whether it pays its costs alone as well.
    weight
        Share of the combination.
    net_sharpe
        Of the member alone, after costs.
    rank_ic_lost_without
        Mean RankIC that the combination loses without it.
    """

    id: str
    p_value: Figure = None
    weakest_p_value: Figure = None
    weakest: tuple[str, ...] = ()
    proven: bool = False
    accepted: bool = False
    weight: Figure = None
    net_sharpe: FigureByWindow = FigureByWindow()
    rank_ic_lost_without: FigureByWindow = FigureByWindow()


class SelectionMetrics(WindowMetrics):
    """Figures on selection days, with the decision of the trial.

    Attributes
    ----------
    p_value
        One-sided p-value.
    level
        Significance threshold of this trial.
    discoveries_before
        Discoveries that count for `level`.
    p_labels
        One-sided p-value of the overlapping labels, where another test decided.
    costs
        Whether trading it pays; None in a run of before 2026-11-24.
    beside, added
        Ids of the formulas beside which it was tested, and what it adds to them; empty and None without any.
    not_removed
        Ids of those among them that the panel could not compute.
    members
        Closed tests of the members of an accepted combination.
    """

    p_value: Figure = None
    level: Figure = None
    discoveries_before: int | None = None
    deflated_sharpe: DeflatedSharpe | None = None
    power: TrialPower | None = None
    p_labels: Figure = None
    costs: CostVerdict | None = None
    beside: tuple[str, ...] = ()
    not_removed: tuple[str, ...] = ()
    added: AddedRankIC | None = None
    members: tuple[MemberTest, ...] = ()


class FactorFigures(ResultsPart):
    """Figures by window; `selection` is None for a factor that had no trial."""

    search: SearchMetrics = SearchMetrics()
    selection: SelectionMetrics | None = None


class LateStatement(ResultsPart):
    """A mechanism stated after scoring: its refuter, and the factor's figures beside that rival on search days."""

    refuter: str = ""
    rank_ic: Figure = None
    t: Figure = None
    kept: Figure = None


class StatedHypothesis(ResultsPart):
    """The hypothesis of a factor; its author may add keys, which are kept.

    `direction` 1: higher values, higher returns; -1: higher values, lower returns. `either_way`: it is a survey, which
    states no mechanism.
    """

    model_config = ConfigDict(extra="allow")

    id: str = ""
    mechanism: str = ""
    statement: str = ""
    direction: int = 0
    horizon_days: int | None = None
    fields: tuple[str, ...] = ()
    refuted_by: Any = None
    either_way: bool = False
    stated_after_scoring: LateStatement | None = None

    @property
    def title(self) -> str:
        """Return the statement, or that there is no mechanism."""
        return DATA_MINED_TITLE if self.either_way else self.statement


class ModelOpinion(ResultsPart):
    """A model's opinion, after a step, on whether formulas agree with their hypothesis: "agrees" or "doubts"."""

    step: int | None = None
    verdict: str
    why: str


class AlignmentNotes(ResultsPart):
    """Doubts of a rule and opinions of a model about a factor and its hypothesis, both for information only."""

    doubts: tuple[str, ...] = ()
    opinions: tuple[ModelOpinion, ...] = ()


class GateReason(ResultsPart):
    """The outcome of one step of the gate; `passed` None is a step that never blocks. `numbers` differ by step."""

    step: str = ""
    passed: bool | None = None
    message: str = ""
    numbers: Mapping[str, Any] = {}


class RegimeIC(ResultsPart):
    """Mean daily RankIC on the days of one market regime, its Newey-West t, and the number of days."""

    rank_ic: Figure = None
    t: Figure = None
    days: int | None = None


class StyleExposures(ResultsPart):
    """Mean daily rank correlation with each style; `sector` is the share of the ranks' variance between sectors."""

    size: Figure = None
    beta: Figure = None
    momentum: Figure = None
    volatility: Figure = None
    price: Figure = None
    sector: Figure = None


class NeutralisedIC(ResultsPart):
    """RankIC, ICIR and t of the ranks without sector and styles; `kept` is the share of the factor's own RankIC."""

    rank_ic: Figure = None
    icir: Figure = None
    t: Figure = None
    kept: Figure = None


class BookCapacity(ResultsPart):
    """Capital on each side, in the currency of the prices.

    Attributes
    ----------
    at_10_percent_of_volume
        Capital at which 95 of 100 trades are at most a tenth of a day's mean volume.
    break_even
        Capital at which market impact consumes the return after other costs; 0 if there is none.
    """

    at_10_percent_of_volume: Figure = None
    break_even: Figure = None
    unit: str = ""


class FactorProfile(ResultsPart):
    """Regimes, exposures and capacity on search days; `decay` is the mean RankIC by horizon in days, 1 to 20."""

    decay: Mapping[str, Figure] = {}
    by_regime: Mapping[str, RegimeIC] = {}
    exposures: StyleExposures | None = None
    neutralised: NeutralisedIC | None = None
    capacity: BookCapacity | None = None


class IncrementalIC(ResultsPart):
    """What a factor adds to the library on search days.

    Attributes
    ----------
    rank_ic, t
        RankIC and t of the residual on the library; None where there is no residual.
    kept
        Share of the variance of its ranks that the library does not explain.
    against
        Ids of the factors that were removed one by one.
    library
        Factors in the library.
    """

    rank_ic: Figure = None
    t: Figure = None
    kept: Figure = None
    against: tuple[str, ...] = ()
    library: int = 0


class FactorEntry(ResultsPart):
    """One factor or set of factors with every reason for its verdict.

    Attributes
    ----------
    form
        "expression" or "python".
    trial
        Number of its test on selection days; None without one.
    members
        Ids of the factors of a set; None for a single factor.
    library_correlation
        Largest rank correlation with a factor of the library at the close.
    """

    id: str
    form: str = "expression"
    text: str = ""
    explained: str = ""
    hypothesis: StatedHypothesis | None = None
    alignment: AlignmentNotes = AlignmentNotes()
    reasons: tuple[GateReason, ...] = ()
    metrics: FactorFigures = FactorFigures()
    trial: int | None = None
    members: tuple[str, ...] | None = None
    library_correlation: Figure = None
    profile: FactorProfile | None = None
    incremental: IncrementalIC | None = None


class DailyRankIC(ResultsPart):
    """RankIC of each day; None where undefined.

    Attributes
    ----------
    net
        Return after costs of each day in the direction held, decimal; empty in sheets and older runs.
    quintiles
        By month (YYYY-MM), the return of each quintile above the mean of all symbols before costs, decimal, lowest
        values first; empty where `net` is.
    """

    dates: tuple[str, ...] = ()
    rank_ic: tuple[Figure, ...] = ()
    net: tuple[Figure, ...] = ()
    quintiles: Mapping[str, tuple[Figure, ...]] = {}

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame: a DatetimeIndex named `date`, one float column `rank_ic`, NaN undefined."""
        import pandas as pd

        values = pd.Series(self.rank_ic, dtype=float).to_numpy()
        return pd.DataFrame({"rank_ic": values}, index=pd.DatetimeIndex(self.dates, name="date"))


class PlantedTruth(ResultsPart):
    """What is true of a factor on a synthetic market; correlations are means of daily rank correlations.

    Attributes
    ----------
    true_on_selection, true_on_sealed
        With the expected return that the planted alphas imply, without noise; 1 is the best possible forecast.
    nearest, nearest_correlation
        The planted alpha that ranks the symbols most like the factor on selection, and how much.
    """

    id: str
    true_on_selection: Figure = None
    true_on_sealed: Figure = None
    nearest: str = ""
    nearest_correlation: Figure = None


class CostRates(ResultsPart):
    """Costs: basis points per side of a trade, and basis points per year for borrowing."""

    bps_per_side: Figure = None
    borrow_bps_per_year: Figure = None


class HandVerdict(ResultsPart):
    """The gate's verdict on a factor that a person submitted by hand, with its numbers."""

    verdict: str
    trial: int | None = None
    reasons: tuple[GateReason, ...] = ()
    selection: SelectionMetrics | None = None


class FactorSheet(WindowMetrics, FactorProfile):
    """A factor scored by hand on search days (`alphaloom factor score --json`).

    Attributes
    ----------
    daily
        RankIC of each search day; empty in sheets of earlier versions.
    costs
        Costs in its net figures.
    """

    id: str
    text: str = ""
    explained: str = ""
    daily: DailyRankIC = DailyRankIC()
    incremental: IncrementalIC | None = None
    costs: CostRates | None = None
    gate: HandVerdict | None = None

    def to_frame(self) -> DataFrame:
        """Return the RankIC of each search day as a pandas DataFrame; see `DailyRankIC.to_frame`."""
        return self.daily.to_frame()


class ComparedSheet(FactorSheet):
    """A sheet with what the factor adds `beside` the other one of a comparison, on search days."""

    beside: IncrementalIC = IncrementalIC()


class SharedPart(ResultsPart):
    """The largest common subtree of two formulas.

    Attributes
    ----------
    ratio
        Twice its size over the sum of both sizes, in [0, 1].
    part
        The subtree as a formula; empty where there is none.
    exact
        False where its numbers differ slightly.
    """

    ratio: Figure = None
    part: str = ""
    exact: bool = True


class FactorComparison(ResultsPart):
    """Two factors on one panel's search days (`alphaloom factor compare --json`).

    `rank_correlation` is the mean of the daily rank correlation of their values over every fifth day, in [-1, 1].
    """

    a: ComparedSheet
    b: ComparedSheet
    rank_correlation: Figure = None
    shared: SharedPart = SharedPart()
    costs: CostRates | None = None


# Stress.


class CleanFigures(ResultsPart):
    """A factor's figures without stress; `break_even_bps` are the costs per side at which its return is zero."""

    rank_ic: Figure = None
    t: Figure = None
    net_sharpe: Figure = None
    gross_t: Figure = None
    break_even_bps: Figure = None
    days: Figure = None


class StressedFigure(ResultsPart):
    """One figure with and without a stress.

    Attributes
    ----------
    keeps
        The stressed figure over the clean one; None where the clean one is not positive.
    error
        Standard error of the difference.
    p
        One-sided p-value of the loss.
    verdict
        "breaks", "weakens", "unclear", "holds" or "untested".
    """

    clean: Figure = None
    stressed: Figure = None
    keeps: Figure = None
    error: Figure = None
    p: Figure = None
    verdict: str = ""


class StressScenario(ResultsPart):
    """A factor under one stress; a figure that the stress cannot change is None.

    Attributes
    ----------
    group
        "history", "regime", "data" or "fill".
    first, last
        First and last day of a historical stress.
    days
        Days that were compared.
    net_sharpe
        Annual Sharpe ratio after costs.
    agreement
        Mean daily rank correlation with the clean values.
    coverage
        Cells with a value over those of the clean factor.
    """

    code: str = ""
    group: str = ""
    words: str = ""
    first: str | None = None
    last: str | None = None
    days: int | None = None
    verdict: str = ""
    rank_ic: StressedFigure | None = None
    net_sharpe: StressedFigure | None = None
    agreement: Figure = None
    coverage: Figure = None


class StressWeakness(FactorWeakness):
    """A stress that breaks a factor; `value` is the smallest share that a figure keeps."""

    scenario: str = ""


class FactorStress(ResultsPart):
    """One factor under every stress, with a sentence that lists the stresses that break it."""

    sentence: str = ""
    clean: CleanFigures = CleanFigures()
    weaknesses: tuple[StressWeakness, ...] = ()
    scenarios: tuple[StressScenario, ...] = ()
