"""Fields that a file lacks and the configuration defines; each derivation is noted on the panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import PanelError
from .panel import PRICE_FIELDS
from .traded import TradedRule, choose_traded_rule, compute_traded_money

FieldArrays = dict[str, NDArray[np.float64]]


def derive_typical_price(fields: FieldArrays) -> FieldArrays:
    """Compute vwap as the mean of high, low and close."""
    return {"vwap": (fields["high"] + fields["low"] + fields["close"]) / 3.0}


def derive_amount(fields: FieldArrays, volumes: str = "", later: NDArray[np.float64] | None = None) -> FieldArrays:
    """Compute the traded amount by the rule that the kind of the volumes and the recorded splits ask for."""
    return {"amount": compute_traded_money(fields, _choose_amount_rule(fields, volumes, later), later)}


def _choose_amount_rule(fields: FieldArrays, volumes: str, later: NDArray[np.float64] | None) -> TradedRule:
    return choose_traded_rule(fields, volumes, has_splits=later is not None)


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


def derive_fields(
    fields: FieldArrays, derive: Mapping[str, str], volumes: str = "", later: NDArray[np.float64] | None = None
) -> tuple[FieldArrays, tuple[str, ...]]:
    """Return the fields with the derived ones, and a note for each, in the words of its rule.

    Parameters
    ----------
    fields
        Those that there are, of one shape.
    derive
        The rule of each field that is wanted.
    volumes, later
        `Panel.volumes`, and `count_later_shares` in the shape of the fields; the traded amount follows from them.
    """
    requested = {(name, rule.replace(" ", "")) for name, rule in derive.items()}
    derived = dict(fields)
    notes = []
    for (name, rule), (compute, needs) in DERIVATIONS.items():
        if (name, rule) not in requested:
            continue
        check_derivable(name, needs, fields)
        if name == "amount":
            derived |= derive_amount(derived, volumes, later)
            rule = _choose_amount_rule(derived, volumes, later)
        else:
            derived |= compute(derived)
        notes.append(f"{name}: {rule}")
    if "prices" in derive:
        del derived[derive["prices"].replace(" ", "")]  # it contains every later dividend: no factor may read it
    return derived, tuple(notes)


def check_derivable(name: str, needs: tuple[str, ...], fields: FieldArrays) -> None:
    """Refuse to derive a column that the file has, or one whose inputs it lacks."""
    field = f"derive.{name}"
    if name in fields:
        raise PanelError(f"the file has a column {name!r}", field=field, hint="Leave out the derivation.")
    absent = [need for need in needs if need not in fields]
    if absent:
        raise PanelError(f"the file has no column {absent[0]!r}", field=field, hint="Leave out the derivation.")
