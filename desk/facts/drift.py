"""What drifted, from the record alone: versions, calls, proposals, signals, library factors and data, month by month.

Months are those in which a row was recorded (UTC). A run's own rows are counted; a reply that was taken from another
run's record counts there alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ..figures import DASH, count, money, number, p_value_text, percent, plural
from .changes import DIGEST_CHARS, describe_change

if TYPE_CHECKING:
    from ...ledger import ChangeRow, Ledger
    from ...library import Condition

MONTH_CHARS: Final = len("2026-01")
SLOW_SHARE: Final = 0.95
LEAST_MONTHS: Final = 2
MAX_VERSIONS_SHOWN: Final = 20
MAX_REASONS_SHOWN: Final = 3
SCORED: Final = "scored"
MOST_DECISIONS: Final = 1_000_000
WATCH: Final = "watch of the library"
RISK_EVENT, BOOK_STEP_EVENT = "risk", "book.step"


@dataclass(frozen=True)
class CallMonth:
    """The model calls of one month.

    Attributes
    ----------
    calls, by_model
        Calls that were sent and answered, and how many each model answered, by its name in the file.
    refused, repairs, unread
        Replies that the model or its provider refused, calls that asked for a reply to be repaired, and calls whose
        texts are erased, so that neither is known.
    retried
        Calls that were sent more than once.
    usd
        US dollars.
    median_s, slow_s
        Seconds from the reservation of a call to its record: the median, and what 95 % of calls did not exceed; None
        where no reservation is on record.
    """

    month: str
    calls: int
    by_model: Mapping[str, int]
    refused: int
    repairs: int
    unread: int
    retried: int
    usd: float
    median_s: float | None
    slow_s: float | None


@dataclass(frozen=True)
class OutcomeMonth:
    """Proposals or signals of one month: how many, and how many were refused, by reason; one may have several."""

    month: str
    total: int
    refused: int
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class DataChange:
    """A data set whose panel has another digest than at its use before: when, by which run, and the last days."""

    at: str
    run: str
    dataset: str
    before: str
    after: str
    last_day_before: str
    last_day: str


@dataclass(frozen=True)
class DriftReport:
    """What drifted; `run` is the campaign or book of the report, empty for the whole record.

    `factors` are those of the library and the watchlist with days after their evidence, as `alphaloom library list
    --json` has them. `changes` begin with the newest.
    """

    run: str
    changes: Sequence[ChangeRow]
    calls: Sequence[CallMonth]
    proposals: Sequence[OutcomeMonth]
    signals: Sequence[OutcomeMonth]
    factors: Sequence[Mapping[str, Any]]
    data: Sequence[DataChange]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        names = ("calls", "proposals", "signals", "data")
        return {
            "run": self.run or None,
            "changes": [row.record() for row in self.changes],
            **{name: [asdict(row) for row in getattr(self, name)] for name in names},
            "factors": list(self.factors),
        }


def read_drift(ledger: Ledger, name: str = "") -> DriftReport:
    """Return what drifted in a record, or in the rows of one campaign or book.

    Raises
    ------
    UnknownRun
        There is no such campaign or book.
    """
    from ...evaluation import find_campaign
    from ...evidence import LibrarySettings
    from ...ledger import CHANGE_KINDS, list_changes
    from ...library import list_conditions

    every = ledger.runs.all()
    books = {run.id.removeprefix("book-"): run.id for run in every if "book" in run.config}
    run = ""
    if name:
        run = (find_campaign(ledger, name) if name == "latest" else ledger.runs.find(books.get(name, name))).id
    runs = [run] if run else [one.id for one in every]
    changes = [row for row in list_changes(ledger, kinds=CHANGE_KINDS) if row.what == "changed" and row.run in runs]
    own = [one for one in list_conditions(ledger, LibrarySettings()) if not run or run == one.entry.run]
    return DriftReport(
        run,
        changes,
        _count_calls(ledger, runs),
        _count_proposals(ledger, runs),
        _count_signals(ledger, runs),
        [_describe_factor(one) for one in own if one.observations.days],
        [one for one in _find_data_changes(ledger) if not run or one.run == run],
    )


# Model calls.


def _count_calls(ledger: Ledger, runs: Sequence[str]) -> list[CallMonth]:
    starts = ledger.holds.list_starts()
    months: dict[str, list[tuple[Mapping[str, Any], float | None]]] = defaultdict(list)
    for at, run, key, call in ledger.calls.list_bodies():
        if run in runs and call.get("attempts", 1):
            began = starts.get((run, key))
            seconds = (datetime.fromisoformat(at) - datetime.fromisoformat(began)).total_seconds() if began else None
            months[at[:MONTH_CHARS]].append((call, seconds))
    return [_sum_calls(ledger, month, rows) for month, rows in sorted(months.items())]


def _sum_calls(ledger: Ledger, month: str, rows: Sequence[tuple[Mapping[str, Any], float | None]]) -> CallMonth:
    calls = [call for call, _ in rows]
    seconds = sorted(taken for _, taken in rows if taken is not None)
    texts = [_judge_texts(ledger, call) for call in calls]
    return CallMonth(
        month,
        len(calls),
        dict(Counter(str(call["model"]) for call in calls).most_common()),
        sum(refused is True for refused, _ in texts),
        sum(repairs is True for _, repairs in texts),
        sum(None in pair for pair in texts),
        sum(call.get("attempts", 1) > 1 for call in calls),
        math.fsum(call["cost_usd"] for call in calls),
        median(seconds) if seconds else None,
        seconds[math.ceil(SLOW_SHARE * len(seconds)) - 1] if seconds else None,
    )


def _judge_texts(ledger: Ledger, call: Mapping[str, Any]) -> tuple[bool | None, bool | None]:
    """Return whether a call's reply was refused, and whether it asked for a repair; None where the text is gone."""
    from ...router.calls import REFUSED, REPAIR_OPENING

    reply, request = (_read_object(ledger, str(call[name])) for name in ("reply", "request"))
    messages = (request or {}).get("messages") or [{}]
    asked = str(messages[-1].get("content", ""))
    return (
        None if reply is None else reply.get("finish") == REFUSED,
        None if request is None else asked.startswith(REPAIR_OPENING),
    )


def _read_object(ledger: Ledger, digest: str) -> dict[str, Any] | None:
    from ...ledger import LedgerError

    try:
        body = json.loads(ledger.objects.get(digest))
    except (LedgerError, OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None


# Proposals and signals.


def _count_proposals(ledger: Ledger, runs: Sequence[str]) -> list[OutcomeMonth]:
    """Return the proposed factors by month, refused where they were not scored, by the step that refused them."""
    rows = (
        (entry.at, [] if entry.record.stage == SCORED else [str(entry.record.stage)])
        for run in runs
        for entry in ledger.attempts.entries(run)
    )
    return _sum_outcomes(rows)


def _count_signals(ledger: Ledger, runs: Sequence[str]) -> list[OutcomeMonth]:
    """Return the signals that the risk gate judged by month, with the rules that refused them."""
    rows: list[tuple[str, Sequence[str]]] = []
    for entry in ledger.events.latest([RISK_EVENT, BOOK_STEP_EVENT], MOST_DECISIONS):
        event = entry.record
        decision = event.body if event.kind == RISK_EVENT else event.body.get("decision")
        if event.run in runs and isinstance(decision, Mapping):
            rows += [(entry.at, ruling.get("refusals") or ()) for ruling in decision.get("rulings") or ()]
    return _sum_outcomes(rows)


def _sum_outcomes(rows: Iterable[tuple[str, Sequence[str]]]) -> list[OutcomeMonth]:
    months: dict[str, list[Sequence[str]]] = defaultdict(list)
    for at, reasons in rows:
        months[at[:MONTH_CHARS]].append(reasons)
    return [
        OutcomeMonth(
            month,
            len(outcomes),
            sum(bool(reasons) for reasons in outcomes),
            dict(Counter(reason for reasons in outcomes for reason in reasons).most_common()),
        )
        for month, outcomes in sorted(months.items())
    ]


# Factors and data.


def _describe_factor(condition: Condition) -> dict[str, Any]:
    """Return a factor's row as `alphaloom library list` has it, with the mean RankIC that counts as decay."""
    row = condition.record()
    return {**row, "quarters": [{"day": one["day"], "rank_ic": one["rank_ic"]} for one in condition.quarters]}


def _find_data_changes(ledger: Ledger) -> list[DataChange]:
    """Return where a data set was used with another digest than before, by campaigns and by the library's watch."""
    uses = [
        (run.started_at, run.id, run.dataset, str(run.config["panel"]), str(run.config.get("last_day") or ""))
        for run in ledger.runs.all()
        if run.config.get("panel")
    ]
    uses += [(at, "", dataset, digest, last) for at, dataset, digest, last in ledger.library.list_panels()]
    found, last_use = [], dict[str, tuple[str, str]]()
    for at, run, dataset, digest, day in sorted(uses):
        before = last_use.get(dataset)
        if before and before[0] != digest:
            found.append(DataChange(at, run, dataset, before[0], digest, before[1], day))
        last_use[dataset] = digest, day
    return found


# In words.


def describe_drift(report: DriftReport) -> Iterator[str]:
    """Yield the report in lines for a person: each part with one line that says it, and its numbers."""
    yield from _describe_versions(report.changes)
    yield from _describe_calls(report.calls)
    for label, what, months in (("proposals", "factor", report.proposals), ("signals", "signal", report.signals)):
        yield from _describe_outcomes(label, what, months)
    yield from _describe_factors(report.factors)
    yield from _describe_data(report.data)


def _describe_versions(changes: Sequence[ChangeRow]) -> Iterator[str]:
    kinds = Counter(row.kind for row in changes).most_common()
    said = ", ".join(f"{kind} {count(times)}" for kind, times in kinds)
    yield f"versions: {plural(len(changes), 'change')} ({said})" if changes else "versions: none changed"
    for row in changes[:MAX_VERSIONS_SHOWN]:
        line = describe_change(row)
        yield f"  {line.at}  {line.label}: {line.digests}, first used by {line.run}"
    if changes[MAX_VERSIONS_SHOWN:]:
        yield f"  and {count(len(changes) - MAX_VERSIONS_SHOWN)} more: alphaloom record changes"


def _describe_calls(months: Sequence[CallMonth]) -> Iterator[str]:
    if not months:
        yield "model calls: none"
        return
    yield f"model calls: {_compare_calls(months)}"
    for row in months:
        shares = ", ".join(f"{name} {percent(calls / row.calls)}" for name, calls in row.by_model.items())
        read = row.calls - row.unread
        gone = f", texts of {count(row.unread)} erased" if row.unread else ""
        yield (
            f"  {row.month}  {plural(row.calls, 'call')}: {shares}; refused {_share(row.refused, read)}, "
            f"repairs {_share(row.repairs, read)}, sent again {_share(row.retried, row.calls)}{gone}; "
            f"{money(row.usd)}, {money(row.usd / row.calls)} a call; {_describe_seconds(row)}"
        )


def _compare_calls(months: Sequence[CallMonth]) -> str:
    """Return the largest change of a model's share from the first month to the last, and that of refusals."""
    first, last = months[0], months[-1]
    if len(months) < LEAST_MONTHS:
        return f"one month, {first.month}"
    moved = {
        name: last.by_model.get(name, 0) / last.calls - first.by_model.get(name, 0) / first.calls
        for name in sorted({*first.by_model, *last.by_model})
    }
    name = max(moved, key=lambda one: round(abs(moved[one]), 9))
    ends = [percent(month.by_model.get(name, 0) / month.calls) for month in (first, last)]
    return f"{name} answered {ends[0]} in {first.month} and {ends[1]} in {last.month}, the largest change of a share"


def _describe_seconds(row: CallMonth) -> str:
    if row.median_s is None or row.slow_s is None:
        return "latency not on record"
    return f"median {row.median_s:.2f} s, 95 % within {row.slow_s:.2f} s"


def _describe_outcomes(label: str, what: str, months: Sequence[OutcomeMonth]) -> Iterator[str]:
    if not months:
        yield f"{label}: none"
        return
    ends = [f"{percent(row.refused / row.total)} refused in {row.month}" for row in (months[0], months[-1])]
    yield f"{label}: {' and '.join(dict.fromkeys(ends))}"
    for row in months:
        reasons = list(row.reasons.items())
        said = ", ".join(f"{name} {percent(times / row.total)}" for name, times in reasons[:MAX_REASONS_SHOWN])
        why = f": {said}" if said else ""
        yield f"  {row.month}  {plural(row.total, what)}, refused {_share(row.refused, row.total)}{why}"


def _describe_factors(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    known = [row for row in rows if row["selection_rank_ic"]]
    below = sum((row["rank_ic_since"] or 0.0) < row["selection_rank_ic"] for row in known)
    yield f"factors on new days: {f'{count(below)} of {count(len(known))} below their evidence' if known else 'none'}"
    for row in known:
        decay = row["decay"]
        test = ""
        if decay:
            test = (
                f"; decay test to {decay['day']}: mean {number(decay['rank_ic'], 4, sign=True)} against "
                f"{number(decay['bar'], 4, sign=True)}, p = {p_value_text(decay['p_value'])}, "
                f"e = {number(decay['e_value'])}"
            )
        yield (
            f"  {row['id']}  {row['status']}: RankIC {number(row['rank_ic_since'], 4, sign=True)} on "
            f"{plural(row['days'], 'new day')} to {row['last_day']}, {number(row['selection_rank_ic'], 4, sign=True)} "
            f"on selection; t = {number(row['t_since'])}, e = {number(row['e_value'])}{test}"
        )


def _describe_data(changes: Sequence[DataChange]) -> Iterator[str]:
    yield f"data: {plural(len(changes), 'digest') + ' changed' if changes else 'no digest changed'}"
    for row in changes:
        days = f"last day {row.last_day_before or DASH} to {row.last_day or DASH}"
        digests = f"{row.before[:DIGEST_CHARS]} to {row.after[:DIGEST_CHARS]}"
        yield f"  {row.at[:16]}  {row.dataset}: {digests}, {days}, {row.run or WATCH}"


def _share(part: int, whole: int) -> str:
    return f"{count(part)} ({percent(part / whole)})" if whole else DASH
