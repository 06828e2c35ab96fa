"""The panel as the jail sees it: arrays, days and names, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .errors import SandboxError

__all__ = ["Frames"]


@dataclass(frozen=True, eq=False)
class Frames:
    """Daily fields of many names, handed to a factor as DataFrames of dates x symbols. Immutable.

    Attributes
    ----------
    fields : Mapping[str, NDArray[np.float64]]
        One array `[T, N]` a field, row = day, NaN where there is no value. Kept in the order of the names.
    dates : NDArray[np.datetime64]
        Days `[T]`, strictly rising.
    symbols : tuple of str
        Names `[N]`, unique.

    Raises
    ------
    SandboxError
        No field, an axis that repeats or falls, or an array of another shape.
    """

    fields: Mapping[str, NDArray[np.float64]]
    dates: NDArray[np.datetime64]
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        """Freeze the arrays and check that all speak of the same days and names."""
        keep = object.__setattr__
        keep(self, "dates", np.array(self.dates, dtype="datetime64[D]"))
        keep(self, "symbols", tuple(str(name) for name in self.symbols))
        fields = {str(name): _frozen(self.fields[name]) for name in sorted(self.fields)}
        keep(self, "fields", MappingProxyType(fields))
        self.dates.setflags(write=False)
        self._check()

    def _check(self) -> None:
        if not self.fields:
            raise SandboxError("there is no field to compute with", field="fields", hint="Give at least close.")
        if self.dates.ndim != 1 or np.isnat(self.dates).any() or (np.diff(self.dates).astype(np.int64) <= 0).any():
            raise SandboxError("the days must rise, each once", field="dates", hint="Sort them and drop what repeats.")
        if len(set(self.symbols)) != len(self.symbols):
            raise SandboxError("a name stands twice", field="symbols", hint="Give each name one column.")
        for name, values in self.fields.items():
            if values.shape != self.shape:
                raise SandboxError(
                    f"{name} has another shape than the axes", field=name, got=str(values.shape),
                    allowed=str(self.shape), hint="Give one row a day and one column a name.",
                )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of days and names."""
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


def _frozen(values: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = np.ascontiguousarray(values, dtype=np.float64)
    if kept is values and not _is_frozen(values):
        kept = values.copy()
    kept.setflags(write=False)
    return kept


def _is_frozen(values: object) -> bool:
    """Tell whether nobody can write to an array, nor to one that it is a part of."""
    while isinstance(values, np.ndarray):
        if values.flags.writeable:
            return False
        values = values.base
    return True
