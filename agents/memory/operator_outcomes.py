"""Outcomes of mutation operators: how often each made a child better than its parent, by the parent's weakness.

Counted from a run's journal when a round ends, and stored there under the round, so that people can see what the
agents are shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from ..records import DraftBody, FormulaAttempt, finite_or_none, iterate_branches, read_attempt, read_proposal
from ..schemas import UNDIRECTED_CHANGES, Operator
from ..search_context import AgentJournal, Json, SearchContext

__all__ = [
    "ANY_WEAKNESS",
    "MUTATION_PREFIX",
    "NO_WEAKNESS",
    "OTHER_OPERATOR",
    "add_descent",
    "count_outcomes",
    "describe_operators",
    "parse_operator",
    "pool_rows",
    "read_attempts",
    "record_operators",
]

OPERATORS_KIND = "operators"
MUTATION_PREFIX = "mutate: "
"""Prefix of the intent of an undirected change."""
NO_WEAKNESS, ANY_WEAKNESS, OTHER_OPERATOR = "none", "any", "other"
"""Values of `where`: a parent without a named weakness, and all parents together. Value of `operator`: a model's intent
that names no known change."""
KNOWN_OPERATORS = frozenset({*get_args(Operator), *(MUTATION_PREFIX + name for name in UNDIRECTED_CHANGES)})
MAX_CELLS_SHOWN = 40
"""Rows by weakness that a prompt shows, the most tried ones, beside one row for each operator."""


def parse_operator(intent: str) -> str:
    """Return the change that an intent names; of several successive ones, the first."""
    first = intent.split(" + ")[0].strip()
    return first if first in KNOWN_OPERATORS else OTHER_OPERATOR


def add_descent(candidate: DraftBody, rows: Iterable[Json]) -> DraftBody:
    """Return a candidate with its parent's t and first weakness from a prompt's rows; an unknown parent is dropped."""
    draft = candidate.copy()
    parent_id = draft.pop("parent", "")
    parent = next((row for row in rows if row.get("id") and row["id"] == parent_id), None)
    if parent is None:
        return draft
    where = next(iter(parent.get("weaknesses") or []), NO_WEAKNESS)
    return {**draft, "parent": parent["id"], "parent_t": finite_or_none(parent.get("t")) or 0.0, "where": str(where)}


def record_operators(search: SearchContext, round_number: int) -> None:
    """Record the outcomes up to the end of a round, once: the table of the round before plus this round's scores."""
    key = _name_round(round_number)
    if search.journal.read(OPERATORS_KIND, key) is None:
        steps, repairs = search.config.steps, search.config.repairs
        fresh = read_attempts(search.journal, round_number, steps, repairs)
        search.journal.record(
            OPERATORS_KIND, key, {"rows": count_outcomes(fresh, _read_rows(search, round_number - 1))}
        )


def describe_operators(search: SearchContext, round_number: int) -> list[Json]:
    """Return the rows for a round's prompts: each operator over all parents, then by weakness.

    Rows are `{operator, where, tried, better, gain}`; `gain` is the mean of |t| of a child less |t| of its parent.
    """
    rows = _read_rows(search, round_number - 1) if search.config.memory else []
    largest = sorted(rows, key=lambda row: (-row["tried"], row["operator"], row["where"]))[:MAX_CELLS_SHOWN]
    return [_describe_row(row) for row in (*pool_rows(rows), *largest)]


def pool_rows(rows: Sequence[Json]) -> list[Json]:
    """Return one row for each operator, summed over all weaknesses, by name."""
    totals: dict[str, Json] = {}
    for row in rows:
        total = totals.setdefault(row["operator"], _make_row(row["operator"], ANY_WEAKNESS))
        for name in ("tried", "better", "gained"):
            total[name] += row[name]
    return [totals[name] for name in sorted(totals)]


def count_outcomes(attempts: Iterable[FormulaAttempt], rows: Sequence[Json] = ()) -> list[Json]:
    """Return rows `{operator, where, tried, better, gained}` by operator and weakness, updated with new scores.

    Parameters
    ----------
    attempts
        Attempts at formulas; refused ones and those without a parent are ignored.
    rows
        The rows so far. `gained` sums |t| of a child less |t| of its parent.
    """
    totals = {(row["operator"], row["where"]): dict(row) for row in rows}
    for attempt in attempts:
        if attempt.refusal is None and attempt.descent is not None:
            operator, where = parse_operator(attempt.intent), attempt.descent.where
            row = totals.setdefault((operator, where), _make_row(operator, where))
            gain = abs(attempt.sheet.t_or_zero) - abs(attempt.descent.parent_t)
            row["tried"], row["better"] = row["tried"] + 1, row["better"] + int(gain > 0)
            row["gained"] += gain
    return [totals[key] for key in sorted(totals)]


def read_attempts(journal: AgentJournal, round_number: int, steps: int, repairs: int) -> Iterator[FormulaAttempt]:
    """Yield the attempts of a round, in the order of branches, steps and attempts."""
    branches = iterate_branches(journal, round_number)
    for branch, step, attempt in itertools.product(branches, range(steps + 1), range(repairs + 1)):
        for item in read_proposal(journal, f"{branch}/s{step}/a{attempt}").items:
            yield read_attempt(journal, item["key"])


def _name_round(round_number: int) -> str:
    return f"r{round_number:02d}"


def _read_rows(search: SearchContext, round_number: int) -> list[Json]:
    return list((search.journal.read(OPERATORS_KIND, _name_round(round_number)) or {}).get("rows", []))


def _make_row(operator: str, where: str) -> Json:
    return {"operator": operator, "where": where, "tried": 0, "better": 0, "gained": 0.0}


def _describe_row(row: Json) -> Json:
    parts = {name: row[name] for name in ("operator", "where", "tried", "better")}
    return {**parts, "gain": round(row["gained"] / row["tried"], 2)}
