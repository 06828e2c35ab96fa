"""The panel: dates x symbols, one read-only array a field, and the fingerprint of its returns.

The fingerprint identifies returns under any symbols, dates and price levels. A run of 12 daily returns of one
column, each rounded to a quarter of their mean size, is one hash. The rounding is relative, so it suits calm and wild
symbols alike. A constant factor on the prices, float32, cents, an adjustment for a split or dividend outside the run,
and a missing row outside the run change nothing. Of each day the 16 smallest hashes of the runs that end on it are
kept: the same columns leave the same hashes in any order, and a panel without some of its columns leaves a share of
them. The size is bounded by the days, whatever the number of symbols.

Not recognised are returns with added noise of a seventh of their size or more, mirrored ones (1 / p), and those of
another column than the close, under other names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import PanelError

if TYPE_CHECKING:
    import pandas as pd

PRICE_FIELDS = ("open", "high", "low", "close")
REQUIRED_FIELDS = (*PRICE_FIELDS, "volume")
UNKNOWN_GROUP = -1
"""Code of a symbol without a group."""
STAMP_PATTERN = re.compile(r"(prices|vwap|amount|universe|fundamentals): [a-z_*]+")
"""A note that states a derivation, and nothing about the days and symbols of the panel."""
RUN_DAYS: Final = 12
"""Daily returns in a run: about 48 bits, so that runs of different symbols never collide by chance."""
HASHES_PER_DAY: Final = 16
MIN_DISTINCT_SIZES: Final = 5
"""Distinct sizes among the rounded returns of a run; with fewer the price hardly moves, and such runs are all alike."""
HASH_BITS: Final = 48
_NO_HASH: Final = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class Panel:
    """Prices and other daily fields of many symbols. Immutable; equal panels have equal digests.

    Attributes
    ----------
    dates : NDArray[np.datetime64]
        Exchange days `[T]`, strictly rising, without a time zone.
    symbols : tuple[str, ...]
        Symbols `[N]`, sorted, unique.
    fields : Mapping[str, NDArray[np.float64]]
        One array `[T, N]` a field, row = day, NaN where there is no value. Always open, high, low, close (price
        units), volume (shares) and returns (decimal, close over the close of the panel's day before, minus one; NaN if
        either is missing). Arrays are C-contiguous and read-only. A field that is given as float32 stays float32, which
        halves its memory: all that the factor engine reads of it.
    universe : NDArray[np.bool_]
        `[T, N]`: the symbol was a member that day and has data. Point in time: no day depends on a later one.
    groups : Mapping[str, NDArray[np.int16]]
        One code a symbol `[N]` for each grouping ("sector"); -1 is unknown.
    group_labels : Mapping[str, tuple[str, ...]]
        The word for each code.
    notes : tuple[str, ...]
        Derivations and warnings that must stay with every result. Not part of the digest.
    back_adjusted : bool
        The level of the prices (open, high, low, close) contains later splits and dividends, or may contain them;
        returns and ratios of prices do not. Not part of the digest.
    volumes : str
        The stated kind of the volumes: "quoted" (as traded that day), "adjusted" (in shares of the last day), "forward"
        (in shares of the first day, as a synthetic market counts them), or empty; "unknown" where it should have been
        stated (`adjust_forwards`). Not part of the digest.
    calendar : str
        The exchange whose sessions the days are, as exchange-calendars calls it; empty where nobody says it. Not part
        of the digest.
    renames : tuple of (str, str, str)
        Changes of symbols that the columns follow: the ISO day, the old symbol, the new one; by day. Not part of the
        digest.
    splits : tuple of (str, str, float), optional
        Recorded splits until the last day, or None where no file of actions records any: the ISO day, the symbol, new
        shares for an old one. Only `measure_traded_money` reads them. A part of the rows keeps later ones, since its
        volumes may contain them. Not part of the digest.
    """

    dates: NDArray[np.datetime64]
    symbols: tuple[str, ...]
    fields: Mapping[str, NDArray[np.float64]]
    universe: NDArray[np.bool_]
    groups: Mapping[str, NDArray[np.int16]] = field(default_factory=dict)
    group_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    back_adjusted: bool = False
    volumes: str = ""
    calendar: str = ""
    renames: tuple[tuple[str, str, str], ...] = ()
    splits: tuple[tuple[str, str, float], ...] | None = None

    def __post_init__(self) -> None:
        """Freeze every array and check that all fit the same days and symbols."""
        keep = object.__setattr__
        keep(self, "dates", _freeze_array(self.dates, "datetime64[D]"))
        keep(self, "universe", _freeze_array(self.universe, np.bool_))
        fields = {
            name: _freeze_array(self.fields[name], _float_type(self.fields[name])) for name in sorted(self.fields)
        }
        keep(self, "fields", MappingProxyType(fields))
        keep(
            self, "groups", MappingProxyType({k: _freeze_array(self.groups[k], np.int16) for k in sorted(self.groups)})
        )
        keep(self, "group_labels", MappingProxyType({k: tuple(self.group_labels.get(k, ())) for k in self.groups}))
        _check_axes(self)
        _check_shapes(self)

    @classmethod
    def build(
        cls,
        dates: ArrayLike,
        symbols: Sequence[str],
        fields: Mapping[str, ArrayLike],
        universe: ArrayLike | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        notes: Sequence[str] = (),
    ) -> Panel:
        """Build a panel: sort the symbols, derive `returns`, number the groups.

        Parameters
        ----------
        dates, symbols
            The axes; symbols in any order, columns follow them.
        fields
            `[T, N]` arrays; open, high, low, close and volume are required; `returns` is derived.
        universe
            Membership `[T, N]`; by default all. A cell without open or close is never in the universe.
        groups
            For each grouping the label of every symbol, in the order of `symbols`; an empty label is unknown.
        """
        missing = [name for name in REQUIRED_FIELDS if name not in fields]
        if missing:
            raise PanelError(f"the panel lacks {', '.join(missing)}", field=missing[0], allowed=list(REQUIRED_FIELDS))
        order = np.argsort(np.asarray(symbols, dtype=np.str_), kind="stable")
        columns = {name: _reorder_columns(values, order) for name, values in fields.items()}
        columns["returns"] = compute_simple_returns(columns["close"])
        known = np.isfinite(columns["open"]) & np.isfinite(columns["close"])
        if universe is not None:
            known &= _reorder_columns(universe, order).astype(np.bool_)
        for values in (*columns.values(), known):
            values.setflags(write=False)
        coded = {name: encode_labels([labels[i] for i in order]) for name, labels in (groups or {}).items()}
        return cls(
            dates=np.asarray(dates, dtype="datetime64[D]"),
            symbols=tuple(symbols[i] for i in order),
            fields=columns,
            universe=known,
            groups={name: codes for name, (codes, _) in coded.items()},
            group_labels={name: labels for name, (_, labels) in coded.items()},
            notes=tuple(notes),
        )

    @property
    def days(self) -> int:
        """Return the number of days."""
        return len(self.dates)

    @property
    def names(self) -> int:
        """Return the number of symbols."""
        return len(self.symbols)

    @property
    def stamps(self) -> tuple[str, ...]:
        """Return the notes that state a derivation; the other notes may reveal any day of the panel."""
        return tuple(note for note in self.notes if STAMP_PATTERN.fullmatch(note))

    @cached_property
    def digest(self) -> str:
        """Return the sha256 over dates, symbols, every field, universe and groups."""
        state = hashlib.sha256()
        _add_to_hash(state, "dates", self.dates.astype("<i8"))
        _add_to_hash(state, "symbols", "\0".join(self.symbols).encode())
        for name, values in self.fields.items():
            _add_to_hash(state, f"field {name}", values.astype(np.float64, copy=False))
        _add_to_hash(state, "universe", self.universe)
        for name, codes in self.groups.items():
            _add_to_hash(state, f"group {name}", codes)
            _add_to_hash(state, f"labels {name}", "\0".join(self.group_labels[name]).encode())
        return state.hexdigest()

    @cached_property
    def fingerprint(self) -> Mapping[str, tuple[int, ...]]:
        """Return the hashes of the returns by ISO day, as `fingerprint_returns` computes them."""
        return MappingProxyType(fingerprint_returns(self.fields["returns"], self.dates))

    def rows(self, start: int, stop: int) -> Panel:
        """Return the days from `start` up to, not including, `stop`: a view that shares the memory.

        `returns` of its first day still contains the close of the day before. Panels of different days differ in
        digest.
        """
        if not 0 <= start <= stop <= self.days:
            raise PanelError("these rows are not in the panel", field="rows", got=[start, stop], allowed=[0, self.days])
        part = slice(start, stop)
        return Panel(
            dates=self.dates[part],
            symbols=self.symbols,
            fields={name: values[part] for name, values in self.fields.items()},
            universe=self.universe[part],
            groups=self.groups,
            group_labels=self.group_labels,
            notes=self.notes,
            back_adjusted=self.back_adjusted,
            volumes=self.volumes,
            calendar=self.calendar,
            renames=self.renames,
            splits=self.splits,
        )

    def trace(self, symbol: str, day: str = "") -> str:
        """Return the panel's symbol of what had a symbol on an ISO day; the same one if the panel has no other.

        A symbol that is no column follows every change, whatever its day: the change became known late.
        """
        for since in (day, ""):
            found = _follow_renames(self.renames, symbol, since)
            if found in self._columns:
                return found
        return symbol

    def trace_all(self, symbol: str) -> set[str]:
        """Return every column that was once called a symbol, on whatever day."""
        changed = {on for on, old, _ in self.renames if old == symbol}
        return {_follow_renames(self.renames, symbol, day) for day in ("", *changed)} & self._columns

    @cached_property
    def _columns(self) -> frozenset[str]:
        return frozenset(self.symbols)

    def to_frame(self) -> pd.DataFrame:
        """Return the panel as a long DataFrame, one row for each cell with a value.

        Columns: date, symbol, every field but `returns`, and `in_universe`. Groups are not in it. `panel_from` builds
        the same panel from it.
        """
        from .frame import frame_of

        return frame_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by parts: a read-only mapping cannot be pickled."""
        parts = (self.dates, self.symbols, dict(self.fields), self.universe, dict(self.groups), dict(self.group_labels))
        rest = (self.notes, self.back_adjusted, self.volumes, self.calendar, self.renames, self.splits)
        return Panel, (*parts, *rest)

    def __eq__(self, other: object) -> bool:
        """Compare by content."""
        return isinstance(other, Panel) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash by content."""
        return hash(self.digest)


def _follow_renames(renames: Sequence[tuple[str, str, str]], symbol: str, day: str) -> str:
    """Return the newest symbol of what had a symbol on an ISO day; each change is followed once."""
    for changed, old, new in renames:
        if old == symbol and day < changed:
            symbol = new
    return symbol


def compute_simple_returns(close: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the close-to-close simple return `[T, N]`, decimal; NaN on the first day and where a close is missing."""
    returns = np.full(close.shape, np.nan)
    np.divide(close[1:], close[:-1], out=returns[1:])
    returns[1:] -= 1.0
    return returns


def encode_labels(labels: Sequence[str]) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return the code of each label `[N]` and the sorted labels that the codes stand for; an empty label is -1."""
    words = tuple(sorted({label for label in labels if label}))
    number = {word: code for code, word in enumerate(words)}
    return np.array([number.get(label, UNKNOWN_GROUP) for label in labels], dtype=np.int16), words


def _float_type(values: NDArray[Any]) -> type[np.floating]:
    return np.float32 if np.asarray(values).dtype == np.float32 else np.float64


def _freeze_array(values: NDArray[Any], dtype: str | type[np.generic]) -> NDArray[Any]:
    """Return a read-only C-contiguous array; copy only memory that can still be written to."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if _is_shared(array, values):
        array = array.copy()
    array.setflags(write=False)
    return array


def _is_shared(array: NDArray[Any], original: NDArray[Any]) -> bool:
    """Return whether the memory of an array can be written to, through the original or through a base of the view."""
    if array is original and array.flags.writeable:
        return True
    owner: Any = array.base
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return owner is not None and array.flags.writeable


def _reorder_columns(values: ArrayLike, order: NDArray[np.intp]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(order):
        raise PanelError("an array of a panel is [days, symbols]", got=list(array.shape), allowed=["T", len(order)])
    return np.take(array, order, axis=1)


def _add_to_hash(state: Any, label: str, content: bytes | NDArray[Any]) -> None:
    """Add one labelled block to the hash, its length first, so that two blocks cannot be read as one."""
    body = content if isinstance(content, bytes) else np.ascontiguousarray(content).reshape(-1).view(np.uint8)
    state.update(f"{label}:{len(body)}\n".encode())
    state.update(body)


def _check_axes(panel: Panel) -> None:
    """Refuse days that do not rise and symbols that are not sorted."""
    days = panel.dates.view("i8")
    if panel.dates.ndim != 1 or bool(np.any(np.diff(days) <= 0)) or bool(np.isnat(panel.dates).any()):
        raise PanelError("the days of a panel rise strictly", field="dates", hint="Sort the days and drop repeats.")
    if list(panel.symbols) != sorted(set(panel.symbols)):
        raise PanelError("the symbols of a panel are sorted and unique", field="symbols", hint="Use Panel.build.")


def _check_shapes(panel: Panel) -> None:
    """Refuse arrays that do not fit the axes."""
    shape = (panel.days, panel.names)
    arrays: dict[str, NDArray[Any]] = {**panel.fields, "universe": panel.universe}
    for name, values in arrays.items():
        if values.shape != shape:
            raise PanelError("an array does not fit the panel", field=name, got=list(values.shape), allowed=list(shape))
    for name, codes in panel.groups.items():
        if codes.shape != shape[1:]:
            raise PanelError("a group does not fit the panel", field=name, got=list(codes.shape), allowed=[panel.names])
    absent = [name for name in (*REQUIRED_FIELDS, "returns") if name not in panel.fields]
    if absent:
        raise PanelError(f"the panel lacks {', '.join(absent)}", field=absent[0], hint="Use Panel.build.")


def fingerprint_returns(returns: NDArray[np.floating], days: NDArray[np.datetime64]) -> dict[str, tuple[int, ...]]:
    """Return for each day the 16 smallest hashes of the runs of 12 returns that end on it.

    Parameters
    ----------
    returns
        Daily returns `[T, N]`, decimal; a run with a NaN has no hash.
    days
        `[T]`.

    Returns
    -------
    dict
        Hashes of 48 bits, rising, by ISO day; a day without any run is left out.
    """
    if len(returns) < RUN_DAYS:
        return {}
    hashes = _hash_runs(np.asarray(returns, np.float64))
    smallest = (
        np.sort(hashes, axis=1)[:, :HASHES_PER_DAY] if hashes.shape[1] > HASHES_PER_DAY else np.sort(hashes, axis=1)
    )
    by_day = {}
    for day, row in zip(days[RUN_DAYS - 1 :].astype(str).tolist(), smallest, strict=True):
        if hashes_of_day := tuple(dict.fromkeys((row[row != _NO_HASH] >> np.uint64(64 - HASH_BITS)).tolist())):
            by_day[day] = hashes_of_day
    return by_day


def _hash_runs(returns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the hash of the run that ends in each cell `[T - 11, N]`; all bits set where there is none."""
    parts = [returns[place : len(returns) - RUN_DAYS + 1 + place] for place in range(RUN_DAYS)]
    scale = sum(np.abs(part) for part in parts) / (4.0 * RUN_DAYS)
    usable = np.isfinite(scale) & (scale > 0)
    scale = np.where(usable, scale, 1.0)
    state, sizes = np.zeros(scale.shape, np.uint64), np.zeros(scale.shape, np.uint64)
    for part in parts:
        # at most 48 steps: a day that holds the whole size of the run
        steps = np.rint(np.where(usable, part, 0.0) / scale).astype(np.int64)
        state = _mix_bits(state ^ steps.astype(np.uint64))
        sizes |= np.uint64(1) << np.abs(steps).astype(np.uint64)
    return np.where(usable & (np.bitwise_count(sizes) >= MIN_DISTINCT_SIZES), state, _NO_HASH)


def _mix_bits(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits, as splitmix64 does (Steele, Lea and Flood 2014); products wrap around."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
