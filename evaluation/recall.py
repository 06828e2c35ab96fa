"""What agents are told of the past: search-window facts and the gate's words, never a number from another window."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..evidence import Claim
from ..evidence.gate import read_decaying
from ..factors import OPERATORS
from ..search import MAX_RECALLED_CHARS, HypothesisRecord, select_reminders, summarise_mechanisms
from ..search.surrogate import MAX_LEADERS, Leader
from .drafts import find_leaders
from .service import Evaluator

MAX_LIBRARY_SHOWN = 100
MAX_REFUSALS_SHOWN = 8
CITED_ID_PATTERN = re.compile(r"\bf[0-9a-f]{16}\b")


def recall_facts(evaluator: Evaluator, limit: int, query: str = "") -> dict[str, Any]:
    """Return the best-scored factors so far, hypotheses with what became of them, the library, and the language.

    Its size does not grow with the history: of hypotheses those that say most of the query, the best and the newest are
    told (`memory`), of mechanisms how often each was tried, of refusals some with their reasons, of the library the
    factors that were added last. Ordered by merit, then id, so that it depends on what was recorded and not on when.
    """
    words = {row.factor_id: evaluator.reviews.word(row) for row in evaluator.ledger.verdicts(evaluator.run)}
    claims, told = evaluator.claims(), evaluator.tried.told()
    lines = evaluator.rows.lines
    ranked = sorted((name for name in lines if name in claims), key=lambda name: (-(lines[name].merit or 0.0), name))
    best = _best_by_hypothesis(claims, ranked)
    tales = _collect_records(evaluator, told, best, Counter(claims[name].id for name in ranked), words)
    shown = select_reminders(tales, query)
    cited = Counter(CITED_ID_PATTERN.findall(" ".join(claim.statement for claim in told.values())))
    library = evaluator.library()
    return {
        "factors": [_factor(evaluator, name, claims[name], words, cited) for name in ranked[:limit]],
        "spent": round(1.0 - evaluator.evaluations_left() / max(evaluator.budget.evaluations, 1), 3),
        "leaders": [_leader(evaluator, one, claims, words, cited) for one in find_leaders(evaluator, MAX_LEADERS)],
        "hypotheses": [_hypothesis(evaluator, tale, best.get(tale.id)) for tale in shown],
        "mechanisms": summarise_mechanisms(tales),
        "refusals": _refusals(evaluator, shown),
        "library": [{"id": row.factor_id, "text": row.canonical} for row in library[-MAX_LIBRARY_SHOWN:]],
        "library_size": len(library),
        "decaying": read_decaying(evaluator.ledger, evaluator.run),
        "operators": [_operator(name) for name in sorted(OPERATORS)],
        "fields": list(evaluator.mandate.columns(evaluator.panel)),
        "groups": sorted(evaluator.panel.groups),
    }


def _factor(
    evaluator: Evaluator, name: str, claim: Claim, words: Mapping[str, str], cited: Mapping[str, int]
) -> dict[str, Any]:
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
        **({"followed": cited[name]} if name in cited else {}),
    }


def _leader(
    evaluator: Evaluator,
    leader: Leader,
    claims: Mapping[str, Claim],
    words: Mapping[str, str],
    cited: Mapping[str, int],
) -> dict[str, Any]:
    """Return a leader's figures, with what it adds to the others and the formulas that are like it."""
    kin = [_describe_neighbour(evaluator, name) for name in leader.kin]
    told = _factor(evaluator, leader.id, claims[leader.id], words, cited)
    return {**told, "beside": round(leader.beside, 4), "kin": kin}


def _describe_neighbour(evaluator: Evaluator, name: str) -> dict[str, Any]:
    row = evaluator.rows[name]
    weak = [weakness["code"] for weakness in row.sheet["weaknesses"]]
    return {"id": name, "text": evaluator.read(row.text).shown, "t": evaluator.rows.lines[name].t, "weaknesses": weak}


def _best_by_hypothesis(claims: Mapping[str, Claim], ranked: Sequence[str]) -> dict[str, str]:
    """Return by hypothesis its factor of most merit."""
    best: dict[str, str] = {}
    for name in ranked:
        best.setdefault(claims[name].id, name)
    return best


def _collect_records(
    evaluator: Evaluator, told: Mapping[str, Claim], best: Mapping[str, str], scored: Mapping[str, int],
    words: Mapping[str, str],
) -> list[HypothesisRecord]:  # fmt: skip
    """Return what became of every hypothesis, by id; none but a set's is left out."""
    found = []
    for name, claim in told.items():
        mine = best.get(name)
        t = evaluator.rows.lines[mine].t if mine else None
        outcome = words.get(mine, "scored") if mine else "refused"
        refused: Mapping[str, int] = evaluator.tried.refused.get(name, {})
        found.append(HypothesisRecord(name, claim.mechanism, claim.statement, t, outcome, scored.get(name, 0), refused))
    return found


def _hypothesis(evaluator: Evaluator, tale: HypothesisRecord, best: str | None) -> dict[str, Any]:
    """Return what is told of a hypothesis: what it said, what it reached, and what stood in its way."""
    weak = [weakness["code"] for weakness in evaluator.rows[best].sheet["weaknesses"]] if best else []
    return {
        "id": tale.id,
        "mechanism": tale.mechanism,
        "statement": tale.statement[:MAX_RECALLED_CHARS],
        "best_t": tale.best_t,
        "outcome": tale.outcome,
        "worked": tale.worked,
        "fate": tale.fate,
        "weaknesses": weak,
    }


def _refusals(evaluator: Evaluator, shown: Sequence[HypothesisRecord]) -> list[dict[str, str]]:
    """Return refused formulas of the hypotheses that are told, one each, the newest of each step first."""
    found, seen = [], Counter[str]()
    for tale in reversed(shown):
        _, text, stage, reason = evaluator.tried.examples.get(tale.id, ("", "", "", ""))
        if stage and seen[stage] < 3:
            seen[stage] += 1
            found.append({"hypothesis": tale.id, "text": text, "stage": str(stage), "reason": reason})
    return found[:MAX_REFUSALS_SHOWN]


def _operator(name: str) -> dict[str, str]:
    operator = OPERATORS[name]
    return {"name": name, "signature": operator.signature, "doc": operator.doc}
