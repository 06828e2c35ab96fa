"""Text cells as numbers: decimal marks, thousands, currency signs and words for a missing value.

A file has one decimal mark. A cell that can be read one way only decides it for the whole file: 1,234.50 has a decimal
point, 12,5 a decimal comma. Where every comma is followed by three digits, as in 1,234, the setting `decimal` decides.
Without any comma the mark is a point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import Audit, Finding, quote_cell
from .arrays import find_empty, is_text, to_floats

if TYPE_CHECKING:
    from ..table import Table

NAN_TEXTS = ("nan", "null", "none", "-", "--", "n/a", "na", "#n/a", "nat", "?", ".")
PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
WITH_POINT = r"^[-+]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]*)?$"
WITH_COMMA = r"^[-+]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]*)?$"
EXPONENT_COMMA = r"^[-+]?[0-9]+(,[0-9]*)?[eE][-+]?[0-9]+$"
"""2,7e+06 has a decimal comma; 1e+06 has no mark, and decides nothing."""
ZERO_COMMA, ZERO_POINT = r"^[-+]?0+,[0-9]+$", r"^[-+]?0+\.[0-9]+$"
"""0,123 has a decimal comma, and 0.123 a decimal point: no thousands begin with 0."""
GROUPED = r"^[-+]?(0|[1-9][0-9]{0,2}(\.[0-9]{3})*)$"
"""What has no point, or points before three digits each: 1.234 has either thousands or decimals."""
SPACED = "[  \\x{00a0}\\x{202f}'\\x{2019}]"
NO_SIGN = "[-+0-9.,'\\s\\x{00a0}\\x{202f}\\x{2019}]"
THOUSANDS_BY_SPACE = rf"^[-+]?[0-9]{{1,3}}({SPACED}[0-9]{{3}})+([.,][0-9]*)?$"
CURRENCY_BEFORE = r"^([-+]?)\s*(US\$|[$€£¥₹]|USD|EUR|GBP|CHF|JPY)\s*"
CURRENCY_AFTER = r"\s*(US\$|[$€£¥₹]|USD|EUR|GBP|CHF|JPY)$"
PLACEHOLDER = "it is text, not a number: leave the cell empty where a value is missing, or say"
SAMPLE_CELLS = 1000
DECIMAL_COMMA = "numbers: decimal comma"
DECIMAL_QUESTION = "say decimal: point or decimal: comma"


def read_numbers(table: Table, name: str, audit: Audit) -> NDArray[np.float64]:
    """Return a column as floats `[rows]`; NaN where the cell is empty, or not a number (a finding)."""
    return read_number_columns(table, {name: table.columns[name]}, audit)[name]


def read_number_columns(
    table: Table, columns: Mapping[str, pa.ChunkedArray], audit: Audit
) -> dict[str, NDArray[np.float64]]:
    """Return columns as floats `[rows]`; those of text share one decimal mark."""
    texts = {name: _strip(table, column, name, audit) for name, column in columns.items() if is_text(column.type)}
    values = {name: _read_typed(column, name, audit) for name, column in columns.items() if name not in texts}
    read = {name: _read_plain(text) for name, text in texts.items()}
    plain = {name: numbers for name, numbers in read.items() if numbers is not None}
    stated = table.reading.decimal
    if len(plain) == len(texts) and stated != "comma":
        in_doubt = not stated and _ask_about_points(texts, audit)
        values |= {name: np.full(len(text), np.nan) for name, text in texts.items()} if in_doubt else plain
    else:  # a point of a plain number may stand between thousands: the file's mark says it
        bodies = {name: _clean(text) for name, text in texts.items()}
        mark = _decide_mark(bodies, texts, table.reading.decimal, audit)
        values |= {name: _parse(bodies[name], text, mark, name, audit) for name, text in texts.items()}
    return {name: values[name] for name in columns}


def _ask_about_points(texts: Mapping[str, pa.ChunkedArray], audit: Audit) -> bool:
    """Add a finding where all numbers have points before three digits only, which may be thousands."""
    pointed = None
    for name, text in texts.items():
        if not pc.all(pc.match_substring_regex(text, GROUPED)).as_py():
            return False
        pointed = pointed or _find_first(pc.match_substring(text, "."), text, name)
    if pointed:
        what = f"{pointed[1]} may have thousands or decimals behind its point, and no cell of the file decides"
        audit.ask(pointed[0], f"{what}: {DECIMAL_QUESTION}, which takes them for thousands")
    return pointed is not None


def _read_typed(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.float64]:
    """Return a column of numbers as floats; another type is a finding."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return to_floats(column)
    if not pa.types.is_null(kind):
        audit.add(Finding(0, name, f"the column holds {kind}, not numbers"))
    return np.full(len(column), np.nan)


def _strip(table: Table, column: pa.ChunkedArray, name: str, audit: Audit) -> pa.ChunkedArray:
    """Return the cells without white space around them; empty ones, and words that stand for one, are missing."""
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    if not table.from_text:
        audit.notes.append(f"{name}: numbers read from text")
    if not table.reading.missing:
        return text
    stands = pc.is_in(text, value_set=pa.array(table.reading.missing))
    if count := pc.sum(stands).as_py():
        audit.notes.append(f"{name}: {count:,} cells that say {' or '.join(table.reading.missing)} are empty")
    return pc.if_else(stands, pa.scalar(None, pa.string()), text)


def _read_plain(text: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return the values if all cells are plain numbers or empty."""
    try:
        values = to_floats(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None
    return values if np.isfinite(values[~find_empty(text)]).all() else None


def _clean(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the cells without signs of currency, and without spaces and apostrophes between thousands."""
    body = pc.replace_substring_regex(text, CURRENCY_BEFORE, r"\1")
    body = pc.replace_substring_regex(body, CURRENCY_AFTER, "")
    spaced = pc.match_substring_regex(body, THOUSANDS_BY_SPACE)
    return pc.if_else(spaced, pc.replace_substring_regex(body, SPACED, ""), body)


def _decide_mark(
    bodies: Mapping[str, pa.ChunkedArray], written: Mapping[str, pa.ChunkedArray], stated: str, audit: Audit
) -> str:
    """Return the file's decimal mark: the stated one, or what a cell decides; empty where nothing does."""
    if stated:
        return stated
    points, commas, doubts = None, None, None
    for name, body in bodies.items():
        point, comma = _match_marks(body)
        points = points or _find_first(pc.and_not(point, comma), written[name], name)
        commas = commas or _find_first(pc.and_not(comma, point), written[name], name)
        both = pc.and_(pc.and_(point, comma), pc.match_substring(body, ","))
        doubts = doubts or _find_first(both, written[name], name)
    if points and commas:
        what = f"{points[1]} in {points[0]} has a decimal point and {commas[1]} in {commas[0]} a decimal comma"
        audit.ask(commas[0], f"{what}: write them alike, or {DECIMAL_QUESTION}")
        return ""
    if doubts and not points and not commas:
        what = f"{doubts[1]} may have thousands or decimals behind its comma, and no cell of the file decides"
        audit.ask(doubts[0], f"{what}: {DECIMAL_QUESTION}")
        return ""
    if commas:
        audit.notes.append(f"{DECIMAL_COMMA}, as {commas[1]} in {commas[0]} shows")
    elif points:
        audit.notes.append(f"numbers: decimal point, as {points[1]} in {points[0]} shows")
    return "comma" if commas else "point"


def _match_marks(body: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return which cells can be read with a decimal point, and which with a decimal comma."""
    point, comma = pc.match_substring_regex(body, WITH_POINT), pc.match_substring_regex(body, WITH_COMMA)
    comma = pc.or_(comma, pc.match_substring_regex(body, EXPONENT_COMMA))
    point = pc.and_not(pc.or_(point, pc.match_substring_regex(body, PLAIN)), pc.match_substring_regex(body, ZERO_COMMA))
    return point, pc.and_not(comma, pc.match_substring_regex(body, ZERO_POINT))


def _find_first(found: pa.ChunkedArray, written: pa.ChunkedArray, name: str) -> tuple[str, str] | None:
    """Return the column and the first cell of those that were found."""
    place = pc.index(pc.fill_null(found, False), True).as_py()
    return (name, quote_cell(written[place].as_py())) if place >= 0 else None


def _parse(body: pa.ChunkedArray, written: pa.ChunkedArray, mark: str, name: str, audit: Audit) -> NDArray[np.float64]:
    """Return the values of text cells by the file's decimal mark; what is no number is a finding."""
    if not mark:
        return np.full(len(body), np.nan)
    point, comma = _match_marks(body)
    if mark == "comma":
        fits, digits = comma, pc.replace_substring(pc.replace_substring(body, ".", ""), ",", ".")
    else:
        fits, digits = point, pc.replace_substring(body, ",", "")
    digits = pc.if_else(fits, digits, pa.scalar(None, pa.string()))
    values = to_floats(digits)
    bad = np.flatnonzero(~find_empty(body) & ~np.isfinite(values))
    _note_currency(body, written, fits, name, audit)
    audit.add_rows(name, bad, lambda row: _describe(written[row].as_py(), mark))
    if len(bad) and _is_placeholder(written[int(bad[0])].as_py()):
        audit.needs_setting = True
    return values


def _note_currency(
    body: pa.ChunkedArray, written: pa.ChunkedArray, fits: pa.ChunkedArray, name: str, audit: Audit
) -> None:
    """Note the signs of currency that were left out; several of them in one column are a finding."""
    used = pc.and_(fits, pc.not_equal(pc.utf8_length(written), pc.utf8_length(body)))
    signs = pc.replace_substring_regex(written.filter(pc.fill_null(used, False)), NO_SIGN, "")
    found = sorted(sign for sign in pc.unique(signs).to_pylist() if sign)
    if len(found) > 1:
        audit.add(Finding(0, name, f"the prices are in several currencies, {', '.join(found[:3])}: use one"))
    elif found:
        audit.notes.append(f"{name}: the sign {found[0]} was left out")


def _is_placeholder(cell: str) -> bool:
    return cell.lower() in NAN_TEXTS


def _describe(cell: str, mark: str) -> str:
    """Return what is wrong with a cell that is no number."""
    if _is_placeholder(cell):
        return f"{cell!r}: {PLACEHOLDER} missing: [{cell}]"
    other = " with a decimal comma" if mark == "comma" else ""
    return f"{quote_cell(cell)} is not a number{other}"


def looks_numeric(column: pa.ChunkedArray) -> bool:
    """Return whether most of the first cells of a text column are numbers in some way of writing."""
    sample = pc.utf8_trim_whitespace(column.slice(0, 5 * SAMPLE_CELLS).cast(pa.string()))
    sample = sample.filter(pc.fill_null(pc.not_equal(sample, ""), False))[:SAMPLE_CELLS]
    if not len(sample):
        return True
    point, comma = _match_marks(_clean(sample))
    return bool(2 * (pc.sum(pc.or_(point, comma)).as_py() or 0) > len(sample))
