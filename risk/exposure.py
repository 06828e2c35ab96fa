"""What the audits say of the group attributes that the evidence of a signal may carry, and the rule that reads it.

A policy names the attributes (`audited`). Without any, no decision has the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from ..ledger import JSON
from .policy import Policy
from .signal import RiskError

PER_SD: Final = 10_000
"""Units of a gap in a standard deviation of a day's scores."""
PER_ONE: Final = 1_000_000_000
"""Units of a p-value."""


@dataclass(frozen=True)
class Exposure:
    """What the last audit says of one attribute, in whole numbers.

    Attributes
    ----------
    attribute
        Its name.
    found
        Whether the scores carry it.
    statistic
        The most extreme statistic; empty where the attribute could not be audited.
    group
        The group whose mean score is farthest from that of all others.
    gap_e4, smallest_gap_e4, weakest_gap_e4
        That distance; the smallest one that the audit would have seen of the easiest group, and of the hardest. In
        1e-4 standard deviations of a day's scores.
    p_e9, level_e9
        P-value and threshold in 1e-9, rounded up.
    p_with_size_e9
        P-value where what size explains is left in; None where size is not known.
    number, day
        Place of the audit in the workspace, and the last day of the scores.

    Raises
    ------
    RiskError
        A field has another type.
    """

    attribute: str
    found: bool
    statistic: str = ""
    group: str = ""
    gap_e4: int = 0
    smallest_gap_e4: int = 0
    weakest_gap_e4: int = 0
    p_e9: int = PER_ONE
    level_e9: int = 0
    p_with_size_e9: int | None = None
    number: int = 0
    day: str = ""

    def __post_init__(self) -> None:
        """Refuse a malformed audit: one that is not a bool would pass as found or not."""
        texts = (self.attribute, self.statistic, self.group, self.day)
        numbers = (self.gap_e4, self.smallest_gap_e4, self.weakest_gap_e4, self.p_e9, self.level_e9, self.number)
        fine = type(self.found) is bool and {*map(type, texts)} == {str} and {*map(type, numbers)} == {int}
        if not fine or type(self.p_with_size_e9) not in (int, type(None)):
            raise RiskError(
                "What an audit says of a signal's evidence is malformed.", field="exposures", code="standing"
            )

    @property
    def audited(self) -> bool:
        """Return whether the attribute could be audited."""
        return bool(self.statistic)

    def record(self) -> dict[str, JSON]:
        """Return the exposure as a JSON-able object."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def list_failing(exposures: Mapping[str, Exposure], factor_id: str, policy: Policy, now: date) -> tuple[str, ...]:
    """Return the attributes of a policy that one id fails: those that it carries, and those without an audit.

    An exception that holds on `now` excuses all attributes, or the one that it names.
    """
    return tuple(
        name
        for name in policy.audited
        if not ((one := exposures.get(name)) and one.audited and not one.found)
        and not policy.excepts("unexposed", factor_id, now, name)
    )


def read_exposure(attribute: str, finding: Mapping[str, Any] | None, number: int, day: str) -> Exposure:
    """Return what one audit says of an attribute; `finding` is None where it could not be audited."""
    if finding is None:
        return Exposure(attribute, False, number=number, day=day)
    with_size = finding["p_with_size"]
    return Exposure(
        attribute,
        bool(finding["found"]),
        str(finding["statistic"]),
        str(finding["group"]),
        round(finding["gap"] * PER_SD),
        _round_up(finding["smallest_gap"], PER_SD),
        _round_up(finding["weakest_gap"], PER_SD),
        _round_up(finding["p_value"], PER_ONE),
        _round_up(finding["level"], PER_ONE),
        None if with_size is None else _round_up(with_size, PER_ONE),
        number,
        day,
    )


def _round_up(value: float, units: int) -> int:
    return -int(-value * units // 1)
