"""What agents are told of the past: search-window facts and the gate's words, never a number from another window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    lines = evaluator.rows.lines
    ranked = sorted((name for name in lines if name in claims), key=lambda name: (-(lines[name].merit or 0.0), name))
    return {
        "factors": [_factor(evaluator, name, claims[name], words) for name in ranked[:limit]],
        "hypotheses": _hypotheses(evaluator, claims, ranked, words),
        "library": [{"id": row.factor_id, "text": row.canonical} for row in evaluator.library()],
        "operators": [_operator(name) for name in sorted(OPERATORS)],
        "fields": list(evaluator.mandate.columns(evaluator.panel)),
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


def _hypotheses(
    evaluator: Evaluator, claims: Mapping[str, Claim], ranked: Sequence[str], words: Mapping[str, str]
) -> list[dict[str, Any]]:
    best: dict[str, str] = {}
    for name in ranked:
        best.setdefault(claims[name].id, name)
    said = {claim.id: claim for claim in claims.values()}
    return [
        {
            "id": name,
            "mechanism": said[name].mechanism,
            "statement": said[name].statement,
            "best_t": evaluator.rows.lines[best[name]].t,
            "outcome": words.get(best[name], "scored"),
        }
        for name in sorted(said)
    ]


def _operator(name: str) -> dict[str, str]:
    operator = OPERATORS[name]
    return {"name": name, "signature": operator.signature, "doc": operator.doc}
