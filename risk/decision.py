"""The risk gate: `decide`, a pure function on integers that evaluates every rule, also after a failure.

A signal that only reduces an exposure passes every limit, but not the kill switch, a halt, a stale price, or a
malformed or duplicate signal. An increase must respect every limit, alone and together with the others: if the batch
would exceed a limit on the whole book, the largest changes are refused one by one until the rest fits; nothing is
scaled. For a signal that is refused alone, the totals take the worse of traded and not traded, so a tighter limit never
lets a new signal pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeAlias

from ..ledger import JSON, compute_digest
from .policy import AUDIT_RULES, STANDING_RULES, Policy, digest_policy
from .rules import (
    ALL_RULES,
    ALWAYS_BINDING,
    BOOK_RULES,
    OWN_RULES,
    TOTAL_RULES,
    RuleCheck,
    SignalChange,
    Value,
    holds,
    list_limits,
    list_rules,
    make_checks,
    measure_book,
    measure_own,
)
from .signal import SIGNAL_FIELDS, RiskError, Signal, find_mistake
from .standing import Standings, measure_standing
from .state import BookState
from .totals import Totals

SEAL: Final = object()
"""Token of the gate: any other use is a deliberate forgery, which a reviewer can find by grep."""


@dataclass(frozen=True)
class Approved:
    """A signal that the gate approved; only such a signal may become an order.

    Only `decide` creates it, and it cannot be copied with changes or pickled. To pass it on, pass on the record of the
    decision and decide again.

    Attributes
    ----------
    signal
        The signal as it was requested.
    decision
        Id of the decision.

    Raises
    ------
    RiskError
        Created outside the gate.
    """

    signal: Signal
    decision: str
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        """Refuse creation outside the gate."""
        if seal is not SEAL:
            raise RiskError(
                "An Approved is made by the risk gate alone.",
                field="seal",
                hint="Call risk.decide and use what it approves.",
                code="not_approved",
                exit_code=1,
            )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise RiskError(
            "An Approved cannot be copied or pickled.",
            hint="Decide again from the stored decision.",
            code="not_approved",
            exit_code=1,
        )


@dataclass(frozen=True)
class Ruling:
    """The decision on one signal.

    Attributes
    ----------
    asset
        Symbol; of a malformed signal as far as it can be read.
    asked
        The signal.
    approved
        Whether it may be traded.
    values
        The value of each rule in the order of `ALL_RULES`; of a malformed or duplicate signal those of form alone.
    limits
        The limit of each.
    about
        What decides a rule: the id of a factor, a sector or a style, by rule.
    reduces
        Whether it only reduces an exposure: most rules do not bind it then.
    """

    asset: str
    asked: Signal
    approved: bool
    values: tuple[Value, ...]
    limits: tuple[Value, ...]
    about: Mapping[str, str]
    reduces: bool

    @property
    def signal(self) -> dict[str, JSON]:
        """Return the signal as a JSON-able object; a malformed one as far as it can be read."""
        return describe_signal(self.asked)

    @cached_property
    def checks(self) -> tuple[RuleCheck, ...]:
        """Return every rule, in fixed order."""
        rules = ALL_RULES[: len(self.values)]
        about = [self.about.get(rule, "") for rule in rules]
        return make_checks(rules, self.values, self.limits[: len(rules)], self.reduces, about)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Return the rules that refused the signal."""
        compared = zip(ALL_RULES, self.values, self.limits, strict=False)  # a malformed signal has fewer values
        broken = [rule for rule, value, limit in compared if not holds(value, limit)]
        return tuple(rule for rule in broken if not self.reduces or rule in ALWAYS_BINDING)

    def record(self) -> dict[str, JSON]:
        """Return the ruling as a JSON-able object; what each value is compared with stands once, in the decision."""
        return {
            "asset": self.asset,
            "signal": self.signal,
            "approved": self.approved,
            "refusals": list(self.refusals),
            "reduces": self.reduces,
            "values": list(self.values),
            "about": {rule: text for rule, text in self.about.items() if text},
        }


@dataclass(frozen=True)
class Decision:
    """The decision on a batch of signals.

    Attributes
    ----------
    id
        Digest of the input: signals, state, policy, day and what the record says of the evidence.
    approved
        Signals that may be traded, by asset.
    rulings
        One for each signal, by asset.
    after, about
        The values of the rules of the whole book after all approved signals are traded, and the sector and the style
        that break theirs, by rule.
    policy
        Digest of the policy.
    day
        ISO date of the decision.
    evidence
        What the record said of the evidence, by id.
    limits
        The limit of each rule: of a signal that increases an exposure, and of one that reduces.
    rules
        The rules, in the order of the values and limits.
    """

    id: str
    approved: tuple[Approved, ...]
    rulings: tuple[Ruling, ...]
    after: tuple[Value, ...]
    about: Mapping[str, str]
    policy: str
    day: str
    evidence: Standings
    limits: tuple[tuple[Value, ...], tuple[Value, ...]]
    rules: tuple[str, ...]

    @cached_property
    def book(self) -> tuple[RuleCheck, ...]:
        """Return the rules of the whole book, in fixed order."""
        rules = (*BOOK_RULES, *TOTAL_RULES)
        start = ALL_RULES.index(rules[0])
        limits = self.limits[0][start : start + len(rules)]
        return make_checks(rules, self.after, limits, False, [self.about.get(rule, "") for rule in rules])

    @property
    def standings(self) -> dict[str, JSON]:
        """Return what the record said of the evidence, as a JSON-able object."""
        return {name: one.record() for name, one in self.evidence.items()}

    def record(self) -> dict[str, JSON]:
        """Return the decision as a JSON-able object, byte-identical for equal input."""
        return {
            "id": self.id,
            "day": self.day,
            "policy": self.policy,
            "standings": self.standings,
            "rules": list(self.rules),
            "limits": [list(limits) for limits in self.limits],
            "rulings": [ruling.record() for ruling in self.rulings],
            "book": [check.record() for check in self.book],
        }


def decide(signals: Sequence[Signal], state: BookState, policy: Policy, now: date, standings: Standings) -> Decision:
    """Decide which signals may be traded.

    Parameters
    ----------
    signals
        In any order; the result does not depend on it. Two signals for one asset are both refused.
    state
        Positions, equity, what is known of each asset, and what may pass.
    policy
        The limits.
    now
        The day of the decision.
    standings
        What the record says of each id that a signal names as evidence (`read_standings`). A signal whose evidence it
        does not hold is refused, unless it only reduces.

    Returns
    -------
    Decision
        Byte-identical for equal input, on any machine.
    """
    counts = Counter(_name_asset(signal) for signal in signals)
    ordered = sorted(signals, key=_name_asset if len(counts) == len(signals) else _sort_key)
    judge = _Judge(state, policy, now, standings)
    drafts = [judge.draft(signal, counts[_name_asset(signal)] > 1) for signal in ordered]
    values, about, _ = judge.judge_together([case for case in drafts if isinstance(case, _Case)])
    rulings = tuple(case.rule(judge) if isinstance(case, _Case) else case for case in drafts)
    name = _digest_input(drafts, judge)
    approved = tuple(
        Approved(signal, name, SEAL) for signal, ruling in zip(ordered, rulings, strict=True) if ruling.approved
    )
    return Decision(
        name,
        approved,
        rulings,
        (*judge.book, *values),
        about,
        digest_policy(policy),
        now.isoformat(),
        {one: standings[one] for one in sorted(standings)},
        judge.limits,
        list_rules(policy),
    )


def read_checks(decision: Mapping[str, Any], ruling: Mapping[str, Any]) -> tuple[RuleCheck, ...]:
    """Return the checks of one ruling of a recorded decision."""
    count, reduces = len(ruling["values"]), bool(ruling["reduces"])
    rules, limits = decision["rules"][:count], decision["limits"][reduces][:count]
    return make_checks(rules, ruling["values"], limits, reduces, [ruling["about"].get(rule, "") for rule in rules])


_read_fields = attrgetter(*SIGNAL_FIELDS)


def _digest_input(drafts: Sequence[_Case | Ruling], judge: _Judge) -> str:
    """Return the digest of everything that a decision rests on: lists alone, which have one spelling."""
    rows = [
        _list_fields(draft.change.signal) if isinstance(draft, _Case) else list(draft.signal.values())
        for draft in drafts
    ]
    known = [[name, judge.standings[name].digest_all] for name in sorted(judge.standings)]
    parts = [rows, judge.state.digest, digest_policy(judge.policy), judge.now.isoformat(), known]
    return compute_digest(json.dumps(parts, separators=(",", ":")).encode())


def _list_fields(signal: Signal) -> list[JSON]:
    """Return the values of a well-formed signal's record."""
    *values, until = _read_fields(signal)
    return [*values, until.isoformat()]


def describe_signal(signal: Signal) -> dict[str, JSON]:
    """Return a signal as a JSON-able object; a malformed one as far as it can be read."""
    if find_mistake(signal) is None:
        return signal.record()
    values = {name: getattr(signal, name, None) for name in SIGNAL_FIELDS}
    return {name: value if type(value) in (int, str) else repr(value) for name, value in values.items()}


@dataclass(slots=True)
class _Case:
    """A well-formed signal with the values of the rules that judge it alone, and of those on totals."""

    change: SignalChange
    reduces: bool
    own: tuple[Value, ...]
    audit: tuple[Value, ...]
    about: Mapping[str, str]
    stands: bool
    totals: tuple[Value, ...] = ()
    fits: bool = True

    def rule(self, judge: _Judge) -> Ruling:
        """Return the ruling."""
        return Ruling(
            self.change.signal.asset,
            self.change.signal,
            self.stands and self.fits,
            (*WELL_FORMED, *self.own, *self.totals, *self.audit),
            judge.limits[self.reduces],
            self.about,
            self.reduces,
        )


_Weight: TypeAlias = tuple[tuple[Value, ...], Mapping[str, str], bool]
"""The values of the rules on totals, the sector and the style that break theirs by rule, and whether all fit."""
WELL_FORMED: Final = (0, 0)
"""Values of the rules of form that a signal passes."""


@dataclass
class _Judge:
    """Judges signals; what many of them share, their evidence and the book, is judged once."""

    state: BookState
    policy: Policy
    now: date
    standings: Standings
    _evidence: dict[str, tuple[tuple[Value, ...], dict[str, str], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare what is the same for every signal."""
        self.limits = (list_limits(self.policy), list_limits(self.policy, reduces=True))
        self._bounds = tuple(_list_bounds(limits, reduces) for reduces, limits in enumerate(self.limits))
        self.book = measure_book(self.state, self.policy)
        self._book_holds = tuple(self._hold(BOOK_RULES, self.book, reduces) for reduces in (False, True))

    def _hold(self, rules: tuple[str, ...], values: Sequence[Value], reduces: bool) -> bool:
        """Tell whether all of a group of rules hold as far as they bind."""
        for place, limit in self._bounds[reduces][rules]:
            value = values[place]
            if value is None or not 0 <= value <= limit:
                return False
        return True

    def draft(self, signal: Signal, doubled: bool) -> _Case | Ruling:
        """Judge one signal alone; one that is malformed or not the only one for its asset is refused at once."""
        malformed = find_mistake(signal) is not None
        if malformed or doubled:
            form = (int(malformed), int(doubled))
            return Ruling(_name_asset(signal), signal, False, form, self.limits[0], {}, False)
        change = SignalChange(signal, self.state.positions.get(signal.asset, 0))
        reduces = change.reduces
        evidence, about, proven = self._judge_evidence(signal.evidence)
        own = measure_own(change, self.state, self.policy, self.now)
        stands = (proven or reduces) and self._book_holds[reduces] and self._hold(OWN_RULES, own, reduces)
        found = len(STANDING_RULES)
        return _Case(change, reduces, (*evidence[:found], *own, *self.book), evidence[found:], about, stands)

    def _judge_evidence(self, evidence: str) -> tuple[tuple[Value, ...], dict[str, str], bool]:
        if evidence not in self._evidence:
            values, about = measure_standing(evidence, self.standings, self.policy, self.now)
            texts = dict(zip((*STANDING_RULES, *AUDIT_RULES), about, strict=False))
            found = len(STANDING_RULES)
            proven = self._hold(STANDING_RULES, values[:found], False)
            if self.policy.audited:
                proven &= self._hold(AUDIT_RULES, values[found:], False)
            self._evidence[evidence] = values, texts, proven
        return self._evidence[evidence]

    def judge_together(self, cases: Sequence[_Case]) -> _Weight:
        """Give each case its totals: of the largest batch that fits, else of the batch up to it.

        Returns the weight of the book with all that is approved traded.
        """
        rising = sorted((case for case in cases if not case.reduces), key=_size_key)
        reducing = [case for case in cases if case.reduces]
        totals = Totals.of(self.state, self.policy)
        for case in (*reducing, *rising):
            totals.trade(case.change, case.stands)
        whole = self._weigh(totals)
        if whole[2]:  # the usual case: no smaller batch has to be weighed
            for case in cases:
                case.totals = whole[0]
            if all(case.stands for case in cases):
                return whole
        else:
            self._judge_by_size(reducing, rising)
        after = Totals.of(self.state, self.policy)
        for case in cases:
            if case.stands and case.fits:
                after.trade(case.change, stands=True)
        return self._weigh(after)

    def _judge_by_size(self, reducing: Sequence[_Case], rising: Sequence[_Case]) -> None:
        """Give each case its totals where the whole batch does not fit; `rising` begins with the smallest change."""
        totals = Totals.of(self.state, self.policy)
        for case in reducing:
            totals.trade(case.change, case.stands)
        found = [self._weigh(totals)]
        for case in rising:
            totals.trade(case.change, case.stands)
            found.append(self._weigh(totals))
        most = max((count for count, (_, _, fits) in enumerate(found) if fits), default=0)
        for case in reducing:
            case.totals, case.about = found[most][0], {**case.about, **found[most][1]}
        for place, case in enumerate(rising, start=1):
            values, about, case.fits = found[max(place, most)]
            case.totals, case.about = values, {**case.about, **about}

    def _weigh(self, totals: Totals) -> _Weight:
        values = totals.measure()
        fits = self._hold(TOTAL_RULES, values, False)
        return values, {} if fits else totals.name_broken(values), fits


@lru_cache(maxsize=64)
def _list_bounds(limits: tuple[Value, ...], reduces: int) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """Return for each group of rules the place and the limit of those that can refuse a signal."""
    known = dict(zip(ALL_RULES, limits, strict=False))  # the audited rules stand last, and only some policies have them
    return {
        rules: [
            (place, limit)
            for place, rule in enumerate(rules)
            if (limit := known.get(rule)) is not None and (not reduces or rule in ALWAYS_BINDING)
        ]
        for rules in (STANDING_RULES, OWN_RULES, BOOK_RULES, TOTAL_RULES, AUDIT_RULES)
    }


def _name_asset(signal: Signal) -> str:
    """Return the asset, or its representation if it is not a text."""
    asset = getattr(signal, "asset", None)
    return asset if type(asset) is str else repr(asset)


def _sort_key(signal: Signal) -> tuple[str, str]:
    return _name_asset(signal), repr(signal)


def _size_key(case: _Case) -> tuple[int, str]:
    return abs(case.change.change_e8), case.change.signal.asset
