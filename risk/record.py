"""Read from the ledger what stands behind a signal; the gate itself reads nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from ..evaluation import Reviews
from ..evaluation.checks import list_audits
from ..ledger import Ledger, LibraryRow, Run, VerdictRow, compute_digest
from .exposure import Exposure, read_exposure
from .signal import RiskError
from .standing import Standing, list_ids

ALARM_EVENT: Final = "alarm-acknowledged"
"""Kind of the event with which a person acknowledges the leak alarm of a factor or combination of a run."""
MAX_ACKNOWLEDGEMENT_CHARS: Final = 2_000
UNPROVEN = "unproven"
UNCONTAINED = "uncontained"
"""Code of the warning on a sheet whose factor's code ran without a sandbox."""
REVIEW_WORDS = {"approve": "approved", "reject": "refused", "ask": "refused"}


def read_standings(ledger: Ledger, evidence: str) -> dict[str, Standing]:
    """Return what the record says of each id that a signal names, and of the members of combinations, by id.

    An id that the library does not hold has no standing, and the gate refuses what rests on it.
    """
    reader = _RecordReader(ledger)
    found: dict[str, Standing] = {}
    waiting = list(list_ids(evidence))
    while waiting:
        name = waiting.pop()
        standing = None if name in found else reader.read(name)
        if standing is not None:
            found[name] = standing
            waiting += standing.members
    return dict(sorted(found.items()))


class _RecordReader:
    """Reads the ledger's rows once for all ids."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rows = {row.factor_id: row for row in ledger.library.rows()}
        self._status = {change.factor_id: change.status for change in ledger.library.standings()}  # the last one stands
        self._runs = {run.id: run for run in ledger.runs.all()}
        self._audits = list_audits(ledger)
        self._outcomes: dict[tuple[str, Any], Mapping[str, Any] | None] = {
            (trial.subject, trial.number): trial.outcome for trial in ledger.trials.all()
        }

    def read(self, name: str) -> Standing | None:
        """Return the standing of one id; None if the library does not hold it."""
        row = self._rows.get(name)
        if row is None:
            return None
        run, home = self._runs.get(row.run), self._find_home(row)
        verdict = next((verdict for verdict in self._ledger.verdicts.of(row.run) if verdict.factor_id == home), None)
        reasons = {reason["step"]: reason for reason in verdict.reasons} if verdict else {}
        return Standing(
            factor_id=name,
            verdict=self._read_verdict(row, verdict, home),
            digest=_digest_verdict(verdict) if verdict else "",
            trial=verdict.metrics.get("trial") if verdict else None,
            similarity_bp=_read_similarity(reasons),
            nearest=str(reasons.get("originality", {}).get("message", "")),
            correlation_bp=_round_up_bp(reasons.get("redundancy", {}).get("numbers", {}).get("rank_correlation")),
            review=self._read_review(run, home),
            status=self._status.get(name, "live"),
            leak_alarm=_has_alarm(self._ledger, run, verdict),
            contained=not any(line.get("code") == UNCONTAINED for line in row.sheet.get("warnings", ())),
            members=self._list_members(row.run, name),
            exposures=self._list_exposures(name),
        )

    def _list_members(self, run: str, name: str) -> tuple[str, ...]:
        event = self._ledger.events.get(run, "set", name)
        return tuple(event.body) if event else ()

    def _list_exposures(self, name: str) -> tuple[Exposure, ...]:
        """Return the last audit of each attribute, by attribute."""
        last: dict[str, Exposure] = {}
        for audit in self._audits:
            if audit.factor_id == name:
                last |= {
                    one: read_exposure(one, audit.findings.get(one), audit.number, audit.day)
                    for one in audit.attributes
                }
        return tuple(last[attribute] for attribute in sorted(last))

    def _find_home(self, row: LibraryRow) -> str:
        """Return the id under which a factor was judged: its own, or of a member that of its accepted combination."""
        if row.origin != "member":
            return row.factor_id
        homes = [event.key for event in self._ledger.events.of(row.run, "set") if row.factor_id in event.body]
        return next((home for home in homes if home in self._rows), row.factor_id)

    def _read_verdict(self, row: LibraryRow, verdict: VerdictRow | None, home: str) -> str:
        """Return how it was proven; what the gate decided needs its verdict and the outcome of its trial."""
        if row.origin not in ("accepted", "member", "promoted"):
            return row.origin
        outcome = self._outcomes.get((home, verdict.metrics.get("trial"))) if verdict else None
        if verdict is None or outcome is None:
            return UNPROVEN
        promoted = row.origin == "promoted"
        wanted, passed = ("watchlist" if promoted else "accepted"), promoted or bool(outcome.get("passed"))
        return row.origin if verdict.verdict == wanted and passed else UNPROVEN

    def _read_review(self, run: Run | None, home: str) -> str:
        decision = Reviews.of(self._ledger, run).decision(home) if run else None
        return REVIEW_WORDS.get(decision.decision, "") if decision else ""


def _digest_verdict(verdict: VerdictRow) -> str:
    """Return the digest of what a verdict says; the run's id is left out, so that equal runs give equal decisions."""
    return compute_digest({name: value for name, value in asdict(verdict).items() if name != "run"})


def _read_similarity(reasons: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the known share of a formula in basis points, rounded up; None where the gate did not compare."""
    reason = reasons.get("originality")
    return None if reason is None else _round_up_bp(reason["numbers"].get("ratio", 0.0))


def _round_up_bp(share: float | None) -> int | None:
    return None if share is None else math.ceil(round(abs(share) * 10_000, 6))


def _has_alarm(ledger: Ledger, run: Run | None, verdict: VerdictRow | None) -> bool:
    """Return whether a RankIC on selection is beyond the run's leak threshold and no person has acknowledged it."""
    alarm = _read_alarm(run, verdict) if run and verdict else None
    return alarm is not None and ledger.events.get(alarm.run, ALARM_EVENT, alarm.factor_id) is None


def _read_alarm(run: Run, verdict: VerdictRow) -> LeakAlarm | None:
    """Return the alarm of a verdict, acknowledged by an event or not; the run's own settings may acknowledge it."""
    settings: Mapping[str, Any] = (run.config.get("settings") or {}).get("evidence", {})
    rank_ic, limit = (verdict.metrics.get("selection") or {}).get("rank_ic"), settings.get("leak_rank_ic")
    if not isinstance(limit, float | int) or rank_ic is None or abs(rank_ic) <= limit:
        return None
    known = verdict.factor_id in (settings.get("acknowledged") or ())
    return None if known else LeakAlarm(run.id, verdict.factor_id, float(rank_ic), float(limit))


@dataclass(frozen=True)
class LeakAlarm:
    """A RankIC on selection days that is too good to be true; the gate refuses it until a person acknowledges it."""

    run: str
    factor_id: str
    rank_ic: float
    limit: float


def list_alarms(ledger: Ledger) -> list[LeakAlarm]:
    """Return the alarms of what the library holds that nobody has acknowledged, by run and factor."""
    rows = ledger.library.rows()
    known, runs = {row.factor_id for row in rows}, {row.run for row in rows}
    alarms = [
        alarm
        for run in ledger.runs.all()
        if run.id in runs
        for verdict in ledger.verdicts.of(run.id)
        if verdict.factor_id in known and (alarm := _read_alarm(run, verdict))
    ]
    waiting = [one for one in alarms if ledger.events.get(one.run, ALARM_EVENT, one.factor_id) is None]
    return sorted(waiting, key=lambda one: (one.run, one.factor_id))


def acknowledge_alarm(ledger: Ledger, alarm: LeakAlarm, reason: str, by: str, now: datetime) -> None:
    """Record that a person has looked into an alarm, and why its signals may be asked for; the first record stands.

    Raises
    ------
    RiskError
        The reason or the person is missing, or the reason is too long.
    """
    words = " ".join(reason.split())
    if not words or len(words) > MAX_ACKNOWLEDGEMENT_CHARS or not by.strip():
        raise RiskError(
            "An alarm is acknowledged by a person who says why.",
            field="--reason" if by.strip() else "--by",
            got=words[:80],
            allowed=f"1 to {MAX_ACKNOWLEDGEMENT_CHARS:,} characters",
            hint="Say what you looked at: which data, which days, what else would explain it.",
            code="acknowledgement",
        )
    body = {"reason": words, "by": by.strip(), "at": now.isoformat(), "rank_ic": alarm.rank_ic, "limit": alarm.limit}
    ledger.events.record(alarm.run, ALARM_EVENT, alarm.factor_id, body)
