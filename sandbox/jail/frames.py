"""The panel as the jail sees it: arrays, days and symbols."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput

_FIRST_DAY, _LAST_DAY = np.datetime64("1678-01-01"), np.datetime64("2261-12-31")
_NUMERIC = "biuf"


@dataclass(frozen=True, eq=False)
class Frames:
    """Daily fields of many symbols, passed to a factor as DataFrames of dates x symbols. Immutable.

    Attributes
    ----------
    fields : Mapping[str, NDArray[np.float64]]
        One array `[T, N]` a field, row = day, NaN where there is no value. Sorted by name.
    dates : NDArray[np.datetime64]
        Days `[T]`, strictly rising, from 1678 to 2261, the range of pandas in nanoseconds.
    symbols : tuple of str
        Symbols `[N]`, unique.

    Raises
    ------
    BadInput
        No field, an axis that repeats or falls, days out of range, or an array of another shape or not of numbers.
    """

    fields: Mapping[str, NDArray[np.float64]]
    dates: NDArray[np.datetime64]
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        """Freeze the arrays and check that all have the same days and symbols."""
        keep = object.__setattr__
        keep(self, "dates", _convert_days(self.dates))
        keep(self, "symbols", _convert_symbols(self.symbols))
        keep(self, "fields", MappingProxyType(_convert_fields(self.fields)))
        self.dates.setflags(write=False)
        self._check()

    def _check(self) -> None:
        if not self.fields:
            raise BadInput("there is no field to compute with", field="fields", hint="Give at least close.")
        if self.dates.ndim != 1 or np.isnat(self.dates).any() or (np.diff(self.dates).astype(np.int64) <= 0).any():
            raise BadInput("the days must rise, each once", field="dates", hint="Sort them and drop what repeats.")
        if len(self.dates) and not _FIRST_DAY <= self.dates[0] <= self.dates[-1] <= _LAST_DAY:
            raise BadInput(
                "the days lie beyond those that pandas can count",
                field="dates",
                got=f"{self.dates[0]} to {self.dates[-1]}",
                allowed=f"{_FIRST_DAY} to {_LAST_DAY}",
                hint="Drop the others.",
            )
        if len(set(self.symbols)) != len(self.symbols):
            raise BadInput("a name stands twice", field="symbols", hint="Give each name one column.")
        for name, values in self.fields.items():
            if values.shape != self.shape:
                raise BadInput(
                    f"{name} has another shape than the axes",
                    field=name,
                    got=str(values.shape),
                    allowed=str(self.shape),
                    hint="Give one row a day and one column a name.",
                )

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of days and symbols."""
        return len(self.dates), len(self.symbols)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the fields, sorted."""
        return tuple(self.fields)

    @property
    def nbytes(self) -> int:
        """Return the size of all arrays in bytes."""
        return sum(values.nbytes for values in self.fields.values())

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of axes and values, in hexadecimal."""
        found = hashlib.sha256(repr((self.shape, self.symbols, self.names)).encode())
        found.update(self.dates.tobytes())
        for values in self.fields.values():
            found.update(values.tobytes())
        return found.hexdigest()


def _convert_days(given: object) -> NDArray[np.datetime64]:
    try:
        return np.array(given, dtype="datetime64[D]")
    except (TypeError, ValueError, OverflowError):
        raise BadInput(
            "the days are not dates",
            field="dates",
            got=type(given).__name__,
            allowed="an array of datetime64[D]",
            hint="Give one date a row.",
        ) from None


def _convert_symbols(given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(
            "the names are not a sequence",
            field="symbols",
            got=type(given).__name__,
            allowed="a tuple of str",
            hint="Give one name a column.",
        )
    return tuple(str(name) for name in given)


def _convert_fields(given: object) -> dict[str, NDArray[np.float64]]:
    if not isinstance(given, Mapping):
        raise BadInput(
            "the fields have no names",
            field="fields",
            got=type(given).__name__,
            allowed="a mapping of str to arrays",
            hint="Give at least close.",
        )
    for name in given:
        if not isinstance(name, str):
            raise BadInput(
                "a field's name is not text",
                field="fields",
                got=repr(name),
                allowed="str",
                hint="Name each field, e.g. close.",
            )
    return {str(name): _freeze_values(name, given[name]) for name in sorted(given)}


def _freeze_values(name: str, given: object) -> NDArray[np.float64]:
    """Return the numbers as a read-only array; they are copied where another reference could still write."""
    try:
        values = np.asarray(given)
    except ValueError:  # rows of unequal length
        values = np.asarray(None)
    if values.dtype.kind not in _NUMERIC:
        raise BadInput(
            f"{name} does not hold numbers",
            field=name,
            got=str(values.dtype),
            allowed="real numbers, as float64",
            hint="Turn it into floats first, with NaN where there is no value.",
        )
    kept = np.ascontiguousarray(values, dtype=np.float64)
    if np.may_share_memory(kept, values) and not _is_read_only(kept):
        kept = kept.copy()
    kept.setflags(write=False)
    return kept


def _is_read_only(values: NDArray[np.float64]) -> bool:
    """Return whether an array, and every array that it is a view of, is read-only."""
    place: object = values
    while isinstance(place, np.ndarray):
        if place.flags.writeable:
            return False
        place = place.base
    try:
        return place is None or memoryview(place).readonly  # type: ignore[arg-type]  # of a file, or of shared memory
    except TypeError:
        return False
