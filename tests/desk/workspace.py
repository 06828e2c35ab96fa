"""A small workspace made by hand: a paused run with one case and one leak alarm, a script in every text of a model."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from alphaloom.evaluation import Reviews
from alphaloom.evaluation.closing import SealRequest, SealRequests
from alphaloom.ledger import Attempt, Evaluation, Ledger, LibraryRow, ModelCall, Run, VerdictRow

from . import example

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
HERE = "http://127.0.0.1:8000"
SAME = {"sec-fetch-site": "same-origin"}
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
CASE, LEAK = "fa0000000000000a1", "fb0000000000000b2"
CHILD = "fc0000000000000c3"
"""A formula that can be read, made of `LEAK` by one change."""


def verdict(factor: str) -> VerdictRow:
    metrics = {"selection": {"rank_ic": 0.2}, "trial": 1}
    return VerdictRow("r1", factor, "accepted", [{"step": SCRIPT, "passed": True, "message": SCRIPT}], metrics)


def lay(workspace: Path) -> None:
    """Make a paused run with one case and one leak alarm, with a script in every text that a model can fill."""
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        settings = {
            "approve": True,
            "evidence": {"leak_rank_ic": 0.08},
            "agents": {"rounds": 2},
            "models": {"budget": {}, "models": {SCRIPT: {"model": SCRIPT, "place": "local"}}},
        }
        settings["budget"] = {"evaluations": 10, "trials": 2}
        ledger.runs.start(Run("r1", {"settings": settings}, 1, "d", NOON.isoformat()))
        ledger.runs.finish("r1", "paused")
        reviews = Reviews(ledger, "r1", True)
        row = LibraryRow(CASE, SCRIPT, SCRIPT, "r01/h00", "r1", {"t": 4.2, "rank_ic": 0.03})
        reviews.wait(row)
        reviews.keep_file(CASE, planted_case())
        ledger.events.record("r1", "agents.hypothesis", "r01/h00", {"statement": SCRIPT, "mechanism": SCRIPT})
        ledger.library.add(LibraryRow(LEAK, "close", SCRIPT, SCRIPT, "r1", {"t": 9.0}))
        ledger.verdicts.add(verdict(LEAK))
        claim = {
            "id": "r01/h00",
            "mechanism": SCRIPT,
            "statement": SCRIPT,
            "direction": 1,
            "horizon_days": 5,
            "fields": [],
        }
        ledger.events.record("r1", "claim", "r01/h00", claim)
        ledger.attempts.add(Attempt("r1", "r01/h00/c00", "r01/h00", SCRIPT, LEAK, "scored", ""))
        sheet = {**example.sheet(0.2, example.SEARCH), "sign": 1}
        weak = {"weaknesses": [{"code": "turnover", "message": SCRIPT}], "fields": ["close"]}
        ledger.evaluations.add(Evaluation("r1", LEAK, SCRIPT, "r01/h00", {**sheet, **weak}))
        lay_child(ledger, sheet)


def lay_seal(workspace: Path) -> None:
    """Add a campaign that waits for a decision on its sealed days."""
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        settings = ledger.runs.find("r1").config["settings"]
        ledger.runs.start(Run("r2", {"settings": settings}, 1, "d", NOON.isoformat()))
        SealRequests(ledger, "r2").ask(ask_for_seal())
        ledger.runs.finish("r2", "paused")


def ask_for_seal() -> SealRequest:
    """Return a request to open sealed days, with a script in every text."""
    accepted = [{"id": CASE, "text": SCRIPT}]
    return SealRequest(SCRIPT, "2020-01-01", "2020-06-30", 125, 60, [], accepted, SCRIPT)


def lay_child(ledger: Ledger, sheet: dict[str, Any]) -> None:
    """Record a change of the leaking factor as agents do, with a script wherever a model writes."""
    first, second = "r01/h00/s0/c0/a0", "r01/h00/s1/c0/a1"
    ledger.evaluations.add(Evaluation("r1", CHILD, "ts_mean(close, 5)", "r01/h00", {**sheet, "fields": ["close"]}))
    ledger.attempts.add(Attempt("r1", "r01/h00/s1/c0/a0", "r01/h00", SCRIPT, None, "parse", SCRIPT))
    child = {"parent": LEAK, "where": "turnover", "intent": SCRIPT, "branch": "r01/h00", "ok": True, "id": CHILD}
    item = {"key": second, "text": "ts_mean(close, 5)", "intent": SCRIPT, "rationale": SCRIPT}
    for kind, key, body in (
        ("agents.mark", LEAK, {"id": LEAK, "key": first}),
        ("agents.mark", CHILD, {"id": CHILD, "key": second}),
        ("agents.score", second, child),
        ("agents.critique", "r01/h00/s0", {"advice": [{"operator": SCRIPT, "why": SCRIPT}]}),
        ("agents.proposal", "r01/h00/s1/a1", {"items": [item]}),
    ):
        ledger.events.record("r1", kind, key, body)
    seed = int.from_bytes(sha256(b"1/r01/h00/s1/a1").digest()[:4], "big") >> 1
    request = ledger.objects.put(json.dumps({"sampling": {"seed": seed}}).encode())
    ledger.calls.add(ModelCall("k1", "r1", "factor", SCRIPT, "local", SCRIPT, "", request, "", 100, 20, 0.25))


def planted_case() -> dict[str, Any]:
    entry = example.results()["accepted"][0]
    hypothesis = {**entry["hypothesis"], "id": "r01/h00", "statement": SCRIPT, "mechanism": SCRIPT}
    texts = {
        "text": SCRIPT,
        "explained": SCRIPT,
        "hypothesis": hypothesis,
        "warnings": [{"code": "x", "message": SCRIPT}],
    }
    curve = {"search": {"dates": example.SEARCH, "rank_ic": [0.01] * len(example.SEARCH)}}
    return {**entry, **texts, "id": CASE, "curve": curve, "boundary": example.SELECTION[0]}
