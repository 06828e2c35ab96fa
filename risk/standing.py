"""What the record says of the evidence behind a signal, and the rules that read it.

A signal names its evidence: ids of factors and combinations, joined by ", ". `read_standings` resolves each to a
`Standing` from the ledger, and `decide` compares it with the policy. These rules bind increases only, so that what is
retired, or was never proven, can be sold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import Any, Final

from ..ledger import JSON, compute_digest
from .exposure import Exposure, list_failing
from .policy import STANDING_RULES, Policy
from .signal import RiskError

SEPARATOR: Final = ", "
"""Between the ids in a signal's evidence."""

Standings = Mapping[str, "Standing"]
"""What the record says of each id; an id that the ledger does not hold has no key."""


@dataclass(frozen=True)
class Standing:
    """What the record says of one factor or combination.

    Attributes
    ----------
    factor_id
        The factor or combination.
    verdict
        How it was proven: ``accepted``, ``member`` (part of an accepted combination), ``promoted`` (by new days), or
        what is not proven: ``by_hand``, ``imported``, ``watchlist``, ``rejected``; ``unproven`` where the verdict or
        its trial is not in the ledger.
    digest
        SHA-256 of what the verdict's row in the ledger says, without the run's id; empty without one.
    trial
        Number of the trial; None without one.
    similarity_bp
        Largest share of its formula that a known factor has too, in basis points; of a combination the largest of its
        members. 10,000 is a copy. None where nobody compared it.
    nearest
        The gate's words on the known factor with that share.
    correlation_bp
        Largest absolute rank correlation with the library when it was judged, in basis points; None without one.
    review
        A person's decision: ``approved``, ``refused``, or empty.
    status
        ``live``, ``decaying`` or ``retired``; empty if the library does not hold it.
    leak_alarm
        Whether its RankIC on selection is too good to be true and no person has acknowledged that.
    contained
        False if its code ran without a sandbox.
    members
        Ids of the members of a combination; each has a standing of its own.
    exposures
        What the last audit of each attribute says; empty where nothing was audited, and then in no record.

    Raises
    ------
    RiskError
        A field has another type.
    """

    factor_id: str
    verdict: str
    digest: str = ""
    trial: int | None = None
    similarity_bp: int | None = None
    nearest: str = ""
    correlation_bp: int | None = None
    review: str = ""
    status: str = ""
    leak_alarm: bool = False
    contained: bool = True
    members: tuple[str, ...] = ()
    exposures: tuple[Exposure, ...] = ()

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> Standing:
        """Return a standing from its record."""
        exposures = tuple(Exposure(**one) for one in record.get("exposures", ()))
        return cls(**{**record, "members": tuple(record["members"]), "exposures": exposures})

    def __post_init__(self) -> None:
        """Refuse a malformed standing: a NaN would pass every comparison."""
        for name, kind in (("factor_id", str), ("verdict", str), ("leak_alarm", bool), ("contained", bool)):
            self._refuse_unless(type(getattr(self, name)) is kind, name, kind.__name__)
        for name in ("trial", "similarity_bp", "correlation_bp"):
            value = getattr(self, name)
            self._refuse_unless(value is None or (type(value) is int and value >= 0), name, "a whole number, or None")

    def _refuse_unless(self, fine: bool, field: str, allowed: str) -> None:
        if not fine:
            raise RiskError(
                "What the record says of a signal's evidence is malformed.",
                field=field,
                got=getattr(self, field),
                allowed=allowed,
                code="standing",
            )

    def record(self) -> dict[str, JSON]:
        """Return the standing as a JSON-able object."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "exposures"}
        audited: dict[str, JSON] = {"exposures": [one.record() for one in self.exposures]} if self.exposures else {}
        return {**fields, "members": list(self.members), **audited}

    def __hash__(self) -> int:
        """Return the hash of the record's digest, which is computed once."""
        return hash(self.digest_all)

    @cached_property
    def digest_all(self) -> str:
        """Return the SHA-256 of the record; computed once, for a standing is behind many decisions."""
        return compute_digest(self.record())


def list_ids(evidence: str) -> tuple[str, ...]:
    """Return the ids that a signal names."""
    return tuple(evidence.split(SEPARATOR))


def measure_standing(
    evidence: str, standings: Standings, policy: Policy, now: date
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """Return the values of the rules of evidence for what stands behind a signal, and the worst ids.

    Each is the number of ids that fail, but `original` is the largest share of a formula that is known. An id whose
    exception of the policy holds on `now` passes that rule; what the ledger does not hold fails every rule, and no
    exception can stand for it. Where the policy has audited attributes, the last value is how many the ids that the
    signal names carry, or have no audit of: what members carry counts as far as their combination carries it.
    """
    found, lost = _gather(evidence, standings)
    return _measure_found(found, lost, list_ids(evidence), policy, now)


@lru_cache(maxsize=256)
def _measure_found(
    found: tuple[Standing, ...], lost: tuple[str, ...], ids: tuple[str, ...], policy: Policy, now: date
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """Return the values and the worst ids: many decisions of a day rest on the same evidence."""
    actuals: dict[str, tuple[int | None, str]] = {"original": _measure_likeness(found, lost, policy, now)}
    for rule, fails in _list_rules(policy):
        failing = [one.factor_id for one in found if fails(one) and not policy.excepts(rule, one.factor_id, now)]
        failing += lost
        actuals[rule] = (len(failing), failing[0] if failing else "")
    values = [actuals[rule] for rule in STANDING_RULES]
    if policy.audited:
        values.append(_count_exposed([one for one in found if one.factor_id in ids], lost, policy, now))
    return tuple(value for value, _ in values), tuple(about for _, about in values)


def _count_exposed(traded: Sequence[Standing], lost: Sequence[str], policy: Policy, now: date) -> tuple[int, str]:
    """Return how many audited attributes the traded ids fail, and the first id that fails one."""
    failing = [
        (one.factor_id, len(list_failing({row.attribute: row for row in one.exposures}, one.factor_id, policy, now)))
        for one in traded
    ]
    failing = [row for row in failing if row[1]] + [(name, len(policy.audited)) for name in lost]
    return sum(number for _, number in failing), failing[0][0] if failing else ""


def _list_rules(policy: Policy) -> list[tuple[str, Callable[[Standing], bool]]]:
    """Return each counting rule with what fails it."""
    return [
        ("proven", lambda one: one.verdict not in policy.admitted),
        ("reviewed", lambda one: policy.require_review and one.review != "approved"),
        ("alive", lambda one: one.status not in policy.admitted_statuses),
        ("contained", lambda one: not one.contained),
        ("unalarmed", lambda one: one.leak_alarm),
    ]


def _gather(evidence: str, standings: Standings) -> tuple[tuple[Standing, ...], tuple[str, ...]]:
    """Return the standings of the ids and of their members, and the ids without one."""
    found, lost = [], []
    names = list(dict.fromkeys(list_ids(evidence)))
    for name in names:  # grows while it is read: members of members, each once
        standing = standings.get(name)
        if standing is None or standing.factor_id != name:  # another's proves nothing
            lost.append(name)
            continue
        found.append(standing)
        names += [member for member in standing.members if member not in names]
    return tuple(found), tuple(lost)


def _measure_likeness(
    found: Sequence[Standing], lost: Sequence[str], policy: Policy, now: date
) -> tuple[int | None, str]:
    """Return the largest share of a formula that is known, and whose; None where nobody compared one."""
    judged = [one for one in found if not policy.excepts("original", one.factor_id, now)]
    unknown = [*lost, *(one.factor_id for one in judged if one.similarity_bp is None)]
    if unknown:
        return None, unknown[0]
    return max(((one.similarity_bp or 0, one.factor_id) for one in judged), default=(0, ""))
