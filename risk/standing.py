"""What the record says of the evidence behind a signal, and the rules that read it.

A signal names its evidence: ids of factors and combinations, joined by ", ". `read_standings` resolves each to a
`Standing` from the ledger, and `decide` compares it with the policy. These rules bind increases only, so that what is
retired, or was never proven, can be sold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Final

from ..ledger import JSON
from .policy import Policy, RuleCheck
from .signal import RiskError

SEPARATOR: Final = ", "
"""Between the ids in a signal's evidence."""

Standings = Mapping[str, "Standing"]
"""What the record says of each id; an id that the ledger does not hold has no key."""


@dataclass(frozen=True, slots=True)
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
        return {**asdict(self), "members": list(self.members)}


def list_ids(evidence: str) -> tuple[str, ...]:
    """Return the ids that a signal names."""
    return tuple(evidence.split(SEPARATOR))


def standing_checks(
    evidence: str, standings: Standings, policy: Policy, now: date, binds: bool = True
) -> tuple[RuleCheck, ...]:
    """Return the checks of a signal's evidence, in fixed order: one for each rule, of all that stands behind it.

    Each compares the number of ids that fail with 0, but `original` compares the largest share of a formula that is
    known. `about` names the worst id. An id whose exception of the policy holds on `now` passes that rule; what the
    ledger does not hold fails every rule, and no exception can stand for it.
    """
    found, lost = _gather(evidence, standings)
    checks = []
    for rule, fails in _list_rules(policy):
        failing = [one.factor_id for one in found if fails(one) and not policy.excepts(rule, one.factor_id, now)]
        failing += lost
        checks.append(RuleCheck(rule, len(failing), 0, not failing, binds, about=failing[0] if failing else ""))
    return (checks[0], _check_original(found, lost, policy, now, binds), *checks[1:])


def _list_rules(policy: Policy) -> list[tuple[str, Callable[[Standing], bool]]]:
    """Return each counting rule with what fails it."""
    return [
        ("proven", lambda one: one.verdict not in policy.admitted),
        ("reviewed", lambda one: policy.require_review and one.review != "approved"),
        ("alive", lambda one: one.status not in policy.admitted_statuses),
        ("contained", lambda one: not one.contained),
        ("unalarmed", lambda one: one.leak_alarm),
    ]


def _gather(evidence: str, standings: Standings) -> tuple[list[Standing], list[str]]:
    """Return the standings of the ids and of their members, and the ids without one."""
    standings = {name: one for name, one in standings.items() if one.factor_id == name}  # another's proves nothing
    names = list(dict.fromkeys(list_ids(evidence)))
    for name in names:  # grows while it is read: members of members, each once
        names += [member for member in (standings[name].members if name in standings else ()) if member not in names]
    return [standings[name] for name in names if name in standings], [name for name in names if name not in standings]


def _check_original(
    found: Sequence[Standing], lost: Sequence[str], policy: Policy, now: date, binds: bool
) -> RuleCheck:
    """Check the largest share of a formula that is known; one that nobody compared fails like a copy."""
    judged = [one for one in found if not policy.excepts("original", one.factor_id, now)]
    unknown = [*lost, *(one.factor_id for one in judged if one.similarity_bp is None)]
    if unknown:
        return RuleCheck("original", None, policy.similarity_cap_bp, False, binds, about=unknown[0])
    actual, about = max(((one.similarity_bp or 0, one.factor_id) for one in judged), default=(0, ""))
    return RuleCheck(
        "original", actual, policy.similarity_cap_bp, actual <= policy.similarity_cap_bp, binds, about=about
    )
