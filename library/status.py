"""Status changes from new days: factors that decay, that are retired, and entries of the watchlist that are proven.

All decisions are made at the ends of quarters, in the order of their last days, so the record does not depend on how
often the library is watched.

An entry of the watchlist is proven when its e-value (`eprocess.py`: capital against "no RankIC in the claimed
direction") reaches the threshold of e-LOND, which controls the false discovery rate at `level` under any dependence
between factors. This stream is separate from that of the trials: the gate's acceptances and these promotions together
have twice the level. A fixed threshold of 20 would be right for one entry and wrong for ten. The days after the panel
were unseen, so no trial is spent, and the e-process may be read at any time. A proven entry joins the library only if
it is not redundant with it by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..evidence import EvidenceSettings, Window
from ..evidence.originality import Catalogue, KnownLibrary, rank_correlation
from ..evidence.scoring import round_significant
from ..evidence.values import Computing
from ..factors import Expression, parse
from ..ledger import Ledger, LibraryRow, StatusChange
from ..market import Panel
from .decay import run_decay_tests, status_after
from .entries import PROMOTED, RULE, WATCHED, WATCHLIST, Entry, list_entries
from .eprocess import compute_capital, e_lond_threshold, quarter_days, settle_quarters
from .observations import FactorReading


@dataclass(frozen=True)
class StatusChanges:
    """The result of a pass over new days: the readings with their changes, and the rows of proven factors."""

    readings: Sequence[FactorReading]
    rows: Sequence[LibraryRow]


def judge_new_days(
    readings: Sequence[FactorReading], ledger: Ledger, engine: Computing, settings: EvidenceSettings
) -> StatusChanges:
    """Return the status changes from new days.

    Parameters
    ----------
    readings
        One for each watched factor; those with `lacking` change nothing.
    ledger
        The ledger with the library; nothing is written.
    engine
        Engine of the panel, to compare the values of proven entries with the library's.
    settings
        Rules of the library, and the limits of originality and redundancy.
    """
    complete = [reading for reading in readings if not reading.lacking]
    status_pass = _StatusPass(ledger, engine, settings)
    for reading in complete:
        if reading.entry.origin != WATCHLIST:
            status_pass.age(reading, reading.entry.status, reading.list_ended_quarters())
    status_pass.promote([reading for reading in complete if reading.entry.origin == WATCHLIST])
    return StatusChanges([status_pass.outcome(reading) for reading in readings], list(status_pass.rows.values()))


@dataclass(frozen=True)
class _QuarterEnd:
    """The end of a quarter of an entry of the watchlist."""

    day: str
    place: int
    quarter: int
    e_value: float
    reading: FactorReading = field(compare=False)

    @property
    def key(self) -> tuple[str, int]:
        return self.day, self.place


@dataclass(frozen=True)
class _StatusPass:
    """Collects changes by factor; `gone` has day and quarter of the retirements in this pass."""

    ledger: Ledger
    engine: Computing
    settings: EvidenceSettings
    changes: dict[str, list[StatusChange]] = field(default_factory=dict)
    gone: dict[str, tuple[str, int]] = field(default_factory=dict)
    rows: dict[str, LibraryRow] = field(default_factory=dict)

    def outcome(self, reading: FactorReading) -> FactorReading:
        """Return a reading with its changes, without the days after a retirement."""
        name = reading.entry.factor_id
        new = reading.new
        if name in self.gone:
            new = new[: max((self.gone[name][1] + 1) * _count_quarter_days(reading) - len(reading.before), 0)]
        return replace(reading, new=new, changes=self.changes.get(name, ()))

    def age(self, reading: FactorReading, status: str, through: range) -> None:
        """Add the changes of a library factor's status, quarter by quarter."""
        name, rules = reading.entry.factor_id, self.settings.library
        observations, promise = reading.observations, reading.terms.promise
        tests = (
            run_decay_tests(observations.days, observations.daily, promise, rules, first=through.start)
            if through
            else []
        )
        for quarter, test in zip(through, tests, strict=True):
            after, why = status_after(status, test, rules)
            if after != status:
                self._add(StatusChange(name, f"{test.day} {after}", after, RULE, why, test.day, test.record()))
            status = after
            if status == "retired":
                self.gone[name] = (test.day, quarter)
                return

    def promote(self, readings: Sequence[FactorReading]) -> None:
        """Add the places of new entries, and the promotions of proven ones."""
        places = self._assign_places(readings)
        events = [
            event for reading in readings for event in _list_quarter_ends(reading, places[reading.entry.factor_id])
        ]
        promoted = sum(row.origin == PROMOTED for row in self.ledger.library.rows())
        for event in sorted(events, key=lambda event: event.key):
            name = event.reading.entry.factor_id
            need = e_lond_threshold(event.place, promoted, self.settings.library.level)
            if name not in self.rows and event.e_value >= need and self._admit(event, need, promoted):
                promoted += 1

    def _admit(self, event: _QuarterEnd, need: float, promoted: int) -> bool:
        """Add a proven entry to the library unless it is redundant there; return whether it was added."""
        reading, name = event.reading, event.reading.entry.factor_id
        numbers = {
            "place": event.place,
            "e_value": round_significant(event.e_value),
            "threshold": round_significant(need),
        }
        numbers["promoted_before"] = promoted
        twin = self._find_twin(reading.entry, event.day)
        if twin:
            reason = f"proven (e {event.e_value:.3g}, {need:.3g} needed), but {twin}"
            past = [*reading.entry.history, *self.changes[name]]
            if not any(change.reason.endswith(f"but {twin}") for change in past):
                self._add(StatusChange(name, f"{event.day} proven", WATCHLIST, RULE, reason, event.day, numbers))
            return False
        reason = (
            f"proven on new days: e {event.e_value:.3g}, {need:.3g} needed at place {event.place} "
            f"after {promoted} promoted{'; ' * bool(reading.left_out)}{reading.left_out}"
        )
        self._add(StatusChange(name, f"{event.day} promoted", "live", RULE, reason, event.day, numbers))
        self.rows[name] = _make_row(reading.entry)
        self.age(reading, "live", range(event.quarter + 1, reading.list_ended_quarters().stop))
        return True

    def _add(self, standing: StatusChange) -> None:
        self.changes.setdefault(standing.factor_id, []).append(standing)

    def _assign_places(self, readings: Sequence[FactorReading]) -> dict[str, int]:
        """Give each entry that is watched for the first time the next place."""
        last_place = sum(standing.key == WATCHED for standing in self.ledger.library.standings())
        places: dict[str, int] = {}
        for reading in readings:
            name, place = reading.entry.factor_id, reading.entry.place
            self.changes[name] = []
            if place is None:
                last_place += 1
                reason = f"place {last_place} of the watchlist"
                self._add(
                    StatusChange(name, WATCHED, WATCHLIST, RULE, reason, reading.terms.judged_to, {"place": last_place})
                )
            places[name] = place or last_place
        return places

    def _find_twin(self, entry: Entry, day: str) -> str:
        """Return the library factor that resembles an entry on a day, by formula or values; empty if there is none."""
        entries = [other for other in list_entries(self.ledger) if other.origin != WATCHLIST]
        rows = [*self.ledger.library.rows(), *self.rows.values()]
        nearest = Catalogue(KnownLibrary(self.ledger.workspace, _parse_row, rows).shelves).nearest(entry.expression)
        if nearest and nearest[0].ratio > self.settings.max_similarity:
            return f"nearly {nearest[0].known.name} of the library"
        live = [other.expression for other in entries if other.status != "retired"]
        live += map(_parse_row, self.rows.values())
        live = [factor for factor in live if self.gone.get(factor.id, ("9999", 0))[0] > day]
        return self._find_similar(entry, [factor for factor in live if factor.fields <= set(self.engine.panel.fields)])

    def _find_similar(self, entry: Entry, live: Sequence[Expression]) -> str:
        """Return the first factor with values like an entry's over the days before it was watched, in words."""
        assert entry.terms is not None
        panel: Panel = self.engine.panel
        rows = [place for place, day in enumerate(panel.dates) if str(day) <= entry.terms.judged_to]
        engine = self.engine.until(len(rows))
        window, entry_values = Window("before", 0, len(rows), "", ""), engine.evaluate([entry.expression])[0]
        for factor, values in zip(live, engine.stream(live), strict=True):
            if abs(rank_correlation(entry_values, values, window)) > self.settings.max_redundancy:
                return f"it says what {factor.id} of the library says"
        return ""


def _count_quarter_days(reading: FactorReading) -> int:
    return quarter_days(reading.terms.horizon_days)


def _list_quarter_ends(reading: FactorReading, place: int) -> list[_QuarterEnd]:
    """Return the end of each new quarter of an entry with its e-value."""
    promise = reading.terms.promise
    capital = compute_capital(settle_quarters(reading.observations.daily, 0.0, promise.horizon))
    days = reading.observations.days
    return [
        _QuarterEnd(
            days[(number + 1) * _count_quarter_days(reading) - 1], place, number, float(capital[number]), reading
        )
        for number in reading.list_ended_quarters()
    ]


def _make_row(entry: Entry) -> LibraryRow:
    sheet = dict(entry.search)
    return LibraryRow(entry.factor_id, entry.text, entry.canonical, entry.hypothesis, entry.run, sheet, PROMOTED)


def _parse_row(row: LibraryRow) -> Expression:
    return parse(row.text, fields=tuple(row.sheet.get("fields", ())), refuse_units=False)
