"""Which columns may be a field that is absent: by their names where these are known, else by their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .arrays import is_text
from .days import parse_date
from .names import MEANT_NAMES, guess_meant
from .numbers import looks_numeric

DATE_FIELDS = ("date", "known", "from", "to", "period")
WORD_FIELDS = ("symbol", "new_symbol", "sector", "industry")
KNOWN_DAY = (
    ": it holds the day on which each figure was published, which is weeks after the last day of its period; "
    "if the file has that day, say columns: {known: ITS NAME}"
)
MAX_COLUMNS_NAMED = 6
KIND_CELLS = 50


def suggest_columns(
    columns: Mapping[str, pa.ChunkedArray], absent: Sequence[str], required: Sequence[str]
) -> list[str]:
    """Return for each absent field which column may be meant, and the setting that says so; empty without a guess."""
    free = {name: kind for name, cells in columns.items() if (kind := _find_kind(cells)) and name not in required}
    meant = {field: _guess(field, free, required) for field in absent}
    left = [name for name in free if name not in meant.values()]
    unmet = [field for field in absent if not meant[field]]
    fitting = {field: [name for name in left if _fits(field, free[name])] for field in unmet}
    # columns that cannot be all that is missing would each be a guess
    enough = len({name for names in fitting.values() for name in names}) >= len(unmet)
    return [_suggest(field, meant[field], fitting.get(field, []) if enough else []) for field in absent]


def _guess(field: str, free: Mapping[str, str], required: Sequence[str]) -> str:
    """Return the column whose name may mean a field, and whose cells may be its values."""
    fitting = [name for name in free if name in MEANT_NAMES.get(field, ()) or _fits(field, free[name])]
    return guess_meant(field, fitting, required)


def _fits(field: str, kind: str) -> bool:
    """Return whether cells of a kind may be the values of a field; no cells show on which day a figure was known."""
    if field == "known":
        return False
    return kind == ("dates" if field in DATE_FIELDS else "words" if field in WORD_FIELDS else "numbers")


def _find_kind(column: pa.ChunkedArray) -> str:
    """Return whether the first cells of a column are dates, numbers or words."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return "dates"
    if not is_text(column.type):
        return "numbers"
    cells = pc.unique(column.slice(0, KIND_CELLS).cast(pa.string())).to_pylist()
    words = [cell.strip() for cell in cells if cell and cell.strip()]
    if words and all(parse_date(word) is not None for word in words):
        return "dates"
    return "numbers" if looks_numeric(column) else "words"


def _suggest(field: str, meant: str, free: Sequence[str]) -> str:
    if meant or len(free) == 1:
        other = meant or free[0]
        return f"; if it is {other!r}, say columns: {{{field}: {other}}}"
    if field == "known":
        return KNOWN_DAY
    if not free:
        return ""
    more = ", ..." if len(free) > MAX_COLUMNS_NAMED else ""
    return f"; if it is one of {', '.join(free[:MAX_COLUMNS_NAMED])}{more}, say columns: {{{field}: ITS NAME}}"
