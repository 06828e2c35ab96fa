"""Factors by id, as a caller may know them: those of its run, its drafts, and the library."""

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
"""What is told of a library factor's search sheet."""

DRAFT = "draft"
"""The kind of an event that registers one."""

CALLER_KEY = "caller"
"""What a run's configuration says of who began it."""


@dataclass(frozen=True)
class KnownFactors:
    """What is there under an id."""

    served: ServedCaller

    @property
    def drafts(self) -> Drafts:
        """The caller's drafts."""
        evaluator, entry = self.served.evaluator, self.served.entry
        return Drafts(evaluator.ledger, evaluator.run, entry.caller.id, entry.as_of)

    def library(self) -> list[LibraryRow]:
        """Return the library as this run sees it, by id; of fields that the caller may not read nothing is in it."""
        return self.served.evaluator.library()

    def search(self, query: str) -> list[dict[str, Any]]:
        """Return library factors and drafts of which id, formula, name or hypothesis holds every word."""
        words = query.lower().split()
        rows = [_describe_library_row(row) for row in self.library()] + [
            _describe_draft(draft) for draft in self.drafts.all()
        ]
        return [row for row in rows if all(word in " ".join(map(str, row.values())).lower() for word in words)]

    def get(self, name: str) -> dict[str, Any]:
        """Return what is known of a factor by its id.

        Raises
        ------
        UnknownFactor
            The caller knows of none.
        """
        evaluator = self.served.evaluator
        if name in evaluator.rows.lines:
            return {"where": "scored in this run", **evaluator.facts(evaluator.rows[name])}
        if found := next((row for row in self.library() if row.factor_id == name), None):
            sheet = {key: found.sheet[key] for key in SHEET_KEYS_SHOWN if key in found.sheet}
            return {**_describe_library_row(found), **self._explained(found.text), "sheet": sheet}
        if draft := next((each for each in self.drafts.all() if each["id"] == name), None):
            return {**_describe_draft(draft), **self._explained(draft["text"])}
        raise McpServerError(
            "You know of no factor with this id.", field="id", got=name, allowed=self.ids()[:20],
            hint="search_library lists the library and your drafts; score_factor answers with an id.", code="unknown_factor",
        )  # fmt: skip

    def ids(self) -> Sequence[str]:
        """Return the ids of what `get` finds: this run's first."""
        rest = [row.factor_id for row in self.library()] + [draft["id"] for draft in self.drafts.all()]
        return list(dict.fromkeys([*self.served.evaluator.rows.lines, *rest]))

    def _explained(self, text: str) -> Mapping[str, Any]:
        return {"explained": explain(self.served.evaluator.read(text))}


def _describe_library_row(row: LibraryRow) -> dict[str, Any]:
    return {
        "id": row.factor_id, "where": "library", "text": row.canonical, "origin": row.origin, "hypothesis": row.hypothesis,
        "rank_ic": row.sheet.get("rank_ic"),
    }  # fmt: skip


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
        """Keep a draft; return whether it is new. The first that was registered stands."""
        if expression.id in {draft["id"] for draft in self.all()}:
            return False
        told = {"id": expression.id, "text": expression.text, "canonical": expression.shown, "name": name, "note": note}
        return self.ledger.record_event(self.run, DRAFT, expression.id, told)

    def all(self) -> list[dict[str, Any]]:
        """Return the drafts by id; of one formula the first."""
        found: dict[str, dict[str, Any]] = {}
        for run in self._runs():
            for event in self.ledger.events(run, DRAFT):
                found.setdefault(event.body["id"], dict(event.body))
        return [found[name] for name in sorted(found)]

    def _runs(self) -> Iterator[str]:
        for run in self.ledger.runs():
            if run.id == self.run or (run.config.get(CALLER_KEY) == self.caller and self._known(run)):
                yield run.id

    def _known(self, run: Run) -> bool:
        return self.as_of is None or str(run.config.get("last_day", "9999")) <= str(self.as_of)
