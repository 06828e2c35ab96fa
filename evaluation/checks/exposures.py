"""Audit the scores of library factors for group attributes, once each: an event of the ledger, and one test charged.

The audits of a workspace are a stream, in the order in which they were made. Each is tested at the threshold of its
place (`audit_level`), so that few of the proxies that are found are false ones, however many factors are audited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...evidence.scoring import measure_exposures, round_significant
from ...evidence.values import Computing
from ...ledger import Event, Ledger, wait_while_locked
from ...library import Entry, list_entries
from ...market import Panel

if TYPE_CHECKING:
    from ...evidence.proxies import ProxyFinding

AUDIT_EVENT: Final = "exposure-audit"
"""Kind of the event of an audit; its body is `ExposureAudit` as JSON."""
LIST_LABELS: Final = ("others", "listed")
"""Labels of an attribute that is a list of symbols."""


@dataclass(frozen=True)
class ExposureAudit:
    """One audit of a factor or combination, as recorded.

    Attributes
    ----------
    factor_id
        What was audited.
    number, found_before
        Its place in the stream of the workspace's audits, from 1, and how many before it found a proxy.
    day
        The last day of the scores.
    attributes
        What was asked; an attribute that could not be audited has no finding.
    findings
        What was found, by attribute, as `ProxyFinding` has it.
    """

    factor_id: str
    number: int
    found_before: int
    day: str
    attributes: tuple[str, ...]
    findings: Mapping[str, Mapping[str, Any]]

    @property
    def found(self) -> bool:
        """Return whether a proxy was found."""
        return any(finding["found"] for finding in self.findings.values())

    @classmethod
    def read(cls, event: Event) -> ExposureAudit:
        """Return the audit of an event."""
        return cls(**{**event.body, "attributes": tuple(event.body["attributes"])})


@dataclass(frozen=True)
class AuditRequest:
    """What is to be audited.

    Attributes
    ----------
    names
        Ids of the library.
    attributes
        Groupings of the panel, `SIZE`, or names of `lists`.
    lists
        Symbols of each attribute that is a list.
    run
        The run to which the audit of a factor without a run belongs.
    again
        Audit also what was audited on earlier days; it is charged again.
    """

    names: Sequence[str]
    attributes: Sequence[str]
    lists: Mapping[str, Sequence[str]]
    run: str = ""
    again: bool = False


def list_audits(ledger: Ledger) -> list[ExposureAudit]:
    """Return every audit of a workspace, in the order in which they were made."""
    events = ledger.events.find("kind = ?", AUDIT_EVENT)
    return sorted(map(ExposureAudit.read, events), key=lambda audit: audit.number)


def audit_factors(ledger: Ledger, computing: Computing, request: AuditRequest) -> list[ExposureAudit]:
    """Audit what was not audited yet and record it; return the new audits.

    Attributes that a factor was audited for are not audited again, unless asked. What the library does not hold, and
    what the panel cannot compute, is not audited.

    Raises
    ------
    PythonRefused
        Python code gave no values.
    """
    if not request.attributes:
        return []
    return wait_while_locked(
        lambda: list(_audit_locked(ledger, computing, request)), "since another process audits exposures"
    )


def _audit_locked(ledger: Ledger, computing: Computing, request: AuditRequest) -> Iterator[ExposureAudit]:
    """Audit under the lock of the library: the place in the stream decides the threshold."""
    with ledger.library.lock():
        done = list_audits(ledger)
        entries = {entry.factor_id: entry for entry in list_entries(ledger)}
        day = str(computing.panel.dates[-1])
        size: NDArray[np.float64] | None = None
        for name in request.names:
            mine = [audit for audit in done if audit.factor_id == name]
            known = {
                attribute for audit in mine if not request.again or audit.day == day for attribute in audit.attributes
            }
            missing = [one for one in dict.fromkeys(request.attributes) if one not in known]
            entry = entries.get(name)
            run = (entry.run if entry else "") or request.run
            if entry is None or not missing or not run or not _can_compute(entry, computing.panel):
                continue
            size = measure_exposures(computing.panel).size if size is None else size
            audit = _audit_entry(entry, missing, done, computing, request.lists, size)
            ledger.events.record(run, AUDIT_EVENT, f"{name} {audit.number:06d}", asdict(audit))
            done.append(audit)
            yield audit


def _can_compute(entry: Entry, panel: Panel) -> bool:
    return not set(entry.fields) - {*panel.fields, *panel.groups} and entry.expression.warmup < panel.days


def _audit_entry(
    entry: Entry,
    attributes: Sequence[str],
    done: Sequence[ExposureAudit],
    computing: Computing,
    lists: Mapping[str, Sequence[str]],
    size: NDArray[np.float64],
) -> ExposureAudit:
    from ...evidence.proxies import SIZE, AuditInput, audit_groups, audit_level  # scipy is slow to import

    panel, day = computing.panel, str(computing.panel.dates[-1])
    number, found_before = len(done) + 1, sum(audit.found for audit in done)
    groups: dict[str, NDArray[np.integer]] = {name: codes for name, codes in panel.groups.items() if name != SIZE}
    labels: dict[str, Sequence[str]] = dict(panel.group_labels)
    for name in attributes:
        if name in lists and name not in groups:
            groups[name], labels[name] = np.isin(panel.symbols, sorted(lists[name])).astype(np.int16), LIST_LABELS
    (scores,) = computing.evaluate([entry.expression])
    seed = hashlib.sha256("\0".join((entry.factor_id, day, *sorted(attributes))).encode()).digest()
    findings = audit_groups(
        AuditInput(scores, groups, labels, size),
        attributes,
        audit_level(number, found_before),
        int.from_bytes(seed[:8], "big"),
    )
    told = {finding.attribute: _tell(finding) for finding in findings}
    return ExposureAudit(entry.factor_id, number, found_before, day, tuple(attributes), told)


def _tell(finding: ProxyFinding) -> dict[str, Any]:
    """Return a finding as JSON, with numbers that any machine rounds alike."""
    return {
        name: round_significant(value) if isinstance(value, float) else value
        for name, value in asdict(finding).items()
        if name != "attribute"
    }
