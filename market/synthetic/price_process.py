"""The random parts of the synthetic market: listings, unpredictable returns, and the quotes that follow from them.

**Listings** (symbols, groups, spans, missing days) are drawn without any return.

**Noise.** Every shock is drawn symmetric about zero and every volatility is an even function of past shocks (no
leverage effect), so flipping the signs of all shocks after day t changes no volatility and has the same probability.
Therefore, given everything up to t, the sign of the difference between the later log returns of any two symbols is a
fair coin, over any horizon and whatever their betas and volatilities: nothing known at t predicts the ranks of later
returns.

**Quotes** are what an exchange publishes: prices, splits, volume, amount and capitalisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..panel import Panel

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
ARCH, GARCH = 0.06, 0.92
"""Weights of the last squared shock and of the last variance; with five degrees of freedom kurtosis stays finite."""
MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE = 0.2, 16.0
"""Bounds of a variance relative to its long-run level."""
DEGREES_OF_FREEDOM = 5.0
OVERNIGHT_SHARE = 0.25
"""Share of a day's variance that falls between yesterday's close and today's open."""
COMMON_POWER = 0.25
"""Power of the market's relative variance in every other volatility: symbols are volatile when the market is."""
SPLIT_ABOVE, MERGE_BELOW = 180.0, 4.0
"""Quoted closes beyond which a split, or a consolidation of shares, follows at the next open."""
SPLIT_RATIO, MERGE_RATIO = 4.0, 0.1
ACTIVITY_PERSISTENCE = 0.9
"""Day-to-day persistence of unusual trading."""


@dataclass(frozen=True)
class Listings:
    """Symbols, their groups and the days on which each trades.

    `present` and `listed` are `[T, N]`; a symbol that is listed and not present misses that day. `sector` and
    `industry` are the codes `[N]` of the return factors of each symbol.
    """

    dates: NDArray[np.datetime64]
    symbols: tuple[str, ...]
    sector: NDArray[np.intp]
    industry: NDArray[np.intp]
    listed: NDArray[np.bool_]
    present: NDArray[np.bool_]

    def list_labels(self) -> dict[str, list[str]]:
        """Return the sector and industry label of every symbol."""
        sector = [SECTORS[code] for code in self.sector]
        industry = [
            f"{word} {1 + code % INDUSTRIES_PER_SECTOR}" for word, code in zip(sector, self.industry, strict=True)
        ]
        return {"sector": sector, "industry": industry}


@dataclass(frozen=True)
class Turnover:
    """Late and ended listings as shares of symbols over the whole span, and the chance of a halt on a day."""

    late: float
    gone: float
    halt: float


def draw_listings(rng: np.random.Generator, seed: int, days: int, names: int, turnover: Turnover) -> Listings:
    """Draw symbols, groups, listing spans and missing days; no return is used."""
    symbols = draw_symbols(rng, seed, names)
    sector = np.sort(rng.permutation(np.arange(names) % len(SECTORS)))
    rng.shuffle(sector)
    industry = sector * INDUSTRIES_PER_SECTOR + rng.integers(0, INDUSTRIES_PER_SECTOR, names)
    first, last = draw_spans(rng, days, names, turnover)
    day = np.arange(days)[:, None]
    listed = (day >= first) & (day <= last)
    return Listings(
        dates=list_business_days(days),
        symbols=symbols,
        sector=sector,
        industry=industry,
        listed=listed,
        present=listed & ~draw_halts(rng, days, names, turnover.halt),
    )


def list_business_days(days: int) -> NDArray[np.datetime64]:
    """Return that many business days from 2010-01-04 on."""
    first = np.datetime64("2010-01-04", "D")
    return np.busday_offset(first, np.arange(days)).astype("datetime64[D]")


def draw_symbols(rng: np.random.Generator, seed: int, names: int) -> tuple[str, ...]:
    """Draw sorted symbols such as `H.QXF`; the letters before the dot spell the seed, so two seeds share no symbol."""
    width = 3
    while len(SYMBOL_LETTERS) ** width < 4 * names:
        width += 1
    numbers = rng.choice(len(SYMBOL_LETTERS) ** width, size=names, replace=False)
    return tuple(sorted(f"{_spell_number(seed)}.{_spell_number(int(number), width)}" for number in numbers))


def draw_spans(
    rng: np.random.Generator, days: int, names: int, turnover: Turnover
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the first and the last day of every symbol `[N]`, without any price."""
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
    for later in range(1, MAX_HALT_DAYS):
        halted[later:] |= (begins & (length > later))[:-later]
    return halted


def _spell_number(number: int, width: int = 1) -> str:
    """Spell a number in letters, at least `width` of them."""
    text = ""
    while number or len(text) < width:
        number, digit = divmod(number, len(SYMBOL_LETTERS))
        text = SYMBOL_LETTERS[digit] + text
    return text


@dataclass(frozen=True)
class Volatilities:
    """Daily volatilities in log units: of the market, of a sector, of an industry, and the median one of a symbol."""

    market: float
    sector: float
    industry: float
    name: float


@dataclass(frozen=True)
class NoiseReturns:
    """Log returns `[T, N]` from close to open and from open to close, and their drivers.

    `volatility` is the own (idiosyncratic) volatility of that day, known the evening before. `surprise` is the absolute
    close-to-close move in units of a usual one; it drives volume. `beta` is `[N]`.
    """

    overnight: NDArray[np.float64]
    intraday: NDArray[np.float64]
    volatility: NDArray[np.float64]
    surprise: NDArray[np.float64]
    beta: NDArray[np.float64]


def draw_noise(rng: np.random.Generator, listings: Listings, levels: Volatilities) -> NoiseReturns:
    """Draw the symmetric log returns of the market."""
    days, names = listings.listed.shape
    beta = np.clip(rng.normal(1.0, 0.3, names), 0.2, 2.2)
    own = levels.name * np.exp(rng.normal(0.0, 0.35, names))
    sector_loading = rng.uniform(0.6, 1.4, names)
    market = draw_shocks(rng, days, np.array([levels.market]))
    mood = (market.volatility / levels.market) ** (2 * COMMON_POWER)
    sectors = draw_shocks(rng, days, np.full(len(SECTORS), levels.sector), mood)
    industries = draw_shocks(rng, days, np.full(len(SECTORS) * INDUSTRIES_PER_SECTOR, levels.industry), mood)
    single = draw_shocks(rng, days, own, mood)
    parts = []
    for half in ("overnight", "intraday"):
        move = getattr(single, half)
        move += beta * getattr(market, half)
        move += sector_loading * getattr(sectors, half)[:, listings.sector]
        move += getattr(industries, half)[:, listings.industry]
        parts.append(move)
    usual = np.sqrt(own**2 + (beta * levels.market) ** 2 + levels.sector**2 + levels.industry**2)
    surprise = np.abs(parts[0] + parts[1]) / usual
    return NoiseReturns(parts[0], parts[1], single.volatility, surprise, beta)


@dataclass(frozen=True)
class Shocks:
    """The two halves of a day's shock and the volatility that scaled them, all `[T, K]`."""

    overnight: NDArray[np.float64]
    intraday: NDArray[np.float64]
    volatility: NDArray[np.float64]


def draw_shocks(
    rng: np.random.Generator, days: int, level: NDArray[np.float64], mood: NDArray[np.float64] | float = 1.0
) -> Shocks:
    """Draw K independent GARCH(1,1) series with Student-t shocks and long-run volatilities `level` `[K]`.

    `mood` `[T, 1]` multiplies every volatility of a day.
    """
    unit = np.sqrt((DEGREES_OF_FREEDOM - 2.0) / DEGREES_OF_FREEDOM)
    overnight = rng.standard_t(DEGREES_OF_FREEDOM, (days, len(level))) * (unit * np.sqrt(OVERNIGHT_SHARE))
    intraday = rng.standard_t(DEGREES_OF_FREEDOM, (days, len(level))) * (unit * np.sqrt(1.0 - OVERNIGHT_SHARE))
    squared = (overnight + intraday) ** 2
    relative = compute_relative_variance(squared, np.exp(rng.normal(0.0, 0.4, len(level))))
    volatility = np.sqrt(relative) * level * mood
    return Shocks(overnight * volatility, intraday * volatility, volatility)


def compute_relative_variance(squared: NDArray[np.float64], first: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the GARCH variance `[T, K]` of each day over its long-run level, from squared unit shocks before it."""
    out = np.empty_like(squared)
    now = np.clip(first, MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE)
    for day in range(len(squared)):
        out[day] = now
        now = np.clip(
            (1.0 - ARCH - GARCH) + now * (GARCH + ARCH * squared[day]), MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE
        )
    return out


@dataclass(frozen=True)
class Trading:
    """The draws behind quotes besides returns; made once, so that a planted drift changes prices only.

    `up` and `down`: log distance of high and low beyond open and close; `centre` in [-1, 1]: position of the vwap;
    `turnover`: log of the traded share of the capitalisation; all `[T, N]`. `price` and `shares`: first close of each
    symbol and its shares then, `[N]`.
    """

    up: NDArray[np.float64]
    down: NDArray[np.float64]
    centre: NDArray[np.float64]
    turnover: NDArray[np.float64]
    price: NDArray[np.float64]
    shares: NDArray[np.float64]


def draw_trading(rng: np.random.Generator, noise: NoiseReturns) -> Trading:
    """Draw ranges, turnover and sizes; turnover rises with the absolute move of the day, never with its sign."""
    days, names = noise.surprise.shape
    reach = 0.5 * noise.volatility
    size = rng.normal(22.0, 1.4, names)
    price = np.exp(rng.normal(3.6, 0.7, names))
    usual = rng.normal(-5.3, 0.5, names) + 0.05 * (size - 22.0)
    unusual = accumulate_shocks(rng.normal(0.0, 0.15, (days, names)))
    return Trading(
        up=reach * np.abs(rng.standard_normal((days, names))),
        down=reach * np.abs(rng.standard_normal((days, names))),
        centre=rng.uniform(-1.0, 1.0, (days, names)),
        turnover=usual + unusual + 0.35 * np.minimum(noise.surprise, 6.0),
        price=price,
        shares=np.exp(size) / price,
    )


def accumulate_shocks(shocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first-order autoregression `[T, N]` driven by the shocks."""
    out = shocks.copy()
    for day in range(1, len(out)):
        out[day] += ACTIVITY_PERSISTENCE * out[day - 1]
    return out


def build_quoted_panel(
    listings: Listings,
    noise: NoiseReturns,
    trading: Trading,
    drift: NDArray[np.float64] | None,
    notes: tuple[str, ...] = (),
) -> Panel:
    """Return the panel; `drift` `[T, N]` is added to the log return from open[t+1] to open[t+2]."""
    opening, closing = compute_log_prices(noise, drift)
    opening += np.log(trading.price)
    closing += np.log(trading.price)
    high = np.maximum(opening, closing) + trading.up
    low = np.minimum(opening, closing) - trading.down
    middle = (opening + closing + high + low) / 4 + 0.1 * trading.centre * (high - low)
    fields = {"open": opening, "high": high, "low": low, "close": closing, "vwap": np.clip(middle, low, high)}
    for values in fields.values():
        np.exp(values, out=values)
    fields["cap"] = fields["close"] * trading.shares
    fields["volume"] = np.rint(fields["cap"] * np.exp(trading.turnover) / fields["vwap"])
    fields["amount"] = fields["volume"] * fields["vwap"]
    fields["close_raw"] = fields["close"] * compute_quote_ratio(fields["close"])
    for values in fields.values():
        values[~listings.present] = np.nan
    built = Panel.build(listings.dates, listings.symbols, fields, listings.present, listings.list_labels(), notes)
    return replace(built, volumes="forward")


def compute_log_prices(
    noise: NoiseReturns, drift: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of open and close `[T, N]`, relative to the close before the first day."""
    overnight, intraday = noise.overnight.copy(), noise.intraday.copy()
    if drift is not None:
        intraday[1:] += (1.0 - OVERNIGHT_SHARE) * drift[:-1]
        overnight[2:] += OVERNIGHT_SHARE * drift[:-2]
    closing = np.cumsum(overnight + intraday, axis=0)
    return closing - intraday, closing


def compute_quote_ratio(close: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quoted over the adjusted price `[T, N]`: it falls by four at a split and rises by ten at a merger.

    A split follows from the quoted close of the day before, and prices are adjusted from the first day on. So neither
    the quoted nor the adjusted level contains a later split; in real back-adjusted prices the adjusted level does.
    """
    ratio = np.empty_like(close)
    now = np.ones(close.shape[1])
    for day in range(len(close)):
        ratio[day] = now
        quoted = close[day] * now
        now = now * np.where(
            quoted > SPLIT_ABOVE, 1 / SPLIT_RATIO, np.where(quoted < MERGE_BELOW, 1 / MERGE_RATIO, 1.0)
        )
    return ratio
