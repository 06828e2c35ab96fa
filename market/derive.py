"""Fields that a file lacks and the configuration defines; each derivation is noted on the panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import PanelError
from .panel import PRICE_FIELDS

FieldArrays = dict[str, NDArray[np.float64]]


def derive_typical_price(fields: FieldArrays) -> FieldArrays:
    """Compute vwap as the mean of high, low and close."""
    return {"vwap": (fields["high"] + fields["low"] + fields["close"]) / 3.0}


def derive_amount(fields: FieldArrays) -> FieldArrays:
    """Compute the traded amount as close times volume, the quoted close where there is one."""
    return {"amount": fields.get("close_raw", fields["close"]) * fields["volume"]}


def derive_adjusted_prices(fields: FieldArrays) -> FieldArrays:
    """Adjust prices as quoted by the file's factor, and keep the quoted close."""
    adjusted = {name: fields[name] * fields["adj_factor"] for name in PRICE_FIELDS}
    return {**adjusted, "close_raw": fields["close"]}


def derive_total_return_prices(fields: FieldArrays) -> FieldArrays:
    """Adjust prices by a vendor's adjusted close; they are no quotes before either, so there is no quoted close."""
    factor = fields["adj_close"] / fields["close"]
    return {name: fields[name] * factor for name in PRICE_FIELDS}


DERIVATIONS: Mapping[tuple[str, str], tuple[Callable[[FieldArrays], FieldArrays], tuple[str, ...]]] = {
    ("prices", "adj_factor"): (derive_adjusted_prices, ("adj_factor",)),
    ("prices", "adj_close"): (derive_total_return_prices, ("adj_close",)),
    ("vwap", "typical"): (derive_typical_price, ()),
    ("amount", "close*volume"): (derive_amount, ()),
}
"""The derivations in the order in which they run: the rule, and the columns needed besides prices."""


def describe_derivations(absent: Sequence[str]) -> str:
    """Return how columns that a panel lacks can be derived, as the end of a sentence; empty where none can."""
    known = [f"{name}: {rule}" for name, rule in DERIVATIONS if name in absent]
    if not known:
        return ""
    return f"; a campaign file can derive it, under market: derive: {{{', '.join(known)}}}"


def check_derivations(derive: Mapping[str, str]) -> None:
    """Refuse an unknown derivation before any file is read."""
    known = [f"{name}: {rule}" for name, rule in DERIVATIONS]
    for name, rule in derive.items():
        if (name, rule.replace(" ", "")) not in DERIVATIONS:
            raise PanelError(
                "this derivation is not known", field=f"derive.{name}", got=f"{name}: {rule}", allowed=known
            )


def derive_fields(fields: FieldArrays, derive: Mapping[str, str]) -> tuple[FieldArrays, tuple[str, ...]]:
    """Return the fields with the derived ones, and a note for each."""
    requested = {(name, rule.replace(" ", "")) for name, rule in derive.items()}
    derived = dict(fields)
    notes = []
    for (name, rule), (compute, needs) in DERIVATIONS.items():
        if (name, rule) not in requested:
            continue
        check_derivable(name, needs, fields)
        derived |= compute(derived)
        notes.append(describe_derivation(name, rule, derived))
    if "prices" in derive:
        del derived[derive["prices"].replace(" ", "")]  # it contains every later dividend: no factor may read it
    return derived, tuple(notes)


def describe_derivation(name: str, rule: str, fields: FieldArrays) -> str:
    """Return the note of a derivation, in the words of its rule."""
    quoted = name == "amount" and "close_raw" in fields
    return f"{name}: {rule.replace('close', 'close_raw') if quoted else rule}"


def check_derivable(name: str, needs: tuple[str, ...], fields: FieldArrays) -> None:
    """Refuse to derive a column that the file has, or one whose inputs it lacks."""
    field = f"derive.{name}"
    if name in fields:
        raise PanelError(f"the file has a column {name!r}", field=field, hint="Leave out the derivation.")
    absent = [need for need in needs if need not in fields]
    if absent:
        raise PanelError(f"the file has no column {absent[0]!r}", field=field, hint="Leave out the derivation.")
