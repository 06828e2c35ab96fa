"""Compute expressions over a panel: an interpreter of compiled kernels over the distinct subtrees of a batch.

A new expression costs no compiling. Values are float32, sums inside the kernels float64; the same expression gives
the same bytes whatever else is in the batch, in the cache, or how many threads there are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ..errors import FactorError
from ..kernels.cells import Array
from ..language.node import STANDARD_FIELDS, STANDARD_GROUPS, Node
from ..language.parse import parse
from .buffers import BufferPool, Scratch, SubtreeCache
from .plan import lay_out
from .run import PlanRun
from .tiles import LeafStore
from .workers import Workers, count_usable_cores

if TYPE_CHECKING:
    from pandas import DataFrame

    from ...market import Panel
    from ..language.expression import Expression

EXPRESSIONS_PER_STREAM = 16
"""Expressions that a stream computes together: enough to share subtrees, few enough to fit in memory."""


class Engine:
    """Evaluates expressions over one panel.

    Parameters
    ----------
    panel : Panel
        Days x names. Its fields are read as float32, once; cells that are not finite are missing.
    cache_bytes : int
        Bytes of subtrees that are cached between calls; 0 for no cache.
    threads : int, optional
        Threads that share each kernel; None: two where there are two cores.
    """

    def __init__(self, panel: Panel, *, cache_bytes: int = 256 << 20, threads: int | None = None) -> None:
        self.panel = panel
        self._workers = Workers(min(2, count_usable_cores()) if threads is None else threads)
        self._store = LeafStore(panel, self._workers.threads)
        self._pool = BufferPool(panel.universe.size)
        self._scratch = Scratch()
        self._cache = SubtreeCache(cache_bytes)
        self._keeps = cache_bytes > 0
        self._lock = threading.Lock()

    def evaluate(self, expressions: Sequence[Expression | str], *, out: Sequence[Array] | None = None) -> list[Array]:
        """Compute a batch; subtrees that occur more than once are computed once.

        Parameters
        ----------
        expressions : sequence of Expression or str
            Formulas, parsed or not.
        out : sequence of NDArray[np.float32], optional
            Arrays ``[T, N]`` to write to, one for each expression; repeated evaluations then allocate no results.

        Returns
        -------
        list of NDArray[np.float32]
            One array ``[T, N]`` for each, in order; NaN where a value is missing and outside the universe. The engine
            keeps no reference to them.

        Raises
        ------
        ValueError
            If `out` has another number of arrays, or one of another shape, type or layout.
        TypeError
            If `expressions` is one text.
        PanelLacksField
            If a formula reads a column or grouping that the panel does not have; nothing is computed then.
        ParseError
            If a text is no formula.
        FactorError
            If it is Python code; the code is ``not_a_formula``.
        """
        if isinstance(expressions, str):
            raise TypeError(f"`expressions` is a list of formulas, got one text: write [{expressions!r}]")
        return self.compute([self._parse_formula(expression).canonical for expression in expressions], out=out)

    def to_frame(self, expression: Expression | str) -> DataFrame:
        """Compute one expression as a pandas DataFrame.

        Parameters
        ----------
        expression : Expression or str
            A formula, parsed or not.

        Returns
        -------
        pandas.DataFrame
            float32, days x symbols: a DatetimeIndex named ``date``, and columns named ``symbol``. A value is known at
            the close of its day; NaN where it is missing and outside the universe. vectorbt takes this form;
            ``to_frame(x).stack().dropna()`` is the Series by date and symbol that alphalens takes.

        Raises
        ------
        PanelLacksField, ParseError, FactorError
            As `evaluate`.
        """
        import pandas as pd

        (values,) = self.evaluate([expression])
        days = pd.DatetimeIndex(self.panel.dates, name="date")
        return pd.DataFrame(values, index=days, columns=pd.Index(self.panel.symbols, name="symbol"))

    def compute(self, trees: Sequence[Node], *, out: Sequence[Array] | None = None) -> list[Array]:
        """Compute a batch of trees unchanged, canonical or not; otherwise as `evaluate`."""
        results = self._prepare_results(len(trees), out)
        with self._lock:
            plan = lay_out(trees, self._cache.__contains__, keeps=self._keeps)
            run = PlanRun(plan, self._store, self._pool, self._scratch, self._cache, self._workers)
            run.fill(results)
        return results

    def stream(
        self, expressions: Iterable[Expression | str], *, together: int = EXPRESSIONS_PER_STREAM
    ) -> Iterator[Array]:
        """Compute any number of expressions, a few at a time, in order.

        Memory stays bounded whatever their number: the results of one group, what is shared within it, and the cache.

        Parameters
        ----------
        expressions : iterable of Expression or str
            Formulas, parsed or not; read as they are needed.
        together : int
            Expressions per batch. More share more subtrees and take more memory; the values are the same.

        Yields
        ------
        NDArray[np.float32]
            One array ``[T, N]`` for each expression, as from `evaluate`.

        Raises
        ------
        PanelLacksField, ParseError
            As `evaluate`, when the group of the bad formula is reached.
        ValueError
            If `together` is below 1.
        """
        if together < 1:
            raise ValueError(f"`together` must be at least 1, got {together}")
        waiting = iter(expressions)
        while group := list(islice(waiting, together)):
            yield from self.evaluate(group)

    @property
    def cached_bytes(self) -> int:
        """Return the bytes of cached subtrees."""
        return self._cache.bytes

    def _prepare_results(self, count: int, out: Sequence[Array] | None) -> list[Array]:
        """Return the arrays for the results: new ones, or `out` after checks."""
        shape = self.panel.universe.shape
        if out is None:
            return [np.empty(shape, np.float32) for _ in range(count)]
        if len(out) != count:
            raise ValueError(f"`out` has {len(out)} arrays for {count} expressions")
        for at, array in enumerate(out):
            if (
                array.shape != shape
                or array.dtype != np.float32
                or not (array.flags.c_contiguous and array.flags.writeable)
            ):
                raise ValueError(
                    f"`out[{at}]` must be a writeable C-contiguous float32 array of the shape {shape}, "
                    f"got {array.dtype} {array.shape}"
                )
        return list(out)

    def _parse_formula(self, expression: Expression | str) -> Expression:
        if isinstance(expression, str):
            expression = parse(
                expression, fields={*STANDARD_FIELDS, *self.panel.fields}, groups={*STANDARD_GROUPS, *self.panel.groups}
            )
        if expression.code:  # its tree serves comparison only; computing it would give other values
            raise FactorError(
                "The engine computes formulas; Python code is run by the sandbox alone.",
                field="expression",
                hint="From Python: alphaloom.sandbox.Sandbox. By hand: alphaloom factor score FILE.py",
                code="not_a_formula",
            )
        return expression
