"""A finished run, made up: the results and curves that a campaign leaves in its folder."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np

JSON = dict[str, Any]


def weekdays(first: date, days: int) -> list[str]:
    """Return so many weekdays from the first on."""
    found: list[str] = []
    while len(found) < days:
        if first.weekday() < 5:
            found.append(first.isoformat())
        first += timedelta(days=1)
    return found


DAYS = weekdays(date(2019, 1, 2), 1500)
SEARCH, SELECTION, SEALED = DAYS[:900], DAYS[906:1200], DAYS[1206:]


def sheet(rank_ic: float, days: list[str]) -> JSON:
    """Return one window's sheet around a mean RankIC."""
    years = sorted({day[:4] for day in days})
    return {
        "window": {"name": "search" if days is SEARCH else "selection", "first": days[0], "last": days[-1]},
        "days": len(days), "horizon_days": 5,
        "rank_ic": rank_ic, "ic": rank_ic * 0.8, "icir": rank_ic / 0.11, "t": rank_ic * math.sqrt(len(days)) / 0.22,
        "turnover": 0.183, "net_sharpe": rank_ic * 32 - 0.4, "gross_sharpe": rank_ic * 40, "coverage": 0.982,
        "decay": {"1": rank_ic * 0.5, "5": rank_ic, "10": rank_ic * 0.7, "20": -rank_ic * 0.1},
        "quantile_returns": [k * rank_ic * 0.02 + 0.0006 for k in (-2, -0.8, 0.1, 0.7, 2.1)],
        "by_year": {year: rank_ic * (1.5 - 0.35 * k) for k, year in enumerate(years)},
        "warnings": [{"code": "data", "message": "vwap is derived: typical price"}],
    }  # fmt: skip  # a table


def reasons(*failed: str) -> list[JSON]:
    """Return the gate's checklist, failing at the named steps."""
    steps: list[tuple[str, str, JSON]] = [
        ("parse and types", "the formula is well formed and its units agree", {}),
        ("causal proof", "reads days -59 to 0, nothing later", {"lo": -59, "hi": 0}),
        ("complexity", "11 nodes are within the price", {"nodes": 11, "allowed": 30}),
        ("originality", "shares at most a third of its tree with anything known", {"ratio": 0.31, "allowed": 0.7}),
        ("redundancy", "the largest rank correlation with the library is small", {"correlation": 0.22, "allowed": 0.7}),
        ("alignment", "direction, horizon and fields follow the hypothesis", {}),
        ("statistics", "the stream rule decides", {"p_value": 0.00021, "level": 0.00034, "trial": 4}),
    ]
    return [
        {"step": step, "passed": step not in failed, "message": message, "numbers": numbers}
        for step, message, numbers in steps
    ] + [
        {"step": "leak alarm", "passed": None, "message": "RankIC is not suspiciously high", "numbers": {"limit": 0.08}}
    ]


def entry(name: str, text: str, rank_ic: float, *failed: str, trial: int | None = None) -> JSON:
    """Return one factor of the results; it saw selection when it has a trial."""
    weaknesses = [{"code": "fades", "message": "half of its RankIC is gone after 10 days", "value": 0.5}]
    selection = None
    if trial is not None:
        selection = {
            **sheet(rank_ic * 0.9, SELECTION),
            "p_value": 0.00021,
            "deflated_sharpe": {"by_trials": 0.91, "by_evaluations": 0.62, "by_clusters": 0.87},
        }
    return {
        "id": name, "form": "expression", "text": text,
        "explained": "The opposite of yesterday's volatility over 30 days, ranked among all names of the day.",
        "hypothesis": {
            "id": f"h-{name[-3:]}", "mechanism": "liquidity provision",
            "statement": (
                "Names pushed down on heavy volume recover within a week, because the sellers were in a hurry."
            ),
            "direction": -1, "horizon_days": 5, "fields": ["close", "volume"],
            "refuted_by": "no difference between days of heavy and of light volume",
        },
        "reasons": reasons(*failed),
        "metrics": {"search": {**sheet(rank_ic, SEARCH), "weaknesses": weaknesses}, "selection": selection},
        "trial": trial, "members": None, "library_correlation": 0.22,
        "incremental": {"rank_ic": 0.031, "t": 3.1, "kept": 0.84, "against": ["f0"], "library": 12} if trial else None,
    }  # fmt: skip  # a table


def signals() -> JSON:
    """Return the risk gate's decision, of which three signals are shown."""

    def check(rule: str, actual: int, limit: int) -> JSON:
        return {"rule": rule, "actual": actual, "limit": limit, "passed": actual <= limit, "binds": True}

    def ruling(asset: str, target: int, *refusals: str) -> JSON:
        bounds = {"target_bp": float(target), "lo_bp": target - 30.5, "hi_bp": target + 30.5}
        return {"asset": asset, **bounds, "approved": not refusals, "refusals": list(refusals)}

    rulings = [ruling("AAA", 610, "single_name_cap"), ruling("ABC", 120), ruling("BQX", -90, "stale_data")]
    book = [check("gross_cap", 19_800, 20_000), check("net_cap", 12, 500), check("turnover_cap", 9_900, 10_000)]
    evidence = [check("proven", 0, 0) | {"about": ""}, check("original", 9_000, 8_500) | {"about": "f0123456789abcdef"}]
    standing = {"verdict": "accepted", "trial": 3, "similarity_bp": 9_000, "nearest": "shares rank", "status": "live"}
    return {"id": "d1", "day": "2024-10-02", "after": "2024-10-01", "approved": 78, "refused": 2, "scale": 0.5,
            "book": book, "evidence": evidence, "standings": {"f0123456789abcdef": standing},
            "decisions": rulings}  # fmt: skip  # a table


def settings() -> JSON:
    """Return the rules that the run was judged by, none of them at its default."""
    evidence = {
        "horizon_days": 5, "returns": "residual", "level": 0.04, "watch_p": 0.03, "max_similarity": 0.83,
        "max_redundancy": 0.65, "leak_rank_ic": 0.07, "prior_trials": 3,
        "costs": {"bps_per_side": 12.5, "borrow_bps_per_year": 80.0}, "complexity": {"max_size": 28, "max_depth": 9},
    }  # fmt: skip  # a table
    return {"evidence": evidence, "budget": {"evaluations": 1200, "trials": 9}}


def beside(accepted: str, other: str) -> JSON:
    """Return what stands beside the gate; one rule would have accepted nothing, and one a factor more."""

    def rule(key: str, name: str, *accepts: str, asked: float | None = None) -> JSON:
        return {"rule": key, "name": name, "holds": "whatever the dependence", "means": "One sentence.", "found": 3,
                "decides": key == "lond_dependent", "accepts": list(accepts), "p_asked": asked}  # fmt: skip  # a table

    rules = [
        rule("lond_dependent", "LOND, harmonic", accepted, asked=0.00034),
        rule("by", "Benjamini-Yekutieli"),
        rule("lord_plus_plus", "LORD++", accepted, other),
    ]
    return {
        "stream_rules": {"level": 0.04, "looks": 11, "declared": 3, "unfinished": 1, "rules": rules},
        "superior": {"lower": 0.21, "consistent": 0.24, "upper": 0.4, "candidates": 50, "scored": 1185, "days": 900,
                     "block_days": 10, "replications": 1000},
        "cross_validation": {"candidates": 50, "splits": 15, "paths": 5, "purge_days": 5, "embargo_days": 5,
                             "chosen": 2, "rank_ic_chosen_on": 0.051, "rank_ic": [0.021, 0.024, 0.027, 0.03, 0.033],
                             "net_sharpe": [-0.2, 0.1, 0.3, 0.4, 0.6]},
        "clusters": {"clusters": 17, "candidates": 50, "scored": 1185},
    }  # fmt: skip  # a table


def results() -> JSON:
    """Return the results of a run with something in every part."""
    first = entry("f0123456789abcdef", "rank(ts_std(returns, 30)) * -1", 0.052, trial=4)
    second = entry("fa81c0de44556677", "-1 * ts_corr(rank(volume), rank(close), 20)", 0.041, trial=5)
    both = {
        **entry("s99887766554433", "", 0.066, trial=7),
        "hypothesis": None,
        "members": [first["id"], second["id"]],
        "explained": "The mean of the two factors' ranks, weights fixed on search.",
    }
    watched = entry("fbead00001111222", "decay_linear(rank(open / close[1] - 1), 10)", 0.033, "statistics", trial=6)
    rejected = [
        entry(f"f{k:016x}", f"ts_mean(returns, {5 + k}) / ts_std(returns, {20 + k})", 0.03 - k * 0.001, "redundancy")
        for k in range(45)
    ]
    rejected[7] = entry("f7777000077770000", "rank(volume / ts_mean(volume, 60))", 0.02, "statistics", trial=8)
    return {
        "format": 1, "researcher": "offline/researcher", "seed": 7,
        "data": {"name": "synthetic-7", "digest": "9c1185a5c5e9fc54", "days": 1500, "names": 400,
                 "first_day": DAYS[0], "last_day": DAYS[-1], "notes": ["vwap is derived: typical price"]},
        "windows": {
            "search": {"first": SEARCH[0], "last": SEARCH[-1], "days": len(SEARCH)},
            "selection": {"first": SELECTION[0], "last": SELECTION[-1], "days": len(SELECTION)},
            "sealed": {"first": SEALED[0], "last": SEALED[-1], "days": len(SEALED)},
            "embargo_days": 6, "horizon_days": 5, "returns": "residual", "search_cells_without_an_open": 812,
        },
        "accepted": [first, second, both], "watchlist": [watched], "rejected": rejected,
        "attempts": {"total": 1932, "refused": {"parse": 12, "types": 140, "originality": 391, "duplicate": 204}},
        "evaluations": 1185, "trials": 8, "prior_trials": 3, "hypotheses": 48,
        "spend": {"calls": 212, "tokens_in": 488_120, "tokens_out": 91_400, "usd": 0.0, "by_role": {
            "idea": {"calls": 12, "tokens_in": 40_000, "tokens_out": 9_000, "usd": 0.0},
            "factor": {"calls": 150, "tokens_in": 400_000, "tokens_out": 72_000, "usd": 0.0},
            "eval": {"calls": 50, "tokens_in": 48_120, "tokens_out": 10_400, "usd": 0.0}}},
        "power": {"trials": 11, "days": 294, "level": 0.04, "p_required": 0.00034, "t_required": 4.1,
                  "rank_ic_provable": 0.0466, "rank_ic_likely": 0.0561, "sentence":
                  "After 11 trials, these 294 selection days could have proven a mean daily RankIC of 0.047 or more."},
        "combination": {"file": "combination.parquet", "factors": [first["id"], second["id"]],
                        "weights": {first["id"]: 0.55, second["id"]: 0.45}},
        "sealed": {"opened": True, "number": 1, "rank_ic": 0.031, "t": 2.2, "days": 294},
        "overfitting": {"probability": 0.31, "candidates": 50, "blocks": 10}, **beside(first["id"], second["id"]),
        "book": {"window": "sealed", "sharpe": 1.12, "annual_return": 0.082, "max_drawdown": -0.061,
                 "turnover_per_day": 0.19, "costs_paid": 0.031, "borrow_paid": 0.006, "plain_sharpe": 1.12,
                 "days": 294},
        "signals": signals(), "settings": settings(), "looks_reused": 0,
        "warnings": [
            {"code": "data", "message": "vwap is derived: typical price"},
            {"code": "leak_alarm", "message": "f0123456789abcdef: its RankIC on selection is too good; find out why"}],
        "report": "report.html",
    }  # fmt: skip  # a table


def nothing_accepted() -> JSON:
    """Return the results of a run that accepted, watched and traded nothing."""
    empty: JSON = {"accepted": [], "watchlist": [], "combination": None, "sealed": None, "book": None, "signals": None}
    return results() | empty | {"warnings": []}


def series(days: list[str], mean: float, rng: np.random.Generator) -> JSON:
    """Return the daily series of one window; the first day has no RankIC and no return."""
    rank_ic, net = rng.normal(mean, 0.11, len(days)), rng.normal(0.0002, 0.003, len(days))
    quintiles = {month: [k * 0.002 for k in range(-2, 3)] for month in sorted({day[:7] for day in days})}
    lines = {"rank_ic": [None, *rank_ic[1:].tolist()], "net": [None, *net[1:].tolist()]}
    return {"dates": days, **lines, "quintiles": quintiles}


def curves(seed: int = 3) -> JSON:
    """Return the daily lines that belong to `results`."""
    rng = np.random.default_rng(seed)
    found: JSON = {}
    tested = [item for item in results()["rejected"] if item["trial"]]
    for item in [*results()["accepted"], *results()["watchlist"], *tested]:
        mean = item["metrics"]["search"]["rank_ic"]
        found[item["id"]] = {"search": series(SEARCH, mean, rng), "selection": series(SELECTION, 0.9 * mean, rng)}
    equity = np.cumprod(1 + rng.normal(0.0004, 0.004, len(SEALED)))
    fall = equity / np.maximum.accumulate(equity) - 1
    found["book"] = {"dates": SEALED, "equity": equity.tolist(), "drawdown": fall.tolist()}
    return found
