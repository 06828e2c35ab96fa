"""Panels from DataFrames in memory, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from .derive import check_derivations
from .errors import SETTINGS_PLACE, PanelError, quote_cell
from .load import PanelSource, build_table_panel, note_warnings
from .panel import Panel
from .prices import MEMBER_COLUMN
from .reading import AS_IT_STANDS, Reading
from .table import from_arrow

if TYPE_CHECKING:
    import pandas as pd

FRAME_NAME = "frame"
FRAME_SETTINGS = "in the argument reading, such as panel_from(frame, reading=Reading(time_zone='America/New_York'))"
NO_FRAME = "a panel is made of a DataFrame of pandas, or of one for each field"
NO_FRAME_HINT = "Convert it to a DataFrame of pandas; a file is read by load_panel(PanelSource(path))."


def panel_from(
    frame: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    reading: Reading = AS_IT_STANDS,
    derive: Mapping[str, str] | None = None,
    name: str = FRAME_NAME,
    calendar: str = "",
) -> Panel:
    """Build a panel from a DataFrame, with the data warnings in its notes.

    Parameters
    ----------
    frame : DataFrame, or mapping of str to DataFrame
        Long, with date and symbol as columns or as index; wide, with MultiIndex columns of field and symbol in either
        order, such as a yfinance frame; or one wide frame (days x symbols) for each field.
    reading : Reading
        How the frame is written, where it does not say so itself.
    derive : Mapping[str, str], optional
        Fields to compute, such as `{"vwap": "typical"}`.
    name : str
        What messages call the frame.
    calendar : str
        The exchange whose sessions the days must be, as exchange-calendars calls it, such as XNYS.

    Returns
    -------
    Panel
        The same as of a file with this table.

    Raises
    ------
    PanelError
        With every finding in the frame, or for an unknown derivation.
    """
    check_derivations(derive or {})
    source = PanelSource(Path(name), derive=derive or {}, reading=reading, calendar=calendar)
    table = _convert(_name_index(_join_fields(frame)), name)
    try:
        return note_warnings(build_table_panel(from_arrow(table, source.path), source))
    except PanelError as problem:
        problem.hint = problem.hint.replace(SETTINGS_PLACE, FRAME_SETTINGS)
        raise


def _join_fields(frame: pd.DataFrame | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one frame; of several, the columns have two levels."""
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    if not isinstance(frame, Mapping) or not frame:
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}".removeprefix("builtins.")
        raise PanelError(NO_FRAME, field=FRAME_NAME, got=kind, hint=NO_FRAME_HINT)
    for field, one in frame.items():
        if not isinstance(one, pd.DataFrame):
            what = f"{NO_FRAME}; {str(field)!r} holds {type(one).__name__}"
            raise PanelError(what, field=FRAME_NAME, hint="Give it as pd.DataFrame(values, index=days, columns=names).")
        if not one.index.is_unique:
            again = one.index[one.index.duplicated()][0]
            what = f"{again} is there twice in the index of {str(field)!r}"
            raise PanelError(what, field=FRAME_NAME, hint="Keep one row for each day.")
    try:
        return pd.concat(dict(frame), axis=1, sort=True)
    except (TypeError, ValueError):
        kinds = ", ".join(f"{field}: {one.index.dtype}" for field, one in frame.items())
        hint = "Give all frames the same index of days; frame.tz_localize(None) takes a zone away."
        raise PanelError(f"the frames have different kinds of days ({kinds})", field=FRAME_NAME, hint=hint) from None


def _convert(frame: pd.DataFrame, name: str) -> pa.Table:
    """Return a frame as a table of Arrow; refuse columns that have no type there, or that are there twice."""
    import pandas as pd

    labels = [*(frame.index.names if not isinstance(frame.index, pd.RangeIndex) else ()), *frame.columns]
    twice = pd.Series(labels, dtype=object).duplicated().to_numpy()
    if twice.any():
        hint = "Keep one: frame.loc[:, ~frame.columns.duplicated()], or frame.reset_index(drop=True) for an index."
        raise PanelError(
            f"the column {_write_label(labels[int(twice.argmax())])!r} is there twice", field=name, hint=hint
        )
    kinds = [*(frame.index.get_level_values(level).dtype for level in range(frame.index.nlevels)), *frame.dtypes]
    if period := next((kind for kind in kinds if isinstance(kind, pd.PeriodDtype)), None):
        what = f"the dates are periods ({period}), not days"
        hint = "Take the last day of each: frame.index.to_timestamp(how='end').normalize(); of a column, its .dt first."
        raise PanelError(what, field=name, hint=hint)
    sparse = {label: kind.subtype for label, kind in frame.dtypes.items() if isinstance(kind, pd.SparseDtype)}
    try:
        return pa.Table.from_pandas(frame.astype(sparse) if sparse else frame)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        what = _find_mixed_cell(frame) or f"the frame cannot be read: {'; '.join(map(str, problem.args))}"
        raise PanelError(what, field=name, hint="Give each column one type.") from None


def _find_mixed_cell(frame: pd.DataFrame) -> str:
    """Return where a column holds text among other cells; empty if none does."""
    for place, label in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        if cells.dtype != object:
            continue
        is_text = cells.map(lambda cell: isinstance(cell, str)).to_numpy(bool)
        others = cells[~is_text].dropna()
        if is_text.any() and len(others):
            row = int(is_text.argmax())
            kind = type(others.iloc[0]).__name__
            return f"row {row + 1}, {_write_label(label)}: {quote_cell(cells.iloc[row])} is text in a column of {kind}"
    return ""


def _write_label(label: object) -> str:
    return " ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _name_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with names for the levels of its index that have none: dates, or else symbols."""
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex):
        return frame
    levels = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
    if all(level.name is None and pd.api.types.is_integer_dtype(level.dtype) for level in levels):
        return frame.reset_index(drop=True)
    names = [
        str(level.name) if level.name is not None else "symbol" if pd.api.types.is_string_dtype(level.dtype) else "date"
        for level in levels
    ]
    return frame.rename_axis(index=names if len(names) > 1 else names[0])


def frame_of(panel: Panel) -> pd.DataFrame:
    """Return a panel as a long frame, as `Panel.to_frame`."""
    import pandas as pd

    there = np.array(panel.universe)
    names = [name for name in panel.fields if name != "returns"]
    for name in names:
        there |= ~np.isnan(panel.fields[name])
    day, column = np.nonzero(there)
    return pd.DataFrame(
        {
            "date": panel.dates[day].astype("datetime64[s]"),
            "symbol": np.array(panel.symbols, object)[column],
            **{name: panel.fields[name][day, column] for name in names},
            MEMBER_COLUMN: panel.universe[day, column],
        }
    ).astype({"symbol": "str"})
