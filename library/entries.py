"""The library of a workspace: each factor with how it came in, how it was judged, and what became of it.

A run that begins is told which factors decay (`list_decaying`): a formula, its hypothesis and the end of the quarter in which
it was flagged, without a figure. The flag rests on days after the panel on which the factor was judged. They may be told,
because no test reads them again: a run is told only of flags whose days all lie outside its own selection and sealed windows,
and what is put on the watchlist from then on is watched on days after every day on which the library was watched.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..evidence import EvidenceError, LibrarySettings, RunArchive, Windows
from ..factors import Expression, ParseError, parse
from ..ledger import Ledger, LibraryRow, Run, StatusChange
from .decay import SelectionRecord

MAX_MATCHES_SHOWN = 5

ACCEPTED, PROMOTED, ADDED_BY_HAND, IMPORTED, WATCHLIST = "accepted", "promoted", "by_hand", "imported", "watchlist"
PROOF: Mapping[str, str] = {
    ACCEPTED: "proven on selection",
    PROMOTED: "proven on new days",
    ADDED_BY_HAND: "by hand, unproven",
    IMPORTED: "judged elsewhere, not proven here",
    WATCHLIST: "promising, unproven",
}
UNJUDGED_PROOF = "from elsewhere, judged nowhere"
MIN_PANEL_NAME_SHARE = 0.5
"""Share of the names on which a factor was judged that a panel must have to tell of it."""

MAX_FACTORS_TOLD = 20
"""Factors that a run is told of; a prompt must not grow with the library."""


@dataclass(frozen=True)
class JudgementTerms:
    """How a factor was judged.

    Attributes
    ----------
    sign
        Direction in which it is held, fixed on search.
    judged_to
        The last day of the panel on which it was judged, or the last one that the library had been watched on by then, on
        shared names: nothing up to it counts as new.
    rank_ic
        Mean RankIC on selection as written, not signed.
    deviation
        Standard deviation of a day's RankIC on search.
    sectors
        Whether that panel had sectors, which residual returns are without; None where unknown.
    names
        Names of that panel; empty where unknown.
    label_scale
        Unit of residual returns; files of before there was a choice do not name it.
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
        """Return what selection showed, in the claimed direction."""
        return SelectionRecord(self.sign * self.rank_ic, self.deviation, self.horizon_days)

    def record(self) -> dict[str, Any]:
        """Return the JSON form, without the names."""
        plain = ("horizon_days", "returns", "label_scale", "sign", "judged_to", "rank_ic", "deviation", "sectors")
        return {name: getattr(self, name) for name in plain}

    def full(self) -> dict[str, Any]:
        """Return the JSON form with the names, from which the terms can be made again."""
        return {**self.record(), "names": list(self.names)}


def write_in_own_language(expression: Expression) -> str:
    """Return a formula as it was written, or in canonical form where it was written in another dialect."""
    return choose_own_text(expression.id, expression.text, expression.shown, sorted(expression.fields))


def choose_own_text(factor_id: str, text: str, canonical: str, fields: Collection[str]) -> str:
    """Return the text if Alphaloom's own language reads this factor in it, else the canonical form."""
    try:
        known = parse(text, fields=tuple(fields), refuse_units=False)
        return text if known.id == factor_id else canonical
    except ParseError:
        return canonical


@dataclass(frozen=True)
class Entry:
    """One factor of the library or of the watchlist; `lacking` says why `terms` are not known.

    `succeeds` is the decaying factor that its hypothesis named, empty for none.
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
        """Return what it is now: live, decaying, retired, or watchlist."""
        return self.history[-1].status if self.history else "watchlist" if self.origin == WATCHLIST else "live"

    @property
    def proof(self) -> str:
        """Return in words what was proven of it, and where."""
        return UNJUDGED_PROOF if self.origin == IMPORTED and self.terms is None else PROOF[self.origin]

    @property
    def successor(self) -> str:
        """Return the factor that took its place, empty for none."""
        return str(self.history[-1].numbers.get("successor", "")) if self.history else ""

    @property
    def place(self) -> int | None:
        """Return its place among all entries of the watchlist that were ever watched."""
        found = [each.numbers["place"] for each in self.history if "place" in each.numbers]
        return int(found[0]) if found else None

    @cached_property
    def expression(self) -> Expression:
        """Return the formula."""
        return parse(self.own_text, fields=self.fields, refuse_units=False)

    @property
    def own_text(self) -> str:
        """Return the formula in Alphaloom's own language; earlier versions kept one of another dialect as it was written."""
        return choose_own_text(self.factor_id, self.text, self.canonical, self.fields)


def list_entries(ledger: Ledger) -> list[Entry]:
    """Return the library's factors by id, then the entries of the watchlist in the order in which they were judged."""
    histories: dict[str, list[StatusChange]] = {}
    for standing in ledger.kept.standings():
        histories.setdefault(standing.factor_id, []).append(standing)
    reader = _Reader(ledger)
    rows = ledger.library()
    held = [reader.kept(row, histories.get(row.factor_id, [])) for row in rows]
    seen = {row.factor_id for row in rows}
    return [*held, *reader.watchlist(seen, histories)]


def find_entry(ledger: Ledger, name: str) -> Entry:
    """Return the factor that a person means: an id, the start of one, or the formula.

    Raises
    ------
    EvidenceError
        None or several have that name.
    """
    known = list_entries(ledger)
    same = [one for one in known if name in (one.factor_id, one.text, one.canonical)]
    found = same or [one for one in known if name and one.factor_id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ambiguous_error(name, [f"{one.factor_id} {one.canonical}" for one in found])
    hint = "alphaloom library list shows what is there." if known else "The library and the watchlist are empty."
    raise EvidenceError(
        "No factor of the library or the watchlist has this id.", field="ID", got=name, hint=hint, code="unknown_factor"
    )


def ambiguous_error(name: str, matches: Sequence[str]) -> EvidenceError:
    """Return the error that says what the start of an id may mean, a match each with its formula."""
    more = f" and {len(matches) - MAX_MATCHES_SHOWN:,} more" if len(matches) > MAX_MATCHES_SHOWN else ""
    hint = f"Give more of the one that is meant: {'; '.join(matches[:MAX_MATCHES_SHOWN])}{more}"
    return EvidenceError(f"{name!r} begins several ids.", field="ID", got=name, hint=hint, code="unknown_factor")


def is_of_other_market(entry: Entry, markets: Sequence[Sequence[str]]) -> bool:
    """Tell whether a factor from elsewhere was judged on names of which no data set of this workspace holds half.

    `markets` are the names of each data set on which windows were fixed; where there is none, nothing is said.

    Its formula counts for originality, and its values here for redundancy; no panel of these names can tell of its claim.
    """
    if entry.origin != IMPORTED or entry.terms is None or not entry.terms.names:
        return False
    judged = set(entry.terms.names)
    return bool(markets) and all(
        len(judged.intersection(names)) < MIN_PANEL_NAME_SHARE * len(judged) for names in markets
    )


def read_retired(ledger: Ledger, run: str) -> frozenset[str]:
    """Return the factors that were retired when a run began, or are now for a run that did not note it."""
    noted = ledger.events(run, "retired")
    if noted:
        return frozenset(noted[0].body)
    last = {each.factor_id: each.status for each in ledger.kept.standings()}
    return frozenset(name for name, status in last.items() if status == "retired")


def list_comparable(ledger: Ledger, run: str, rows: Sequence[LibraryRow], rules: LibrarySettings) -> list[LibraryRow]:
    """Return the factors that make a run's candidates redundant: all but what was retired, unless that is to count."""
    unused: frozenset[str] = frozenset() if rules.retired_are_redundant else read_retired(ledger, run)
    return [row for row in rows if row.factor_id not in unused]


@dataclass(frozen=True)
class _Reader:
    """Reads runs once, whatever the number of their factors."""

    ledger: Ledger

    @cached_property
    def archives(self) -> dict[str, RunArchive]:
        return {run.id: RunArchive(self.ledger, run) for run in self.ledger.runs()}

    def kept(self, row: LibraryRow, history: Sequence[StatusChange]) -> Entry:
        """Return a factor of the library."""
        archive = self.archives.get(row.run)
        fields = tuple(row.sheet.get("fields", ()))
        told: dict[str, Any] = {"text": row.text, "canonical": row.canonical, "fields": fields}
        told |= {"origin": row.origin, "run": row.run}
        if row.origin in (ACCEPTED, PROMOTED) and archive and row.factor_id in archive.verdicts:
            return self._judged(archive, row.factor_id, told, history)
        judged = row.terms.get("judged")
        terms = JudgementTerms(**{**judged, "names": tuple(judged["names"])}) if judged else None
        lost = "its verdict is not in this record" if row.origin in (ACCEPTED, PROMOTED) else "it was never judged"
        lacking = "" if terms else lost
        return Entry(
            row.factor_id, **told, trial=None, hypothesis=row.hypothesis, search=row.sheet, terms=terms,
            lacking=lacking, history=tuple(history),
        )  # fmt: skip

    def watchlist(self, held: set[str], histories: Mapping[str, Sequence[StatusChange]]) -> Iterator[Entry]:
        """Yield what is watched and not held; the first run that put a factor on the watchlist counts."""
        seen = set(held)
        for run, archive in self.archives.items():
            for name, verdict in sorted(archive.verdicts.items(), key=lambda each: each[1].metrics["trial"] or 0):
                if verdict.verdict != "watchlist" or name in seen:
                    continue
                seen.add(name)
                row = archive.evaluations[name]
                fields = tuple(row.sheet["fields"])
                canonical = parse(row.text, fields=fields).shown
                told = {"text": row.text, "canonical": canonical, "fields": fields, "origin": WATCHLIST, "run": run}
                yield self._judged(archive, name, told, histories.get(name, []))

    def _judged(self, archive: RunArchive, name: str, told: dict[str, Any], history: Sequence[StatusChange]) -> Entry:
        terms, lacking = self._terms(archive, name)
        return Entry(
            name, **told, trial=archive.verdicts[name].metrics["trial"], hypothesis=archive.claims[name].statement,
            search=archive.evaluations[name].sheet, terms=terms, lacking=lacking, history=tuple(history),
            succeeds=str(archive.claims[name].detail.get("succeeds") or ""),
        )  # fmt: skip

    def _terms(self, archive: RunArchive, name: str) -> tuple[JudgementTerms | None, str]:
        """Return how a run judged a factor, or what is not known of it."""
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
            judged_to=max(last, self.ledger.kept.seen_before(archive.run.started_at, names)),
            rank_ic=selection["rank_ic"],
            deviation=abs(search["rank_ic"] / search["icir"]),
            sectors=archive.run.config.get("sectors"),
            names=names,
            label_scale=rules.label_scale,
        ), ""


def last_day(ledger: Ledger, run: Run) -> str:
    """Return the last day of the panel that a run saw; of an old run, as its results say; empty where nothing says it."""
    if "last_day" in run.config:
        return str(run.config["last_day"])
    digest = ledger.artefacts(run.id).get("results.json")
    return str(json.loads(ledger.get(digest))["data"]["last_day"]) if digest else ""


def list_decaying(ledger: Ledger, windows: Windows) -> list[dict[str, str]]:
    """Return the factors that decay and may be told of in a run with these windows, by id.

    Returns
    -------
    list of dict
        ``{id, text, mechanism, hypothesis, since}``; `since` is the end of the quarter that flagged it. Nothing where the
        workspace knows the run's returns under other dates: days of the watch cannot be held against its windows then.
    """
    if ledger.known_as(windows.key(windows.search)):
        return []
    shown = [
        entry for entry in list_entries(ledger) if entry.status == "decaying" and _may_be_told(entry, ledger, windows)
    ]
    return [_line(entry, ledger) for entry in shown[:MAX_FACTORS_TOLD]]


def _may_be_told(entry: Entry, ledger: Ledger, windows: Windows) -> bool:
    """Tell whether a factor is of these names, and was flagged by days that no window of the gate holds."""
    names = set(entry.terms.names) if entry.terms else set()
    own = len(names.intersection(windows.boundaries.names))
    closed = windows.selection.first_day, windows.sealed.last_day
    days = [each.day for each in ledger.kept.sightings(entry.factor_id)]
    return own >= MIN_PANEL_NAME_SHARE * max(len(names), 1) and not any(closed[0] <= day <= closed[1] for day in days)


def _line(entry: Entry, ledger: Ledger) -> dict[str, str]:
    claim = RunArchive(ledger, ledger.run(entry.run)).claims.get(entry.factor_id)
    since = next(each.day for each in reversed(entry.history) if each.status == "decaying")
    return {
        "id": entry.factor_id,
        "text": entry.canonical,
        "mechanism": claim.mechanism if claim else "",
        "hypothesis": entry.hypothesis,
        "since": since,
    }
