"""What a person does to the library by hand: take in what a run accepted or nobody judged, retire, bring back."""

from __future__ import annotations

from dataclasses import dataclass

from ..evidence import EvidenceError, LibraryRefused, RunArchive
from ..factors import Expression
from ..ledger import JsonObject, Ledger, LibraryRow, StatusChange, VerdictRow
from ..library import ADDED_BY_HAND, WATCHLIST, Entry, ambiguous_error, find_entry, list_entries, write_in_own_language
from .closing.results import find_campaign
from .pending_cases import Reviews

__all__ = ["AdmittedFactor", "add_accepted", "add_by_hand", "restore_factor", "retire_factor"]


@dataclass(frozen=True)
class AdmittedFactor:
    """A factor of the library, and whether it came in just now."""

    entry: Entry
    new: bool


def add_accepted(ledger: Ledger, run: str, name: str) -> AdmittedFactor:
    """Take in a factor that a run of this workspace accepted; campaigns do so by themselves.

    Parameters
    ----------
    run, name
        RUN as everywhere; an id of its verdicts, or the start of one.

    Raises
    ------
    LibraryRefused
        The verdict is another: nothing that was not accepted may look accepted.
    EvidenceError
        The run judged no such factor.
    """
    archive = RunArchive(ledger, find_campaign(ledger, run) if run == "latest" else ledger.run(run))
    verdict = _verdict(archive, name)
    word = Reviews.of(ledger, archive.run).word(verdict)
    if word != "accepted":
        whose = "The gate's word" if word == verdict.verdict else "A person's word"
        raise LibraryRefused(
            f"{whose} on {verdict.factor_id} is {word}, so it cannot stand among what was accepted.",
            field="ID", got=word, allowed="accepted",
            hint="A watched factor is proven by new days: alphaloom library watch --panel PANEL.",
        )  # fmt: skip
    evaluation, factor = archive.evaluations[verdict.factor_id], archive.expression(verdict.factor_id)
    claim = archive.claims[verdict.factor_id]
    row = LibraryRow(factor.id, evaluation.text, factor.shown, claim.id, archive.run.id, evaluation.sheet)
    new = bool(ledger.kept.record(rows=[row]))
    return AdmittedFactor(find_entry(ledger, factor.id), new)


def _verdict(archive: RunArchive, name: str) -> VerdictRow:
    known = archive.verdicts
    found = [name] if name in known else [each for each in known if name and each.startswith(name)]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise ambiguous_error(name, [f"{each} ({known[each].verdict})" for each in sorted(found)])
    hint = f"Its verdicts are in the report of run {archive.run.id}."
    raise EvidenceError(
        f"{name!r} is no factor that this run judged.", field="ID", got=name, hint=hint, code="unknown_factor"
    )


def add_by_hand(ledger: Ledger, expression: Expression, day: str) -> AdmittedFactor:
    """Take in a formula that nobody judged: it counts for originality and redundancy, and is proven never.

    The gate takes it for known from then on, so that it cannot be accepted in this workspace later.

    Raises
    ------
    LibraryRefused
        It is on the watchlist: new days may prove it, which this would end.
    """
    with ledger.lock_library():
        return _add_formula(ledger, expression, day)


def _add_formula(ledger: Ledger, expression: Expression, day: str) -> AdmittedFactor:
    same = [one for one in list_entries(ledger) if one.factor_id == expression.id]
    if same and same[0].origin == WATCHLIST:
        raise LibraryRefused(
            f"{expression.id} is on the watchlist of run {same[0].run}: new days may prove it, and nothing else.",
            field="EXPR", got=expression.text, allowed="a formula that no run has on its watchlist",
            hint="alphaloom library watch --panel PANEL reads what new days say of it.",
        )  # fmt: skip
    if same:
        return AdmittedFactor(same[0], False)
    sheet = {"fields": sorted(expression.fields)}
    row = LibraryRow(expression.id, write_in_own_language(expression), expression.shown, "", "", sheet, ADDED_BY_HAND)
    standing = StatusChange(expression.id, "added", "live", "hand", "added by hand; nobody judged it", day)
    ledger.kept.record(rows=[row], standings=[standing])
    return AdmittedFactor(find_entry(ledger, expression.id), True)


def retire_factor(ledger: Ledger, name: str, reason: str, day: str, successor: str = "") -> Entry:
    """Retire a factor of the library by hand; nothing of it is deleted, and it is watched no more.

    With a `successor` the change says which factor takes its place: a live one of the library whose hypothesis named it,
    and it must be decaying.

    Its formula stays known, so that a near copy of it is not original. It makes nothing redundant any more, unless the
    settings say so: what says the same in another formula may be tried again.

    Raises
    ------
    LibraryRefused
        It is retired already, or stands on the watchlist; or there is no reason; or the successor is none.
    EvidenceError
        There is no such factor.
    """
    if not reason.strip():
        raise LibraryRefused("A retirement needs a reason.", field="--reason", got=reason, allowed="a few words")
    with ledger.lock_library():
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
    heir = _heir(ledger, entry, successor) if successor else None
    return _write_status(ledger, entry, "retired", reason, day, {"successor": heir.factor_id} if heir else {})


def _heir(ledger: Ledger, entry: Entry, name: str) -> Entry:
    """Return the successor that a person names; only what was judged as one may be it."""
    heir = find_entry(ledger, name)
    if entry.status != "decaying":
        raise LibraryRefused(
            f"{entry.factor_id} is {entry.status}: only what decays is succeeded.", field="ID", got=entry.status,
            allowed="decaying", hint="Retire it without --successor.",
        )  # fmt: skip
    if heir.status != "live" or heir.succeeds != entry.factor_id:
        raise LibraryRefused(
            f"{heir.factor_id} is no successor of {entry.factor_id}.", field="--successor", got=heir.factor_id,
            allowed="a live factor of the library whose hypothesis named the decaying one",
            hint="A campaign on this workspace is told what decays, and may propose one.",
        )  # fmt: skip
    return heir


def restore_factor(ledger: Ledger, name: str, reason: str, day: str) -> Entry:
    """Bring a retired factor back to where it stood before; its retirement stays in its history.

    From then on it is watched and makes others redundant again. New days since are read at the next watch. Its record is
    not wiped: where the rule retired it, the end of the next quarter may do so again.

    Raises
    ------
    LibraryRefused
        It is not retired; or there is no reason.
    EvidenceError
        There is no such factor.
    """
    if not reason.strip():
        raise LibraryRefused("Bringing back needs a reason.", field="--reason", got=reason, allowed="a few words")
    with ledger.lock_library():
        entry = find_entry(ledger, name)
        if entry.status != "retired":
            raise LibraryRefused(
                f"{entry.factor_id} is {entry.status}, so there is nothing to bring back.", field="ID", got=entry.status,
                allowed="retired",
            )  # fmt: skip
        return _write_status(ledger, entry, _earlier_status(entry), reason.strip(), day)


def _earlier_status(entry: Entry) -> str:
    """Return what a retired factor was before: decaying, or live."""
    return next((each.status for each in reversed(entry.history) if each.status in ("live", "decaying")), "live")


def _write_status(
    ledger: Ledger, entry: Entry, status: str, reason: str, day: str, numbers: JsonObject | None = None
) -> Entry:
    """Write what a person made of a factor, as a further entry of its history."""
    key = f"hand {sum(each.by == 'hand' for each in entry.history) + 1}"
    ledger.kept.record(standings=[StatusChange(entry.factor_id, key, status, "hand", reason, day, numbers or {})])
    return find_entry(ledger, entry.factor_id)
