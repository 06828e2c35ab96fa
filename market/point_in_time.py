"""A panel as it was known on a day: no later row, no later name, no price that a later split or dividend moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from .actions import Actions, Frame
from .adjusted import adjusted_fields, has_adjustment, round_digits
from .derive import DERIVATIONS, derive_fields
from .errors import MarketError
from .panel import PRICE_FIELDS, UNKNOWN_GROUP, Panel, simple_returns
from .quality import find_data_warnings
from .quality.levels import may_be_adjusted

__all__ = ["NOT_POINT_IN_TIME", "drop_fields", "keep_members", "panel_as_of"]

FieldArrays = dict[str, NDArray[np.float64]]
READJUSTED_DIGITS = 10
"""Significant digits of what is computed anew: by what later events a price was multiplied and divided leaves no trace."""
NOT_POINT_IN_TIME = "adjustment: not point in time"
"""The note of prices that only the file's own adjustment could be taken back from, as far as it can be."""
QUOTED_AMOUNT = "close_raw*volume"
VOLUME_KINDS = ("quoted", "adjusted")


def panel_as_of(panel: Panel, day: date, actions: Actions | None = None, volumes: str = "") -> Panel:
    """Return what was known of a panel at the close of a day.

    Prices that were adjusted backwards are adjusted anew, from `close_raw` and the actions until that day. Of the file's own
    vwap and amount, rows until that day show whether they bear the adjustment; where these cannot tell, the field is left
    out, and a note says so: later rows could tell, and would show through. Without `close_raw` or actions
    each name is scaled so that its last close is the quoted one, or 100, which hides later events as far as the file's own
    factors are right, and the panel bears the note `NOT_POINT_IN_TIME`.

    Parameters
    ----------
    panel : Panel
        All that is there now.
    day : date
        The last day that may be known.
    actions : Actions, optional
        Splits and dividends. Later ones are used to take volumes back that were adjusted for them, and for nothing else.
    volumes : {"", "quoted", "adjusted"}
        Whether the panel's volumes are as traded or in shares of its last day. Needed with actions: what splits show of it
        hangs on how many there were, and so on later ones.

    Returns
    -------
    Panel
        The rows until that day, of the names that had a row until then; equal to what comes of a panel that ends there.

    Raises
    ------
    MarketError
        The panel begins later, or there are actions and nobody says what the volumes are.
    """
    _check_volumes(actions, volumes)
    stop = int(np.searchsorted(panel.dates, np.datetime64(day, "D"), side="right"))
    if stop == 0:
        raise MarketError(
            f"nothing was known yet on {day}", field="as_of", got=str(day), allowed=f"{panel.dates[0]} or later",
            hint="Name a later day.",
        )  # fmt: skip
    part = panel.rows(0, stop)
    part = _select_names(part, _names_with_rows(part))
    rules = _stated_derivations(part)
    part = replace(part, notes=part.stamps)
    if (
        panel.back_adjusted or "close_raw" in panel.fields
    ):  # whether anything happened until that day tells of later ones
        later = np.ones(part.names)
        if actions is not None and volumes == "adjusted":
            later = _splits_between(part, actions, panel.dates[-1])
        fields = dict(part.fields) | {"volume": _round_values(part.fields["volume"] / later)}
        part = _readjust_prices(replace(part, fields=fields), rules, actions, volumes, later, np.datetime64(day, "D"))
        part = replace(part, back_adjusted=may_be_adjusted(part))
    return replace(part, notes=(*part.notes, *map(str, find_data_warnings(part))))


def drop_fields(panel: Panel, names: Collection[str]) -> Panel:
    """Return a panel without some of its fields and groups, and without the notes that name them.

    Raises
    ------
    MarketError
        Prices or volumes are among them: without these there is no panel.
    """
    if not names:
        return panel
    if needed := sorted({*names} & {*PRICE_FIELDS, "volume", "returns"}):
        raise MarketError(
            "a panel cannot be shown without these fields", field="labels", got=needed,
            hint='Label all of it: {"*": [confidential]}.',
        )  # fmt: skip
    return replace(
        panel,
        fields={name: values for name, values in panel.fields.items() if name not in names},
        groups={name: codes for name, codes in panel.groups.items() if name not in names},
        group_labels={name: labels for name, labels in panel.group_labels.items() if name not in names},
        notes=tuple(note for note in panel.notes if not any(name in note for name in names)),
    )


def _check_volumes(actions: Actions | None, volumes: str) -> None:
    if volumes not in VOLUME_KINDS and (volumes or actions is not None):
        raise MarketError(
            "with splits and dividends it must be said what the volumes are", field="market.volumes", got=volumes,
            allowed=VOLUME_KINDS, hint="quoted: as traded that day; adjusted: in shares of the panel's last day.",
        )  # fmt: skip


def keep_members(panel: Panel) -> Panel:
    """Return the panel without names that are members of its universe on none of its days: they are not known yet."""
    return _select_names(panel, np.asarray(panel.universe.any(axis=0)))


def _names_with_rows(panel: Panel) -> NDArray[np.bool_]:
    """Tell which names ``[N]`` have a row."""
    there = np.zeros(panel.names, np.bool_)
    for name, values in panel.fields.items():
        if name != "returns":
            there |= np.isfinite(values).any(axis=0)
    return there


def _select_names(panel: Panel, there: NDArray[np.bool_]) -> Panel:
    """Return the panel with some of its names, and without labels of groups that none of them bears."""
    groups, labels = {}, {}
    for name, codes in panel.groups.items():
        kept = codes[there]
        borne = sorted({int(code) for code in kept} - {UNKNOWN_GROUP})
        anew = {code: place for place, code in enumerate(borne)} | {UNKNOWN_GROUP: UNKNOWN_GROUP}
        groups[name] = np.array([anew[int(code)] for code in kept], np.int16)
        labels[name] = tuple(panel.group_labels[name][code] for code in borne)
    return replace(
        panel,
        symbols=tuple(symbol for symbol, seen in zip(panel.symbols, there, strict=True) if seen),
        fields={name: values[:, there] for name, values in panel.fields.items()},
        universe=panel.universe[:, there],
        groups=groups,
        group_labels=labels,
    )


def _stated_derivations(panel: Panel) -> Mapping[str, str]:
    """Return the derivations that the panel's notes state, of fields that are made of prices."""
    told = dict(note.split(": ", 1) for note in panel.stamps)
    plain = {name: "close*volume" if rule == QUOTED_AMOUNT else rule for name, rule in told.items()}
    return {name: rule for name, rule in plain.items() if (name, rule) in DERIVATIONS and name != "prices"}


def _readjust_prices(
    panel: Panel, rules: Mapping[str, str], actions: Actions | None, volumes: str, later: Frame, day: np.datetime64
) -> Panel:
    plain = {name: values for name, values in panel.fields.items() if name not in rules and name != "returns"}
    if actions is None or "close_raw" not in plain:
        fields, said = _scale_prices(panel, plain), [NOT_POINT_IN_TIME]
    else:
        prices, splits = actions.factors(panel.dates, panel.symbols, plain["close_raw"])
        splits = splits if volumes == "adjusted" else np.ones_like(splits)
        fields, said = _adjust_quotes(plain, prices, splits, later)
        said = [f"prices: quoted ones, adjusted for splits and dividends until {day}", *said]
    fields, stamps = derive_fields(fields, rules)
    fields["returns"] = simple_returns(fields["close"])
    return replace(panel, fields=fields, notes=(*stamps, *said))


def _scale_prices(panel: Panel, plain: FieldArrays) -> FieldArrays:
    """Return fields whose prices end at the quote, or at 100."""
    quoted, close = plain.get("close_raw"), plain["close"]
    scale = (np.full(panel.names, 100.0) if quoted is None else last_known(quoted)) / last_known(close)
    carrying = {name for name in adjusted_fields(panel) if name in plain}
    return plain | {name: _round_values(plain[name] * scale) for name in {*PRICE_FIELDS, *carrying}}


def _adjust_quotes(plain: FieldArrays, prices: Frame, splits: Frame, later: Frame) -> tuple[FieldArrays, list[str]]:
    """Return fields adjusted by what happened until the last row, and notes of those that had to be left out.

    Each is first taken back to what was quoted and rounded there, where a number has few digits and cannot lie between two
    roundings; the factors, which are the same whatever comes later, are multiplied in afterwards.

    Parameters
    ----------
    plain
        The panel's fields, the volume in shares of the last row if it is adjusted.
    prices, splits
        ``[T, N]``: what quoted prices, and volumes as traded, are multiplied by until the last row.
    later
        ``[N]``: what volumes were multiplied by after it.
    """
    quoted, close = plain["close_raw"], plain["close"]
    fields = plain | {name: _round_values(plain[name] / close * quoted) * prices for name in PRICE_FIELDS}
    fields["close"] = _round_values(quoted) * prices
    traded = np.where(plain["volume"] > 0, plain["volume"], np.nan) / splits
    whole = np.ones_like(prices)
    said = []
    for name, shares, then, after in (("vwap", whole, whole, whole), ("amount", traded, splits, later)):
        if name not in plain:
            continue
        if (carrying := has_adjustment(plain[name] / shares, quoted, prices * then)) is None:
            del fields[name]
            said.append(f"{name}: left out, no split or dividend until then shows whether it is adjusted")
        elif carrying:
            fields[name] = _round_values(plain[name] / close * quoted / (then * after)) * (prices * then)
    return fields, said


def _splits_between(panel: Panel, actions: Actions, end: np.datetime64) -> Frame:
    """Return how many shares ``[N]`` splits make of one after a panel's last row and until the day that its file ends on."""
    later = np.ones(panel.names)
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    for at in np.flatnonzero((actions.days > panel.dates[-1]) & (actions.days <= end)):
        if (place := column.get(actions.symbols[at])) is not None:
            later[place] *= actions.splits[at]
    return later


def last_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last known value of each name ``[N]``, NaN without any."""
    seen = ~np.isnan(values)
    row = values.shape[0] - 1 - seen[::-1].argmax(axis=0)
    return np.where(seen.any(axis=0), values[row, np.arange(values.shape[1])], np.nan).astype(np.float64)


def _round_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values rounded to `READJUSTED_DIGITS` significant digits, NaN kept."""
    return round_digits(values, READJUSTED_DIGITS)
