"""What agents are told of the past: search-window facts and the gate's words, never a number from another window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..factors import OPERATORS
from .alignment import Claim
from .evaluator import Evaluator


def recall_facts(evaluator: Evaluator, limit: int) -> dict[str, Any]:
    """Return the best-scored factors so far, the hypotheses with their best outcome, the library, and the language.

    Ordered by merit, then id, so that it depends on what was recorded and not on when.
    """
    words = {row.factor_id: row.verdict for row in evaluator.ledger.verdicts(evaluator.run)}
    claims = evaluator.claims()
    factors = [_factor(evaluator, name, claims[name], words) for name in sorted(evaluator.rows) if name in claims]
    factors.sort(key=lambda row: (-(row["merit"] or 0.0), row["id"]))
    return {
        "factors": factors[:limit],
        "hypotheses": _hypotheses(claims.values(), factors),
        "library": [{"id": row.factor_id, "text": row.canonical} for row in evaluator.library()],
        "operators": [_operator(name) for name in sorted(OPERATORS)],
        "fields": sorted(evaluator.panel.fields),
        "groups": sorted(evaluator.panel.groups),
    }


def _factor(evaluator: Evaluator, name: str, claim: Claim, words: Mapping[str, str]) -> dict[str, Any]:
    row = evaluator.rows[name]
    sheet = row.sheet
    return {
        "id": name,
        "text": evaluator.read(row.text).shown,
        "hypothesis": claim.id,
        "mechanism": claim.mechanism,
        "rank_ic": sheet["rank_ic"],
        "t": sheet["t"],
        "turnover": sheet["turnover"],
        "merit": sheet["merit"],
        "weaknesses": [weakness["code"] for weakness in sheet["weaknesses"]],
        "outcome": words.get(name, "scored"),
    }


def _hypotheses(claims: Any, factors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    best: dict[str, dict[str, Any]] = {}
    for row in factors:
        best.setdefault(row["hypothesis"], row)
    said = {claim.id: claim for claim in claims}
    return [
        {
            "id": name,
            "mechanism": said[name].mechanism,
            "statement": said[name].statement,
            "best_t": best[name]["t"],
            "outcome": best[name]["outcome"],
        }
        for name in sorted(said)
    ]


def _operator(name: str) -> dict[str, str]:
    operator = OPERATORS[name]
    return {"name": name, "signature": operator.signature, "doc": operator.doc}
