"""Columns of Arrow as arrays of numpy, without pandas.

Arrow's own conversion imports pandas, which takes longer than reading most files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds text, dictionary-encoded or not."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def decode_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column of codes, such as the categories of pandas."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type)
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def to_floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers as floats; NaN where a cell is empty."""
    return _join(column.cast(pa.float64(), safe=False), np.float64, np.nan)


def to_integers(column: pa.ChunkedArray, missing: int) -> NDArray[np.int64]:
    """Return a column of whole numbers or days; `missing` where a cell is empty."""
    narrow = pa.types.is_date32(column.type) or pa.types.is_int32(column.type)
    # the codes of words have 8, 16, 32 or 64 bits: pandas writes few categories with 8
    joined = _join(column, np.int32, 0) if narrow else _join(column.cast(pa.int64()), np.int64, 0)
    return np.where(find_empty(column), missing, joined).astype(np.int64) if column.null_count else joined.astype("i8")


def find_empty(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which cells are empty."""
    empty = [~_read_validity(chunk) if chunk.null_count else np.zeros(len(chunk), np.bool_) for chunk in column.chunks]
    return np.concatenate(empty) if empty else np.zeros(0, np.bool_)


def to_flags(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a column of true and false; false where a cell is empty."""
    return _join(column.cast(pa.uint8()), np.uint8, 0).astype(np.bool_)


def _join(column: pa.ChunkedArray, dtype: type[np.generic], missing: float) -> NDArray[Any]:
    """Return the values of all chunks, those that are empty as `missing`; a view where there is one whole chunk.

    Raises
    ------
    TypeError
        The values have another width than those of `dtype`: their memory would be read as other numbers.
    """
    if pa.types.is_dictionary(column.type) or column.type.bit_width != 8 * np.dtype(dtype).itemsize:
        raise TypeError(f"{column.type} is not as wide as {np.dtype(dtype)}")
    parts = []
    for chunk in column.chunks:
        values = np.frombuffer(chunk.buffers()[1] or b"", dtype, count=-1)
        values.setflags(write=False)  # Arrow's memory is nobody's to change
        values = values[chunk.offset : chunk.offset + len(chunk)]
        parts.append(np.where(_read_validity(chunk), values, missing).astype(dtype) if chunk.null_count else values)
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, dtype)


def _read_validity(chunk: pa.Array) -> NDArray[np.bool_]:
    """Return which values of a chunk with empty cells are there."""
    validity = chunk.buffers()[0]
    if validity is None:  # a column of nothing but empty cells has no memory
        return np.zeros(len(chunk), np.bool_)
    bits = np.frombuffer(validity, np.uint8)
    return np.unpackbits(bits, bitorder="little")[chunk.offset : chunk.offset + len(chunk)].astype(np.bool_)
