"""Answer with 1 for true and 0 for false; a question about a missing value has a missing answer."""

from __future__ import annotations

from .cells import NAN, ONE, ZERO, Array, row
from .kernel_cache import kernel


@kernel
def lt(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where left < right."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if a[j] < b[j] else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def le(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where left <= right."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if a[j] <= b[j] else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def eq(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where left = right."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if a[j] == b[j] else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def ne(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where left and right differ."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if a[j] != b[j] else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def both(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where both are true."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if (a[j] != ZERO) & (b[j] != ZERO) else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def either(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Tell where at least one is true."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = ONE if (a[j] != ZERO) | (b[j] != ZERO) else ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def negate(out: Array, values: Array, lo: int, hi: int) -> None:
    """Turn true into false and false into true."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            answer = ONE if a[j] == ZERO else ZERO
            o[j] = answer if a[j] == a[j] else NAN


@kernel
def where(out: Array, condition: Array, yes: Array, no: Array, lo: int, hi: int) -> None:
    """Take the chosen branch; the other may be missing."""
    for day in range(lo, hi):
        c, a, b, o = row(condition, day), row(yes, day), row(no, day), out[day]
        for j in range(o.size):
            one, other = a[j], b[j]  # read both first: a choice between numbers is vectorised, between reads it is not
            chosen = one if c[j] != ZERO else other
            o[j] = chosen if c[j] == c[j] else NAN
