"""The library of a workspace: each factor with its origin, its judgement and its history.

A run that begins is told which factors are decaying (`list_decaying`): the formula, its hypothesis and the end of the
quarter in which it was flagged, without a figure. A flag rests on days after the panel on which the factor was judged.
These days may be disclosed because no test reads them again: a run is told only of flags whose days all lie outside its
own selection and sealed windows, and later entries of the watchlist are watched only on days after every day on which
the library was watched.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evidence import EvidenceError, LibrarySettings, RunArchive, Windows
from ..factors import Expression, ParseError, parse
from ..ledger import Ledger, LibraryRow, Run, StatusChange
from .decay import SelectionRecord

MAX_MATCHES_SHOWN = 5

ACCEPTED, PROMOTED, ADDED_BY_HAND, IMPORTED, WATCHLIST = "accepted", "promoted", "by_hand", "imported", "watchlist"
MEMBER = "member"
RULE, WATCHED = "rule", "watched"
"""Who changes a status where no person does, and the key of the change that begins to watch an entry."""
PROOF: Mapping[str, str] = {
    ACCEPTED: "proven on selection",
    MEMBER: "part of an accepted combination",
    PROMOTED: "proven on new days",
    ADDED_BY_HAND: "by hand, unproven",
    IMPORTED: "judged elsewhere, not proven here",
    WATCHLIST: "promising, unproven",
}
UNJUDGED_REASONS: Mapping[str, str] = {
    ACCEPTED: "its verdict is not in this record",
    PROMOTED: "its verdict is not in this record",
    MEMBER: "it had no trial of its own: its combination was tested",
}
UNJUDGED_PROOF = "from elsewhere, judged nowhere"
MIN_PANEL_NAME_SHARE = 0.5
"""Least share of the names on which a factor was judged that a panel must have to observe it."""

MAX_FACTORS_TOLD = 20
"""Most factors that a run is told of, so that prompts do not grow with the library."""


@dataclass(frozen=True)
class JudgementTerms:
    """The terms on which a factor was judged.

    Attributes
    ----------
    sign
        Direction in which it is held, fixed on search.
    judged_to
        The last day of the panel on which it was judged, or the last day on which the library had been watched by then
        on shared names; only later days are new.
    rank_ic
        Mean RankIC on selection of the factor as written.
    deviation
        Standard deviation of a day's RankIC on search.
    sectors
        Whether that panel had sectors, which residual returns remove; None where unknown.
    names
        Names of that panel; empty where unknown.
    label_scale
        Unit of residual returns; files older than the setting do not have it.
    """

    horizon_days: int
    returns: str
    sign: int
    judged_to: str
    rank_ic: float
    deviation: float
    sectors: bool | None = None
    names: tuple[str, ...] = ()
    label_scale: str = "none"

    @property
    def promise(self) -> SelectionRecord:
        """Return the factor on selection, in the claimed direction."""
        return SelectionRecord(self.sign * self.rank_ic, self.deviation, self.horizon_days)

    def record(self) -> dict[str, Any]:
        """Return the JSON form, without the names."""
        plain = ("horizon_days", "returns", "label_scale", "sign", "judged_to", "rank_ic", "deviation", "sectors")
        return {name: getattr(self, name) for name in plain}

    def full(self) -> dict[str, Any]:
        """Return the JSON form with the names, from which the terms can be restored."""
        return {**self.record(), "names": list(self.names)}


def write_in_own_language(expression: Expression) -> str:
    """Return the text of a formula, or its canonical form if the text is in another dialect."""
    return choose_own_text(expression.id, expression.text, expression.shown, sorted(expression.fields))


def choose_own_text(factor_id: str, text: str, canonical: str, fields: Collection[str]) -> str:
    """Return the text if it is this factor in Alphaloom's own language, else the canonical form."""
    try:
        expression = parse(text, fields=tuple(fields), refuse_units=False)
        return text if expression.id == factor_id else canonical
    except ParseError:
        return canonical


@dataclass(frozen=True)
class Entry:
    """One factor of the library or of the watchlist; `lacking` says why `terms` are unknown.

    `succeeds` is the id of the decaying factor that its hypothesis named, empty for none.
    """

    factor_id: str
    text: str
    canonical: str
    fields: tuple[str, ...]
    origin: str
    run: str
    trial: int | None
    hypothesis: str
    search: Mapping[str, Any]
    terms: JudgementTerms | None
    lacking: str
    history: Sequence[StatusChange]
    succeeds: str = ""

    @property
    def status(self) -> str:
        """Return its current status: live, decaying, retired, or watchlist."""
        return self.history[-1].status if self.history else "watchlist" if self.origin == WATCHLIST else "live"

    @property
    def proof(self) -> str:
        """Return in words how it was proven."""
        return UNJUDGED_PROOF if self.origin == IMPORTED and self.terms is None else PROOF[self.origin]

    @property
    def successor(self) -> str:
        """Return the id of the factor that replaced it, empty for none."""
        return str(self.history[-1].numbers.get("successor", "")) if self.history else ""

    @property
    def place(self) -> int | None:
        """Return its place among all watched entries of the watchlist; None if it was never watched."""
        places = [change.numbers["place"] for change in self.history if "place" in change.numbers]
        return int(places[0]) if places else None

    @cached_property
    def expression(self) -> Expression:
        """Return the formula."""
        return parse(self.own_text, fields=self.fields, refuse_units=False)

    @property
    def own_text(self) -> str:
        """Return the formula in Alphaloom's own language; earlier versions stored other dialects as written."""
        return choose_own_text(self.factor_id, self.text, self.canonical, self.fields)


def find_known_row(entry: Entry, change: StatusChange, dates: NDArray[np.datetime64]) -> int:
    """Return the row at whose close a status change was known; 0 for a person's, which holds at once.

    A change by rule rests on the label of its day, which ends `horizon_days + 1` rows later.
    """
    if change.by != RULE or change.key == WATCHED:
        return 0
    horizon = entry.terms.horizon_days if entry.terms else 0
    return int(np.searchsorted(dates, np.datetime64(change.day, "D"))) + horizon + 1


def list_known_at(entries: Sequence[Entry], dates: NDArray[np.datetime64], row: int) -> list[Entry]:
    """Return the library as it was known at the close of a row; a factor promoted later is not in it."""
    known = []
    for entry in entries:
        history = tuple(change for change in entry.history if find_known_row(entry, change, dates) <= row)
        if entry.origin != PROMOTED or any(change.status != WATCHLIST for change in history):
            known.append(replace(entry, history=history))
    return known


def list_entries(ledger: Ledger) -> list[Entry]:
    """Return the library's factors by id, then the entries of the watchlist in the order of judgement."""
    histories: dict[str, list[StatusChange]] = {}
    for standing in ledger.library.standings():
        histories.setdefault(standing.factor_id, []).append(standing)
    reader = _Reader(ledger)
    rows = ledger.library.rows()
    entries = [reader.read_entry(row, histories.get(row.factor_id, [])) for row in rows]
    factor_ids = {row.factor_id for row in rows}
    return [*entries, *reader.watchlist(factor_ids, histories)]


def find_entry(ledger: Ledger, name: str) -> Entry:
    """Return the factor with this id, start of an id, or formula.

    Raises
    ------
    EvidenceError
        No factor matches, or several do.
    """
    entries = list_entries(ledger)
    same = [entry for entry in entries if name in (entry.factor_id, entry.text, entry.canonical)]
    matches = same or [entry for entry in entries if name and entry.factor_id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ambiguous_error(name, [f"{entry.factor_id} {entry.canonical}" for entry in matches])
    hint = (
        "alphaloom library list shows what is there."
        if entries
        else "The library and the watchlist are empty: alphaloom run and alphaloom library add fill them."
    )
    raise EvidenceError(
        "No factor of the library or the watchlist has this id.", field="ID", got=name, hint=hint, code="unknown_factor"
    )


def ambiguous_error(name: str, matches: Sequence[str]) -> EvidenceError:
    """Return the error of an ambiguous start of an id, with the matches and their formulas."""
    more = f" and {len(matches) - MAX_MATCHES_SHOWN:,} more" if len(matches) > MAX_MATCHES_SHOWN else ""
    hint = f"Give more of the one that is meant: {'; '.join(matches[:MAX_MATCHES_SHOWN])}{more}"
    return EvidenceError(f"{name!r} begins several ids.", field="ID", got=name, hint=hint, code="unknown_factor")


def is_of_other_market(entry: Entry, markets: Sequence[Sequence[str]]) -> bool:
    """Tell whether an imported factor was judged on names of which no data set of this workspace has half.

    `markets` are the names of each data set on which windows were fixed; without any, the result is False.

    Such a factor counts for originality by its formula and for redundancy by its values, but these data sets cannot
    observe its claim.
    """
    if entry.origin != IMPORTED or entry.terms is None or not entry.terms.names:
        return False
    judged = set(entry.terms.names)
    return bool(markets) and all(
        len(judged.intersection(names)) < MIN_PANEL_NAME_SHARE * len(judged) for names in markets
    )


def read_retired(ledger: Ledger, run: str) -> frozenset[str]:
    """Return the factors that were retired when a run began; for a run without this record, those retired now."""
    events = ledger.events.of(run, "retired")
    if events:
        return frozenset(events[0].body)
    last = {change.factor_id: change.status for change in ledger.library.standings()}
    return frozenset(name for name, status in last.items() if status == "retired")


def list_comparable(ledger: Ledger, run: str, rows: Sequence[LibraryRow], rules: LibrarySettings) -> list[LibraryRow]:
    """Return the factors that make a run's candidates redundant; retired ones only if the rules say so."""
    unused: frozenset[str] = frozenset() if rules.retired_are_redundant else read_retired(ledger, run)
    return [row for row in rows if row.factor_id not in unused]


@dataclass(frozen=True)
class _Reader:
    """Reads each run once, whatever the number of its factors."""

    ledger: Ledger

    @cached_property
    def archives(self) -> dict[str, RunArchive]:
        return {run.id: RunArchive(self.ledger, run) for run in self.ledger.runs.all()}

    def read_entry(self, row: LibraryRow, history: Sequence[StatusChange]) -> Entry:
        """Return the entry of a library row."""
        archive = self.archives.get(row.run)
        fields = tuple(row.sheet.get("fields", ()))
        known: dict[str, Any] = {"text": row.text, "canonical": row.canonical, "fields": fields}
        known |= {"origin": row.origin, "run": row.run}
        if row.origin in (ACCEPTED, PROMOTED) and archive and row.factor_id in archive.verdicts:
            return self._read_judged(archive, row.factor_id, known, history)
        judged = row.terms.get("judged")
        terms = JudgementTerms(**{**judged, "names": tuple(judged["names"])}) if judged else None
        lacking = "" if terms else UNJUDGED_REASONS.get(row.origin, "it was never judged")
        return Entry(
            row.factor_id,
            **known,
            trial=None,
            hypothesis=row.hypothesis,
            search=row.sheet,
            terms=terms,
            lacking=lacking,
            history=tuple(history),
        )

    def watchlist(self, library: set[str], histories: Mapping[str, Sequence[StatusChange]]) -> Iterator[Entry]:
        """Yield the watchlist without the library's factors; the first run that watched a factor counts."""
        listed = set(library)
        for run, archive in self.archives.items():
            for name, verdict in sorted(archive.verdicts.items(), key=lambda item: item[1].metrics["trial"] or 0):
                if verdict.verdict != "watchlist" or name in listed:
                    continue
                listed.add(name)
                row = archive.evaluations[name]
                fields = tuple(row.sheet["fields"])
                canonical = parse(row.text, fields=fields).shown
                known = {"text": row.text, "canonical": canonical, "fields": fields, "origin": WATCHLIST, "run": run}
                yield self._read_judged(archive, name, known, histories.get(name, []))

    def _read_judged(
        self, archive: RunArchive, name: str, known: dict[str, Any], history: Sequence[StatusChange]
    ) -> Entry:
        terms, lacking = self._read_terms(archive, name)
        return Entry(
            name,
            **known,
            trial=archive.verdicts[name].metrics["trial"],
            hypothesis=archive.claims[name].title,
            search=archive.evaluations[name].sheet,
            terms=terms,
            lacking=lacking,
            history=tuple(history),
            succeeds=str(archive.claims[name].detail.get("succeeds") or ""),
        )

    def _read_terms(self, archive: RunArchive, name: str) -> tuple[JudgementTerms | None, str]:
        """Return the terms on which a run judged a factor, or why they are unknown."""
        rules, row, search = archive.rules, archive.verdicts[name], archive.evaluations[name].sheet
        selection, last = row.metrics["selection"] or {}, last_day(self.ledger, archive.run)
        if rules is None or not last:
            return None, f"run {archive.run.id} does not say by which rules, or up to which day, it judged"
        if not (selection.get("rank_ic") and search.get("rank_ic") and search.get("icir")):
            return None, "its RankIC is undefined on search or selection"
        trial = archive.trial(row)
        names = trial.window.names if trial else ()
        return JudgementTerms(
            horizon_days=rules.horizon_days,
            returns=rules.returns,
            sign=1 if search["rank_ic"] > 0 else -1,
            judged_to=max(last, self.ledger.library.seen_before(archive.run.started_at, names)),
            rank_ic=selection["rank_ic"],
            deviation=abs(search["rank_ic"] / search["icir"]),
            sectors=archive.run.config.get("sectors"),
            names=names,
            label_scale=rules.label_scale,
        ), ""


def last_day(ledger: Ledger, run: Run) -> str:
    """Return the last day of a run's panel; for an old run from its results; empty if unknown."""
    if "last_day" in run.config:
        return str(run.config["last_day"])
    digest = ledger.artefacts.digests(run.id).get("results.json")
    return str(json.loads(ledger.objects.get(digest))["data"]["last_day"]) if digest else ""


def list_decaying(ledger: Ledger, windows: Windows) -> list[dict[str, str]]:
    """Return the decaying factors of which a run with these windows may be told, by id.

    Returns
    -------
    list of dict
        ``{id, text, mechanism, hypothesis, since}``; `since` is the end of the quarter that flagged it. Empty if the
        workspace knows the run's returns under other dates, since watched days cannot be compared with its windows
        then.
    """
    if ledger.trials.known_as(windows.key(windows.search)):
        return []
    entries = [
        entry for entry in list_entries(ledger) if entry.status == "decaying" and _may_disclose(entry, ledger, windows)
    ]
    return [_describe_decaying(entry, ledger) for entry in entries[:MAX_FACTORS_TOLD]]


def _may_disclose(entry: Entry, ledger: Ledger, windows: Windows) -> bool:
    """Tell whether a factor is of these names, and was watched only on days outside selection and sealed."""
    names = set(entry.terms.names) if entry.terms else set()
    shared = len(names.intersection(windows.boundaries.names))
    closed = windows.selection.first_day, windows.sealed.last_day
    days = [sighting.day for sighting in ledger.library.sightings(entry.factor_id)]
    return shared >= MIN_PANEL_NAME_SHARE * max(len(names), 1) and not any(
        closed[0] <= day <= closed[1] for day in days
    )


def _describe_decaying(entry: Entry, ledger: Ledger) -> dict[str, str]:
    claim = RunArchive(ledger, ledger.runs.find(entry.run)).claims.get(entry.factor_id)
    since = next(change.day for change in reversed(entry.history) if change.status == "decaying")
    return {
        "id": entry.factor_id,
        "text": entry.canonical,
        "mechanism": claim.mechanism if claim else "",
        "hypothesis": entry.hypothesis,
        "since": since,
    }
