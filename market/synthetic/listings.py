"""Who is listed, in which sector, and when: the part of the synthetic market that knows no price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECTORS = (
    "Communication",
    "Consumer Goods",
    "Energy",
    "Finance",
    "Health",
    "Industry",
    "Leisure and Retail",
    "Materials",
    "Property",
    "Technology",
    "Utilities",
)
INDUSTRIES_PER_SECTOR = 4
SYMBOL_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MIN_LIFE_DAYS = 60
MAX_HALT_DAYS = 4


@dataclass(frozen=True)
class Listings:
    """Holds the names, their groups and the days on which each trades.

    `present` and `listed` are `[T, N]`; a name that is listed and not present misses that day. `sector` and `industry`
    are the codes `[N]` of the factors that move a name.
    """

    dates: NDArray[np.datetime64]
    symbols: tuple[str, ...]
    sector: NDArray[np.intp]
    industry: NDArray[np.intp]
    listed: NDArray[np.bool_]
    present: NDArray[np.bool_]

    def labels(self) -> dict[str, list[str]]:
        """Return the words for every name's groups."""
        sector = [SECTORS[code] for code in self.sector]
        industry = [
            f"{word} {1 + code % INDUSTRIES_PER_SECTOR}" for word, code in zip(sector, self.industry, strict=True)
        ]
        return {"sector": sector, "industry": industry}


@dataclass(frozen=True)
class Turnover:
    """How names come, go and pause: shares of names over the whole span, and the chance of a halt on a day."""

    late: float
    gone: float
    halt: float


def draw_listings(rng: np.random.Generator, seed: int, days: int, names: int, turnover: Turnover) -> Listings:
    """Draw names, groups, listing spans and missing days; nothing here can know a return."""
    symbols = draw_symbols(rng, seed, names)
    sector = np.sort(rng.permutation(np.arange(names) % len(SECTORS)))
    rng.shuffle(sector)
    industry = sector * INDUSTRIES_PER_SECTOR + rng.integers(0, INDUSTRIES_PER_SECTOR, names)
    first, last = draw_spans(rng, days, names, turnover)
    day = np.arange(days)[:, None]
    listed = (day >= first) & (day <= last)
    return Listings(
        dates=business_days(days),
        symbols=symbols,
        sector=sector,
        industry=industry,
        listed=listed,
        present=listed & ~draw_halts(rng, days, names, turnover.halt),
    )


def business_days(days: int) -> NDArray[np.datetime64]:
    """Return that many business days from 2010-01-04 on."""
    first = np.datetime64("2010-01-04", "D")
    return np.busday_offset(first, np.arange(days)).astype("datetime64[D]")


def draw_symbols(rng: np.random.Generator, seed: int, names: int) -> tuple[str, ...]:
    """Draw sorted symbols such as `H.QXF`; what stands before the dot spells the seed, so no two seeds share a name."""
    width = 3
    while len(SYMBOL_LETTERS) ** width < 4 * names:
        width += 1
    numbers = rng.choice(len(SYMBOL_LETTERS) ** width, size=names, replace=False)
    return tuple(sorted(f"{_letters(seed)}.{_letters(int(number), width)}" for number in numbers))


def draw_spans(
    rng: np.random.Generator, days: int, names: int, turnover: Turnover
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the first and the last day of every name; both ends are drawn without looking at any price."""
    life = min(MIN_LIFE_DAYS, days // 4)
    late = rng.random(names) < turnover.late
    first = np.where(late, rng.integers(1, max(2, days - 2 * life), names), 0)
    gone = rng.random(names) < turnover.gone
    end = first + life + np.floor(rng.random(names) * np.maximum(days - 1 - first - life, 1)).astype(np.int64)
    return first, np.where(gone, np.minimum(end, days - 1), days - 1)


def draw_halts(rng: np.random.Generator, days: int, names: int, chance: float) -> NDArray[np.bool_]:
    """Draw missing days `[T, N]`: a halt begins with the given chance and lasts one to four days."""
    begins = rng.random((days, names)) < chance
    length = rng.integers(1, MAX_HALT_DAYS + 1, (days, names), dtype=np.int8)
    halted = begins.copy()
    for more in range(1, MAX_HALT_DAYS):
        halted[more:] |= (begins & (length > more))[:-more]
    return halted


def _letters(number: int, width: int = 1) -> str:
    """Spell a number in letters, at least `width` of them."""
    text = ""
    while number or len(text) < width:
        number, digit = divmod(number, len(SYMBOL_LETTERS))
        text = SYMBOL_LETTERS[digit] + text
    return text
