"""Frozen records of a run before its close in `results.json`: data, windows, settings, and the search.

Units are those of `factor_records`; days are YYYY-MM-DD.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict

from .factor_records import CostRates, Figure, ResultsPart


class PanelSummary(ResultsPart):
    """The panel of a run; `names` counts symbols, `digest` is of all its values, `notes` are doubts about the data."""

    name: str = ""
    digest: str = ""
    days: int | None = None
    names: int | None = None
    first_day: str | None = None
    last_day: str | None = None
    notes: tuple[str, ...] = ()


class WindowDays(ResultsPart):
    """First and last day of a window, and its number of days."""

    first: str
    last: str
    days: int | None = None


class EarlierOpening(ResultsPart):
    """An opening of shared sealed days by another run, numbered over the workspace."""

    number: int | None = None
    reason: str | None = None
    first: str | None = None
    last: str | None = None


class WindowPlan(ResultsPart):
    """The three windows and the label that they are scored against.

    Attributes
    ----------
    openings
        Openings of the sealed days by other runs.
    embargo_days
        Days between two windows.
    horizon_days
        Days of the label, from the next open.
    returns
        "residual": without market, sector and size; "raw".
    search_cells_without_an_open
        Labels of the search window that are missing for lack of an opening price.
    """

    search: WindowDays | None = None
    selection: WindowDays | None = None
    sealed: WindowDays | None = None
    openings: tuple[EarlierOpening, ...] = ()
    embargo_days: int | None = None
    horizon_days: int | None = None
    returns: str | None = None
    search_cells_without_an_open: int | None = None


class ComplexityBounds(ResultsPart):
    """Bounds of a formula; `EvidenceSettings.complexity` has all of them."""

    model_config = ConfigDict(extra="allow")

    max_size: int | None = None
    max_depth: int | None = None


class EvidenceRules(ResultsPart):
    """The evidence settings of the run; settings that no page prints are extra keys, named as in `EvidenceSettings`."""

    model_config = ConfigDict(extra="allow")

    level: Figure = None
    watch_p: Figure = None
    max_similarity: Figure = None
    max_redundancy: Figure = None
    leak_rank_ic: Figure = None
    prior_trials: int | None = None
    costs: CostRates | None = None
    complexity: ComplexityBounds | None = None


class BudgetLimits(ResultsPart):
    """The budget of the run: counts, and `wall_s` seconds of work."""

    evaluations: int | None = None
    trials: int | None = None
    hypotheses: int | None = None
    wall_s: Figure = None


class AppliedSettings(ResultsPart):
    """The evidence settings and the budget of the run."""

    evidence: EvidenceRules = EvidenceRules()
    budget: BudgetLimits = BudgetLimits()


class SteerSummary(ResultsPart):
    """The steering of the campaign file."""

    goal: str = ""
    avoid: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class SeedLibrary(ResultsPart):
    """Formulas of the person: their number, and a digest of them."""

    factors: int = 0
    digest: str = ""


class PromptPage(ResultsPart):
    """A role's prompt: its origin ("own" or "shipped"), version and digest."""

    whose: str = "shipped"
    version: str = ""
    digest: str = ""


class OwnDocuments(ResultsPart):
    """Documents of the person: their number, a digest, and the names of those that were held back."""

    count: int = 0
    digest: str = ""
    held: tuple[str, ...] = ()


class OwnParts(ResultsPart):
    """The person's own parts; `hypotheses` is a count, `agent` names a function, `prompts` are by role."""

    seed_library: SeedLibrary | None = None
    hypotheses: int = 0
    agent: str = ""
    documents: OwnDocuments | None = None
    prompts: Mapping[str, PromptPage] = {}


# The search.


class AttemptCounts(ResultsPart):
    """Numbers of proposed formulas, and of those refused at each step before scoring."""

    total: int = 0
    refused: Mapping[str, int] = {}


class LeaderForecast(ResultsPart):
    """A leader of the search: forecasts of its RankIC and of its incremental RankIC, and the ids most like it."""

    id: str
    rank_ic: float
    beside: float
    kin: tuple[str, ...] = ()


class RoundVariety(ResultsPart):
    """Hypotheses of one round, different mechanisms among them, and their effective number."""

    round: int
    hypotheses: int = 0
    mechanisms: int = 0
    effective: Figure = None


class SearchVariety(ResultsPart):
    """The variety of the hypotheses.

    Attributes
    ----------
    effective
        Effective number of mechanisms.
    niches
        Filled cells of mechanism, horizon and turnover.
    refused
        Hypotheses that got no branch.
    """

    hypotheses: int = 0
    mechanisms: int = 0
    effective: float = 0.0
    niches: int = 0
    refused: int = 0
    rounds: tuple[RoundVariety, ...] = ()


class OperatorRow(ResultsPart):
    """One operator on parents with one weakness.

    `tried` counts children, `better` those with a larger absolute t than their parent; `gained` sums the differences of
    absolute t on search days.
    """

    operator: str
    where: str = ""
    tried: int = 0
    better: int = 0
    gained: float = 0.0


class SelectionPower(ResultsPart):
    """The power of the next trial on the selection days.

    Attributes
    ----------
    trials
        Tests of these days so far.
    level
        Significance level of the stream of trials.
    p_required, t_required
        Largest p-value and smallest t with which the next trial is accepted.
    rank_ic_provable, rank_ic_likely
        Smallest measured RankIC that would be accepted; true RankIC accepted with a probability of 80 %.
    rank_ic_likely_of_each_of_five
        True RankIC of each of five unlike factors whose combination is accepted with a probability of 80 %.
    test
        "labels" or "held".
    """

    trials: int | None = None
    days: int | None = None
    level: Figure = None
    p_required: Figure = None
    t_required: Figure = None
    rank_ic_provable: Figure = None
    rank_ic_likely: Figure = None
    rank_ic_likely_of_each_of_five: Figure = None
    sentence: str = ""
    test: str = ""


class StreamRule(ResultsPart):
    """The decision of one multiple-testing rule on the stream of trials.

    Attributes
    ----------
    holds, means
        The dependence under which it holds; its description.
    decides
        True for the gate's own rule.
    found
        Discoveries in the whole stream.
    accepts
        Ids of this run's factors that it accepts.
    p_asked
        Significance threshold of the last trial.
    """

    rule: str = ""
    name: str = ""
    holds: str = ""
    means: str = ""
    decides: bool = False
    found: int | None = None
    accepts: tuple[str, ...] = ()
    p_asked: Figure = None


class StreamRules(ResultsPart):
    """The stream of trials on the selection days, and the decision of each rule.

    `looks` counts all trials, `declared` those made elsewhere, `unfinished` those that were cut short.
    """

    level: Figure = None
    looks: int = 0
    declared: int = 0
    unfinished: int = 0
    rules: tuple[StreamRule, ...] = ()


class CandidateTest(ResultsPart):
    """A test of the search: numbers of compared candidates, and of the scored factors of which they are a sample."""

    candidates: int = 0
    scored: int = 0


class OverfittingTest(CandidateTest):
    """Probability of backtest overfitting over splits of the search days into `blocks`."""

    probability: Figure = None
    blocks: int = 0


class SuperiorityTest(CandidateTest):
    """Hansen's p-values of the best candidate's return after costs; `block_days` is the bootstrap's mean block."""

    lower: Figure = None
    consistent: Figure = None
    upper: Figure = None
    days: int | None = None
    block_days: int | None = None
    replications: int | None = None


class CrossValidationTest(CandidateTest):
    """Combinatorial purged cross-validation of choosing the best candidate.

    Attributes
    ----------
    splits, paths
        Splits of the search days, and backtest paths made of them.
    purge_days, embargo_days
        Days left out before and after a tested block.
    chosen
        Different candidates that were chosen.
    rank_ic_chosen_on
        Mean RankIC of the chosen candidates on the days that chose them.
    rank_ic, net_sharpe
        RankIC and annual net Sharpe of each path on the days left out, in order of size.
    """

    splits: int | None = None
    paths: int | None = None
    purge_days: int | None = None
    embargo_days: int | None = None
    chosen: int | None = None
    rank_ic_chosen_on: Figure = None
    rank_ic: tuple[Figure, ...] = ()
    net_sharpe: tuple[Figure, ...] = ()


class BetClusters(CandidateTest):
    """Clusters of candidates whose returns move together."""

    clusters: int | None = None
