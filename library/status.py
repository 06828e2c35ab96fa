"""What new days change: factors that decay, that are retired, and entries of the watchlist that are proven.

Everything is decided at the ends of quarters, in the order of their last days, so that the record is the same however often
somebody looks.

An entry of the watchlist is proven when its e-value (`eprocess.py`: capital against "no RankIC in the claimed direction")
reaches the threshold of e-LOND, which holds the expected share of false ones at `level`, whatever the dependence between
factors. It is a stream of its own beside that of the trials: the gate's acceptances and these promotions together hold
twice the level. A plain e of 20 would be right for one entry and wrong for ten. The days after the panel were seen by
nobody, so no trial is spent, and the e-process may be read as often as one likes. What is proven joins the library only if
the library does not say the same by then.
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
from .entries import PROMOTED, WATCHLIST, Entry, list_entries
from .eprocess import compute_capital, e_lond_threshold, quarter_days, settle_quarters
from .observations import FactorReading


@dataclass(frozen=True)
class StatusChanges:
    """What follows from a pass over new days: the sights with their changes, and the factors that they prove."""

    sights: Sequence[FactorReading]
    rows: Sequence[LibraryRow]


def judge_new_days(
    sights: Sequence[FactorReading], ledger: Ledger, engine: Computing, settings: EvidenceSettings
) -> StatusChanges:
    """Return what new days change.

    Parameters
    ----------
    sights
        One for each factor that is watched; those that lack something change nothing.
    ledger
        Tells what is in the library; nothing is written.
    engine
        Of the panel, to compare the values of what is proven with the library's.
    settings
        Rules of the library, and the limits of originality and redundancy.
    """
    told = [each for each in sights if not each.lacking]
    bench = _StatusPass(ledger, engine, settings)
    for each in told:
        if each.entry.origin != WATCHLIST:
            bench.age(each, each.entry.status, each.ended())
    bench.promote([each for each in told if each.entry.origin == WATCHLIST])
    return StatusChanges([bench.outcome(each) for each in sights], list(bench.rows.values()))


@dataclass(frozen=True)
class _QuarterEnd:
    """The end of a quarter of an entry of the watchlist."""

    day: str
    place: int
    quarter: int
    e_value: float
    sight: FactorReading = field(compare=False)

    @property
    def key(self) -> tuple[str, int]:
        return self.day, self.place


@dataclass(frozen=True)
class _StatusPass:
    """Gathers changes by factor; `gone` holds the day on which each was retired in this pass."""

    ledger: Ledger
    engine: Computing
    settings: EvidenceSettings
    changes: dict[str, list[StatusChange]] = field(default_factory=dict)
    gone: dict[str, tuple[str, int]] = field(default_factory=dict)
    rows: dict[str, LibraryRow] = field(default_factory=dict)

    def outcome(self, sight: FactorReading) -> FactorReading:
        """Return a sight with its changes; what came after a retirement was not watched."""
        name = sight.entry.factor_id
        kept = sight.new
        if name in self.gone:
            kept = kept[: max((self.gone[name][1] + 1) * _length(sight) - len(sight.before), 0)]
        return replace(sight, new=kept, changes=self.changes.get(name, ()))

    def age(self, sight: FactorReading, status: str, through: range) -> None:
        """Note the changes of a library factor's status, quarter by quarter."""
        name, rules = sight.entry.factor_id, self.settings.library
        seen, promise = sight.seen, sight.terms.promise
        tests = run_decay_tests(seen.days, seen.daily, promise, rules, first=through.start) if through else []
        for quarter, test in zip(through, tests, strict=True):
            after, why = status_after(status, test, rules)
            if after != status:
                self._note(StatusChange(name, f"{test.day} {after}", after, "rule", why, test.day, test.record()))
            status = after
            if status == "retired":
                self.gone[name] = (test.day, quarter)
                return

    def promote(self, sights: Sequence[FactorReading]) -> None:
        """Note the places of new entries, and the proven ones."""
        places = self._places(sights)
        events = [event for sight in sights for event in _events(sight, places[sight.entry.factor_id])]
        promoted = sum(row.origin == PROMOTED for row in self.ledger.library())
        for event in sorted(events, key=lambda each: each.key):
            name = event.sight.entry.factor_id
            need = e_lond_threshold(event.place, promoted, self.settings.library.level)
            if name not in self.rows and event.e_value >= need and self._admit(event, need, promoted):
                promoted += 1

    def _admit(self, event: _QuarterEnd, need: float, promoted: int) -> bool:
        """Take a proven entry into the library, unless the library says the same; return whether it came in."""
        sight, name = event.sight, event.sight.entry.factor_id
        numbers = {
            "place": event.place,
            "e_value": round_significant(event.e_value),
            "threshold": round_significant(need),
        }
        numbers["promoted_before"] = promoted
        twin = self._twin(sight.entry, event.day)
        if twin:
            said = f"proven (e {event.e_value:.3g}, {need:.3g} needed), but {twin}"
            past = [*sight.entry.history, *self.changes[name]]
            if not any(each.reason.endswith(f"but {twin}") for each in past):
                self._note(StatusChange(name, f"{event.day} proven", WATCHLIST, "rule", said, event.day, numbers))
            return False
        said = (
            f"proven on new days: e {event.e_value:.3g}, {need:.3g} needed at place {event.place} "
            f"after {promoted} promoted{'; ' * bool(sight.left_out)}{sight.left_out}"
        )
        self._note(StatusChange(name, f"{event.day} promoted", "live", "rule", said, event.day, numbers))
        self.rows[name] = _row(sight.entry)
        self.age(sight, "live", range(event.quarter + 1, sight.ended().stop))
        return True

    def _note(self, standing: StatusChange) -> None:
        self.changes.setdefault(standing.factor_id, []).append(standing)

    def _places(self, sights: Sequence[FactorReading]) -> dict[str, int]:
        """Give every entry that is watched for the first time the next place."""
        taken = sum(each.key == "watched" for each in self.ledger.kept.standings())
        places: dict[str, int] = {}
        for sight in sights:
            name, known = sight.entry.factor_id, sight.entry.place
            self.changes[name] = []
            if known is None:
                taken += 1
                said = f"place {taken} of the watchlist"
                self._note(
                    StatusChange(name, "watched", WATCHLIST, "rule", said, sight.terms.judged_to, {"place": taken})
                )
            places[name] = known or taken
        return places

    def _twin(self, entry: Entry, day: str) -> str:
        """Return which factor of the library says the same on a day, in formula or in values, or nothing."""
        kept = [one for one in list_entries(self.ledger) if one.origin != WATCHLIST]
        rows = [*self.ledger.library(), *self.rows.values()]
        like = Catalogue(KnownLibrary(self.ledger.workspace, _read, rows).shelves).nearest(entry.expression)
        if like and like[0].ratio > self.settings.max_similarity:
            return f"nearly {like[0].known.name} of the library"
        live = [one.expression for one in kept if one.status != "retired"] + list(map(_read, self.rows.values()))
        live = [each for each in live if self.gone.get(each.id, ("9999", 0))[0] > day]
        return self._alike(entry, [each for each in live if each.fields <= set(self.engine.panel.fields)])

    def _alike(self, entry: Entry, live: Sequence[Expression]) -> str:
        """Return which of some factors has values like those of an entry, over the days before it was watched."""
        assert entry.terms is not None
        panel: Panel = self.engine.panel
        rows = [place for place, each in enumerate(panel.dates) if str(each) <= entry.terms.judged_to]
        engine = self.engine.until(len(rows))
        window, own = Window("before", 0, len(rows), "", ""), engine.evaluate([entry.expression])[0]
        for each, values in zip(live, engine.stream(live), strict=True):
            if abs(rank_correlation(own, values, window)) > self.settings.max_redundancy:
                return f"it says what {each.id} of the library says"
        return ""


def _length(sight: FactorReading) -> int:
    return quarter_days(sight.terms.horizon_days)


def _events(sight: FactorReading, place: int) -> list[_QuarterEnd]:
    """Return the end of each new quarter of an entry with its e-value."""
    promise = sight.terms.promise
    grown = compute_capital(settle_quarters(sight.seen.daily, 0.0, promise.horizon))
    days = sight.seen.days
    return [_QuarterEnd(days[(k + 1) * _length(sight) - 1], place, k, float(grown[k]), sight) for k in sight.ended()]


def _row(entry: Entry) -> LibraryRow:
    sheet = dict(entry.search)
    return LibraryRow(entry.factor_id, entry.text, entry.canonical, entry.hypothesis, entry.run, sheet, PROMOTED)


def _read(row: LibraryRow) -> Expression:
    return parse(row.text, fields=tuple(row.sheet.get("fields", ())), refuse_units=False)
