"""The manifest of a campaign: what it was for, what it read, which models it asked, who decided, and what it left.

It is made from the record alone: no clock, no path of this machine, no address. The same record gives the same bytes,
by the same version of the program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...ledger import Ledger, Run
from ..closing import Results, SealRequests
from ..closing.results import read_sealed_exam
from ..pending_cases import Reviews, list_standing
from .exposed_days import SIMULATED, read_exposure
from .model_use import list_model_use, list_prompts

MANIFEST_FORMAT: Final = 1
NOT_DECLARED: Final = "not declared"
OPTIMISED: Final = (
    "search: the absolute t of the mean daily RankIC on search days, less a price for each node of the formula; no "
    "figure of selection or sealed days reaches a model"
)
STEER_WORDS: Final = ("goal", "avoid", "focus", "fields")
MARKET_FILES: Final = ("panel", "sectors", "actions", "members", "fundamentals", "symbol_changes")
OTHER_DEEDS: Final = {
    "stop": "asked the run to stop",
    "close": "asked the run to close",
    "alarm-acknowledged": "acknowledged a leak alarm",
    "revalidation": "looked at an accepted factor again",
}
"""What a person did, by the kind of its event; starts, approvals and the seal have lists of their own."""


def build_manifest(ledger: Ledger, run: Run) -> dict[str, Any]:
    """Return the manifest of a campaign as JSON; parts that the run did not reach are None or empty."""
    body = ledger.artefacts.read(run.id, "results.json")
    results = Results.read(json.loads(body)) if body else None
    exposure = read_exposure(ledger, run)
    return {
        "format": MANIFEST_FORMAT,
        "run": run.id,
        "name": str(_read_settings(run).get("name", "")),
        "status": run.status,
        "statuses": [{"at": at, "status": status} for at, status in ledger.runs.statuses(run.id)],
        "software": _describe_software(run),
        "objectives": _describe_objectives(run, results),
        "data": _describe_data(run, results),
        "models": list_model_use(ledger, run),
        "prompts": list_prompts(ledger, run, results),
        "people": _list_people(ledger, run),
        "tests": _list_tests(ledger, run),
        "outcome": _describe_outcome(results),
        "risk": _describe_risk(ledger, run),
        "exposure": exposure.record() if exposure else None,
        "artefacts": dict(sorted(ledger.artefacts.digests(run.id).items())),
    }


def describe_licence(run: Run) -> str:
    """Return the licence of a run's data as its file declares it."""
    market = _read_settings(run).get("market") or {}
    if market.get("licence"):
        return str(market["licence"])
    return NOT_DECLARED if market.get("panel") else f"{NOT_DECLARED}; {SIMULATED}"


def _read_settings(run: Run) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = run.config.get("settings") or {}
    return settings


def _describe_software(run: Run) -> dict[str, Any]:
    """Return version and commit that began the run; None each where its version did not record them."""
    software = run.config.get("software") or {}
    return {"version": software.get("version"), "commit": software.get("commit") or None}


def _describe_objectives(run: Run, results: Results | None) -> dict[str, Any]:
    settings = _read_settings(run)
    evidence, steer = settings.get("evidence") or {}, settings.get("steer") or {}
    names = ("test", "horizon_days", "returns", "label_scale", "level", "watch_p", "costs", "prior_trials")
    return {
        **{name: steer.get(name) or None for name in STEER_WORDS},
        "optimised": OPTIMISED,
        "judged_by": {name: evidence.get(name) for name in names},
        "budget": settings.get("budget") or {},
        "approval_by_a_person": bool(settings.get("approve")),
        "sealed_opens_at_the_close": bool(evidence.get("open_sealed")),
        "windows": results.windows.record() if results else None,
        "seed": run.seed,
    }


def _describe_data(run: Run, results: Results | None) -> dict[str, Any]:
    settings, own = _read_settings(run), run.config.get("own") or {}
    market = settings.get("market") or {}
    files = {name: str(market[name]).replace("\\", "/").rpartition("/")[2] for name in MARKET_FILES if market.get(name)}
    panel = results.data.record() if results else {}
    return {
        "name": run.dataset,
        "digest": run.config.get("panel"),
        "licence": describe_licence(run),
        "simulated": not market.get("panel"),
        "files": files,
        **{name: panel.get(name) for name in ("days", "first_day")},
        "last_day": run.config.get("last_day"),
        "symbols": panel.get("names"),
        "notes": panel.get("notes") or [],
        "labels": market.get("labels") or {},
        "documents": list(own.get("documents") or ()),
        "seed_formulas": len(own.get("seeds") or ()),
        "own_hypotheses": len(own.get("hypotheses") or ()),
        "own_agent": str(own.get("agent") or "").replace("\\", "/").rpartition("/")[2],
    }


def _list_people(ledger: Ledger, run: Run) -> dict[str, Any]:
    """Return who started the run, approved, opened sealed days, and did anything else that bears a name."""
    events, reviews = ledger.events, Reviews.of(ledger, run)
    starts = [
        {"by": event.body["by"], "at": events.find_time(run.id, "start", event.key)}
        for event in events.of(run.id, "start")
    ]
    votes = [vote for name in sorted(reviews.cases()) for vote in list_standing(reviews.votes(name))]
    exam = read_sealed_exam(ledger, run.id)
    opened = {"number": exam.number, "reason": exam.reason} if exam and exam.opened else None
    names = ("agrees", "reason", "by", "at")
    decisions = [
        {name: getattr(decision, name) for name in names} for decision in SealRequests(ledger, run.id).decisions()
    ]
    others = [
        {"did": words, "what": event.key, **{name: event.body.get(name) for name in ("by", "reason", "at")}}
        for kind, words in OTHER_DEEDS.items()
        for event in events.of(run.id, kind)
    ]
    return {
        "started": starts,
        "approved": [{**vote.record(), "at": vote.at} for vote in votes],
        "seal": {"decisions": decisions, "opened": opened},
        "others": others,
    }


def _list_tests(ledger: Ledger, run: Run) -> list[dict[str, Any]]:
    """Return each test that the run was charged for."""
    return [
        {
            "number": trial.number,
            "subject": trial.subject,
            "opened_at": trial.opened_at,
            "p_value": (trial.outcome or {}).get("p_value"),
            "level": (trial.outcome or {}).get("level"),
            "passed": (trial.outcome or {}).get("passed"),
        }
        for trial in ledger.trials.all()
        if trial.run == run.id
    ]


def _describe_outcome(results: Results | None) -> dict[str, Any] | None:
    if results is None:
        return None
    words = ("accepted", "proven", "watchlist")
    lists: dict[str, Sequence[str]] = {word: [entry.id for entry in getattr(results, word)] for word in words}
    counts = {name: getattr(results, name) for name in ("evaluations", "trials", "prior_trials", "hypotheses")}
    return {**lists, **counts, "ended": results.ended}


def _describe_risk(ledger: Ledger, run: Run) -> list[dict[str, Any]]:
    """Return id, day and digest of the policy of each decision of the risk gate."""
    return [
        {name: event.body.get(name) for name in ("id", "day", "policy")} for event in ledger.events.of(run.id, "risk")
    ]
