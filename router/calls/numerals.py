"""The numbers that lie within bounds, as a grammar of their digits: exact, for whole numbers and for decimals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from ..errors import RouterError

WHOLE_DIGITS, DEFAULT_PLACES = 15, 9
"""Digits before and after the point, where the bounds ask for no more."""
MAX_NUMBER_DIGITS, MAX_NUMBER_PLACES = 40, 30
"""What is written where they do, and no further."""


@dataclass(frozen=True)
class Numerals:
    """What a part of a JSON schema lets a number be, in steps of ten to the power of minus `places`.

    Attributes
    ----------
    low, high : int
        The first and the last number, in steps.
    places : int
        Digits after the point, at most.
    """

    low: int
    high: int
    places: int

    @classmethod
    def of(cls, part: Mapping[str, Any]) -> Self:
        """Return the numbers that are written of those that a schema allows.

        All have few digits; of a wide range those with more are left out. No step (``multipleOf``) is heeded.

        Raises
        ------
        RouterError
            If none lies within the bounds, or only such as have too many digits.
        """
        for places in (0,) if part.get("type") == "integer" else range(DEFAULT_PLACES, MAX_NUMBER_PLACES + 1):
            low, high = (_bound(part, side, places) for side in ("minimum", "maximum"))
            nearest = max(low or 0, -(high or 0), 0)
            reach = 10 ** max(WHOLE_DIGITS + places, len(str(nearest))) - 1
            one = cls(max(-reach, -reach if low is None else low), min(reach, reach if high is None else high), places)
            if one.low <= one.high and len(str(reach)) <= MAX_NUMBER_DIGITS + places:
                return one
        said = {name: part[name] for name in sorted(part) if "imum" in name.lower()}
        raise RouterError(
            f"no number of at most {MAX_NUMBER_DIGITS} digits, {MAX_NUMBER_PLACES} after the point, lies within {said}",
            field="schema", got=said, hint="Bound the number otherwise.",
        )  # fmt: skip

    @property
    def longest(self) -> int:
        """The characters of the longest."""
        digits = len(str(max(abs(self.low), abs(self.high)) // 10**self.places))
        return (self.low < 0) + digits + (1 + self.places if self.places else 0)

    def grammar(self) -> str:
        """Return what stands for one of the numbers; zero has no sign."""
        signed = []
        if self.high >= 0:
            signed += _unsigned(max(self.low, 0), self.high, self.places)
        if self.low < 0:
            signed += [f'"-" ({" | ".join(_unsigned(max(-self.high, 1), -self.low, self.places))})']
        return f"({' | '.join(signed)})"


def _bound(part: Mapping[str, Any], side: str, places: int) -> int | None:
    """Return the outermost number on a side, in steps; None where there is no bound.

    What a bound excludes ends with the next number that a machine can tell from it: a nearer one would be read as the bound.
    """
    inwards, nearest, strictest = _SIDES[side]
    found = []
    for name, excluded in ((side, False), (f"exclusive{side.capitalize()}", True)):
        bound = part.get(name)
        if bound is None or math.isinf(bound):
            continue
        if excluded and not places:
            beyond = nearest(Fraction(str(bound)))
            found.append(beyond + inwards if beyond == bound else beyond)
        else:
            told = math.nextafter(bound, inwards * math.inf) if excluded else bound
            found.append(nearest(Fraction(str(told)) * 10**places))
    return strictest(found) if found else None


_SIDES: dict[str, tuple[int, Callable[[Fraction], int], Callable[[list[int]], int]]] = {
    "minimum": (1, math.ceil, max), "maximum": (-1, math.floor, min),
}  # fmt: skip
"""Where inwards is, which whole number is the nearest inwards, and which of two bounds holds."""


def _unsigned(low: int, high: int, places: int) -> list[str]:
    """Return what stands for the numbers from `low` to `high`, in steps, none below zero."""
    step = 10**places
    (first, rest), (last, most) = divmod(low, step), divmod(high, step)
    if first == last:
        return [each + _fraction_part(rest, most, places) for each in _whole_numbers(first, last)]
    found = []
    if rest:
        found += [each + _fraction_part(rest, step - 1, places) for each in _whole_numbers(first, first)]
        first += 1
    if most < step - 1:
        found += [each + _fraction_part(0, most, places) for each in _whole_numbers(last, last)]
        last -= 1
    return found + [each + _fraction_part(0, step - 1, places) for each in _whole_numbers(first, last)]


def _fraction_part(low: int, high: int, places: int) -> str:
    """Return what stands for the point and what follows; for neither where zeros do."""
    if not places or not high:
        return f' ("." "0"{{1,{places}}})?' if places else ""
    part = f'"." {_digits(str(low).zfill(places), str(high).zfill(places), 1)}'
    return f" {part}" if low else f" ({part})?"


def _whole_numbers(first: int, last: int) -> Iterator[str]:
    """Yield what stands for whole numbers, none below zero, by how many digits they have; nothing where there are none."""
    full: list[int] = []
    for count in range(len(str(first)), len(str(last)) + 1) if first <= last else ():
        least, most = 10 ** (count - 1) if count > 1 else 0, 10**count - 1
        if count > 1 and first <= least and most <= last:
            full.append(count - 1)
        else:
            yield _digits(str(max(first, least)), str(min(last, most)), count)
    if full:
        yield f"[1-9] [0-9]{{{full[0]},{full[-1]}}}"


def _digits(low: str, high: str, least: int) -> str:
    """Return what stands for the digits from `low` to `high`, equally many; all but `least` may be left out if they are zeros."""
    count = len(low)
    if not count:
        return ""
    zeros, nines = "0" * (count - 1), "9" * (count - 1)
    if (low, high) == ("0" + zeros, "9" + nines):
        return f"[0-9]{{{least},{count}}}"
    fewer = max(least - 1, 0)
    first, last = int(low[0]), int(high[0])
    parts = []
    if first == last:
        parts.append(_lead_digit(first, last, _digits(low[1:], high[1:], fewer)))
    else:
        if low[1:] != zeros:
            parts.append(_lead_digit(first, first, _digits(low[1:], nines, fewer)))
            first += 1
        if high[1:] != nines:
            parts.append(_lead_digit(last, last, _digits(zeros, high[1:], fewer)))
            last -= 1
        if first <= last:
            parts.append(_lead_digit(first, last, _digits(zeros, nines, fewer)))
    return f"({' | '.join(parts)})" + ("?" if not least and low == "0" + zeros else "")


def _lead_digit(first: int, last: int, rest: str) -> str:
    """Return what stands for a digit and the rest."""
    led = f"[{first}-{last}]" if first < last else f'"{first}"'
    return f"{led} {rest}".rstrip()
