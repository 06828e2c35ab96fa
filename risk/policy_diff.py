"""Two policies beside each other: which limits are tighter, looser, added or gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .policy import PEOPLE_RULES, Policy, PolicyException, RiskLimits

Change = Literal["tighter", "looser", "both", "added", "gone", "changed"]
"""How a limit or an exception differs from another policy's: `both` is a list that is tighter in one entry and looser
in another; `changed` is an exception with another reason or owner."""


@dataclass(frozen=True)
class PolicyChange:
    """One difference of a policy from another.

    Attributes
    ----------
    name
        The limit; of an exception its evidence and rule.
    change
        What it is in the first policy, beside the second.
    own, other
        Its value in the first policy and in the second; None for no limit, or no such exception.
    """

    name: str
    change: Change
    own: Any
    other: Any


def compare_policies(policy: Policy, other: Policy) -> tuple[PolicyChange, ...]:
    """Return the differences of a policy from another, limits in their order, then exceptions; empty if they agree.

    Lists are compared without their order. A limit where the other policy has none is `added`, and the other way round
    it is `gone`. An exception that is added or holds longer is looser; its change says which.
    """
    return (*_compare_limits(policy, other), *_compare_people(policy, other), *_compare_exceptions(policy, other))


def _compare_limits(policy: Policy, other: Policy) -> Iterator[PolicyChange]:
    names = tuple(RiskLimits.model_fields)
    asked = RiskLimits.model_validate({name: getattr(other, name) for name in names})
    tighter, _ = policy.tightened(asked)
    for name in names:
        own, its, tightest = (_sort(getattr(one, name)) for one in (policy, other, tighter))
        if own == its:
            continue
        if its is None or own is None:
            yield PolicyChange(name, "added" if its is None else "gone", own, its)
        else:
            yield PolicyChange(
                name, "tighter" if own == tightest else "looser" if its == tightest else "both", own, its
            )


def _compare_people(policy: Policy, other: Policy) -> Iterator[PolicyChange]:
    for name in PEOPLE_RULES:
        own, its = getattr(policy, name), getattr(other, name)
        if own != its:
            yield PolicyChange(name, "tighter" if _is_tighter(name, own, its) else "looser", own, its)


def _is_tighter(name: str, own: Any, other: Any) -> bool:
    """Return whether a setting about people asks more of them than another value of it does."""
    if name == "revalidate_after_days":
        return other is None or (own is not None and own < other)
    return bool(own > other)


def _sort(value: Any) -> Any:
    return tuple(sorted(set(value))) if isinstance(value, tuple) else value


def _compare_exceptions(policy: Policy, other: Policy) -> Iterator[PolicyChange]:
    own, its = _index(policy), _index(other)
    for key in sorted({*own, *its}):
        first, second = own.get(key), its.get(key)
        if first != second:
            yield PolicyChange(f"exception {key[0]} {key[1]}", _name_change(first, second), first, second)


def _index(policy: Policy) -> dict[tuple[str, str], PolicyException]:
    """Return the exceptions by evidence and rule; of several the one that holds longest."""
    return {(one.evidence, one.rule): one for one in sorted(policy.exceptions, key=lambda one: one.until)}


def _name_change(own: PolicyException | None, other: PolicyException | None) -> Change:
    if own is None or other is None:
        return "added" if other is None else "gone"
    if own.until == other.until:
        return "changed"
    return "looser" if own.until > other.until else "tighter"
