"""The results of library factors on search and on sealed (hold-out) days, beside those on selection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..figures import number, p_value_text, plural
from ..report.cards import is_borne_out
from ..revalidation import read_revalidation_dates

if TYPE_CHECKING:
    from ...evaluation.closing import SealedExam
    from ...ledger import Ledger
    from ...library import Condition, Entry


Facts = Mapping[str, Any]
SEALED_FIGURES = ("days", "t", "p_value", "net_sharpe")
NOT_OPENED = "sealed: not opened"
UNOPENED_SENTENCE = (
    "sealed: not opened. Search and selection days helped to choose these factors: expect less on new days. "
    "alphaloom evidence open RUN opens a run's sealed (hold-out) days, once."
)


def list_rows(ledger: Ledger, conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Return the JSON rows of a list: the condition of each factor, with its figures on sealed and search days."""
    exams: dict[str, SealedExam | None] = {}
    dates = read_revalidation_dates(ledger)
    rows = []
    for condition in conditions:
        row = _add_windows(condition.record(), condition.entry, ledger, exams)
        own = dates.get(condition.entry.factor_id)
        rows.append({**row, "revalidate_by": own.due if own else None})
    return rows


def describe_fully(ledger: Ledger, condition: Condition) -> dict[str, Any]:
    """Return all records of one factor as JSON, with its figures on sealed and search days.

    `revalidation` says by when a person looks at it again, None for a factor that nobody is asked about; `used_by` has
    the books that traded it at their last step.
    """
    name = condition.entry.factor_id
    own = read_revalidation_dates(ledger).get(name)
    return {
        **_add_windows(condition.full(), condition.entry, ledger, {}),
        "revalidation": own.record() if own else None,
        "used_by": list(_list_uses(ledger, name)),
    }


def _list_uses(ledger: Ledger, factor: str) -> Iterator[dict[str, Any]]:
    """Yield each book whose last step traded a factor: the run's share of equity, and the factor's weight in the run.

    A combination has no weight of its own (None): its members have.
    """
    from ...campaign import read_trading_mode

    for book in ledger.runs.all():
        if "book" not in book.config:
            continue
        body, _, _ = read_trading_mode(ledger, book.id)
        if body is None:
            continue
        for run, part in body["library"]["books"].items():
            weight = part["factors"].get(factor)
            members = body["decision"]["standings"].get(factor, {}).get("members", ())
            if weight is not None or any(member in part["factors"] for member in members):
                name = book.id.removeprefix("book-")
                yield {"book": name, "day": body["day"], "run": run, "share": part["share"], "weight": weight}


def _add_windows(record: Facts, entry: Entry, ledger: Ledger, exams: dict[str, SealedExam | None]) -> dict[str, Any]:
    """Return a condition's record with `sealed`, search and selection before its other figures.

    RankIC and t are in the direction held. `sealed` is None where the run's sealed days were not opened; its figures
    are None where they were opened and this factor was not examined. `exams` caches those that were read.
    """
    from ...evaluation import read_sealed_exam

    if entry.run not in exams:
        exams[entry.run] = read_sealed_exam(ledger, entry.run) if entry.run else None
    rank_ic = entry.search.get("rank_ic")
    named = {name: record[name] for name in ("id", "text", "status")}
    windows = {
        "sealed": _record_sealed(entry, exams[entry.run]),
        "search_rank_ic": None if rank_ic is None else abs(rank_ic),
        "selection_rank_ic": record["selection_rank_ic"],
    }
    return {**named, **windows, **record}


def _record_sealed(entry: Entry, exam: SealedExam | None) -> dict[str, Any] | None:
    if exam is None or not exam.opened:
        return None
    factor = exam.factors.get(entry.factor_id)
    if factor is None:
        return {"number": exam.number, "rank_ic": None, **dict.fromkeys(SEALED_FIGURES), "holds": None}
    signed = {"rank_ic": factor.rank_ic, "t": factor.t}
    turned = {name: None if value is None else factor.sign * value for name, value in signed.items()}
    figures = {name: getattr(factor, name) for name in SEALED_FIGURES} | turned
    return {"number": exam.number, **figures, "holds": is_borne_out(factor)}


def describe_sealed(row: Facts) -> str:
    """Return the sealed result of a row in two short lines."""
    sealed = row["sealed"]
    if sealed is None:
        return NOT_OPENED
    if sealed["rank_ic"] is None:
        return "not examined"
    outcome = "holds" if sealed["holds"] else "does not hold"
    repeated = f", opening {sealed['number']}" if sealed["number"] != 1 else ""
    return f"{number(sealed['rank_ic'], 4, sign=True)}, p {p_value_text(sealed['p_value'])}\n{outcome}{repeated}"


def summarise_sealed(rows: Sequence[Facts]) -> str:
    """Return what the sealed days say of a list in a sentence: how many hold, and the mean RankIC by window."""
    examined = [row for row in rows if row["sealed"] and row["sealed"]["rank_ic"] is not None]
    if not examined:
        return UNOPENED_SENTENCE
    held = sum(bool(row["sealed"]["holds"]) for row in examined)
    means = [
        _format_mean([row["sealed"]["rank_ic"] for row in examined]),
        _format_mean([row["search_rank_ic"] for row in examined]),
        _format_mean([row["selection_rank_ic"] for row in examined]),
    ]
    return (
        f"On the sealed (hold-out) days, which chose nothing, {held} of {len(examined)} hold (p at most 0.05, one test "
        f"each). Mean RankIC there {means[0]}, against {means[1]} on search and {means[2]} on selection: the first is "
        f"the one to expect.{_describe_limits(rows)}"
    )


def _format_mean(values: Sequence[float | None]) -> str:
    present = [value for value in values if value is not None]
    return number(sum(present) / len(present) if present else None, 4, sign=True)


def _describe_limits(rows: Sequence[Facts]) -> str:
    """Return what the sentence does not cover: days that were opened before, and factors without an exam."""
    repeated = sum(bool(row["sealed"]) and row["sealed"]["number"] != 1 for row in rows)
    closed = sum(row["sealed"] is None for row in rows)
    again = f" {plural(repeated, 'row')} of days that had been opened before: no exam on unseen days." * bool(repeated)
    return again + f" {plural(closed, 'row')} with sealed days not opened." * bool(closed)
