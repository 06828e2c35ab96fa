"""The library on new days: each factor scored again, what decayed flagged, what earned it proven, all on the record.

New is a day after the end of the panel on which a factor was judged, after all that the library had been watched on before
it was judged (somebody had seen those), and after the sealed window of every data set of the workspace that shares names
with the panel: no sealed day is ever read. A day counts once its label is complete, in order,
and once: the first reading of it stands. A panel that tells other values of days that were seen is refused, or used for
later days only, with a person's reason. What was looked at here counts against any selection window that is ever laid over
the same days and names.

What follows from it is for `status.py`. Watching day by day, or once in three years, leaves the same record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evidence import EvidenceError, EvidenceSettings, NeedsSandbox, PythonRefused
from ..evidence.scoring import (
    BETA_DAYS,
    IDIOSYNCRATIC_DAYS,
    Exposures,
    build_label,
    forward_returns,
    measure_exposures,
    round_significant,
)
from ..evidence.values import PYTHON_FOLDER, Computing, Contained
from ..factors import Engine, order_rows, row_rank_correlation
from ..ledger import Ledger, Pass, Sighting, WindowKey
from ..market import Panel, adjust_forwards, describe_derivations
from ..sandbox import Runner
from .entries import ADDED_BY_HAND, IMPORTED, MIN_PANEL_NAME_SHARE, Entry, JudgementTerms, list_entries
from .observations import RANK_IC_TOLERANCE, FactorReading, find_changed_days
from .status import judge_new_days


def is_watchable(entry: Entry) -> bool:
    """Tell whether new days are looked at for a factor; what was never judged has no claim to test."""
    unjudged = entry.origin in (ADDED_BY_HAND, IMPORTED) and entry.terms is None
    return entry.status != "retired" and not unjudged


@dataclass(frozen=True)
class LibraryWatch:
    """Looks at the library and the watchlist of a workspace on one panel."""

    ledger: Ledger
    panel: Panel
    dataset: str
    settings: EvidenceSettings
    runner: Runner | None = None
    _labels: dict[tuple[int, str, str], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def run(self, revised: str = "") -> list[FactorReading]:
        """Score what is new, record it, and record what it changes; return one look for each factor that is watched.

        Parameters
        ----------
        revised
            A person's reason to go on with a panel that tells other values of days that were seen.

        Raises
        ------
        EvidenceError
            The panel tells other values of days that were seen, and no reason was given, or it has returns that the
            workspace knows under other dates; nothing is recorded.
        """
        self._refuse_moved()
        with self.ledger.lock_library():
            looks = [self._look(entry) for entry in list_entries(self.ledger) if is_watchable(entry)]
            self._refuse(looks, revised)
            found = judge_new_days(looks, self.ledger, self._engine, self.settings)
            passes = [self._pass(look, revised) for look in found.sights if look.new]
            standings = [standing for look in found.sights for standing in look.changes]
            self.ledger.kept.record(rows=found.rows, standings=standings, passes=passes)
        return list(found.sights)

    # Reading the panel.

    @cached_property
    def _engine(self) -> Computing:
        level = adjust_forwards(self.panel)
        contained = Contained(level, self.runner, self.ledger.workspace / PYTHON_FOLDER) if self.runner else None
        return Computing(Engine(level), contained)

    @cached_property
    def _exposures(self) -> Exposures:
        return measure_exposures(self.panel)

    @cached_property
    def _closed(self) -> str:
        """Return the last day that no factor may be watched on."""
        return self.ledger.last_sealed_day(self._key(str(self.panel.dates[0]), str(self.panel.dates[-1])))

    def _key(self, first_day: str, last_day: str) -> WindowKey:
        return WindowKey(self.dataset, first_day, last_day, self.panel.symbols, self.panel.fingerprint)

    def _first_row_after(self, day: str) -> int:
        """Return the first row after a day."""
        return int(np.searchsorted(self.panel.dates, np.datetime64(day, "D"), side="right"))

    def _label(self, terms: JudgementTerms) -> NDArray[np.float64]:
        """Return the label of the days that are open to the watch, NaN before. `[T, N]`."""
        key = (terms.horizon_days, terms.returns, terms.label_scale)
        if key not in self._labels:
            label = forward_returns(self.panel, terms.horizon_days)
            label[: self._first_row_after(self._closed) if self._closed else 0] = np.nan
            self._labels[key] = build_label(label, self.panel, self._exposures, terms.returns, terms.label_scale)
        return self._labels[key]

    def _look(self, entry: Entry) -> FactorReading:
        """Read one factor's new days, and those that were seen before."""
        before = self.ledger.kept.sightings(entry.factor_id)
        lacking = self._obstacle(entry)
        if lacking or entry.terms is None:
            return FactorReading(entry, before, lacking=lacking)
        last = before[-1].day if before else ""
        first = self._first_row_after(max(entry.terms.judged_to, self._closed))
        stop = max(self.panel.days - entry.terms.horizon_days - 1, 0)
        fresh = max(first, self._first_row_after(last)) if last else first
        lead = (
            entry.expression.warmup + BETA_DAYS + IDIOSYNCRATIC_DAYS
        )  # own risk is a mean of residuals, each by its day's beta
        if fresh < stop and fresh < lead:
            said = f"the panel begins on {self.panel.dates[0]}; {lead} days must come before the first new one"
            return FactorReading(entry, before, lacking=said)
        if first >= stop:
            since = max(entry.terms.judged_to, self._closed)
            return FactorReading(entry, before, lacking=f"no complete new day: days count after {since}")
        try:
            daily = self._daily(entry, entry.terms, slice(max(first, lead), stop))
        except (PythonRefused, NeedsSandbox) as error:  # of one factor; the others can be watched all the same
            return FactorReading(entry, before, lacking=error.message)
        new = [Sighting(entry.factor_id, day, value) for day, value in daily.items() if day > last]
        absent = len({*entry.terms.names} - {*self.panel.symbols})
        return FactorReading(entry, before, new, find_changed_days(before, daily), absent=absent)

    def _obstacle(self, entry: Entry) -> str:
        """Return why this panel cannot tell of a factor, or nothing."""
        if entry.terms is None:
            return entry.lacking
        absent = sorted(set(entry.fields) - set(self.panel.fields))
        if absent:
            return f"the panel has no column {', '.join(absent)}{describe_derivations(absent)}"
        judged = set(entry.terms.names)
        shared = len(judged & set(self.panel.symbols))
        if shared < MIN_PANEL_NAME_SHARE * len(judged):
            return f"the panel has {shared} of the {len(judged)} names on which it was judged: another market"
        if entry.terms.returns == "residual" and entry.terms.sectors not in (None, "sector" in self.panel.groups):
            return (
                "it was judged on returns with sectors taken out, and the panel has none: add --sectors FILE"
                if entry.terms.sectors
                else "it was judged on a panel without sectors, and this one has them: leave --sectors away"
            )
        return ""

    def _daily(self, entry: Entry, terms: JudgementTerms, rows: slice) -> dict[str, float | None]:
        """Return the RankIC of some days, as written, None where it is undefined."""
        found = self._engine.sweep(
            entry.expression, (rows.stop,), rows.start
        )  # Python code day by day, as it would be held
        if found.fault:
            raise PythonRefused(f"its code failed on these days: {found.fault['message']}", stage=found.fault["stage"])
        values = np.ascontiguousarray(found.values[rows])
        daily = row_rank_correlation(values, order_rows(np.ascontiguousarray(self._label(terms)[rows])))
        return {str(day): round_significant(value) for day, value in zip(self.panel.dates[rows], daily, strict=True)}

    def _refuse(self, looks: Sequence[FactorReading], revised: str) -> None:
        """Refuse a panel that tells something else of days that were seen, unless a person says why."""
        wrong = [look for look in looks if look.unlike]
        if not wrong or revised:
            return
        worst = max(wrong, key=lambda look: len(look.unlike))
        day, was, now = worst.unlike[0]
        raise EvidenceError(
            f"The panel tells something else of {len(worst.unlike)} of {len(worst.before)} days that were seen before of "
            f"{worst.entry.factor_id}: on {day} its RankIC was {_format_rank_ic(was)} and would be {_format_rank_ic(now)}. Nothing was recorded.",
            field="--panel",
            got=self.panel.digest[:12],
            allowed=f"the days that were seen, with RankICs equal to {RANK_IC_TOLERANCE}",
            hint='Give the file that was watched before with days added, or say --revised "why": what was seen stays, and '
            "only later days are read from this panel.",
            code="panel_disagrees",
            exit_code=1,
        )

    def _refuse_moved(self) -> None:
        """Refuse known returns under other dates: by their dates, days that were searched or sealed could count as new."""
        known = self.ledger.known_as(self._key(str(self.panel.dates[0]), str(self.panel.dates[-1])))
        if known:
            raise EvidenceError(
                f"The panel has known returns under other dates: those of {known[0]}; this workspace knows them as those of {known[1]}. "
                "Nothing was recorded.",
                field="--panel", got=known[0], allowed=known[1],
                hint="Give the file with the dates that it had at the first campaign, and new days added.",
                code="panel_disagrees", exit_code=1,
            )  # fmt: skip

    def _pass(self, look: FactorReading, revised: str) -> Pass:
        """Return the record of a look."""
        days = [one.day for one in look.new]
        window = self._key(days[0], days[-1])
        about: dict[str, Any] = {"panel": self.panel.digest, "days": len(days)}
        about |= {"absent": look.absent} if look.absent else {}
        if look.unlike:
            about |= {"revised": revised, "unlike": len(look.unlike)}
        return Pass(look.entry.factor_id, window, look.new, about)


def _format_rank_ic(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.4f}"
