"""Recall for agents: facts of the search window and verdicts of the gate, without a number from another window."""

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
    """Return the best factors so far, hypotheses with their outcomes, the library, and the language.

    The size does not grow with the history. It has the hypotheses most relevant to the query, the best and the newest
    (`memory`), the number of tries of each mechanism, some refusals with their reasons, and the factors last added to
    the library. The order is by merit, then id, so that it depends on the records and not on their times.
    """
    words = {row.factor_id: evaluator.reviews.word(row) for row in evaluator.ledger.verdicts.of(evaluator.run)}
    claims, all_claims = evaluator.log.proposals.claims(), evaluator.log.proposals.read_hypothesis_claims()
    lines = evaluator.scores.lines
    ranked = sorted((name for name in lines if name in claims), key=lambda name: (-(lines[name].merit or 0.0), name))
    best = _find_best_by_hypothesis(claims, ranked)
    records = _collect_records(evaluator, all_claims, best, Counter(claims[name].id for name in ranked), words)
    shown = select_reminders(records, query)
    cited = Counter(CITED_ID_PATTERN.findall(" ".join(claim.statement for claim in all_claims.values())))
    library = evaluator.library.rows()
    return {
        "factors": [_describe_factor(evaluator, name, claims[name], words, cited) for name in ranked[:limit]],
        "spent": round(1.0 - evaluator.meter.evaluations_left() / max(evaluator.budget.evaluations, 1), 3),
        "leaders": [
            _describe_leader(evaluator, leader, claims, words, cited) for leader in find_leaders(evaluator, MAX_LEADERS)
        ],
        "hypotheses": [_describe_hypothesis(evaluator, record, best.get(record.id)) for record in shown],
        "mechanisms": summarise_mechanisms(records),
        "refusals": _list_refusals(evaluator, shown),
        "library": [{"id": row.factor_id, "text": row.canonical} for row in library[-MAX_LIBRARY_SHOWN:]],
        "library_size": len(library),
        "decaying": read_decaying(evaluator.ledger, evaluator.run),
        "operators": [_describe_operator(name) for name in sorted(OPERATORS)],
        "fields": list(evaluator.mandate.columns(evaluator.panel)),
        "groups": sorted(evaluator.panel.groups),
    }


def _describe_factor(
    evaluator: Evaluator, name: str, claim: Claim, words: Mapping[str, str], cited: Mapping[str, int]
) -> dict[str, Any]:
    row = evaluator.scores[name]
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


def _describe_leader(
    evaluator: Evaluator,
    leader: Leader,
    claims: Mapping[str, Claim],
    words: Mapping[str, str],
    cited: Mapping[str, int],
) -> dict[str, Any]:
    """Return a leader's figures, with its incremental RankIC and the formulas most like it."""
    kin = [_describe_neighbour(evaluator, name) for name in leader.kin]
    figures = _describe_factor(evaluator, leader.id, claims[leader.id], words, cited)
    return {**figures, "beside": round(leader.beside, 4), "kin": kin}


def _describe_neighbour(evaluator: Evaluator, name: str) -> dict[str, Any]:
    row = evaluator.scores[name]
    weak = [weakness["code"] for weakness in row.sheet["weaknesses"]]
    return {"id": name, "text": evaluator.read(row.text).shown, "t": evaluator.scores.lines[name].t, "weaknesses": weak}


def _find_best_by_hypothesis(claims: Mapping[str, Claim], ranked: Sequence[str]) -> dict[str, str]:
    """Return the factor of most merit of each hypothesis."""
    best: dict[str, str] = {}
    for name in ranked:
        best.setdefault(claims[name].id, name)
    return best


def _collect_records(
    evaluator: Evaluator,
    claims: Mapping[str, Claim],
    best: Mapping[str, str],
    scored: Mapping[str, int],
    words: Mapping[str, str],
) -> list[HypothesisRecord]:
    """Return the record of every hypothesis except those of sets, by id."""
    records = []
    for name, claim in claims.items():
        factor_id = best.get(name)
        t = evaluator.scores.lines[factor_id].t if factor_id else None
        outcome = words.get(factor_id, "scored") if factor_id else "refused"
        refused: Mapping[str, int] = evaluator.log.proposals.refused.get(name, {})
        records.append(
            HypothesisRecord(name, claim.mechanism, claim.statement, t, outcome, scored.get(name, 0), refused)
        )
    return records


def _describe_hypothesis(evaluator: Evaluator, record: HypothesisRecord, best: str | None) -> dict[str, Any]:
    """Return a hypothesis as agents see it: its statement, its best t, and the weaknesses of its best factor."""
    weak = [weakness["code"] for weakness in evaluator.scores[best].sheet["weaknesses"]] if best else []
    return {
        "id": record.id,
        "mechanism": record.mechanism,
        "statement": record.statement[:MAX_RECALLED_CHARS],
        "best_t": record.best_t,
        "outcome": record.outcome,
        "worked": record.worked,
        "fate": record.fate,
        "weaknesses": weak,
    }


def _list_refusals(evaluator: Evaluator, shown: Sequence[HypothesisRecord]) -> list[dict[str, str]]:
    """Return a refused formula of each shown hypothesis, the newest hypotheses first, at most three per step."""
    refusals, counts = [], Counter[str]()
    for record in reversed(shown):
        _, text, stage, reason = evaluator.log.proposals.examples.get(record.id, ("", "", "", ""))
        if stage and counts[stage] < 3:
            counts[stage] += 1
            refusals.append({"hypothesis": record.id, "text": text, "stage": str(stage), "reason": reason})
    return refusals[:MAX_REFUSALS_SHOWN]


def _describe_operator(name: str) -> dict[str, str]:
    operator = OPERATORS[name]
    return {"name": name, "signature": operator.signature, "doc": operator.doc}
