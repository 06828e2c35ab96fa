"""Compute Python factors of one panel in the sandbox: on the days that may be seen, and day by day.

This file decides what the code may know.

- Columns: only those that it names.
- Days: only those that the reader of its result may see, because the code writes the text of its errors and could
  report a later day in it.
- Symbols: only their number, because code that knows a symbol may know its future. A symbol that is not a member on any
  of these days has no column.
- Levels: prices are adjusted forwards (`adjust_forwards`), and the level of volumes is hidden unless they are as
  traded. Two panels that differ only after these days give the code the same bytes, so its values, errors and time
  cannot depend on a later day.
- Labels: none.

A trial on selection days leaves one channel open. The values that it judges are point in time, but whether there are
any is not: the calls on the whole window and on its last day see all its prices, and code that fails there, or gives
another value, is rejected. A paid trial may therefore reveal one bit of the code's choice about the window by its
acceptance. A formula's trial reveals one bit too, but only about that formula. A fault can only reject, so the
significance level holds for each trial whose code was chosen without such a bit. It does not cover code that was chosen
with the results of earlier trials. The time of the result may reveal one of a few more steps: see `retry`.
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
"""Folder of a workspace for the values of Python factors that were computed day by day."""
MAX_ANSWERS_KEPT, MAX_PANELS_KEPT = 24, 4
"""Results of whole calls, and panels as code sees them, that are cached in memory."""
MAX_REMARKS_SHOWN = 5
REFUSED_REMARKS = ("syntax", "future")
"""Rules of the lint whose remarks refuse code before it runs."""


SEGMENT_FORMAT = "single precision of the day's scale, columns of members, with the days of the start-up"


@dataclass(frozen=True, eq=False)
class DailyValues:
    """Values that were computed day by day, each day by a process that held no later one.

    Attributes
    ----------
    values
        `[T, N]`, NaN outside the universe and after the last requested day.
    fault
        Why there are no values from some day on, `{stage, message, day}`: the code failed or read later days; None
        without a fault.
    start_up
        Days at the panel's start without values, because the code raises an error on so few days and cannot be tested.
    """

    values: Values
    fault: dict[str, Any] | None = None
    start_up: int = 0


class Contained:
    """Computes Python factors on one panel by a runner, never in this process.

    Parameters
    ----------
    panel
        T days by N names, without prices whose level contains a later day.
    runner
        The sandbox: each call is a fresh process.
    folder
        Folder for values that were computed day by day; None stores none.
    """

    def __init__(self, panel: Panel, runner: Runner, folder: Path | None = None) -> None:
        self._panel, self._runner = panel, runner
        self._segments = Segments(folder)
        self._cuts: dict[int, Panel] = {}
        self._frames: dict[tuple[frozenset[str], int], Frames] = {}
        self._results: dict[tuple[str, int], Values] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._screened: set[tuple[str, int]] = set()

    @property
    def stamp(self) -> str:
        """Return the warning that every value must carry; empty if the code is isolated."""
        return self._runner.stamp

    def on(self, panel: Panel) -> Contained:
        """Return a copy for another panel, which stores nothing on the disk."""
        return Contained(panel, self._runner)

    def values(self, expression: Expression, days: int) -> Values:
        """Compute a factor `[T, N]` by one call on the first days; NaN after them and outside the universe.

        The first days, on which alone the code raises an error, have no values: it cannot be tested there.

        Raises
        ------
        PythonRefused
            The code gave no values; the message is the sandbox's.
        NeedsSandbox
            This machine cannot isolate it.
        """
        key = expression.code, days
        if key not in self._results:
            values = self._call(expression, days)
            self._starts[key] = self._measure_start_up(expression, days, values)
            values[: self._starts[key]] = np.nan
            self._results[key] = self._expand_rows(values, 0, days)
            for old in list(self._results)[:-MAX_ANSWERS_KEPT]:
                del self._results[old]
        return self._results[key]

    def screen(self, expression: Expression, days: int, seed: int | None = None) -> None:
        """Refuse code that reads later days at a few cuts, or differs between two calls, on the first days.

        Screened values are for search only: a factor is accepted, combined or watched on swept values. `seed` chooses
        the cuts (`sandbox_settings`); None draws one.

        Raises
        ------
        PythonRefused
            At the stage ``causal`` or ``python``, with the message of the sandbox.
        """
        if (expression.code, days) in self._screened:
            return
        self._refuse_by_lint(expression)
        try:
            proof = prove(self._runner, expression.code, self._make_frames(expression, days), seed=seed)
        except SandboxError as error:
            raise self._make_refusal(error, days) from None
        self._screened.add((expression.code, days))
        self._starts[expression.code, days] = proof.start_up
        self._results[expression.code, days] = self._expand_rows(proof.values, 0, days)

    def start_up(self, expression: Expression, days: int) -> int:
        """Return the number of first days without values, because the code raises an error on so few days."""
        return self._starts.get((expression.code, days), 0)

    def _measure_start_up(self, expression: Expression, days: int, values: NDArray[np.float64]) -> int:
        if not np.isfinite(values).any():
            return 0
        try:
            return measure_start_up(
                CountingRunner(self._runner), CausalClaim(expression.code, self._make_frames(expression, days), values)
            )
        except SandboxError as error:
            raise self._make_refusal(error, days) from None

    def _refuse_by_lint(self, expression: Expression) -> None:
        """Refuse code that cannot be parsed or certainly reads later days, with all lines that show it.

        Other remarks of the lint are warnings of the expression: the lint is no boundary, and failures show at run
        time.
        """
        remarks = [remark for remark in lint_code(expression.code) if remark.rule in REFUSED_REMARKS]
        if remarks:
            stage = "causal" if remarks[0].rule == "future" else "python"
            message = "; ".join(f"line {remark.line}: {remark.message}" for remark in remarks[:MAX_REMARKS_SHOWN])
            raise PythonRefused(message, field="factor", hint=remarks[0].hint, stage=stage, ran=False)

    def sweep(self, expression: Expression, edges: Sequence[int], since: int = 0) -> DailyValues:
        """Compute a factor day by day from row `since` to the last edge, in stored segments that end at the edges.

        A segment from the first day on must have no fault. In any other, values are NaN from the day of a fault on.

        Raises
        ------
        PythonRefused
            The code fails or reads later days before the first edge.
        """
        daily = DailyValues(np.full(self._panel.universe.shape, np.nan, np.float32))
        for start, stop in zip((since, *edges), edges, strict=False):
            if start < stop:
                part = self._get_segment(expression, start, stop)
                daily.values[start:stop] = part.values
                daily = replace(daily, fault=daily.fault or part.fault, start_up=daily.start_up + part.start_up)
        return daily

    # One segment of the days.

    def _get_segment(self, expression: Expression, start: int, stop: int) -> DailySegment:
        data = self._cut_panel(stop).digest
        identity: dict[str, Any] = {"code": expression.code, "data": data, "start": start, "stop": stop}
        key = compute_digest(identity | {"versions": versions()} | ({"stamp": self.stamp} if self.stamp else {}))
        segment = self._segments.read(key, (stop - start, self._cut_panel(stop).names))
        if segment is None:
            segment = self._compute_segment(expression, start, stop)
            if segment.lasting:
                self._segments.write(key, segment)
        return replace(segment, values=self._expand_rows(segment.values, start, stop)[start:stop])

    def _compute_segment(self, expression: Expression, start: int, stop: int) -> DailySegment:
        """Compute the rows of a segment; a fault ends it, and in the first segment raises."""
        values = np.full((stop - start, self._cut_panel(stop).names), np.nan)
        try:
            if not start:
                return self._prove_segment(expression, stop)
            for row, cells in self._iterate_days(expression, start, stop):
                values[row - start] = cells
        except SandboxError as error:
            refusal = self._make_refusal(error, stop)
            if not start or not isinstance(refusal, PythonRefused):
                raise refusal from None
            fault = {"stage": refusal.stage, "message": refusal.message, "day": str(getattr(error, "day", ""))}
            lasting = not isinstance(refusal, OverLimits)
            return DailySegment(_to_float32(values), fault, lasting)
        return DailySegment(_to_float32(values), None)

    def _prove_segment(self, expression: Expression, stop: int) -> DailySegment:
        # A fixed seed: the sweep tests every day, and its values and refusals are stored for all runs.
        proof = prove(
            RetryingRunner(self._runner), expression.code, self._make_frames(expression, stop), sweep=True, seed=0
        )
        return DailySegment(_to_float32(proof.values), None, start_up=proof.start_up)

    def _iterate_days(self, expression: Expression, start: int, stop: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
        meter = CountingRunner(RetryingRunner(Allowance(self._runner, stop - start)))
        yield from iterate_days(meter, make_claim(meter, expression.code, self._make_frames(expression, stop)), start)

    # Inputs of the code, and its results.

    def _call(self, expression: Expression, days: int) -> NDArray[np.float64]:
        job = Job(expression.code, self._make_frames(expression, days))
        [outcome] = self._runner.run_each([job])
        if outcome.values is None:
            raise self._make_refusal(outcome.error or SandboxError("the call gave neither values nor an error"), days)
        return round_values(outcome.values)

    def _cut_panel(self, days: int) -> Panel:
        """Return the panel of the first days as code sees it: members only, without levels that contain later days."""
        if days not in self._cuts:
            self._cuts[days] = reset_volume_levels(keep_members(self._panel.rows(0, days)))
            for old in list(self._cuts)[:-MAX_PANELS_KEPT]:
                del self._cuts[old]
        return self._cuts[days]

    def _make_frames(self, expression: Expression, days: int) -> Frames:
        """Return the first days of the columns that the code reads; symbols are numbers."""
        key = expression.fields | _list_member_columns(expression), days
        if key not in self._frames:
            cut = self._cut_panel(days)
            fields = {name: coded_column(cut, name) for name in sorted(key[0])}
            names = tuple(f"n{place}" for place in range(cut.names))
            self._frames[key] = Frames(fields, cut.dates, names)
            for old in list(self._frames)[:-MAX_PANELS_KEPT]:
                del self._frames[old]
        return self._frames[key]

    def _expand_rows(self, rows: NDArray[Any], start: int, days: int) -> Values:
        """Return rows of the columns that code saw as float32 `[T, N]`, NaN elsewhere and outside the universe."""
        frame = np.full(self._panel.universe.shape, np.nan, np.float32)
        columns = self._panel.universe[:days].any(axis=0)
        frame[start : start + len(rows), columns] = _to_float32(rows)
        frame[~np.isfinite(frame) | ~self._panel.universe] = np.nan
        return frame

    def _make_refusal(self, error: SandboxError, days: int) -> PythonRefused | NeedsSandbox:
        """Return a sandbox error as a refusal of this room, with symbols in the place of numbers."""
        if isinstance(error, SandboxUnavailable):
            return NeedsSandbox(error.message, field=error.field, hint=error.hint)
        message, stage = error.message, "python"
        if isinstance(error, NotCausal | NotDeterministic):
            stage = "causal"
            place, symbols = str(getattr(error, "symbol", "")), self._cut_panel(days).symbols
            is_symbol = place[1:].isdigit() and int(place[1:]) < len(symbols)
            message = message.replace(f"of {place} on", f"of {symbols[int(place[1:])]} on") if is_symbol else message
        kind = OverLimits if isinstance(error, TimedOut | OutOfMemory) else PythonRefused
        return kind(message, field="factor", hint=error.hint, stage=stage)


def _to_float32(values: NDArray[Any]) -> Values:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _list_member_columns(expression: Expression) -> frozenset[str]:
    return frozenset({UNIVERSE_COLUMN} if expression.reads_members else ())


def coded_column(panel: Panel, name: str) -> NDArray[np.float64]:
    """Return a column as code sees it, `[T, N]`: a grouping as codes, the universe as 0 and 1, infinity as NaN.

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
    columns = sorted({*panel.fields, *panel.groups})
    raise PythonRefused(f"the panel has no column {name!r}", field=name, allowed=columns, ran=False)


@dataclass(frozen=True, eq=False)
class DailySegment:
    """Rows of a factor `[D, N]` that were computed day by day, and their fault if they have one.

    `start_up` counts the rows at the panel's start without values because the code raises an error there. `lasting` is
    False where another try may succeed: a timeout on a busy machine is not stored.
    """

    values: NDArray[np.float32]
    fault: dict[str, Any] | None
    lasting: bool = True
    start_up: int = 0


@dataclass(frozen=True)
class Segments:
    """Segments in a folder, each a file that begins with the digest of its contents; None stores nothing."""

    folder: Path | None

    def read(self, key: str, shape: tuple[int, int]) -> DailySegment | None:
        """Return the segment under a key; None if it is missing or damaged."""
        try:
            seal, _, body = self._find_file(key).read_bytes().partition(b"\n") if self.folder else (b"", b"", b"")
        except OSError:
            return None
        if hashlib.sha256(body).hexdigest().encode() != seal:
            return None
        head, _, rows = body.partition(b"\n")
        header = json.loads(head)
        values = np.frombuffer(rows, dtype="<f4").reshape(shape)
        return DailySegment(values, header["fault"], start_up=header["start_up"])

    def write(self, key: str, segment: DailySegment) -> None:
        """Write a segment atomically."""
        if self.folder is None:
            return
        head = json.dumps({"fault": segment.fault, "start_up": segment.start_up}).encode()
        body = head + b"\n" + segment.values.astype("<f4").tobytes()
        path = self._find_file(key)
        make_folder(path.parent)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        new.replace(path)

    def _find_file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key[:32]}.rows"


@functools.cache
def versions() -> list[str]:
    """Return what else decides the values: versions of Python, numpy and pandas, and the format of the files."""
    from importlib.metadata import version

    return [sys.version.split()[0], version("numpy"), version("pandas"), SEGMENT_FORMAT]
