"""A paper book for scripts: open one, take it through new days, read it, and compute it again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..evidence import EvidenceSettings
from ..ledger import Ledger
from ..market import Panel
from ..portfolio import chain_returns
from ..sandbox import Runner
from .book import BookData, BookStep, read_step, step_book
from .book_record import WORKSPACE, BookFlow, BookSettings, find_book, list_steps, open_book, pay_book
from .replay import replay_book

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class PaperBook:
    """A book of a workspace; as `alphaloom.Book` the front of what `alphaloom book` does.

    Attributes
    ----------
    name, workspace
        The book's name and the folder of its workspace.
    """

    name: str
    workspace: Path = WORKSPACE

    @classmethod
    def open(cls, name: str, *, workspace: str | Path = WORKSPACE, settings: BookSettings | None = None) -> Self:
        """Open a book, or find the one of this name; `settings` are fixed when it is opened first.

        Raises
        ------
        RiskError
            A book of this name has other settings.
        """
        book = cls(name, Path(workspace))
        with book._record() as ledger:
            known = {run.id for run in ledger.runs.all() if "book" in run.config}
            if settings is not None or not {name, f"book-{name}"} & known:
                open_book(ledger, name, settings or BookSettings(), _read_clock())
        return book

    def step(
        self,
        panel: Panel,
        dataset: str,
        *,
        since: date | None = None,
        runner: Runner | None = None,
        rules: EvidenceSettings | None = None,
    ) -> list[BookStep]:
        """Take the book through every day of a panel after its last step; parameters are those of `BookData`."""
        data = BookData(panel, dataset, runner, since, rules or EvidenceSettings())
        with self._record() as ledger:
            return step_book(ledger, self.name, data, _read_clock)

    def deposit(self, amount: float, *, by: str) -> BookFlow:
        """Pay money in before the next step, or take it out where the amount is negative."""
        with self._record() as ledger:
            return pay_book(ledger, self.name, amount, by, _read_clock())

    def replay(self) -> dict[str, list[str]]:
        """Compute every step again, and return what differs by day: nothing where every byte is the same."""
        with self._record() as ledger:
            return {day: parts for day, parts in replay_book(ledger, self.name) if parts}

    def steps(self) -> list[BookStep]:
        """Return the steps so far, the oldest first."""
        with self._record() as ledger:
            return [read_step(body) for body in list_steps(ledger, find_book(ledger, self.name)[0])]

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each step.

        Returns
        -------
        pandas.DataFrame
            The index `day`; `equity`, `ungated_equity`, `flow`, `pnl` and `costs` (trading and borrowing), all in
            the prices' currency; `daily_return` and `ungated_return`, time-weighted, NaN on the first day;
            `window`; `late`.
        """
        import pandas as pd

        steps = self.steps()
        flows = [step.flow for step in steps]
        frame = pd.DataFrame(
            {
                "day": pd.to_datetime([step.day for step in steps]),
                "equity": [step.account.equity for step in steps],
                "ungated_equity": [step.ungated.equity for step in steps],
                "flow": flows,
                "pnl": [step.account.pnl for step in steps],
                "costs": [sum(fill.cost for fill in step.fills) + step.account.borrow for step in steps],
                "window": [step.window for step in steps],
                "late": [step.late for step in steps],
            }
        ).set_index("day")
        for column, worth in (("daily_return", "equity"), ("ungated_return", "ungated_equity")):
            frame[column] = [float("nan"), *chain_returns(frame[worth].tolist(), flows)][: len(frame)]
        return frame

    @contextmanager
    def _record(self) -> Iterator[Ledger]:
        with Ledger.open(self.workspace, clock=_read_clock) as ledger:
            yield ledger


def _read_clock() -> datetime:
    return datetime.now(UTC)
