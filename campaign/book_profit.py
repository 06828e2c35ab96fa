"""The profit of a book by symbol, sector, run, factor and cost, computed from its recorded steps."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ..ledger import Ledger
from ..portfolio import OTHER, divide_profit, measure_profit, rename_keys
from .book import begin, read_step
from .book_record import find_book, list_steps
from .facts import SymbolFacts

UNKNOWN_SECTOR: Final = "unknown"


@dataclass(frozen=True)
class BookProfit:
    """Money that a book earned since it was opened, in the prices' currency.

    Attributes
    ----------
    total
        Change of equity without the money that people paid in or took out.
    by_symbol, by_sector, by_run, by_factor
        Its parts before costs; each adds up to the same. `by_run` has the book of each run, and each factor that no run
        combined; within a run the money is divided by the sizes of its factors' weights. `portfolio.attribution` has
        the rule.
    trading_costs, borrow_costs
        What was paid for trading and for being short.
    """

    total: float
    by_symbol: Mapping[str, float]
    by_sector: Mapping[str, float]
    by_run: Mapping[str, float]
    by_factor: Mapping[str, float]
    trading_costs: float
    borrow_costs: float

    def record(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)


def attribute_profit(ledger: Ledger, name: str) -> BookProfit:
    """Return where the profit of a book came from, over all of its steps."""
    book, settings = find_book(ledger, name)
    tables: dict[str, defaultdict[str, list[float]]] = {
        part: defaultdict(list) for part in ("symbol", "sector", "run", "factor")
    }
    before, costs, borrow, total = begin(settings)["account"], list[float](), list[float](), list[float]()
    decided: dict[str, tuple[Mapping[str, float], Mapping[str, float]]] = {}
    for body in list_steps(ledger, book):
        inputs, step = json.loads(ledger.objects.get(body["inputs"])), read_step(body)
        profit = rename_keys(measure_profit(step.account.restore(before), step.account, step.fills), step.renamed)
        decided = {run: (rename_keys(part, step.renamed), factors) for run, (part, factors) in decided.items()}
        for symbol, money in profit.items():
            tables["symbol"][symbol].append(money)
            sector = SymbolFacts(*inputs["facts"][symbol]).sector if symbol in inputs["facts"] else ""
            tables["sector"][sector or UNKNOWN_SECTOR].append(money)
        for run, money in divide_profit(profit, {run: part for run, (part, _) in decided.items()}).items():
            tables["run"][run].append(money)
            for factor, share in _divide_run(run, decided).items():
                tables["factor"][factor].append(money * share)
        costs += [fill.cost for fill in step.fills]
        borrow.append(step.account.borrow)
        total.append(step.account.pnl)
        decided = {run: (part, inputs["library"]["books"][run]["factors"]) for run, part in inputs["parts"].items()}
        before = body["account"]
    by_symbol, by_sector, by_run, by_factor = (
        {name: math.fsum(rows) for name, rows in sorted(table.items())} for table in tables.values()
    )
    return BookProfit(math.fsum(total), by_symbol, by_sector, by_run, by_factor, math.fsum(costs), math.fsum(borrow))


def _divide_run(run: str, decided: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]]) -> dict[str, float]:
    """Return the share of each factor in the profit of its run's book: by the size of its weight."""
    if run == OTHER:
        return {OTHER: 1.0}
    factors = decided[run][1]
    whole = math.fsum(map(abs, factors.values()))
    return {name: abs(weight) / whole for name, weight in factors.items()} if whole else {OTHER: 1.0}
