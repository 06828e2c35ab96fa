"""Fields that a caller may not see, because they are confidential or bound to a jurisdiction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from .errors import MarketError
from .panel import PRICE_FIELDS, Panel

ALL_FIELDS = "*"
"""Stands for every field."""


def find_withheld_fields(
    panel: Panel, labels: Mapping[str, Collection[str]], granted: Collection[str] = ()
) -> frozenset[str]:
    """Return the fields and groups whose label is not among the caller's; `ALL_FIELDS` stands for all of them.

    Raises
    ------
    MarketError
        A label names a field that the panel lacks: a misspelt name would show what was to be hidden.
    """
    known = {*panel.fields, *panel.groups, ALL_FIELDS}
    if unknown := sorted({*labels} - known):
        raise MarketError(
            f"the panel has no field or group {', '.join(unknown)}",
            field="market.labels",
            got=unknown,
            allowed=sorted(known),
            hint="Name a field as alphaloom market audit shows it, or * for all of them.",
        )
    return frozenset(name for name, required in labels.items() if not set(required) <= set(granted))


def drop_fields(panel: Panel, names: Collection[str]) -> Panel:
    """Return a panel without some of its fields and groups, and without the notes that name them.

    Raises
    ------
    MarketError
        Prices, volumes or returns are among them: there is no panel without these.
    """
    if not names:
        return panel
    if required := sorted({*names} & {*PRICE_FIELDS, "volume", "returns"}):
        raise MarketError(
            "a panel cannot be shown without these fields",
            field="labels",
            got=required,
            hint='Label all of it: {"*": [confidential]}.',
        )
    return replace(
        panel,
        fields={name: values for name, values in panel.fields.items() if name not in names},
        groups={name: codes for name, codes in panel.groups.items() if name not in names},
        group_labels={name: labels for name, labels in panel.group_labels.items() if name not in names},
        notes=tuple(note for note in panel.notes if not any(name in note for name in names)),
    )
