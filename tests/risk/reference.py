"""The gate once more, as slowly and plainly as its rules are written, in exact fractions of equity."""

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction

from alphaloom.risk import BookState, Policy
from alphaloom.risk.signal import Signal

ALWAYS = {"schema", "duplicate", "stale_data", "kill_switch", "trading_state"}
Found = tuple[str, bool, set[str]]


def share(units: int) -> Fraction:
    """Return 1e-8 of equity as a share."""
    return Fraction(units, 10**8)


def decide_slowly(asked: Sequence[Signal], state: BookState, policy: Policy, now: date) -> list[Found]:
    """Return asset, whether it may be traded, and what refused it; all evidence is taken as proven."""
    order = sorted(asked, key=lambda one: (one.asset, repr(one)))
    alone = {id(one): refuse_alone(one, state, policy, now) for one in order}
    doubled = [one for one in order if sum(other.asset == one.asset for other in order) > 1]
    judged = [one for one in order if one not in doubled]
    falling = [one for one in judged if reduces(one, state)]
    rising = sorted(
        (one for one in judged if not reduces(one, state)), key=lambda one: (abs(change(one, state)), one.asset)
    )
    broken = [break_totals([*falling, *rising[:count]], alone, state, policy) for count in range(len(rising) + 1)]
    most = max((count for count, rules in enumerate(broken) if not rules), default=0)
    found = []
    for one in order:
        if one in doubled:
            found.append((one.asset, False, {"duplicate"}))
            continue
        rules = set(alone[id(one)])
        if one in rising:
            rules |= broken[max(rising.index(one) + 1, most)]
        found.append((one.asset, not rules, rules))
    return found


def change(one: Signal, state: BookState) -> int:
    """Return what is bought or sold."""
    return one.target_e8 - state.positions.get(one.asset, 0)


def reduces(one: Signal, state: BookState) -> bool:
    """Return whether the target is no further from nothing, on the same side."""
    held = state.positions.get(one.asset, 0)
    return abs(one.target_e8) <= abs(held) and one.target_e8 * held >= 0


def refuse_alone(one: Signal, state: BookState, policy: Policy, now: date) -> set[str]:
    """Return the rules that refuse a signal whatever else is asked."""
    facts, held = state.assets.get(one.asset), state.positions.get(one.asset, 0)
    worst = share(max(abs(one.lo_e8), abs(one.hi_e8)))
    volume = facts.volume_e8 if facts else None
    day = facts.last_price if facts else None
    rules = {
        "valid": one.until < now,
        "stale_data": day is None or day > now or count_days(day, now, state) > policy.max_data_age_days,
        "price_jump": not facts or facts.jump_bp is None or facts.jump_bp > policy.price_jump_cap_bp,
        "restricted": one.asset in policy.restricted,
        "borrow": one.asset in policy.not_shortable and one.target_e8 < 0,
        "single_name": worst * 10_000 > policy.single_name_cap_bp,
        "interval_width": share(one.hi_e8 - one.lo_e8) * 10_000 > policy.interval_width_cap_bp,
        "liquidity": worst and (not volume or worst * 10 / share(volume) > policy.liquidate_days_cap),
        "name_fall": held and facts and facts.fall_bp > policy.name_fall_cap_bp,
    }
    broken = {rule for rule, is_broken in rules.items() if is_broken}
    broken |= refuse_book(state, policy)
    if reduces(one, state):
        broken &= ALWAYS
        broken -= {"trading_state"} if state.mode == "reducing" else set()
    return broken


def refuse_book(state: BookState, policy: Policy) -> set[str]:
    """Return the rules that hold back every increase."""
    fall = Fraction(state.high_water - state.equity, state.high_water) * 10_000
    began = state.equity - state.pnl_today
    loss = Fraction(-state.pnl_today, began) * 10_000 if began > 0 else 10_000
    rules = {
        "kill_switch": policy.kill_switch,
        "trading_state": state.mode != "active",
        "trailing_drawdown": fall > policy.trailing_drawdown_cap_bp,
        "max_drawdown": fall > policy.max_drawdown_cap_bp,
        "daily_loss": loss > policy.daily_loss_cap_bp,
        "rejects": state.rejects > policy.rejects_cap,
    }
    return {rule for rule, broken in rules.items() if broken}


def count_days(day: date, now: date, state: BookState) -> int:
    """Return the trading days between two days, walking from one to the other."""
    last = max(state.sessions, default=date.min)
    between = [day + timedelta(days=ahead) for ahead in range(1, (now - day).days)]
    return sum(one in state.sessions or (one > last and one.weekday() < 5) for one in between)


def break_totals(batch: Sequence[Signal], alone: dict[int, set[str]], state: BookState, policy: Policy) -> set[str]:
    """Return the rules on the whole book that a batch breaks: every way in which it may come is looked at.

    A signal that is refused alone may or may not be traded; the worst of gross, of margin and of names adds what each
    alone can do at its worst, and a net sum is as far from zero as some choice of them can bring it.
    """
    positions = dict(state.positions)
    doubt = [one for one in batch if alone[id(one)]]
    for one in batch:
        positions[one.asset] = one.target_e8
    sums = [sum((weigh(value, kind, policy) for value in positions.values()), Fraction(0)) for kind in range(3)]
    for one in doubt:
        held = state.positions.get(one.asset, 0)
        for kind in range(3):
            sums[kind] += max(weigh(held, kind, policy) - weigh(one.target_e8, kind, policy), Fraction(0))
    gross, margin, names = sums
    traded = share(state.traded_e8 + sum(abs(change(one, state)) for one in batch))
    rules = {
        "gross": gross * 10_000 > policy.gross_cap_bp,
        "margin": margin > 1,
        "positions": names > policy.position_cap,
        "turnover": traded * 10_000 > policy.turnover_cap_bp,
        "recent_turnover": (traded + share(sum(state.recent_e8))) * 10_000 > policy.recent_turnover_cap_bp,
        "net": worst_net(positions, doubt, state, None, None) * 10_000 > policy.net_cap_bp,
    }
    known = {name for facts in state.assets.values() for name in facts.styles}
    sectors = {state.assets[name].sector if name in state.assets else "" for name in positions}
    if policy.sector_cap_bp is not None:
        worst = max((worst_net(positions, doubt, state, one, None) for one in sectors), default=Fraction(0))
        rules["sector"] = worst * 10_000 > policy.sector_cap_bp
    if policy.style_cap_bp is not None:
        worst = max((worst_net(positions, doubt, state, None, one) for one in known), default=Fraction(0))
        rules["style"] = worst * 10_000 > policy.style_cap_bp
    return {rule for rule, broken in rules.items() if broken}


def weigh(units: int, kind: int, policy: Policy) -> Fraction:
    """Return what a position adds to gross (0), margin (1) or the count of names (2)."""
    rate = policy.margin_long_bp if units > 0 else policy.margin_short_bp
    return [share(abs(units)), share(abs(units)) * rate / 10_000, Fraction(units != 0)][kind]


def worst_net(
    positions: dict[str, int], doubt: Sequence[Signal], state: BookState, sector: str | None, style: str | None
) -> Fraction:
    """Return the largest size of a net sum; a style that is not known is three deviations on the worse side."""
    certain = loose = Fraction(0)
    moves: list[Fraction] = []
    for name, units in positions.items():
        facts = state.assets.get(name)
        if sector is not None and (facts.sector if facts else "") != sector:
            continue
        doubted = [one for one in doubt if one.asset == name]
        held = state.positions.get(name, 0)
        if style is not None and (facts is None or style not in facts.styles):
            loose += 3 * share(max(abs(units), abs(held)) if doubted else abs(units))
            continue
        size = Fraction(facts.styles[style], 100) if style is not None and facts else Fraction(1)
        certain += size * share(held if doubted else units)
        moves += [size * share(change(one, state)) for one in doubted]
    highest, lowest = (certain + sum(move for move in moves if move * side > 0) for side in (1, -1))
    return max(abs(highest), abs(lowest)) + loose
