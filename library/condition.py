"""The condition of a library factor: its figures on selection and on the days since, with e-values and decay tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ..evidence import LAG_PER_HORIZON, LibrarySettings, NeweyWest, newey_west_t
from ..evidence.scoring import round_significant
from ..ledger import Ledger
from .decay import DecayTest, run_decay_tests
from .entries import PROMOTED, WATCHLIST, Entry, JudgementTerms, find_entry, is_of_other_market, list_entries
from .eprocess import compute_capital, e_detector, e_lond_threshold, quarter_days, settle_quarters
from .observations import Observations


@dataclass(frozen=True)
class Condition:
    """One factor with the figures of its new days; `promoted` counts the factors that new days proved before.

    `elsewhere` is True if it was judged on a market of which this workspace has no data.
    """

    entry: Entry
    observations: Observations
    rules: LibrarySettings
    promoted: int
    elsewhere: bool = False

    @classmethod
    def of(
        cls,
        entry: Entry,
        ledger: Ledger,
        rules: LibrarySettings,
        promoted: int,
        markets: Sequence[Sequence[str]] | None = None,
    ) -> Condition:
        """Read the days of a factor; `markets` are the names of the workspace's data sets (default: the ledger's)."""
        sign = entry.terms.sign if entry.terms else 1
        observations = Observations.of(ledger.library.sightings(entry.factor_id), sign)
        market_names = list_markets(ledger) if markets is None else markets
        return cls(entry, observations, rules, promoted, is_of_other_market(entry, market_names))

    @cached_property
    def since(self) -> NeweyWest:
        """Return the mean RankIC of the new days in the claimed direction, with Newey-West errors."""
        return newey_west_t(
            self.observations.daily, LAG_PER_HORIZON * self.entry.terms.horizon_days if self.entry.terms else 0
        )

    def list_decay_tests(self, *, last: bool = False) -> Sequence[DecayTest]:
        """Return the tests for decay at the end of each quarter, or of the last one."""
        terms = self.entry.terms
        if terms is None:
            return []
        ended = len(self.observations.days) // quarter_days(terms.horizon_days)
        return run_decay_tests(
            self.observations.days,
            self.observations.daily,
            terms.promise,
            self.rules,
            first=max(ended - 1, 0) if last else 0,
        )

    @cached_property
    def e_values(self) -> Sequence[float]:
        """Return the e-value against "no RankIC in the claimed direction" at the end of each quarter."""
        terms = self.entry.terms
        if terms is None:
            return []
        return [
            float(value) for value in compute_capital(settle_quarters(self.observations.daily, 0.0, terms.horizon_days))
        ]

    @cached_property
    def decay_e_values(self) -> Sequence[float]:
        """Return the e-detector of a decay at the end of each quarter, as `list_decay_tests` has it."""
        terms = self.entry.terms
        if terms is None:
            return []
        bar = self.rules.decay_share * terms.promise.rank_ic
        return [
            float(value) for value in e_detector(settle_quarters(-self.observations.daily, -bar, terms.horizon_days))
        ]

    @cached_property
    def quarters(self) -> list[dict[str, Any]]:
        """Return each complete quarter: last day, mean RankIC, e-value and the test for decay."""
        if self.entry.terms is None:
            return []
        length, rows = quarter_days(self.entry.terms.horizon_days), []
        for number, (decay, e_value) in enumerate(zip(self.list_decay_tests(), self.e_values, strict=True)):
            mean = newey_west_t(self.observations.daily[number * length : (number + 1) * length], 0).mean
            row = {
                "day": decay.day,
                "rank_ic": round_significant(mean),
                "e_value": round_significant(e_value),
                "decay": decay.record(),
            }
            rows.append(row)
        return rows

    def record(self) -> dict[str, Any]:
        """Return the factor's row of a list, as JSON; RankICs are in the claimed direction."""
        entry, terms, since = self.entry, self.entry.terms, self.since
        decay_tests = self.list_decay_tests(last=True) if entry.status != WATCHLIST else []
        return {
            "id": entry.factor_id,
            "text": entry.canonical,
            "status": entry.status,
            "proof": entry.proof,
            "origin": entry.origin,
            "run": entry.run or None,
            "trial": entry.trial,
            "sign": terms.sign if terms else None,
            "horizon_days": terms.horizon_days if terms else None,
            "judged_to": terms.judged_to if terms else None,
            "selection_rank_ic": round_significant(terms.promise.rank_ic) if terms else None,
            "days": since.days,
            "rank_ic_since": round_significant(since.mean),
            "t_since": round_significant(since.t),
            "last_day": self.observations.days[-1] if self.observations.days else None,
            "e_value": round_significant(self.e_values[-1]) if self.e_values else None,
            "proves_at": round_significant(self._find_threshold()) if entry.status == WATCHLIST else None,
            "decay": decay_tests[-1].record() if decay_tests else None,
            "terms_known": terms is not None,
            "elsewhere": self.elsewhere,
            "lacking": entry.lacking or None,
        }

    def _find_threshold(self) -> float:
        """Return the e-value that would prove an entry of the watchlist now."""
        return e_lond_threshold(self.entry.place, self.promoted, self.rules.level) if self.entry.place else float("nan")

    def full(self) -> dict[str, Any]:
        """Return all records of the factor, as JSON."""
        entry = self.entry
        days = [
            {"day": day, "rank_ic": round_significant(value)}
            for day, value in zip(self.observations.days, self.observations.daily, strict=True)
        ]
        return {
            **self.record(),
            "written": entry.text,
            "fields": list(entry.fields),
            "hypothesis": entry.hypothesis,
            "succeeds": entry.succeeds or None,
            "successor": entry.successor or None,
            "search": _select_figures(entry.search),
            "terms": entry.terms.record() if isinstance(entry.terms, JudgementTerms) else None,
            "history": [asdict(change) for change in entry.history],
            "quarters": self.quarters,
            "daily": days,
        }


def list_conditions(ledger: Ledger, rules: LibrarySettings) -> list[Condition]:
    """Return the library and the watchlist: live and decaying factors, then the watchlist, then retired ones."""
    entries = list_entries(ledger)
    promoted = sum(entry.origin == PROMOTED for entry in entries)
    order = {"live": 0, "decaying": 0, WATCHLIST: 1, "retired": 2}
    markets = list_markets(ledger)
    conditions = [Condition.of(entry, ledger, rules, promoted, markets) for entry in entries]
    return sorted(conditions, key=lambda condition: (order[condition.entry.status], condition.entry.place or 0))


def find_condition(ledger: Ledger, name: str, rules: LibrarySettings) -> Condition:
    """Return the condition of one factor; see `find_entry` for its name and the errors."""
    promoted = sum(row.origin == PROMOTED for row in ledger.library.rows())
    return Condition.of(find_entry(ledger, name), ledger, rules, promoted)


def list_markets(ledger: Ledger) -> list[tuple[str, ...]]:
    """Return the names of each data set of a workspace."""
    return [boundaries.names for boundaries in ledger.trials.boundaries()]


def _select_figures(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the search window for a person."""
    return {name: search[name] for name in ("window", "days", "rank_ic", "icir", "t", "net_sharpe") if name in search}
