"""Changes to the library by hand: add an accepted or an unjudged factor, retire one, restore one."""

from __future__ import annotations

from dataclasses import dataclass

from ..evidence import EvidenceError, LibraryRefused, RunArchive
from ..factors import Expression
from ..ledger import JsonObject, Ledger, LibraryRow, StatusChange, VerdictRow
from ..library import ADDED_BY_HAND, WATCHLIST, Entry, ambiguous_error, find_entry, list_entries, write_in_own_language
from .closing.results import find_campaign
from .pending_cases import Reviews


@dataclass(frozen=True)
class AdmittedFactor:
    """A factor of the library, and whether it was added just now."""

    entry: Entry
    new: bool


def add_accepted(ledger: Ledger, run: str, name: str) -> AdmittedFactor:
    """Add a factor that a run of this workspace accepted; campaigns do so themselves.

    Parameters
    ----------
    run, name
        Id of a run or `latest`; id of one of its verdicts, or the start of one.

    Raises
    ------
    LibraryRefused
        The verdict is not "accepted".
    EvidenceError
        The run judged no such factor.
    """
    archive = RunArchive(ledger, find_campaign(ledger, run) if run == "latest" else ledger.runs.find(run))
    verdict = _find_verdict(archive, name)
    reviews = Reviews.of(ledger, archive.run)
    word = reviews.word(verdict)
    if word == "accepted" and reviews.required and not reviews.is_settled(verdict.factor_id):
        raise LibraryRefused(
            f"{verdict.factor_id} is approved, and its run has not gone on with it: the approval may still change.",
            field="ID",
            got=verdict.factor_id,
            hint=f"The library takes it in then: alphaloom resume {archive.run.id}",
        )
    if word != "accepted":
        whose = "The gate's word" if word == verdict.verdict else "A person's word"
        raise LibraryRefused(
            f"{whose} on {verdict.factor_id} is {word}, so it cannot stand among what was accepted.",
            field="ID",
            got=word,
            allowed="accepted",
            hint="A watched factor is proven by new days: alphaloom library watch --panel PANEL.",
        )
    evaluation, factor = archive.evaluations[verdict.factor_id], archive.expression(verdict.factor_id)
    claim = archive.claims[verdict.factor_id]
    row = LibraryRow(factor.id, evaluation.text, factor.shown, claim.id, archive.run.id, evaluation.sheet)
    new = bool(ledger.library.record(rows=[row]))
    return AdmittedFactor(find_entry(ledger, factor.id), new)


def _find_verdict(archive: RunArchive, name: str) -> VerdictRow:
    verdicts = archive.verdicts
    names = [name] if name in verdicts else [factor_id for factor_id in verdicts if name and factor_id.startswith(name)]
    if len(names) == 1:
        return verdicts[names[0]]
    if names:
        raise ambiguous_error(name, [f"{factor_id} ({verdicts[factor_id].verdict})" for factor_id in sorted(names)])
    hint = f"Its verdicts are in the report of run {archive.run.id}."
    raise EvidenceError(
        f"{name!r} is no factor that this run judged.", field="ID", got=name, hint=hint, code="unknown_factor"
    )


def add_by_hand(ledger: Ledger, expression: Expression, day: str) -> AdmittedFactor:
    """Add a formula that was not judged: it counts for originality and redundancy, and is never proven.

    The gate treats it as known from then on, so it cannot be accepted in this workspace later.

    Raises
    ------
    LibraryRefused
        It is on the watchlist, where new days may still prove it.
    """
    with ledger.library.lock():
        return _add_formula(ledger, expression, day)


def _add_formula(ledger: Ledger, expression: Expression, day: str) -> AdmittedFactor:
    same = [entry for entry in list_entries(ledger) if entry.factor_id == expression.id]
    if same and same[0].origin == WATCHLIST:
        raise LibraryRefused(
            f"{expression.id} is on the watchlist of run {same[0].run}: new days may prove it, and nothing else.",
            field="EXPR",
            got=expression.text,
            allowed="a formula that no run has on its watchlist",
            hint="alphaloom library watch --panel PANEL reads what new days say of it.",
        )
    if same:
        return AdmittedFactor(same[0], False)
    sheet = {"fields": sorted(expression.fields)}
    row = LibraryRow(expression.id, write_in_own_language(expression), expression.shown, "", "", sheet, ADDED_BY_HAND)
    standing = StatusChange(expression.id, "added", "live", "hand", "added by hand; nobody judged it", day)
    ledger.library.record(rows=[row], standings=[standing])
    return AdmittedFactor(find_entry(ledger, expression.id), True)


def retire_factor(ledger: Ledger, name: str, reason: str, day: str, successor: str = "") -> Entry:
    """Retire a factor of the library by hand; nothing is deleted, and it is no longer watched.

    With a `successor` the change records which factor replaces it: a live one of the library whose hypothesis named it.
    The retired factor must then be decaying.

    Its formula stays known, so a near copy is not original. Unless the settings say otherwise it makes no factor
    redundant any more: another formula with similar values may be tried again.

    Raises
    ------
    LibraryRefused
        It is retired already, or is on the watchlist; or there is no reason; or the successor is not one.
    EvidenceError
        There is no such factor.
    """
    if not reason.strip():
        raise LibraryRefused("A retirement needs a reason.", field="--reason", got=reason, allowed="a few words")
    with ledger.library.lock():
        return _retire_entry(ledger, name, reason.strip(), day, successor)


def _retire_entry(ledger: Ledger, name: str, reason: str, day: str, successor: str) -> Entry:
    entry = find_entry(ledger, name)
    if entry.origin == WATCHLIST:
        raise LibraryRefused(f"{entry.factor_id} is on the watchlist, not in the library.", field="ID", got=name)
    if entry.status == "retired":
        last = entry.history[-1]
        raise LibraryRefused(
            f"{entry.factor_id} was retired on {last.day} by {last.by}: {last.reason}.", field="ID", got=name
        )
    heir = _find_heir(ledger, entry, successor) if successor else None
    return _write_status(ledger, entry, "retired", reason, day, {"successor": heir.factor_id} if heir else {})


def _find_heir(ledger: Ledger, entry: Entry, name: str) -> Entry:
    """Return the named successor; refuse a factor that was not judged as one."""
    heir = find_entry(ledger, name)
    if entry.status != "decaying":
        raise LibraryRefused(
            f"{entry.factor_id} is {entry.status}: only what decays is succeeded.",
            field="ID",
            got=entry.status,
            allowed="decaying",
            hint="Retire it without --successor.",
        )
    if heir.status != "live" or heir.succeeds != entry.factor_id:
        raise LibraryRefused(
            f"{heir.factor_id} is no successor of {entry.factor_id}.",
            field="--successor",
            got=heir.factor_id,
            allowed="a live factor of the library whose hypothesis named the decaying one",
            hint="A campaign on this workspace is told what decays, and may propose one.",
        )
    return heir


def restore_factor(ledger: Ledger, name: str, reason: str, day: str) -> Entry:
    """Restore the earlier status of a retired factor; its retirement stays in its history.

    From then on it is watched and makes others redundant again. The next watch reads the new days since its retirement.
    Its record is kept: if the rule retired it, the end of the next quarter may retire it again.

    Raises
    ------
    LibraryRefused
        It is not retired; or there is no reason.
    EvidenceError
        There is no such factor.
    """
    if not reason.strip():
        raise LibraryRefused("Bringing back needs a reason.", field="--reason", got=reason, allowed="a few words")
    with ledger.library.lock():
        entry = find_entry(ledger, name)
        if entry.status != "retired":
            raise LibraryRefused(
                f"{entry.factor_id} is {entry.status}, so there is nothing to bring back.",
                field="ID",
                got=entry.status,
                allowed="retired",
            )
        return _write_status(ledger, entry, _find_earlier_status(entry), reason.strip(), day)


def _find_earlier_status(entry: Entry) -> str:
    """Return the status of a factor before its retirement: decaying, or live."""
    return next((change.status for change in reversed(entry.history) if change.status in ("live", "decaying")), "live")


def _write_status(
    ledger: Ledger, entry: Entry, status: str, reason: str, day: str, numbers: JsonObject | None = None
) -> Entry:
    """Write a status change by hand into the history of a factor."""
    key = f"hand {sum(change.by == 'hand' for change in entry.history) + 1}"
    ledger.library.record(standings=[StatusChange(entry.factor_id, key, status, "hand", reason, day, numbers or {})])
    return find_entry(ledger, entry.factor_id)
