"""A panel as it was known on a day: without later rows, later symbols, and later splits and dividends in its prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from .actions import Actions, Frame
from .adjusted import MAX_QUOTE_GAP, find_adjusted_fields, has_adjustment, is_adjusted, round_digits
from .derive import DERIVATIONS, derive_fields
from .errors import MarketError, format_count
from .panel import PRICE_FIELDS, UNKNOWN_GROUP, Panel, compute_simple_returns
from .quality import find_data_warnings
from .quality.back_adjustment import may_be_adjusted
from .traded import AMOUNT_RULES, count_later_shares

FieldArrays = dict[str, NDArray[np.float64]]
READJUSTED_DIGITS = 10
"""Significant digits of readjusted values: multiplying and dividing by later events leaves no trace."""
NOT_POINT_IN_TIME = "adjustment: not point in time"
"""Note of a panel from which later adjustments were removed by the file's own factors, right or wrong."""
VOLUME_KINDS = ("quoted", "adjusted")
SAME_ADJUSTMENT = 0.01
"""Relative difference of an adjustment from that of the actions from which on it is noted: vendors round."""
QUOTES_MISFIT = 0.5
"""`SplitMove.misfit` below which a close moved by the split: it is as quoted."""
ADD_QUOTES = "If the prices are as quoted, give the close a second time as a column close_raw."


def take_panel_as_of(panel: Panel, day: date, actions: Actions | None = None, volumes: str = "") -> Panel:
    """Return what was known of a panel at the close of a day.

    Prices that were adjusted backwards are readjusted from `close_raw` and the actions until that day. The rows until
    that day show whether the file's own vwap and amount carry the adjustment. Where they cannot, the field is dropped
    with a note, because deciding by later rows would reveal them. Without `close_raw` or actions each symbol is scaled
    so that its last close is the quoted one, or 100. This hides later events as far as the file's own factors are
    right, and the panel carries the note `NOT_POINT_IN_TIME`.

    Parameters
    ----------
    panel : Panel
        The whole panel.
    day : date
        The last day that is known.
    actions : Actions, optional
        Splits and dividends. Later ones serve only to undo the adjustment of volumes.
    volumes : {"", "quoted", "adjusted"}
        Whether the volumes are as traded, or in shares of the panel's last day. Required with actions: a test on splits
        would depend on their number, and so on later ones.

    Returns
    -------
    Panel
        The rows until that day, of the symbols that had a row by then; equal to the result for a panel that ends there.

    Raises
    ------
    MarketError
        The panel begins later, or there are actions and the kind of the volumes is not stated.
    """
    _check_volumes(actions, volumes)
    stop = int(np.searchsorted(panel.dates, np.datetime64(day, "D"), side="right"))
    if stop == 0:
        raise MarketError(
            f"nothing was known yet on {day}",
            field="as_of",
            got=str(day),
            allowed=f"{panel.dates[0]} or later",
            hint="Name a later day.",
        )
    part = panel.rows(0, stop)
    part = _select_symbols(part, _find_symbols_with_rows(part))
    rules = _read_derivation_notes(part)
    part = replace(part, notes=part.stamps)
    # A panel without an event by then is readjusted too: skipping it would reveal whether there are later ones.
    if panel.back_adjusted or "close_raw" in panel.fields:
        later = np.ones(part.names)
        if actions is not None and volumes == "adjusted":
            later = _count_later_shares(part, actions, panel.dates[-1])
        fields = dict(part.fields) | {"volume": _round_values(part.fields["volume"] / later)}
        if actions is not None:
            part = replace(part, splits=actions.list_splits(np.datetime64(day, "D")), volumes=volumes)
        part = _readjust_prices(replace(part, fields=fields), rules, actions, volumes, later, np.datetime64(day, "D"))
        part = replace(part, back_adjusted=may_be_adjusted(part))
    return replace(part, notes=(*part.notes, *map(str, find_data_warnings(part))))


def apply_actions(panel: Panel, actions: Actions) -> Panel:
    """Return a panel with quoted prices adjusted for the splits and dividends until its last day.

    Adjusted are the symbols whose closes are the quoted ones (`close_raw`) on every day, so a second time changes
    nothing. Of the others the file's own adjustment stays, and where it differs from the actions, a note says so.
    Volumes and the file's own amount stay; its own vwap moves with the close unless it is nearer to the quotes.

    Parameters
    ----------
    panel : Panel
        With `close_raw`. Without it the actions cannot be applied, which is noted.
    actions : Actions
        Those after the last day are not applied.

    Raises
    ------
    MarketError
        The kind of the volumes is not stated, the quotes contradict a split, a dividend leaves no price, or the closes
        are as quoted and there is no `close_raw`.
    """
    _check_volumes(actions, panel.volumes)
    absent = {*actions.symbols} - {*panel.symbols}
    notes = [f"actions: {format_count(len(absent), 'symbol')} without a price, such as {min(absent)}"] if absent else []
    panel = replace(panel, splits=actions.list_splits(panel.dates[-1]))
    if "close_raw" not in panel.fields:
        _refuse_plain_quotes(panel, actions)
        notes.append(f"actions: not applied, since there is no close_raw; {ADD_QUOTES}")
        return _add_notes(_derive_anew(panel, {}), notes)
    close, plain = panel.fields["close"], _find_quoted(panel)
    notes += _compare_own_adjustment(_select_symbols(panel, ~plain), actions)
    names = tuple(symbol for symbol, is_plain in zip(panel.symbols, plain, strict=True) if is_plain)
    actions.check_splits(panel.dates, names, close[:, plain])
    factor = np.ones_like(close)
    factor[:, plain] = actions.compute_factors(panel.dates, names, close[:, plain])[0]
    changed = int((factor != 1.0).any(axis=0).sum())
    if not changed:
        return _add_notes(_derive_anew(panel, {}), notes)
    own = [name for name in ("vwap",) if name in panel.fields and is_adjusted(panel.fields[name], panel)]
    panel = _derive_anew(panel, {name: panel.fields[name] * factor for name in (*PRICE_FIELDS, *own)})
    until = f"until {panel.dates[-1]}"
    notes.append(f"prices: quoted ones of {format_count(changed, 'symbol')}, adjusted for splits and dividends {until}")
    panel = _add_notes(panel, notes)
    return replace(panel, back_adjusted=may_be_adjusted(panel))


def _derive_anew(panel: Panel, changed: FieldArrays) -> Panel:
    """Return the panel with changed fields, and with the fields that were derived from prices derived again."""
    rules = _read_derivation_notes(panel)
    fields = {name: values for name, values in {**panel.fields, **changed}.items() if name not in rules}
    fields, stamps = derive_fields(fields, rules, panel.volumes, count_later_shares(panel))
    if changed:
        fields["returns"] = compute_simple_returns(fields["close"])
    stated = {stamp.split(": ")[0]: stamp for stamp in stamps}
    notes = (stated.get(note.split(": ")[0], note) if note in panel.stamps else note for note in panel.notes)
    return replace(panel, fields=fields, notes=tuple(notes))


def _find_quoted(panel: Panel) -> NDArray[np.bool_]:
    """Return the symbols ``[N]`` whose closes are the quoted ones on every day that has both."""
    close, quoted = panel.fields["close"], panel.fields["close_raw"]
    with np.errstate(invalid="ignore"):
        apart = np.asarray((np.abs(close / quoted - 1.0) > MAX_QUOTE_GAP).any(axis=0), np.bool_)
    there = np.asarray(np.isfinite(quoted).any(axis=0), np.bool_)
    return there & ~apart


def _add_notes(panel: Panel, notes: Sequence[str]) -> Panel:
    return replace(panel, notes=(*panel.notes, *notes))


def _compare_own_adjustment(panel: Panel, actions: Actions) -> list[str]:
    """Return a note on the symbols whose adjustment by the file is not that of the actions."""
    quoted, close = panel.fields["close_raw"], panel.fields["close"]
    try:
        prices, _ = actions.compute_factors(panel.dates, panel.symbols, quoted)
    except MarketError as problem:
        return [f"actions: {problem.message}; the file's own adjustment is kept"]
    factor = quoted * prices / close
    with np.errstate(invalid="ignore"):
        off = np.flatnonzero((np.abs(factor / find_last_known(factor) - 1.0) > SAME_ADJUSTMENT).any(axis=0))
    if not len(off):
        return []
    what = f"{format_count(len(off), 'symbol')}, such as {panel.symbols[off[0]]}"
    return [f"actions: the file's own adjustment is kept, and differs from that of the actions for {what}"]


def _refuse_plain_quotes(panel: Panel, actions: Actions) -> None:
    """Refuse a panel without `close_raw` whose closes move by most of the splits: they would stay in its returns."""
    moves = actions.measure_splits(panel.dates, panel.symbols, panel.fields["close"])
    jumps = [move for move in moves if move.misfit < QUOTES_MISFIT]
    if 2 * len(jumps) > len(moves):
        raise MarketError(
            f"the prices are not adjusted for {len(jumps):,} of {format_count(len(moves), 'split')}, "
            f"and there is no close_raw: {jumps[0]}",
            field="market.actions",
            hint=ADD_QUOTES,
        )


def _check_volumes(actions: Actions | None, volumes: str) -> None:
    if volumes not in VOLUME_KINDS and (volumes or actions is not None):
        raise MarketError(
            "with splits and dividends it must be said what the volumes are",
            field="market.volumes",
            got=volumes,
            allowed=VOLUME_KINDS,
            hint="quoted: as traded that day; adjusted: in shares of the panel's last day.",
        )


def keep_members(panel: Panel) -> Panel:
    """Return the panel without the symbols that are never in its universe: they are not known yet."""
    return _select_symbols(panel, np.asarray(panel.universe.any(axis=0)))


def _find_symbols_with_rows(panel: Panel) -> NDArray[np.bool_]:
    has_row = np.zeros(panel.names, np.bool_)
    for name, values in panel.fields.items():
        if name != "returns":
            has_row |= np.isfinite(values).any(axis=0)
    return has_row


def _select_symbols(panel: Panel, selected: NDArray[np.bool_]) -> Panel:
    """Return the panel of the selected symbols ``[N]``, without the labels of groups that none of them has."""
    groups, labels = {}, {}
    for name, codes in panel.groups.items():
        old_codes = codes[selected]
        used = sorted({int(code) for code in old_codes} - {UNKNOWN_GROUP})
        new_code = {code: place for place, code in enumerate(used)} | {UNKNOWN_GROUP: UNKNOWN_GROUP}
        groups[name] = np.array([new_code[int(code)] for code in old_codes], np.int16)
        labels[name] = tuple(panel.group_labels[name][code] for code in used)
    return replace(
        panel,
        symbols=tuple(symbol for symbol, keep in zip(panel.symbols, selected, strict=True) if keep),
        fields={name: values[:, selected] for name, values in panel.fields.items()},
        universe=panel.universe[:, selected],
        groups=groups,
        group_labels=labels,
    )


def _read_derivation_notes(panel: Panel) -> Mapping[str, str]:
    """Return the derivations that the panel's notes state, of fields computed from prices."""
    stated = dict(note.split(": ", 1) for note in panel.stamps)
    plain = {name: "close*volume" if rule in AMOUNT_RULES else rule for name, rule in stated.items()}
    return {name: rule for name, rule in plain.items() if (name, rule) in DERIVATIONS and name != "prices"}


def _readjust_prices(
    panel: Panel, rules: Mapping[str, str], actions: Actions | None, volumes: str, later: Frame, day: np.datetime64
) -> Panel:
    plain = {name: values for name, values in panel.fields.items() if name not in rules and name != "returns"}
    if actions is None or "close_raw" not in plain:
        fields, notes = _scale_prices(panel, plain), [NOT_POINT_IN_TIME]
    else:
        prices, splits = actions.compute_factors(panel.dates, panel.symbols, plain["close_raw"])
        splits = splits if volumes == "adjusted" else np.ones_like(splits)
        fields, notes = _adjust_quotes(plain, prices, splits, later)
        notes = [f"prices: quoted ones, adjusted for splits and dividends until {day}", *notes]
    fields, stamps = derive_fields(fields, rules, panel.volumes, count_later_shares(panel))
    fields["returns"] = compute_simple_returns(fields["close"])
    return replace(panel, fields=fields, notes=(*stamps, *notes))


def _scale_prices(panel: Panel, plain: FieldArrays) -> FieldArrays:
    """Return fields whose last prices are the quoted ones, or 100."""
    quoted, close = plain.get("close_raw"), plain["close"]
    scale = (np.full(panel.names, 100.0) if quoted is None else find_last_known(quoted)) / find_last_known(close)
    carrying = {name for name in find_adjusted_fields(panel) if name in plain}
    return plain | {name: _round_values(plain[name] * scale) for name in {*PRICE_FIELDS, *carrying}}


def _adjust_quotes(plain: FieldArrays, prices: Frame, splits: Frame, later: Frame) -> tuple[FieldArrays, list[str]]:
    """Return fields adjusted for events until the last row, and notes on those that had to be dropped.

    Each is first converted back to the quoted value and rounded there, where numbers have few digits and cannot lie
    between two roundings. The factors, which do not depend on later events, are multiplied in afterwards.

    Parameters
    ----------
    plain
        The panel's fields, the volume in shares of the last row if it is adjusted.
    prices, splits
        ``[T, N]``: factors of quoted prices, and of volumes as traded, until the last row.
    later
        ``[N]``: factors of volumes after it.
    """
    quoted, close = plain["close_raw"], plain["close"]
    fields = plain | {name: _round_values(plain[name] / close * quoted) * prices for name in PRICE_FIELDS}
    fields["close"] = _round_values(quoted) * prices
    traded = np.where(plain["volume"] > 0, plain["volume"], np.nan) / splits
    ones = np.ones_like(prices)
    notes = []
    for name, shares, then, after in (("vwap", ones, ones, ones), ("amount", traded, splits, later)):
        if name not in plain:
            continue
        if (carrying := has_adjustment(plain[name] / shares, quoted, prices * then)) is None:
            del fields[name]
            notes.append(f"{name}: left out, no split or dividend until then shows whether it is adjusted")
        elif carrying:
            fields[name] = _round_values(plain[name] / close * quoted / (then * after)) * (prices * then)
    return fields, notes


def _count_later_shares(panel: Panel, actions: Actions, end: np.datetime64) -> Frame:
    """Return how many shares ``[N]`` one share becomes by splits after the panel's last row and until `end`."""
    later = np.ones(panel.names)
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    for at in np.flatnonzero((actions.days > panel.dates[-1]) & (actions.days <= end)):
        if (place := column.get(actions.symbols[at])) is not None:
            later[place] *= actions.splits[at]
    return later


def find_last_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last known value of each symbol ``[N]``, NaN without any."""
    known = ~np.isnan(values)
    row = values.shape[0] - 1 - known[::-1].argmax(axis=0)
    return np.where(known.any(axis=0), values[row, np.arange(values.shape[1])], np.nan).astype(np.float64)


def _round_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values rounded to `READJUSTED_DIGITS` significant digits, NaN kept."""
    return round_digits(values, READJUSTED_DIGITS)
