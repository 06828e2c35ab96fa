"""Who may see which field: what is marked as confidential, or as bound to a jurisdiction."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .errors import MarketError
from .panel import Panel

__all__ = ["ALL_FIELDS", "withheld_fields"]

ALL_FIELDS = "*"
"""Stands for every field."""


def withheld_fields(panel: Panel, labels: Mapping[str, Collection[str]], borne: Collection[str] = ()) -> frozenset[str]:
    """Return the fields and groups of a panel that bear a label which is not among those borne; `ALL_FIELDS` for all of them.

    Raises
    ------
    MarketError
        A label is on something that the panel does not have: a slip there would show what was to be hidden.
    """
    known = {*panel.fields, *panel.groups, ALL_FIELDS}
    if strange := sorted({*labels} - known):
        raise MarketError(
            f"the panel has no field or group {', '.join(strange)}", field="market.labels", got=strange,
            allowed=sorted(known), hint="Name a field as alphaloom market audit shows it, or * for all of them.",
        )  # fmt: skip
    return frozenset(name for name, wanted in labels.items() if not set(wanted) <= set(borne))
