"""Watch the library on new days: score each factor, record its RankIC, and apply the status changes of `status.py`.

A day is new if it is after the end of the panel on which a factor was judged, after all days on which the library had
been watched before that judgement (a person had seen those), and after the sealed window of every data set of the
workspace that shares names with the panel. No sealed day is ever read. Days count in order, once their label is
complete, and the first reading of a day stands. A panel with other values on recorded days is refused, or with a
person's reason used for later days only. Watched days count against any later selection window over the same days and
names.

Watching daily or once in three years leaves the same record.
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
    """Tell whether a factor is watched on new days; an unjudged factor has no claim to test."""
    unjudged = entry.origin in (ADDED_BY_HAND, IMPORTED) and entry.terms is None
    return entry.status != "retired" and not unjudged


@dataclass(frozen=True)
class LibraryWatch:
    """Watches the library and the watchlist of a workspace on one panel."""

    ledger: Ledger
    panel: Panel
    dataset: str
    settings: EvidenceSettings
    runner: Runner | None = None
    _labels: dict[tuple[int, str, str], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def run(self, revised: str = "") -> list[FactorReading]:
        """Score new days, record them and the status changes; return one reading for each watched factor.

        Parameters
        ----------
        revised
            A person's reason to continue with a panel that has other values on recorded days.

        Raises
        ------
        EvidenceError
            The panel has other values on recorded days and there is no reason, or it has returns that the workspace
            knows under other dates; nothing is recorded.
        """
        self._refuse_moved_dates()
        with self.ledger.library.lock():
            readings = [self._read_factor(entry) for entry in list_entries(self.ledger) if is_watchable(entry)]
            self._refuse_changed_days(readings, revised)
            changed = judge_new_days(readings, self.ledger, self._engine, self.settings)
            passes = [self._make_pass(reading, revised) for reading in changed.readings if reading.new]
            standings = [standing for reading in changed.readings for standing in reading.changes]
            self.ledger.library.record(rows=changed.rows, standings=standings, passes=passes)
        return list(changed.readings)

    # Reading the panel.

    @cached_property
    def _engine(self) -> Computing:
        adjusted = adjust_forwards(self.panel)
        contained = Contained(adjusted, self.runner, self.ledger.workspace / PYTHON_FOLDER) if self.runner else None
        return Computing(Engine(adjusted), contained)

    @cached_property
    def _exposures(self) -> Exposures:
        return measure_exposures(self.panel)

    @cached_property
    def _last_closed_day(self) -> str:
        """Return the last sealed day of data sets that share names with the panel; watching starts after it."""
        return self.ledger.trials.last_sealed_day(self._make_key(str(self.panel.dates[0]), str(self.panel.dates[-1])))

    def _make_key(self, first_day: str, last_day: str) -> WindowKey:
        return WindowKey(self.dataset, first_day, last_day, self.panel.symbols, self.panel.fingerprint)

    def _first_row_after(self, day: str) -> int:
        """Return the first row after a day."""
        return int(np.searchsorted(self.panel.dates, np.datetime64(day, "D"), side="right"))

    def _get_label(self, terms: JudgementTerms) -> NDArray[np.float64]:
        """Return the label of the days that may be watched, `[T, N]`; NaN before them."""
        key = (terms.horizon_days, terms.returns, terms.label_scale)
        if key not in self._labels:
            label = forward_returns(self.panel, terms.horizon_days)
            label[: self._first_row_after(self._last_closed_day) if self._last_closed_day else 0] = np.nan
            self._labels[key] = build_label(label, self.panel, self._exposures, terms.returns, terms.label_scale)
        return self._labels[key]

    def _read_factor(self, entry: Entry) -> FactorReading:
        """Read one factor's new days, and its recorded days again."""
        before = self.ledger.library.sightings(entry.factor_id)
        lacking = self._find_obstacle(entry)
        if lacking or entry.terms is None:
            return FactorReading(entry, before, lacking=lacking)
        last = before[-1].day if before else ""
        first = self._first_row_after(max(entry.terms.judged_to, self._last_closed_day))
        stop = max(self.panel.days - entry.terms.horizon_days - 1, 0)
        first_new = max(first, self._first_row_after(last)) if last else first
        # Idiosyncratic volatility is a mean of residuals, and each residual needs the beta of its day.
        lead = entry.expression.warmup + BETA_DAYS + IDIOSYNCRATIC_DAYS
        if first_new < stop and first_new < lead:
            message = f"the panel begins on {self.panel.dates[0]}; {lead} days must come before the first new one"
            return FactorReading(entry, before, lacking=message)
        if first >= stop:
            since = max(entry.terms.judged_to, self._last_closed_day)
            return FactorReading(entry, before, lacking=f"no complete new day yet; days after {since} count")
        try:
            daily = self._score_days(entry, entry.terms, slice(max(first, lead), stop))
        except (PythonRefused, NeedsSandbox) as error:  # only this factor fails; the others are watched
            return FactorReading(entry, before, lacking=error.message)
        new = [Sighting(entry.factor_id, day, value) for day, value in daily.items() if day > last]
        absent = len({*entry.terms.names} - {*self.panel.symbols})
        return FactorReading(entry, before, new, find_changed_days(before, daily), absent=absent)

    def _find_obstacle(self, entry: Entry) -> str:
        """Return why this panel cannot observe a factor; empty if it can."""
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

    def _score_days(self, entry: Entry, terms: JudgementTerms, rows: slice) -> dict[str, float | None]:
        """Return the RankIC by day of a factor as written, None where undefined."""
        sweep = self._engine.sweep(entry.expression, (rows.stop,), rows.start)  # Python code day by day, as it is held
        if sweep.fault:
            raise PythonRefused(f"its code failed on these days: {sweep.fault['message']}", stage=sweep.fault["stage"])
        values = np.ascontiguousarray(sweep.values[rows])
        daily = row_rank_correlation(values, order_rows(np.ascontiguousarray(self._get_label(terms)[rows])))
        return {str(day): round_significant(value) for day, value in zip(self.panel.dates[rows], daily, strict=True)}

    def _refuse_changed_days(self, readings: Sequence[FactorReading], revised: str) -> None:
        """Refuse a panel with other values on recorded days, unless a person gives a reason."""
        changed = [reading for reading in readings if reading.unlike]
        if not changed or revised:
            return
        worst = max(changed, key=lambda reading: len(reading.unlike))
        day, was, now = worst.unlike[0]
        raise EvidenceError(
            f"The panel tells something else of {len(worst.unlike)} of {len(worst.before)} days that were seen before "
            f"of {worst.entry.factor_id}: on {day} its RankIC was {_format_rank_ic(was)} and would be "
            f"{_format_rank_ic(now)}. Nothing was recorded.",
            field="--panel",
            got=self.panel.digest[:12],
            allowed=f"the days that were seen, with RankICs equal to {RANK_IC_TOLERANCE}",
            hint='Give the file that was watched before with days added, or say --revised "why": what was seen stays, '
            "and only later days are read from this panel.",
            code="panel_disagrees",
            exit_code=1,
        )

    def _refuse_moved_dates(self) -> None:
        """Refuse known returns under other dates, by which searched or sealed days could count as new."""
        known = self.ledger.trials.known_as(self._make_key(str(self.panel.dates[0]), str(self.panel.dates[-1])))
        if known:
            raise EvidenceError(
                f"The panel has known returns under other dates: those of {known[0]}; this workspace knows them as "
                f"those of {known[1]}. Nothing was recorded.",
                field="--panel",
                got=known[0],
                allowed=known[1],
                hint="Give the file with the dates that it had at the first campaign, and new days added.",
                code="panel_disagrees",
                exit_code=1,
            )

    def _make_pass(self, reading: FactorReading, revised: str) -> Pass:
        """Return the record of a reading."""
        days = [sighting.day for sighting in reading.new]
        window = self._make_key(days[0], days[-1])
        details: dict[str, Any] = {"panel": self.panel.digest, "days": len(days)}
        details |= {"absent": reading.absent} if reading.absent else {}
        if reading.unlike:
            details |= {"revised": revised, "unlike": len(reading.unlike)}
        return Pass(reading.entry.factor_id, window, reading.new, details)


def _format_rank_ic(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.4f}"
