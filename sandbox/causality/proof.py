"""Test whether a factor's code sees the future: later days are cut off or replaced, and earlier values must not change.

A factor F is causal on a panel X if F(X) up to each day t does not depend on days after t. Cutting off computes the
factor on the panel that ends on day t; where both answers agree, no value up to t depends on later days. Replacing
computes it on futures that did not happen, with the panel's length unchanged, for code that looks ahead only in some
futures. A screen tries a few days. A sweep computes every day, and its answers are then the values.

Each call is a process of its own, so code cannot carry state from call to call; code that looks ahead except when it is
tested fails too, because each answer is compared with its own answer on the true panel. The days are drawn from the
code, the panel and a seed that is drawn once the code is handed in, so that neither code nor author can know them. An
author who has all three can write code that passes on the drawn days, which only a sweep finds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

import numpy as np

from ..errors import BadInput, Crashed, NotCausal, SandboxError
from ..jail.frames import Frames
from ..job import Outcome, Runner
from .claim import CUT_OFF, REPLACED, CausalClaim, Suspect, explain_change, find_day, is_changed, make_claim
from .comparison import find_first_change, round_values
from .proof_record import CausalProof, CountingRunner
from .sweep import SweptValues, narrow_claim, sweep_days

CUTS = 6
"""Days after which the future is cut off, and as many after which it is replaced; only the first day is in both."""
MIN_PROOF_DAYS = 3
SEED_BITS = 53
"""A seed passes through JSON, where readers keep integers up to this size exact."""
LARGE_PANEL_BYTES = 4_000_000
"""Size of a panel from which it is faster to find the columns that the code needs first."""


def prove(  # noqa: PLR0913 - seed, cuts and progress are passed in
    runner: Runner,
    code: str,
    frames: Frames,
    sweep: bool = False,
    *,
    seed: int | None = None,
    cuts: int = CUTS,
    show: Callable[[int, int], object] | None = None,
) -> CausalProof:
    """Show that code is deterministic and does not see the future on a panel, or say where it does.

    Parameters
    ----------
    runner
        Runs each call in a fresh process.
    code
        Source that defines `factor(panel)`.
    frames
        The panel, `[T, N]` a field, three days or more.
    sweep
        Compute every day by a process that holds no later one; its answers are then the proof's values.
    seed
        Seed of the days and of the futures; not negative. None draws one now and records it in the proof, so that the
        proof can be repeated. An author who knows the seed can write code that passes on the days that are tried.
    cuts
        Days after which the future is cut off, and replaced; 2 or more of each, fewer only where the panel is short.
    show
        Called with the days done and their number while a sweep goes on.

    Raises
    ------
    NotDeterministic
        Two calls on the same panel differ in a bit, the whole one or one that seemed to see the future.
    NotCausal
        A value changed with later days: by more than 1e-9 of itself and of its day's scale, between missing and known,
        or in its order among the symbols, in the precision of the result (`comparison.round_values`). The error names
        the earliest day that changed in any of the trials, and its first symbol.
    Crashed
        The code raises, on the whole panel or where it should have a value; or its start-up takes more than half of
        the panel.
    SandboxError
        Any other error of a call.
    """
    _check_panel(frames, cuts)
    is_drawn, seed = seed is None, draw_seed() if seed is None else seed
    meter = CountingRunner(runner)
    claim = make_claim(meter, code, frames)
    lean = narrow_claim(meter, claim) if sweep or frames.nbytes > LARGE_PANEL_BYTES else claim
    screen, proven = _screen_claim(meter, claim, lean, seed, cuts)
    if sweep:
        proven = sweep_days(meter, claim, lean, show)
    return _build_proof(meter, frames, screen, proven, claim.days if sweep else 0, is_drawn)


def draw_seed() -> int:
    """Draw the seed of a factor's trials, 0 or more, from the operating system once its code is handed in.

    This is the only random number of this room that is not passed in: the author of the code may know everything else.
    A proof is repeated with the seed that it records.
    """
    return secrets.randbits(SEED_BITS)


def _check_panel(frames: Frames, cuts: int) -> None:
    days = len(frames.dates)
    if days < MIN_PROOF_DAYS:
        raise BadInput("too few days to prove anything", field="frames", got=days, allowed=f"{MIN_PROOF_DAYS} or more")
    if cuts < 2:
        raise BadInput("too few cuts to prove anything", field="cuts", got=cuts, allowed="2 or more")


def _screen_claim(
    meter: CountingRunner, claim: CausalClaim, lean: CausalClaim, seed: int, cuts: int
) -> tuple[_Screen, SweptValues]:
    """Screen the claim on the columns that the code needs; a refusal must hold on all columns too."""
    screen = _Screen(meter, lean, seed, cuts)
    try:
        return screen, screen.run()
    except NotCausal:
        if lean is claim or (screen.suspect is not None and is_changed(meter, claim, screen.suspect)):
            raise
    except SandboxError:
        if lean is claim:
            raise
    return _screen_claim(meter, claim, claim, seed, cuts)


class _Screen:
    """A screen: the future is changed after a few days."""

    def __init__(self, meter: CountingRunner, claim: CausalClaim, seed: int, cuts: int) -> None:
        self._meter, self._claim, self.seed, self._cuts = meter, claim, seed, cuts
        entropy = hashlib.sha256(f"{seed} {claim.frames.digest} {claim.code}".encode()).digest()
        self._rng = np.random.default_rng(np.frombuffer(entropy, dtype=np.uint32))
        self.cut_off, self.replaced = self._choose_days(claim.first)
        self.suspect: Suspect | None = None

    def _choose_days(self, first: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Draw the days: the first with a value, the last but one, and one of each stretch between them."""
        last = self._claim.days - 2
        first = min(first, last)
        between = _draw_days(self._rng, first, last, 2 * self._cuts - 3)
        return tuple(sorted({first, last, *between[1::2]})), tuple(sorted({first, *between[::2]}))

    def run(self) -> SweptValues:
        """Change the future after each day, and return the claimed values without the days of the start-up."""
        outcomes = self._run_trials()
        crashed = [day for day, one in zip(self.cut_off, outcomes, strict=False) if isinstance(one.error, Crashed)]
        start_up, error = 0, ""
        # It raises on the day of its own first value, so the panel is too short there.
        if crashed[:1] == [self._claim.first]:
            start_up, error = _find_start_up(self._meter, self._claim, max(crashed))
            self.cut_off, self.replaced = self._choose_days(max(start_up, self._claim.first))
            outcomes = self._run_trials()
        suspects = self._find_suspects(outcomes)
        if suspects:
            self.suspect = min(suspects, key=_order_suspect)
            raise explain_change(self._meter, self._claim, self.suspect)
        values = round_values(self._claim.values)
        values[:start_up] = np.nan
        return SweptValues(values, None, start_up, error)

    def _run_trials(self) -> Sequence[Outcome]:
        jobs = chain(
            (self._claim.make_prefix_job(day) for day in self.cut_off),
            (self._claim.make_replaced_job(day, self.seed) for day in self.replaced),
        )
        return list(self._meter.run_each(jobs))

    def _find_suspects(self, outcomes: Sequence[Outcome]) -> list[Suspect]:
        trials = [(day, CUT_OFF) for day in self.cut_off] + [(day, REPLACED) for day in self.replaced]
        suspects = []
        for (day, how), outcome in zip(trials, outcomes, strict=True):
            self._refuse_crash(day, how, outcome)
            cell = find_first_change(self._claim.values[: day + 1], outcome.unwrap()[: day + 1])
            if cell is not None:
                suspects.append(Suspect(cell, day, how, outcome.unwrap(), self.seed))
        return suspects

    def _refuse_crash(self, day: int, how: str, outcome: Outcome) -> None:
        if isinstance(outcome.error, Crashed):
            raise Crashed(
                f"the code raises an error when the days after {find_day(self._claim.frames, day)} {how}: "
                f"{outcome.error.message}",
                field="factor",
                hint="A factor is computed anew on every day: return missing values where it has none.",
            )


def _build_proof(
    meter: CountingRunner, frames: Frames, screen: _Screen, proven: SweptValues, days: int, is_drawn: bool
) -> CausalProof:
    first = int(np.isfinite(proven.values).any(axis=1).argmax())
    proven.values.setflags(write=False)
    return CausalProof(
        values=proven.values,
        seed=screen.seed,
        drawn=is_drawn,
        cut_off=tuple(find_day(frames, day) for day in screen.cut_off),
        replaced=tuple(find_day(frames, day) for day in screen.replaced),
        swept=days,
        memory=proven.memory,
        start_up=proven.start_up,
        start_up_error=proven.start_up_error,
        first=find_day(frames, first),
        warm_up=first,
        cost=meter.cost,
        stamp=meter.stamp,
    )


def _draw_days(rng: np.random.Generator, first: int, last: int, stretches: int) -> list[int]:
    """Return one random day of each of `stretches` equal parts of the rows from first to last."""
    edges = np.linspace(first, last + 1, stretches + 1).astype(np.int64)
    return [int(rng.integers(lo, max(lo + 1, hi))) for lo, hi in pairwise(edges)]


def _order_suspect(suspect: Suspect) -> tuple[int, int, int]:
    return (*suspect.cell, suspect.cut)


def _find_start_up(meter: CountingRunner, claim: CausalClaim, crashed: int) -> tuple[int, str]:
    """Return how many days at the start have no value because the code raises there, and the error, by bisection.

    A prefix on which the code raises has no value on its last day. That is a start-up if all prefixes up to some length
    raise and no longer one does; the days drawn later, or the sweep, detect any other pattern.
    """
    low, high, error = crashed, claim.days - 1, ""
    while high - low > 1:
        middle = (low + high) // 2
        outcome = meter.run(claim.make_prefix_job(middle))
        low, high = (middle, high) if isinstance(outcome.error, Crashed) else (low, middle)
    error = _get_message(meter.run(claim.make_prefix_job(low)).error)
    if high > claim.days // 2:
        raise Crashed(
            f"the code raises an error on panels that end before {find_day(claim.frames, high)}: {error}",
            field="factor",
            got=f"{high} days of start-up",
            allowed=f"{claim.days // 2} days or fewer",
            hint="Return missing values where there are too few rows; a factor is computed anew on every day.",
        )
    return high, error


def measure_start_up(meter: CountingRunner, claim: CausalClaim) -> int:
    """Return how many days at the start of a claim cannot be tested, because the code raises on so few days."""
    outcome = meter.run(claim.make_prefix_job(claim.first))
    return _find_start_up(meter, claim, claim.first)[0] if isinstance(outcome.error, Crashed) else 0


def _get_message(error: SandboxError | None) -> str:
    return "" if error is None else error.message
