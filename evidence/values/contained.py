"""Python factors of one panel, computed in the sandbox: on the days that may be seen, and day by day.

What the code may know is decided here.

- Columns: those that it names, and no other.
- Days: only those that the reader of its answer may see, because the text of an error is the code's own and could report a
  later day.
- Symbols: only their number, because code that knows a symbol may know what became of it. A symbol that is no member on any
  of these days has no column.
- Levels: prices are adjusted forwards (`adjust_forwards`), and the level of volumes is hidden unless they are as
  traded. Two panels that differ only after these days give the code the same bytes, so neither its values, nor its errors, nor
  its time can depend on a later day.
- Labels: none.

What a trial on selection days leaves open: the values that it judges are point in time, but whether there are any is not. The
calls on the whole window, and that on its last day, see all its prices, and code that fails there, or gives another value, is
rejected. So a paid trial may reveal one bit of the code's choosing about the window by being accepted or not. A formula's
trial reveals one too, but only about that formula. A fault can only reject, so the significance level holds for each trial
whose code was chosen without such an answer. It does not cover code that was chosen with the answers of earlier trials. The
time of the answer may reveal one of a few steps more: see `retry`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression
from ...factors.python import UNIVERSE_COLUMN, lint_code
from ...ledger import compute_digest
from ...ledger.files import make_folder
from ...market import Panel, keep_members, reset_volume_levels
from ...sandbox import (
    Frames,
    Job,
    NotCausal,
    NotDeterministic,
    OutOfMemory,
    Runner,
    SandboxError,
    SandboxUnavailable,
    TimedOut,
    prove,
)
from ...sandbox.causality import CausalClaim, CountingRunner, iterate_days, make_claim, measure_start_up, round_values
from ..errors import NeedsSandbox, OverLimits, PythonRefused
from .retry import Allowance, RetryingRunner

Values = NDArray[np.float32]
PYTHON_FOLDER = "python"
"""Where a workspace keeps the values of Python factors that were computed day by day."""
MAX_ANSWERS_KEPT, MAX_PANELS_KEPT = 24, 4
"""Answers of whole calls, and panels as code is shown them, that are kept in memory."""
MAX_REMARKS_SHOWN = 5
REFUSED_REMARKS = ("syntax", "future")
"""Remarks of the lint for which code is refused before it is run."""


SEGMENT_FORMAT = "single precision of the day's scale, columns of members, with the days of the start-up"


@dataclass(frozen=True, eq=False)
class DailyValues:
    """Values that were computed day by day, each day by a process that held no later one.

    Attributes
    ----------
    values
        `[T, N]`, NaN outside the universe and after the last day that was asked for.
    fault
        Why there are none from some day on, `{stage, message, day}`: the code failed, or saw later days; None if all is well.
    start_up
        Days at the panel's start that have no values, since the code raises an error on so few: nothing is shown of them.
    """

    values: Values
    fault: dict[str, Any] | None = None
    start_up: int = 0


class Contained:
    """Computes Python factors on one panel by way of a runner, never in this process.

    Parameters
    ----------
    panel
        T days by N names, without prices whose level knows a later day.
    runner
        The sandbox: each call is a fresh process.
    folder
        Where values that were computed day by day are kept; None keeps none.
    """

    def __init__(self, panel: Panel, runner: Runner, folder: Path | None = None) -> None:
        self._panel, self._runner = panel, runner
        self._segments = Segments(folder)
        self._cuts: dict[int, Panel] = {}
        self._frames: dict[tuple[frozenset[str], int], Frames] = {}
        self._kept: dict[tuple[str, int], Values] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._screened: set[tuple[str, int]] = set()

    @property
    def stamp(self) -> str:
        """Return what must stand beside every value; empty behind a boundary."""
        return self._runner.stamp

    def on(self, panel: Panel) -> Contained:
        """Return the same for another panel; nothing of it is kept on the disk."""
        return Contained(panel, self._runner)

    def values(self, expression: Expression, days: int) -> Values:
        """Compute a factor by one call that is shown the first days, `[T, N]`, NaN after them and outside the universe.

        Days on which the code raises an error by themselves have no values: nothing could be shown of them.

        Raises
        ------
        PythonRefused
            The code gave no values; the message is the sandbox's.
        NeedsSandbox
            This machine cannot contain it.
        """
        key = expression.code, days
        if key not in self._kept:
            values = self._called(expression, days)
            self._starts[key] = self._start_up(expression, days, values)
            values[: self._starts[key]] = np.nan
            self._kept[key] = self._whole(values, 0, days)
            for old in list(self._kept)[:-MAX_ANSWERS_KEPT]:
                del self._kept[old]
        return self._kept[key]

    def screen(self, expression: Expression, days: int, seed: int | None = None) -> None:
        """Refuse code that sees later days at a few cuts, or is not the same twice, on the first days.

        What passes is a draft, to be looked at while agents search: only swept values are accepted, combined or watched.
        `seed` chooses the cuts (`sandbox_settings`); None draws one.

        Raises
        ------
        PythonRefused
            At the stage ``causal`` or ``python``, with the message of the sandbox.
        """
        if (expression.code, days) in self._screened:
            return
        self._read(expression)
        try:
            proof = prove(self._runner, expression.code, self._shown(expression, days), seed=seed)
        except SandboxError as error:
            raise self._refusal(error, days) from None
        self._screened.add((expression.code, days))
        self._starts[expression.code, days] = proof.start_up
        self._kept[expression.code, days] = self._whole(proof.values, 0, days)

    def start_up(self, expression: Expression, days: int) -> int:
        """Return how many of the first days have no values, since the code raises an error on so few."""
        return self._starts.get((expression.code, days), 0)

    def _start_up(self, expression: Expression, days: int, values: NDArray[np.float64]) -> int:
        if not np.isfinite(values).any():
            return 0
        try:
            return measure_start_up(
                CountingRunner(self._runner), CausalClaim(expression.code, self._shown(expression, days), values)
            )
        except SandboxError as error:
            raise self._refusal(error, days) from None

    def _read(self, expression: Expression) -> None:
        """Refuse code that cannot be read, or that certainly reads later days, in every line that shows it.

        What else the lint says are warnings of the expression: it is no boundary, and what will not work shows so itself.
        """
        remarks = [each for each in lint_code(expression.code) if each.rule in REFUSED_REMARKS]
        if remarks:
            stage = "causal" if remarks[0].rule == "future" else "python"
            said = "; ".join(f"line {each.line}: {each.message}" for each in remarks[:MAX_REMARKS_SHOWN])
            raise PythonRefused(said, field="factor", hint=remarks[0].hint, stage=stage, ran=False)

    def sweep(self, expression: Expression, edges: Sequence[int], since: int = 0) -> DailyValues:
        """Compute a factor day by day from a row on up to the last edge, in parts that end at the edges and are kept.

        A part from the first day on must be flawless. A fault in another one leaves its values out from that day on.

        Raises
        ------
        PythonRefused
            The code fails, or sees later days, before the first edge.
        """
        found = DailyValues(np.full(self._panel.universe.shape, np.nan, np.float32))
        for start, stop in zip((since, *edges), edges, strict=False):
            if start < stop:
                part = self._segment(expression, start, stop)
                found.values[start:stop] = part.values
                found = replace(found, fault=found.fault or part.fault, start_up=found.start_up + part.start_up)
        return found

    # One part of the days.

    def _segment(self, expression: Expression, start: int, stop: int) -> DailySegment:
        data = self._cut(stop).digest
        asked: dict[str, Any] = {"code": expression.code, "data": data, "start": start, "stop": stop}
        key = compute_digest(asked | {"versions": versions()} | ({"stamp": self.stamp} if self.stamp else {}))
        known = self._segments.read(key, (stop - start, self._cut(stop).names))
        if known is None:
            known = self._computed(expression, start, stop)
            if known.lasting:
                self._segments.write(key, known)
        return replace(known, values=self._whole(known.values, start, stop)[start:stop])

    def _computed(self, expression: Expression, start: int, stop: int) -> DailySegment:
        """Compute the rows of a part; a fault ends it, unless it is the first part."""
        values = np.full((stop - start, self._cut(stop).names), np.nan)
        try:
            if not start:
                return self._prove_segment(expression, stop)
            for row, cells in self._day_by_day(expression, start, stop):
                values[row - start] = cells
        except SandboxError as error:
            refusal = self._refusal(error, stop)
            if not start or not isinstance(refusal, PythonRefused):
                raise refusal from None
            fault = {"stage": refusal.stage, "message": refusal.message, "day": str(getattr(error, "day", ""))}
            lasting = not isinstance(refusal, OverLimits)
            return DailySegment(_to_float32(values), fault, lasting)
        return DailySegment(_to_float32(values), None)

    def _prove_segment(self, expression: Expression, stop: int) -> DailySegment:
        # A fixed seed: the sweep tries every day, and its values and its refusals are kept for all runs.
        proof = prove(RetryingRunner(self._runner), expression.code, self._shown(expression, stop), sweep=True, seed=0)
        return DailySegment(_to_float32(proof.values), None, start_up=proof.start_up)

    def _day_by_day(self, expression: Expression, start: int, stop: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
        meter = CountingRunner(RetryingRunner(Allowance(self._runner, stop - start)))
        yield from iterate_days(meter, make_claim(meter, expression.code, self._shown(expression, stop)), start)

    # What the code is shown, and what it says.

    def _called(self, expression: Expression, days: int) -> NDArray[np.float64]:
        job = Job(expression.code, self._shown(expression, days))
        [outcome] = self._runner.run_each([job])
        if outcome.values is None:
            raise self._refusal(outcome.error or SandboxError("the call gave neither values nor an error"), days)
        return round_values(outcome.values)

    def _cut(self, days: int) -> Panel:
        """Return the panel that ends after the first days, as it is shown: members alone, no level that knows a later day."""
        if days not in self._cuts:
            self._cuts[days] = reset_volume_levels(keep_members(self._panel.rows(0, days)))
            for old in list(self._cuts)[:-MAX_PANELS_KEPT]:
                del self._cuts[old]
        return self._cuts[days]

    def _shown(self, expression: Expression, days: int) -> Frames:
        """Return the first days of the columns that the code can read; names are numbers."""
        key = expression.fields | _members(expression), days
        if key not in self._frames:
            cut = self._cut(days)
            fields = {name: coded_column(cut, name) for name in sorted(key[0])}
            names = tuple(f"n{place}" for place in range(cut.names))
            self._frames[key] = Frames(fields, cut.dates, names)
            for old in list(self._frames)[:-MAX_PANELS_KEPT]:
                del self._frames[old]
        return self._frames[key]

    def _whole(self, rows: NDArray[Any], start: int, days: int) -> Values:
        """Return some rows of what was shown of the first days as float32 `[T, N]`, NaN elsewhere and outside the universe."""
        found = np.full(self._panel.universe.shape, np.nan, np.float32)
        shown = self._panel.universe[:days].any(axis=0)
        found[start : start + len(rows), shown] = _to_float32(rows)
        found[~np.isfinite(found) | ~self._panel.universe] = np.nan
        return found

    def _refusal(self, error: SandboxError, days: int) -> PythonRefused | NeedsSandbox:
        """Return what the sandbox said as a refusal of this room, names in the place of numbers."""
        if isinstance(error, SandboxUnavailable):
            return NeedsSandbox(error.message, field=error.field, hint=error.hint)
        message, stage = error.message, "python"
        if isinstance(error, NotCausal | NotDeterministic):
            stage = "causal"
            place, symbols = str(getattr(error, "symbol", "")), self._cut(days).symbols
            known = place[1:].isdigit() and int(place[1:]) < len(symbols)
            message = message.replace(f"of {place} on", f"of {symbols[int(place[1:])]} on") if known else message
        kind = OverLimits if isinstance(error, TimedOut | OutOfMemory) else PythonRefused
        return kind(message, field="factor", hint=error.hint, stage=stage)


def _to_float32(values: NDArray[Any]) -> Values:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _members(expression: Expression) -> frozenset[str]:
    return frozenset({UNIVERSE_COLUMN} if expression.reads_members else ())


def coded_column(panel: Panel, name: str) -> NDArray[np.float64]:
    """Return a column as code is shown it, `[T, N]`: a grouping as codes, the universe as 0 and 1, and no infinity.

    Raises
    ------
    PythonRefused
        The panel has no such column.
    """
    if name in panel.fields:
        values = panel.fields[name]
        return np.where(np.isfinite(values), values, np.nan)
    if name in panel.groups:
        codes = panel.groups[name].astype(np.float64)
        return np.broadcast_to(np.where(codes < 0, np.nan, codes), panel.universe.shape)
    if name == UNIVERSE_COLUMN:
        return panel.universe.astype(np.float64)
    there = sorted({*panel.fields, *panel.groups})
    raise PythonRefused(f"the panel has no column {name!r}", field=name, allowed=there, ran=False)


@dataclass(frozen=True, eq=False)
class DailySegment:
    """Rows of a factor `[D, N]` that were computed day by day, and what went wrong in them, if anything did.

    `start_up` is how many of them, at the panel's start, have no values since the code raises an error there. `lasting` is False where another try may go otherwise: what took too long on a busy machine is not kept.
    """

    values: NDArray[np.float32]
    fault: dict[str, Any] | None
    lasting: bool = True
    start_up: int = 0


@dataclass(frozen=True)
class Segments:
    """Segments in a folder, each a file that is sealed with the digest of its contents; None keeps nothing."""

    folder: Path | None

    def read(self, key: str, shape: tuple[int, int]) -> DailySegment | None:
        """Return what is kept under a key; None where there is nothing, or it is damaged."""
        try:
            seal, _, body = self._path(key).read_bytes().partition(b"\n") if self.folder else (b"", b"", b"")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != seal:
            return None
        head, _, rows = body.partition(b"\n")
        told = json.loads(head)
        values = np.frombuffer(rows, dtype="<f4").reshape(shape)
        return DailySegment(values, told["fault"], start_up=told["start_up"])

    def write(self, key: str, segment: DailySegment) -> None:
        """Keep a segment; it is there whole or not at all."""
        if self.folder is None:
            return
        head = json.dumps({"fault": segment.fault, "start_up": segment.start_up}).encode()
        body = head + b"\n" + segment.values.astype("<f4").tobytes()
        path = self._path(key)
        make_folder(path.parent)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        new.replace(path)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key[:32]}.rows"


@functools.cache
def versions() -> list[str]:
    """Return what else decides the values: Python, numpy, pandas, and the form in which they are kept."""
    from importlib.metadata import version

    return [sys.version.split()[0], version("numpy"), version("pandas"), SEGMENT_FORMAT]
