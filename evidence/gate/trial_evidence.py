"""What a trial saw of the selection window, kept whole, and what the rules decide from it.

The gate decides a trial with `decide_trial`, and so does `evidence verify` from the ledger: the same code and the same numbers
give the same verdict.
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
from ..multiple_testing.deflated_sharpe import deflated_sharpe
from ..multiple_testing.online_fdr import lond_level
from ..scoring.metrics import round_significant
from .mean_test import confirm_p_value, run_mean_test
from .verdict import Reason, Verdict, Word

Series = NDArray[np.float64]
MIN_NET_DAYS = 30
"""Fewer days of returns have no skewness or kurtosis worth a deflated Sharpe ratio."""


@dataclass(frozen=True)
class TrialEvidence:
    """Everything that decides a trial, to the last bit.

    Attributes
    ----------
    asked
        Horizon, returns, level, watch_p, costs, digest of the data, sign: the digest of it is the trial's question.
    lag
        Newey-West lag, days.
    rank_ic
        RankIC of each selection day `[D]`, NaN where undefined.
    net
        Daily return after costs of the long-short book `[D]`, decimal of gross, NaN where there is none.
    sharpes
        Daily gross Sharpe ratios on search of the factors scored until then, finite ones only.
    search_days, selection_days
        Length of both windows.
    sheet
        The selection sheet as recorded.
    held
        RankIC of each selection day with what is held on it `[D]`, where that is tested; None where `rank_ic` is.
    fault
        What went wrong with the code of a Python factor on selection days, `{stage, message, day}`; None if nothing did.
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

    def body(self) -> bytes:
        """Return the bytes that are stored: canonical JSON, in which a float64 keeps every bit and NaN is null."""
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
        return canonical_json(record).encode()

    @classmethod
    def read(cls, body: bytes) -> TrialEvidence:
        """Return what `body` wrote."""
        record = json.loads(body)
        for name in ("rank_ic", "net", "held"):
            if record.get(name) is not None:
                record[name] = np.array(record[name], dtype=np.float64)  # null becomes NaN
        return cls(**record | {"sharpes": tuple(record["sharpes"])})


def decide_trial(seen: TrialEvidence, number: int, found: int) -> dict[str, Any]:
    """Return what the rules say of a look: p-value, level, verdict of the stream, deflated Sharpe ratios.

    Parameters
    ----------
    seen
        What was looked at.
    number
        The trial's number, 1 for the first.
    found
        Discoveries among the trials that were opened before it.

    Notes
    -----
    Where what is held is tested, the overlapping labels must not contradict it (`mean_test.confirm_p_value`).

    Code that failed, or saw later days, on a selection day proves nothing, whatever its other days show.

    A factor is a discovery if its unrounded p-value is at most the unrounded level; both are recorded to six digits.
    """
    sign = int(seen.asked["sign"])
    test = run_mean_test(seen.rank_ic, seen.held, int(seen.asked["horizon_days"]), seen.lag)
    labels = run_mean_test(seen.rank_ic, None, int(seen.asked["horizon_days"]), seen.lag).p_value(sign)
    p_value = confirm_p_value(test.p_value(sign), labels, float(seen.asked["watch_p"]))
    level = lond_level(number, found, float(seen.asked["level"]))
    return {
        "p_value": float(f"{p_value:.6g}"),
        "level": float(f"{level:.6g}"),
        "discoveries_before": found,
        "passed": p_value <= level and not seen.fault,
        "watch": p_value <= float(seen.asked["watch_p"]) and not seen.fault,
        "sign": sign,
        "deflated_sharpe": deflated_sharpe_ratios(seen, number),
        "power": test.power(level),
        **({} if seen.held is None else {"p_labels": float(f"{labels:.6g}")}),
        **({"fault": dict(seen.fault)} if seen.fault else {}),
    }


def build_verdict(trial: Trial, reasons: Sequence[Reason]) -> Verdict:
    """Return the verdict on a case that passed every step before statistics, from the outcome of its trial."""
    outcome = dict(trial.outcome or {})
    word: Word = "accepted" if outcome["passed"] else "watchlist" if outcome["watch"] else "rejected"
    text = (
        f"p = {outcome['p_value']:.2g} on selection, level {outcome['level']:.2g} for trial {trial.number}"
        f" with {outcome['discoveries_before']} found before{_bar(outcome)}"
    )
    reasons = [_apply_fault(reason, outcome.get("fault")) for reason in reasons]
    numbers = {key: outcome[key] for key in ("p_value", "level", "discoveries_before")}
    statistics = Reason("statistics", bool(outcome["passed"]), text, {**numbers, "trial": trial.number})
    told = {key: outcome[key] for key in ("deflated_sharpe", "power", "p_labels") if key in outcome}
    selection = {**outcome["selection"], **numbers, **told}
    return Verdict(trial.subject, word, (*reasons, statistics), trial.number, selection)


def _apply_fault(reason: Reason, fault: Mapping[str, Any] | None) -> Reason:
    """Return a reason as it stands after the look: what the code did on selection days is for people, in its numbers."""
    if reason.step != "causal" or not fault:
        return reason
    said = "the code failed on a later day" if fault["stage"] == "python" else "a value changed with later days"
    return Reason("causal", False, f"{said}, after search", {**reason.numbers, "fault": dict(fault)})


def remove_fault(reason: Reason) -> Reason:
    """Return a reason as it stood before the look: what the code did on selection days was not known then."""
    if "fault" not in reason.numbers:
        return reason
    return replace(reason, passed=True, numbers={key: each for key, each in reason.numbers.items() if key != "fault"})


def daily_sharpes(sheets: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return the daily gross Sharpe ratio on search of each sheet, of the factor as it is written, so of either sign."""
    both = [(sheet["gross_sharpe"], sheet["rank_ic"]) for sheet in sheets]
    return [math.copysign(1.0, ic) * ratio / math.sqrt(252.0) for ratio, ic in both if ratio is not None and ic]


def _bar(outcome: Mapping[str, Any]) -> str:
    """Say which RankIC would have been proof; nothing for a look that was taken before this was kept."""
    power = outcome.get("power") or {}
    if power.get("test") == "held" and outcome.get("p_labels") == outcome["p_value"]:
        return "; its labels do not bear out what is held"
    bar = power.get("rank_ic_provable")
    return "" if bar is None else f"; a RankIC of {bar:.3f} there is proof"


def deflated_sharpe_ratios(seen: TrialEvidence, trials: int) -> dict[str, float | None]:
    """Return the deflated Sharpe ratio of the book, charged for the trials and for all scored factors; None if unknown."""
    return {
        "by_trials": deflated_sharpe_of(seen, trials),
        "by_evaluations": deflated_sharpe_of(seen, len(seen.sharpes)),
    }


def deflated_sharpe_of(seen: TrialEvidence, count: int) -> float | None:
    """Return the deflated Sharpe ratio of the book, charged for so many tries; None if unknown."""
    daily = seen.net[~np.isnan(seen.net)]
    if len(seen.sharpes) < 2 or len(daily) < MIN_NET_DAYS:
        return None
    spread = float(np.var(seen.sharpes, ddof=1)) * seen.search_days / seen.selection_days
    return round_significant(deflated_sharpe(daily, max(count, 1), spread))


def _encode_series(series: Series) -> list[float | None]:
    return [None if math.isnan(value) else float(value) for value in series]
