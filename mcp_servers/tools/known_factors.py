"""Factors by id that a caller may know: those of its run, its drafts, and the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ...factors import Expression, explain
from ...ledger import Ledger, LibraryRow, Run
from ..errors import McpServerError
from ..served_caller import ServedCaller

SHEET_KEYS_SHOWN = ("rank_ic", "t", "turnover", "window", "horizon_days")
"""The metrics of a library factor's search sheet that a caller sees."""

DRAFT = "draft"
"""The kind of the event that registers a draft."""

CALLER_KEY = "caller"
"""The key of the caller's id in a run's configuration."""


@dataclass(frozen=True)
class KnownFactors:
    """The factors that a caller may know."""

    served: ServedCaller

    @property
    def drafts(self) -> Drafts:
        """The caller's drafts."""
        evaluator, entry = self.served.evaluator, self.served.entry
        return Drafts(evaluator.ledger, evaluator.run, entry.caller.id, entry.as_of)

    def library(self) -> list[LibraryRow]:
        """Return the library as this run sees it, by id, without factors of fields that the caller may not read."""
        return self.served.evaluator.library.rows()

    def search(self, query: str) -> list[dict[str, Any]]:
        """Return the library factors and drafts whose id, formula, name or hypothesis contains every word."""
        words = query.lower().split()
        rows = [_describe_library_row(row) for row in self.library()] + [
            _describe_draft(draft) for draft in self.drafts.all()
        ]
        return [row for row in rows if all(word in " ".join(map(str, row.values())).lower() for word in words)]

    def get(self, name: str) -> dict[str, Any]:
        """Return the facts about a factor, by its id.

        Raises
        ------
        McpServerError
            If the caller knows no such factor.
        """
        evaluator = self.served.evaluator
        if name in evaluator.scores.lines:
            return {"where": "scored in this run", **evaluator.facts(evaluator.scores[name])}
        if entry := next((row for row in self.library() if row.factor_id == name), None):
            sheet = {key: entry.sheet[key] for key in SHEET_KEYS_SHOWN if key in entry.sheet}
            return {**_describe_library_row(entry), **self._explain_text(entry.text), "sheet": sheet}
        if draft := next((draft for draft in self.drafts.all() if draft["id"] == name), None):
            return {**_describe_draft(draft), **self._explain_text(draft["text"])}
        raise McpServerError(
            "You know of no factor with this id.",
            field="id",
            got=name,
            allowed=self.ids()[:20],
            hint="search_library lists the library and your drafts; score_factor answers with an id.",
            code="unknown_factor",
        )

    def ids(self) -> Sequence[str]:
        """Return all ids that `get` accepts, those of this run first."""
        rest = [row.factor_id for row in self.library()] + [draft["id"] for draft in self.drafts.all()]
        return list(dict.fromkeys([*self.served.evaluator.scores.lines, *rest]))

    def _explain_text(self, text: str) -> Mapping[str, Any]:
        return {"explained": explain(self.served.evaluator.read(text))}


def _describe_library_row(row: LibraryRow) -> dict[str, Any]:
    return {
        "id": row.factor_id,
        "where": "library",
        "text": row.canonical,
        "origin": row.origin,
        "hypothesis": row.hypothesis,
        "rank_ic": row.sheet.get("rank_ic"),
    }


def _describe_draft(draft: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": draft["id"],
        "where": "draft",
        "text": draft["canonical"],
        "name": draft["name"],
        "note": draft["note"],
    }


@dataclass(frozen=True)
class Drafts:
    """The drafts of one caller, of this run and of its earlier ones on data that it may know."""

    ledger: Ledger
    run: str
    caller: str
    as_of: date | None = None

    def register(self, expression: Expression, name: str, note: str) -> bool:
        """Store a draft unless the formula has one; return whether it is new."""
        if expression.id in {draft["id"] for draft in self.all()}:
            return False
        body = {"id": expression.id, "text": expression.text, "canonical": expression.shown, "name": name, "note": note}
        return self.ledger.events.record(self.run, DRAFT, expression.id, body)

    def all(self) -> list[dict[str, Any]]:
        """Return the drafts in order of id; of each formula the first."""
        bodies: dict[str, dict[str, Any]] = {}
        for run in self._list_runs():
            for event in self.ledger.events.of(run, DRAFT):
                bodies.setdefault(event.body["id"], dict(event.body))
        return [bodies[name] for name in sorted(bodies)]

    def _list_runs(self) -> Iterator[str]:
        for run in self.ledger.runs.all():
            if run.id == self.run or (run.config.get(CALLER_KEY) == self.caller and self._is_known(run)):
                yield run.id

    def _is_known(self, run: Run) -> bool:
        return self.as_of is None or str(run.config.get("last_day", "9999")) <= str(self.as_of)
