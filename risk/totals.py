"""What a batch does to the whole book: sums that grow signal by signal.

A signal that is refused alone counts as the worse of traded and not traded, so each sum bounds the outcome from above,
and a tighter limit never lets another signal pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .policy import Policy
from .rules import BP, HUNDREDTHS, TOTAL_RULES, SignalChange, Value, holds, list_limits, list_rules
from .state import UNKNOWN, BookState, NetSum


@dataclass
class Totals:
    """Sums over a book, in 1e-8 of equity; sectors and styles only where the policy limits them."""

    state: BookState
    policy: Policy
    gross: int
    margin: int
    names: int
    turnover: int
    recent: int
    net: NetSum
    sectors: dict[str, NetSum] = field(default_factory=dict)
    styles: dict[str, NetSum] = field(default_factory=dict)

    @classmethod
    def of(cls, state: BookState, policy: Policy) -> Totals:
        """Return the sums of a book as it is held."""
        held = state.sums
        return cls(
            state,
            policy,
            gross=held.long + held.short,
            margin=held.long * policy.margin_long_bp + held.short * policy.margin_short_bp,
            names=held.names,
            turnover=state.traded_e8,
            recent=sum(state.recent_e8),
            net=NetSum(held.long - held.short),
            sectors={} if policy.sector_cap_bp is None else _copy(held.sectors),
            styles={} if policy.style_cap_bp is None else _copy(held.styles),
        )

    def trade(self, change: SignalChange, stands: bool) -> None:
        """Count a signal as traded; one that does not stand alone as the worse of traded and not traded."""
        held, target = change.held_e8, change.signal.target_e8
        traded = target - held
        self.turnover += abs(traded)
        self.net.add(traded, stands)
        margin, bound = _weigh(target, self.policy), _weigh(held, self.policy)
        if stands:
            self.gross += abs(target) - abs(held)
            self.margin += margin - bound
            self.names += (target != 0) - (held != 0)
        else:
            self.gross += max(abs(target) - abs(held), 0)
            self.margin += max(margin - bound, 0)
            self.names += target != 0 and held == 0
        if self.sectors or self.styles or self.policy.sector_cap_bp is not None:
            self._trade_groups(change, stands)

    def _trade_groups(self, change: SignalChange, stands: bool) -> None:
        facts = self.state.assets.get(change.signal.asset, UNKNOWN)
        traded, sizes = change.change_e8, facts.styles
        if self.policy.sector_cap_bp is not None:
            if facts.sector not in self.sectors:
                self.sectors[facts.sector] = NetSum()
            self.sectors[facts.sector].add(traded, stands)
        for style, total in self.styles.items():
            size = sizes.get(style)
            if size is None:
                total.add_unknown(change.held_e8, change.signal.target_e8, stands)
            elif stands:  # most changes: without a call
                total.net += traded * size
            else:
                total.add(traded * size, stands)

    def measure(self) -> tuple[Value, ...]:
        """Return the values of `TOTAL_RULES`."""
        sector = None if self.policy.sector_cap_bp is None else _find_largest(self.sectors)
        style = None if self.policy.style_cap_bp is None else -(-_find_largest(self.styles) // HUNDREDTHS)
        margin, recent = -(-self.margin // BP), self.turnover + self.recent
        return self.gross, self.net.worst, self.turnover, recent, margin, self.names, sector, style

    def name_broken(self, values: tuple[Value, ...]) -> dict[str, str]:
        """Return the largest sector and style where their sums break the policy, by rule."""
        limits = dict(zip(list_rules(self.policy), list_limits(self.policy), strict=True))
        measured = dict(zip(TOTAL_RULES, values, strict=True))
        sums = {"sector": self.sectors, "style": self.styles}
        return {
            rule: _name_largest(groups)
            for rule, groups in sums.items()
            if groups and not holds(measured[rule], limits[rule])
        }


def _weigh(exposure: int, policy: Policy) -> int:
    """Return the margin of an exposure, in 1e-8 of equity times basis points."""
    return exposure * policy.margin_long_bp if exposure > 0 else -exposure * policy.margin_short_bp


def _find_largest(sums: Mapping[str, NetSum]) -> int:
    return max((one.worst for one in sums.values()), default=0)


def _name_largest(sums: Mapping[str, NetSum]) -> str:
    return max(sorted(sums), key=lambda name: sums[name].worst, default="")


def _copy(sums: Mapping[str, NetSum]) -> dict[str, NetSum]:
    return {name: NetSum(one.net, one.up, one.down) for name, one in sums.items()}
