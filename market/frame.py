"""Panels from DataFrames in memory, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from .derive import check_derivations
from .errors import PanelError
from .load import PanelSource, build_table_panel, note_warnings
from .panel import Panel
from .prices import MEMBER_COLUMN
from .reading import AS_IT_STANDS, Reading
from .table import from_arrow

if TYPE_CHECKING:
    import pandas as pd

FRAME_NAME = "frame"


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
    try:
        table = pa.Table.from_pandas(_name_index(_join_fields(frame)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as problem:
        what = str(problem).splitlines()[0]
        raise PanelError(f"the frame cannot be read: {what}", field=name, hint="Give each column one type.") from None
    return note_warnings(build_table_panel(from_arrow(table, source.path), source))


def _join_fields(frame: pd.DataFrame | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one frame; of several, the columns have two levels."""
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    if not isinstance(frame, Mapping) or not frame or not all(isinstance(one, pd.DataFrame) for one in frame.values()):
        kind = type(frame).__name__
        raise PanelError("a panel is made of a DataFrame, or of one for each field", field=FRAME_NAME, got=kind)
    return pd.concat(dict(frame), axis=1, sort=True)


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
