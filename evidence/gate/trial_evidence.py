"""The evidence of a trial on the selection window, stored whole, and the decision that follows from it.

The gate decides a trial with `decide_trial`, and `evidence verify` does the same from the ledger: the same code on the
same numbers gives the same verdict.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ledger import Trial, canonical_json
from ...market import format_count
from ..multiple_testing.deflated_sharpe import deflated_sharpe
from ..multiple_testing.online_fdr import lond_level
from ..scoring.long_short import annual_sharpe
from ..scoring.metrics import round_significant
from .mean_test import MeanTest, confirm_p_value, run_mean_test
from .verdict import COSTS_STEP, UNTRADABLE, Reason, Verdict, Word

Series = NDArray[np.float64]
MIN_NET_DAYS = 30
"""With fewer days of returns, skewness and kurtosis are too uncertain for a deflated Sharpe ratio."""


@dataclass(frozen=True)
class TrialEvidence:
    """All data that decide a trial, bit for bit.

    Attributes
    ----------
    asked
        Horizon, returns, level, watch_p, costs, digest of the data, sign; their digest is the trial's question.
    lag
        Newey-West lag, days.
    rank_ic
        RankIC of each selection day `[D]`, NaN where undefined.
    net
        Daily return after costs of the long-short book `[D]`, decimal of gross, NaN where there is none.
    sharpes
        Daily gross Sharpe ratios on search of the factors scored before, finite ones only.
    search_days, selection_days
        Length of both windows.
    sheet
        The metrics on selection as recorded.
    held
        RankIC of the ranks held on each selection day with its one-day return `[D]`; None where `rank_ic` is tested.
    fault
        Fault of a Python factor's code on selection days, `{stage, message, day}`; None if there was none.
    beside, not_removed
        Ids of the formulas that were removed from the ranks before the test (`earlier_looks`); and of those that should
        have been, and that the panel cannot compute.
    added, added_held
        As `rank_ic` and `held`, of what is left without these; None where nothing was removed.
    net_on_search
        Sharpe ratio after costs on search, annual; NaN without a book. None for a trial of before costs counted.
    members
        Closed tests of a combination's members (`closed_testing`), each with what the combination loses without it.
    """

    asked: Mapping[str, Any]
    lag: int
    rank_ic: Series
    net: Series
    sharpes: tuple[float, ...]
    search_days: int
    selection_days: int
    sheet: Mapping[str, Any]
    held: Series | None = None
    fault: Mapping[str, Any] | None = None
    beside: Sequence[str] = ()
    not_removed: Sequence[str] = ()
    added: Series | None = None
    added_held: Series | None = None
    net_on_search: float | None = None
    members: Sequence[Mapping[str, Any]] = ()

    @property
    def tested(self) -> Series:
        """Return the daily RankIC whose mean is tested `[D]`: that of what is left beside earlier looks, if any."""
        return self.rank_ic if self.added is None else self.added

    @property
    def tested_held(self) -> Series | None:
        """Return the series of ranks held that is tested; None where labels are."""
        return self.held if self.added is None else self.added_held

    def body(self) -> bytes:
        """Return the stored bytes: canonical JSON, in which a float64 keeps every bit and NaN is null."""
        record: dict[str, Any] = {
            "asked": dict(self.asked),
            "lag": self.lag,
            "rank_ic": _encode_series(self.rank_ic),
            "net": _encode_series(self.net),
            "sharpes": list(self.sharpes),
            "search_days": self.search_days,
            "selection_days": self.selection_days,
            "sheet": dict(self.sheet),
            "held": None if self.held is None else _encode_series(self.held),
        }
        record |= {"fault": dict(self.fault)} if self.fault else {}
        names = {"beside": self.beside, "not_removed": self.not_removed}
        record |= {name: list(ids) for name, ids in names.items() if ids}
        series = {"added": self.added, "added_held": self.added_held}
        record |= {name: _encode_series(values) for name, values in series.items() if values is not None}
        record |= {} if self.net_on_search is None else {"net_on_search": round_significant(self.net_on_search)}
        record |= {"members": [dict(member) for member in self.members]} if self.members else {}
        return canonical_json(record).encode()

    @classmethod
    def read(cls, body: bytes) -> TrialEvidence:
        """Return the evidence that `body` wrote."""
        record = json.loads(body)
        for name in ("rank_ic", "net", "held", "added", "added_held"):
            if record.get(name) is not None:
                record[name] = np.array(record[name], dtype=np.float64)  # null becomes NaN
        if "net_on_search" in record and record["net_on_search"] is None:
            record["net_on_search"] = math.nan
        return cls(**record | {"sharpes": tuple(record["sharpes"])})


def decide_trial(evidence: TrialEvidence, number: int, discoveries: int) -> dict[str, Any]:
    """Decide a trial: p-value, level, decision of the stream rule, deflated Sharpe ratios.

    Parameters
    ----------
    evidence
        The stored evidence.
    number
        The trial's number, 1 for the first.
    discoveries
        Discoveries among the trials that were opened before it.

    Notes
    -----
    Where the ranks held are tested, the overlapping labels must not contradict them (`mean_test.confirm_p_value`).

    Code that failed on a selection day, or read later days there, is not a discovery, whatever its other days show.

    A factor is proven if its unrounded p-value is at most the unrounded level; both are recorded to six digits. A
    proven factor passes, and is a discovery, if its Sharpe ratio after costs is not negative on search and on
    selection. To those that pass, one that does not pay its costs counts as a trial with a p-value of 1.
    """
    sign = int(evidence.asked["sign"])
    test, p_value, labels = run_trial_test(evidence.tested, evidence.tested_held, evidence.asked, evidence.lag)
    level = lond_level(number, discoveries, float(evidence.asked["level"]))
    proven = p_value <= level and not evidence.fault
    costs = _weigh_costs(evidence)
    return {
        "p_value": float(f"{p_value:.6g}"),
        "level": float(f"{level:.6g}"),
        "discoveries_before": discoveries,
        "passed": proven and costs.get("paid", True),
        "watch": p_value <= float(evidence.asked["watch_p"]) and not evidence.fault,
        "sign": sign,
        "deflated_sharpe": deflated_sharpe_ratios(evidence, number),
        "power": test.power(level),
        **({"proven": proven, "costs": costs} if costs else {}),
        **({"beside": list(evidence.beside), "added": _describe_added(test)} if evidence.beside else {}),
        **({"not_removed": list(evidence.not_removed)} if evidence.not_removed else {}),
        **({"members": [dict(member) for member in evidence.members]} if evidence.members else {}),
        **({} if evidence.held is None else {"p_labels": float(f"{labels:.6g}")}),
        **({"fault": dict(evidence.fault)} if evidence.fault else {}),
    }


def run_trial_test(
    rank_ic: Series, held: Series | None, asked: Mapping[str, Any], lag: int
) -> tuple[MeanTest, float, float]:
    """Return the test of daily series as a trial makes it, its p-value, and that of the overlapping labels."""
    sign, horizon = int(asked["sign"]), int(asked["horizon_days"])
    test = run_mean_test(rank_ic, held, horizon, lag)
    labels = run_mean_test(rank_ic, None, horizon, lag).p_value(sign)
    return test, confirm_p_value(test.p_value(sign), labels, float(asked["watch_p"])), labels


def _weigh_costs(evidence: TrialEvidence) -> dict[str, Any]:
    """Return whether the factor pays its costs, and both Sharpe ratios; empty for a trial of before costs counted."""
    if evidence.net_on_search is None:
        return {}
    on_selection = annual_sharpe(evidence.net)
    ratios = {"search": round_significant(evidence.net_on_search), "selection": round_significant(on_selection)}
    return {"paid": evidence.net_on_search >= 0.0 and on_selection >= 0.0, **ratios}


def _describe_added(test: MeanTest) -> dict[str, Any]:
    """Return the RankIC and t of what a factor adds to earlier looks, as JSON."""
    return {"rank_ic": round_significant(test.t * test.error), "t": round_significant(test.t), "days": test.days}


def build_verdict(trial: Trial, reasons: Sequence[Reason]) -> Verdict:
    """Return the verdict on a case that passed every step before statistics, from the outcome of its trial."""
    outcome = dict(trial.outcome or {})
    proven = bool(outcome.get("proven", outcome["passed"]))
    text = (
        f"p = {outcome['p_value']:.2g} on selection{_describe_beside(outcome)}, level {outcome['level']:.2g} for trial "
        f"{trial.number} with {outcome['discoveries_before']} found before{_describe_bar(outcome)}"
    )
    reasons = [_apply_fault(reason, outcome.get("fault")) for reason in reasons]
    numbers = {key: outcome[key] for key in ("p_value", "level", "discoveries_before")}
    steps = [Reason("statistics", proven, text, {**numbers, "trial": trial.number})]
    if proven and "costs" in outcome:
        steps.append(_make_costs_reason(outcome["costs"]))
    names = ("deflated_sharpe", "power", "p_labels", "costs", "beside", "not_removed", "added", "members")
    details = {key: outcome[key] for key in names if key in outcome}
    selection = {**outcome["selection"], **numbers, **details}
    return Verdict(trial.subject, _choose_word(outcome, proven), (*reasons, *steps), trial.number, selection)


def _choose_word(outcome: Mapping[str, Any], proven: bool) -> Word:
    if outcome["passed"]:
        return "accepted"
    return UNTRADABLE if proven else "watchlist" if outcome["watch"] else "rejected"


def _make_costs_reason(costs: Mapping[str, Any]) -> Reason:
    """Return the step after statistics: whether a proven factor pays for being traded."""
    ratios = {name: "no book" if costs[name] is None else f"{costs[name]:.2f}" for name in ("search", "selection")}
    text = f"Sharpe ratio after costs {ratios['search']} on search, {ratios['selection']} on selection"
    if not costs["paid"]:
        text += ": the forecast is proven, but trading it alone does not pay; it may be worth a place in a combination"
    return Reason(COSTS_STEP, bool(costs["paid"]), text, dict(costs))


def _describe_beside(outcome: Mapping[str, Any]) -> str:
    """Name what the test removed; empty where nothing was looked at or accepted before."""
    removed, missing = len(outcome.get("beside", ())), len(outcome.get("not_removed", ()))
    text = f" for what it adds to {format_count(removed, 'formula')} looked at or accepted before" if removed else ""
    return text + (f" ({missing:,} more cannot be computed here and are not removed)" if missing else "")


def _apply_fault(reason: Reason, fault: Mapping[str, Any] | None) -> Reason:
    """Return a reason with the fault of the code on selection days added to its numbers, for people."""
    if reason.step != "causal" or not fault:
        return reason
    start = "the code failed on a later day" if fault["stage"] == "python" else "a value changed with later days"
    return Reason("causal", False, f"{start}, after search", {**reason.numbers, "fault": dict(fault)})


def remove_fault(reason: Reason) -> Reason:
    """Return a reason as it was before the test, without a fault on selection days."""
    if "fault" not in reason.numbers:
        return reason
    return replace(reason, passed=True, numbers={key: value for key, value in reason.numbers.items() if key != "fault"})


def daily_sharpes(sheets: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return the daily gross Sharpe ratio on search of each factor as written, and therefore of either sign."""
    pairs = [(sheet["gross_sharpe"], sheet["rank_ic"]) for sheet in sheets]
    return [math.copysign(1.0, ic) * ratio / math.sqrt(252.0) for ratio, ic in pairs if ratio is not None and ic]


def _describe_bar(outcome: Mapping[str, Any]) -> str:
    """Name the smallest significant RankIC; empty for a trial of before it was recorded."""
    power = outcome.get("power") or {}
    if power.get("test") == "held" and outcome.get("p_labels") == outcome["p_value"]:
        return "; its labels do not bear out what is held"
    bar = power.get("rank_ic_provable")
    return "" if bar is None else f"; a RankIC of {bar:.3f} there is proof"


def deflated_sharpe_ratios(evidence: TrialEvidence, trials: int) -> dict[str, float | None]:
    """Return the deflated Sharpe ratio of the backtest for the trials and for all scored factors; None if unknown."""
    return {
        "by_trials": deflated_sharpe_of(evidence, trials),
        "by_evaluations": deflated_sharpe_of(evidence, len(evidence.sharpes)),
    }


def deflated_sharpe_of(evidence: TrialEvidence, count: int) -> float | None:
    """Return the deflated Sharpe ratio of the backtest for `count` tries; None if unknown."""
    daily = evidence.net[~np.isnan(evidence.net)]
    if len(evidence.sharpes) < 2 or len(daily) < MIN_NET_DAYS:
        return None
    spread = float(np.var(evidence.sharpes, ddof=1)) * evidence.search_days / evidence.selection_days
    return round_significant(deflated_sharpe(daily, max(count, 1), spread))


def _encode_series(series: Series) -> list[float | None]:
    return [None if math.isnan(value) else float(value) for value in series]
