"""What happens to a book between decisions, and `apply`, which gives the state after it: whole numbers, no clock.

Exposures are shares of equity, so whatever changes equity changes them all; each is then rounded by less than 1e-8 of
equity. A book that is valued from its account starts anew at every close, so these roundings do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from .rules import BP, DAYS_OF_TURNOVER
from .signal import UNITS_PER_EQUITY, RiskError
from .state import MAX_SESSIONS, UNKNOWN, AssetFacts, BookState, Mode


@dataclass(frozen=True, slots=True)
class Filled:
    """An asset was bought, or sold (negative), in 1e-8 of equity, at a cost in cents."""

    asset: str
    change_e8: int
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Priced:
    """An asset has a new price of a day, which differs from its last one by `move_e8` of that, in 1e-8."""

    asset: str
    day: date
    move_e8: int


@dataclass(frozen=True, slots=True)
class Paid:
    """A dividend of `share_e8` of an asset's price, in 1e-8, turns that part of a position into cash."""

    asset: str
    share_e8: int


@dataclass(frozen=True, slots=True)
class Delisted:
    """An asset is gone; its position is worth `value_e8` of its last price, in 1e-8, in cash."""

    asset: str
    value_e8: int = UNITS_PER_EQUITY


@dataclass(frozen=True, slots=True)
class Rejected:
    """A venue rejected an order for an asset."""

    asset: str


@dataclass(frozen=True, slots=True)
class Flowed:
    """Money was put in, or taken out (negative), in cents."""

    cents: int


@dataclass(frozen=True, slots=True)
class DayRolled:
    """A session begins."""

    day: date


@dataclass(frozen=True, slots=True)
class ModeSet:
    """Trading is stopped, held to reductions, or resumed, after which falls are counted from where the book stands."""

    mode: Mode


BookEvent = Filled | Priced | Paid | Delisted | Rejected | Flowed | DayRolled | ModeSet


def apply(state: BookState, event: BookEvent) -> BookState:
    """Return the state of a book after an event.

    Raises
    ------
    RiskError
        A price falls by more than all of it, a dividend is more than all of the price or below 0, or more money is
        taken out than there is.
    """
    return HANDLERS[type(event)](state, event)


def _fill(state: BookState, event: Filled) -> BookState:
    held = state.positions.get(event.asset, 0)
    now = held + event.change_e8
    facts = state.assets.get(event.asset, UNKNOWN)
    opened = now == 0 or held * now <= 0
    assets = {**state.assets, event.asset: replace(facts, fall_bp=0)} if opened and facts.fall_bp else state.assets
    positions = _set(state.positions, event.asset, now)
    traded = state.traded_e8 + abs(event.change_e8)
    return _gain(replace(state, positions=positions, assets=assets, traded_e8=traded), -event.cost)


def _price(state: BookState, event: Priced) -> BookState:
    _refuse_unless(event.move_e8 >= -UNITS_PER_EQUITY, "move_e8", event.move_e8, "at least -1e8, the whole price")
    held, facts = state.positions.get(event.asset, 0), state.assets.get(event.asset, UNKNOWN)
    fall = _fall(facts.fall_bp, event.move_e8, held)
    jump = -(-abs(event.move_e8) * BP // UNITS_PER_EQUITY)
    known: AssetFacts = replace(facts, last_price=event.day, jump_bp=jump, fall_bp=fall)
    worth = _round(held * (UNITS_PER_EQUITY + event.move_e8), UNITS_PER_EQUITY)
    gain = _round(state.equity * held * event.move_e8, UNITS_PER_EQUITY**2)
    moved = replace(
        state, positions=_set(state.positions, event.asset, worth), assets={**state.assets, event.asset: known}
    )
    return _gain(moved, gain)


def _pay(state: BookState, event: Paid) -> BookState:
    _refuse_unless(0 <= event.share_e8 <= UNITS_PER_EQUITY, "share_e8", event.share_e8, "from 0 to 1e8")
    held = state.positions.get(event.asset, 0)
    left = _round(held * (UNITS_PER_EQUITY - event.share_e8), UNITS_PER_EQUITY)
    return replace(state, positions=_set(state.positions, event.asset, left))


def _delist(state: BookState, event: Delisted) -> BookState:
    _refuse_unless(event.value_e8 >= 0, "value_e8", event.value_e8, "at least 0")
    held = state.positions.get(event.asset, 0)
    gain = _round(state.equity * held * (event.value_e8 - UNITS_PER_EQUITY), UNITS_PER_EQUITY**2)
    assets = {name: facts for name, facts in state.assets.items() if name != event.asset}
    return _gain(replace(state, positions=_set(state.positions, event.asset, 0), assets=assets), gain)


def _reject(state: BookState, event: Rejected) -> BookState:
    return replace(state, rejects=state.rejects + 1)


def _flow(state: BookState, event: Flowed) -> BookState:
    _refuse_unless(state.equity + event.cents >= 0, "cents", event.cents, f"at least {-state.equity}")
    day, moved = state.pnl_today, _gain(state, event.cents)
    high = max(_round(state.high_water * moved.equity, state.equity), moved.equity, 1) if state.equity > 0 else 1
    return replace(moved, pnl_today=day, high_water=max(high, moved.equity))


def _roll(state: BookState, event: DayRolled) -> BookState:
    recent = (*state.recent_e8, state.traded_e8)[1 - DAYS_OF_TURNOVER :]
    sessions = tuple(sorted({*state.sessions, event.day}))[-MAX_SESSIONS:]
    return replace(state, pnl_today=0, traded_e8=0, rejects=0, recent_e8=recent, sessions=sessions)


def _set_mode(state: BookState, event: ModeSet) -> BookState:
    high = max(state.equity, 1) if event.mode == "active" else state.high_water
    return replace(state, mode=event.mode, high_water=high)


def _gain(state: BookState, cents: int) -> BookState:
    """Return the state with a gain, or a loss, of money; exposures are shares of the new equity."""
    if not cents:
        return state
    equity = state.equity + cents
    scaled = equity > 0 and state.equity > 0
    positions = {
        name: _round(value * state.equity, equity) if scaled else value for name, value in state.positions.items()
    }
    return replace(
        state,
        positions=positions,
        equity=equity,
        high_water=max(state.high_water, equity),
        pnl_today=state.pnl_today + cents,
    )


def _fall(fall_bp: int, move_e8: int, held: int) -> int:
    """Return the loss of a position from its best price after a move, in basis points of that price, rounded up."""
    if not held:
        return 0
    side = 1 if held > 0 else -1
    level = (BP - side * fall_bp) * (UNITS_PER_EQUITY + move_e8)  # of the best price, in 1e-12
    return max(-(-side * (BP * UNITS_PER_EQUITY - level) // UNITS_PER_EQUITY), 0)


def _set(positions: Mapping[str, int], asset: str, value: int) -> dict[str, int]:
    """Return positions with one changed; one of nothing is left out."""
    changed = {**positions, asset: value}
    if not value:
        del changed[asset]
    return changed


def _round(part: int, whole: int) -> int:
    """Return part over whole, rounded to the nearest number, halves away from 0."""
    size = (2 * abs(part) + abs(whole)) // (2 * abs(whole))
    return size if (part >= 0) == (whole > 0) else -size


def _refuse_unless(fine: bool, field: str, got: object, allowed: str) -> None:
    if not fine:
        raise RiskError("An event of the book is malformed.", field=field, got=got, allowed=allowed, code="book_event")


HANDLERS: Final[Mapping[type, Callable[[BookState, Any], BookState]]] = {
    Filled: _fill,
    Priced: _price,
    Paid: _pay,
    Delisted: _delist,
    Rejected: _reject,
    Flowed: _flow,
    DayRolled: _roll,
    ModeSet: _set_mode,
}
