"""The library as one run sees it, and the published factors: what a candidate is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..evidence import EvidenceSettings, PythonRefused
from ..evidence.gate import DECAYING_EVENT
from ..evidence.originality import (
    AddedValue,
    Catalogue,
    KnownLibrary,
    LibraryValues,
    read_published,
    values_of_published,
)
from ..evidence.scoring import Scorer
from ..factors import Expression, parse
from ..ledger import Ledger, LibraryRow
from ..library import choose_own_text, list_comparable, list_decaying, read_retired
from .panel_factors import PanelFactors
from .pending_cases import Reviews


@dataclass(frozen=True)
class RunLibrary:
    """The library as it was at the start of the run, with the run's own additions, and the published factors."""

    factors: PanelFactors
    scorer: Scorer
    reviews: Reviews
    settings: EvidenceSettings

    @property
    def ledger(self) -> Ledger:
        """Return the record that holds the library."""
        return self.factors.log.ledger

    @property
    def run(self) -> str:
        """Return the run that sees it."""
        return self.factors.log.run

    def record_start(self) -> None:
        """Record the library at the start of the run, so that later additions of other runs do not affect it."""
        self.reviews.settle()
        factor_ids = [row.factor_id for row in self.ledger.library.rows()]
        bodies = {"library": factor_ids, "retired": sorted(read_retired(self.ledger, self.run))}
        for kind, body in {**bodies, DECAYING_EVENT: list_decaying(self.ledger, self.factors.windows)}.items():
            if not self.ledger.events.of(self.run, kind):
                self.ledger.events.record(self.run, kind, "start", body)

    @cached_property
    def _ids_at_start(self) -> frozenset[str] | None:
        events = self.ledger.events.of(self.run, "library")
        return frozenset(events[0].body) if events else None

    def rows(self) -> list[LibraryRow]:
        """Return the library as this run sees it: its state at the start, and the run's accepted and waiting ones."""
        rows, at_start = self.ledger.library.rows(), self._ids_at_start
        accepted = {row.factor_id for row in self.ledger.verdicts.of(self.run) if self.reviews.word(row) == "accepted"}
        for event in self.ledger.events.of(self.run, "set"):
            accepted |= {*event.body} if event.key in accepted else set()
        visible = {row.factor_id: row for row in rows if at_start is None or row.factor_id in at_start | accepted}
        visible |= {row.factor_id: row for row in self.reviews.undecided() if row.factor_id not in visible}
        return [visible[name] for name in sorted(visible)]

    def comparable_rows(self) -> list[LibraryRow]:
        """Return the readable library rows that make a candidate redundant; retired ones if the settings say so."""
        rows = [row for row in self.rows() if row.factor_id not in self.unreadable]
        return list_comparable(self.ledger, self.run, rows, self.settings.library)

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Return why the language refuses a formula of the library, by id; nothing is compared with it."""
        return self._known_library.unreadable

    def catalogue(self) -> Catalogue:
        """Return the known formulas: the published factors and the workspace's library."""
        return Catalogue((*([read_published()] if self.settings.published else []), *self._known_library.shelves))

    @cached_property
    def _known_library(self) -> KnownLibrary:
        return KnownLibrary(self.ledger.workspace, self._parse_row, self.rows())

    def _parse_row(self, row: LibraryRow) -> Expression:
        fields = tuple({*self.factors.panel.fields, *row.sheet.get("fields", ())})
        return parse(choose_own_text(row.factor_id, row.text, row.canonical, fields), fields=fields, refuse_units=False)

    @cached_property
    def values(self) -> LibraryValues:
        """Return the values of the library's factors that this panel can compute."""
        engine = self.factors.search_engine.forgiving(PythonRefused)  # code that fails on this panel is NaN here
        window = self.factors.windows.search
        return LibraryValues(engine, window, self.ledger.workspace, self._parse_row, self.comparable_rows())

    @cached_property
    def published_values(self) -> LibraryValues:
        """Return the values of the published factors that this panel can compute; sketched once for a panel."""
        window = self.factors.windows.search
        return values_of_published(self.factors.search_engine, window, self.ledger.workspace, self.settings)

    @cached_property
    def added_value(self) -> AddedValue:
        """Return the measure of incremental value beside the library."""
        return AddedValue.of(self.values, self.scorer, self.factors.windows.search)

    def refresh(self) -> None:
        """Add the factors that the run had accepted since the library was read."""
        self._known_library.show(self.rows())
        self.values.show(self.comparable_rows())
