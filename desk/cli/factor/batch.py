"""Any number of formulas scored on the search window: one Parquet file of sheets, resumed where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...errors import DeskError
from ...figures import count, duration, plural
from ..console import print_object, print_plain, stderr_console
from ..failures import InterruptionReported
from ..options import DataOptions
from .formula_file import STDIN, FormulaList, open_formula_list

if TYPE_CHECKING:
    from ....evaluation import Evaluator
    from ....evaluation.batches import FormulaRow, MeasuredFormula, SheetParts, SheetTable


FormulasFile = Annotated[
    str | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Score many into one Parquet file: a formula a line, or CSV or Parquet with a column formula; - is stdin.",
    ),
]
SheetsFile = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE.parquet", help="The sheets of --file; by default beside it, FILE.sheets.parquet."
    ),
]

SHEETS_SUFFIX, PARTS_FOLDER = ".sheets.parquet", "sheets"
PART_ROWS, PART_SECONDS, LINE_SECONDS = 256, 10.0, 10.0
"""A part is written after so many rows or seconds; a line of progress after so many seconds."""

Show = Callable[[int], None]


def score_file(file: str, out: Path | None, place: DataOptions, dialect: str, *, as_json: bool) -> None:
    """Score the formulas of a file and print where their sheets are.

    Raises
    ------
    DeskError
        The file holds no formulas, or the output file holds something else.
    """
    from ....factors.describe import require_dialect

    require_dialect(dialect)
    target = _choose_target(file, out)
    with open_formula_list(file) as formulas:
        facts = BatchScoring(formulas, target, place, dialect).run()
    if as_json:
        print_object(facts)
    else:
        print_plain(_summarise(facts))


def refuse_beside_file(**options: object) -> None:
    """Refuse arguments that say something of one factor beside a file of formulas."""
    for name in (name for name, value in options.items() if value):
        words = name if name.isupper() else f"--{name}"
        raise typer.BadParameter(f"{words} goes with one factor: leave it away, or leave --file away")


def require_expression(expression: str | None, out: Path | None) -> str:
    """Return the one formula of a command without a file of formulas."""
    if expression is None:
        raise typer.BadParameter("no formula was given: put it in quotes, or name a file: --file FILE")
    if out is not None:
        raise typer.BadParameter("--out goes with --file: the sheet of one factor is printed, --json as one object")
    return expression


def _choose_target(file: str, out: Path | None) -> Path:
    if out is None and file == STDIN:
        raise DeskError(
            "Formulas from standard input have no file beside which their sheets could lie.",
            field="--out",
            allowed="the path of a Parquet file",
            hint="Name it: --out FILE.parquet",
            code="no_output",
        )
    target = out or Path(file).with_suffix(SHEETS_SUFFIX)
    if not target.absolute().parent.is_dir() or target.is_dir():
        message = "it is a folder" if target.is_dir() else "its folder does not exist"
        hint = "Name a Parquet file in a folder that exists."
        raise DeskError(f"{target} cannot be written: {message}", field="--out", got=str(target), hint=hint)
    return target


class WaitingRows(NamedTuple):
    """Rows that are not on the disk, from place `first` on; one value, so that Ctrl-C cannot part place and rows."""

    first: int
    rows: list[dict[str, Any]]


@dataclass
class BatchScoring:
    """One list of formulas scored on one panel.

    Attributes
    ----------
    target
        The file of sheets.
    """

    formulas: FormulaList
    target: Path
    place: DataOptions
    dialect: str
    _waiting: WaitingRows = field(default_factory=lambda: WaitingRows(0, []))
    _written_at: float = 0.0

    @property
    def scored(self) -> int:
        """Return the number of formulas whose rows are in memory or on the disk."""
        return self._waiting.first + len(self._waiting.rows)

    def run(self) -> dict[str, Any]:
        """Score what is missing and return the facts of the finished file."""
        from ....evaluation.batches import SheetParts, SheetTable, read_sheet_facts
        from ..evaluator import open_evaluator

        with open_evaluator("score", self.place, recorded=False) as evaluator:
            identity = self._identify(evaluator)
            known = read_sheet_facts(self.target)
            if known is not None and known.get("identity") == identity:
                return self._describe(known, already=True)
            self._refuse_other_file()
            table = SheetTable.of(evaluator.panel, evaluator.windows.search, evaluator.settings)
            parts = SheetParts(evaluator.ledger.workspace / PARTS_FOLDER / identity[:20], table)
            self._score_missing(evaluator, parts, table)
            parts.assemble(self.target, facts := self._list_facts(evaluator, table, identity))
        return self._describe(facts, already=False)

    def _list_facts(self, evaluator: Evaluator, table: SheetTable, identity: str) -> dict[str, Any]:
        """Return what holds for all rows; the path of the panel is left out, since the bytes must not depend on it."""
        from ..evaluator import data_of

        data = {name: fact for name, fact in data_of(self.place, evaluator).items() if name != "file"}
        return {
            "identity": identity,
            "data": data | {"digest": evaluator.panel.digest, "notes": list(evaluator.panel.notes)},
            "window": {"name": table.window.name} | table.window.record(),
            "horizon_days": table.horizon_days,
            "costs": evaluator.settings.costs.model_dump(mode="json"),
            "dialect": self.dialect,
            "formulas": self.formulas.count,
        }

    def _identify(self, evaluator: Evaluator) -> str:
        """Return a digest of all that decides the rows: formulas, panel, window, settings and this version's code."""
        from .... import __version__
        from ....ledger import compute_digest

        panel, window = evaluator.panel, evaluator.windows.search
        return compute_digest(
            {
                "formulas": self.formulas.digest,
                "dialect": self.dialect,
                "panel": panel.digest,
                "levels": [panel.back_adjusted, panel.volumes],
                "window": [window.start, window.stop],
                "settings": evaluator.settings.model_dump(mode="json"),
                "code": [__version__, evaluator.library.published_values.folder.name],
            }
        )

    def _refuse_other_file(self) -> None:
        if self.target.exists():
            raise DeskError(
                f"{self.target} exists, and holds no sheets of these formulas on this panel with these settings.",
                field="--out",
                got=str(self.target),
                allowed="a new file",
                hint="Delete it, or name another one: --out FILE.parquet",
                code="output_exists",
            )

    def _score_missing(self, evaluator: Evaluator, parts: SheetParts, table: SheetTable) -> None:
        self._waiting = WaitingRows(parts.count_rows(), [])
        if self.scored:
            message = f"going on after {count(self.scored)} of {plural(self.formulas.count, 'formula')}"
            stderr_console().print(message, markup=False)
        self._written_at = time.monotonic()
        try:
            with show_count(self.formulas.count, self.scored) as show:
                for formula, measured in self._measure(evaluator):
                    self._waiting.rows.append(table.fill(formula, measured))
                    self._write_part(parts, PART_ROWS, PART_SECONDS)
                    show(self.scored)
        except KeyboardInterrupt:
            stderr_console().print(
                f"interrupted after {count(self.scored)} of {plural(self.formulas.count, 'formula')}; "
                "the same command goes on",
                markup=False,
            )
            raise InterruptionReported from None
        finally:
            self._write_part(parts, 1, 0.0)

    def _measure(self, evaluator: Evaluator) -> Iterator[tuple[FormulaRow, MeasuredFormula]]:
        """Yield the missing formulas with their sheets; a few batches are in memory at a time."""
        from ....evaluation.batches import BATCH_FORMULAS

        waiting = islice(self.formulas, self.scored, None)
        asked: list[list[FormulaRow]] = []

        def list_batches() -> Iterator[list[str]]:
            while group := list(islice(waiting, BATCH_FORMULAS)):
                asked.append(group)
                yield [formula.text for formula in group]

        for answers in evaluator.scoring.open_bench(self.dialect)(list_batches()):
            yield from zip(asked.pop(0), answers, strict=True)

    def _write_part(self, parts: SheetParts, most_rows: int, most_seconds: float) -> None:
        """Write the rows in memory if there are so many, or they have waited so long."""
        now, (first, rows) = time.monotonic(), self._waiting
        if rows and (len(rows) >= most_rows or now - self._written_at >= most_seconds):
            parts.add(first, rows)
            self._waiting, self._written_at = WaitingRows(first + len(rows), []), now

    def _describe(self, facts: dict[str, Any], *, already: bool) -> dict[str, Any]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        table = pq.read_table(self.target, columns=["error", "t"])
        errors = len(table) - table["error"].null_count
        strong = pc.sum(pc.greater_equal(pc.abs(table["t"]), 3.0)).as_py() or 0
        return {"out": str(self.target), "already": already, "errors": errors, "strong": strong, **facts}


def _summarise(facts: dict[str, Any]) -> str:
    """Return the outcome in two lines."""
    total, errors = plural(facts["formulas"], "formula"), count(facts["errors"])
    first = f"{facts['out']}: {total}, {errors} with an error"
    if facts["already"]:
        first = f"{first}. It is complete: the same formulas, panel and settings were scored before"
    window = facts["window"]
    return f"{first}.\nsearch {window['first']} to {window['last']}: |t| of 3 or more for {count(facts['strong'])}."


@contextmanager
def show_count(total: int, start: int) -> Iterator[Show]:
    """Yield the function that shows how many formulas are scored: a bar, or a short line every ten seconds."""
    console = stderr_console()
    if console.is_terminal and not console.is_dumb_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("formulas"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("formulas", total=total, completed=start)
            yield lambda scored: progress.update(task, completed=scored)
        return
    began = said = 0.0

    def print_line(scored: int) -> None:
        nonlocal began, said
        now = time.monotonic()
        if not began:  # the preparation before the first formula says nothing of the others
            began = said = now
        if now - said >= LINE_SECONDS:
            said = now
            left = (now - began) / max(scored - start, 1) * (total - scored)
            console.print(f"{count(scored)}/{count(total)} formulas scored; about {duration(left)} left", markup=False)

    yield print_line
