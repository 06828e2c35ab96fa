"""Where the profit of a paper book came from: its symbols, their sectors, the books that wanted them, and its costs.

**Symbol.** The profit of a day is the change of the holding's value less what was paid for it at the open. Over all
symbols, less the costs of trading and borrowing, this is the day's change of equity without flows.

**Book.** A symbol's profit is divided among the books in proportion to their signed weights in the target that was
decided the evening before. So a book that was short of what another was long of loses what the other earns. Where the
weights nearly cancel (their sum is under a tenth of their sizes) or no book wants the symbol (it is being sold, or is a
rest of earlier days), the profit belongs to `OTHER`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from .paper_book import Fill, PaperAccount

OTHER: Final = "other"
"""What no book of the evening before wanted."""
MIN_NET_SHARE: Final = 0.1
"""Share of the sizes of several weights that their sum must have, for the profit to be divided by them."""


def measure_profit(before: PaperAccount, after: PaperAccount, fills: Iterable[Fill]) -> dict[str, float]:
    """Return the profit of each symbol between two closes, before costs."""
    profit = {symbol: one.value for symbol, one in after.holdings.items()}
    for symbol, one in before.holdings.items():
        profit[symbol] = profit.get(symbol, 0.0) - one.value
    for fill in fills:
        profit[fill.symbol] = profit.get(fill.symbol, 0.0) - fill.shares * fill.price
    return dict(sorted(profit.items()))


def divide_profit(profit: Mapping[str, float], weights: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the profit of each book, from that of each symbol.

    Parameters
    ----------
    profit
        Money by symbol.
    weights
        By book: its signed weight of each symbol in the target of the evening before.

    Returns
    -------
    dict
        Money by book, and what belongs to none under `OTHER`; it adds up to the profit.
    """
    shares: dict[str, list[float]] = {book: [] for book in (*weights, OTHER)}
    for symbol, money in profit.items():
        own = {book: part[symbol] for book, part in weights.items() if part.get(symbol)}
        net = math.fsum(own.values())
        if not own or abs(net) < MIN_NET_SHARE * math.fsum(map(abs, own.values())):
            shares[OTHER].append(money)
            continue
        for book, weight in own.items():
            shares[book].append(money * weight / net)
    return {book: math.fsum(parts) for book, parts in shares.items()}
