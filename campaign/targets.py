"""What the accepted factors of a library, or of one run, would hold on a day, asked of the risk gate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..evaluation.closing import Results
from ..evidence import EvidenceSettings
from ..evidence.values import PYTHON_FOLDER, Computing, Contained
from ..factors import Engine
from ..ledger import Ledger, Run
from ..library import ADDED_BY_HAND, PROMOTED, Entry, list_entries, list_known_at
from ..market import Panel, adjust_forwards
from ..portfolio import CombinationPart, hold_fixed, target_weights, weigh_fixed
from ..risk import SEPARATOR, UNITS_PER_EQUITY, Policy, RiskError, RiskLimits, Sizing, read_policy
from ..sandbox import Runner
from .trade import Trade, ask_gate, describe_combination

DECAYING_SHARE: Final = 0.5
"""Share of its weight that a run's book keeps while any of its evidence is flagged as decaying; the rest is cash."""


RATE_ALONE: Final = 0.2
"""Share of the way that is traded each day of a factor for which no campaign chose a rate."""
DEFAULT_HORIZON_DAYS: Final = EvidenceSettings().horizon_days


@dataclass(frozen=True)
class RunBook:
    """What a finished run trades, or one factor of the library that no run combined.

    Attributes
    ----------
    run
        The run's id; of a factor alone its own.
    evidence
        The accepted combination or factors, by id.
    weights
        Signed weight of each factor that is combined.
    rate
        Share of the way to the score that is traded each day.
    combiner
        How the factors are combined.
    tested
        True where the gate tested exactly this.
    horizon_days, doubt_e8
        Horizon of the scores, and the relative standard error of the forecast in 1e-8.
    limits
        What its campaign file asked of the risk gate: it may tighten the policy.
    """

    run: str
    evidence: tuple[str, ...]
    weights: Mapping[str, float]
    rate: float
    combiner: str
    tested: bool
    horizon_days: int
    doubt_e8: int
    limits: RiskLimits


@dataclass(frozen=True, eq=False)
class LiveBooks:
    """What is traded on a panel, and the weights of every day.

    Attributes
    ----------
    books
        Each run's book and the share of equity that it has a side, by run.
    left_out
        Why a run's book is not traded, by run.
    frames
        Weights `[T, N]` of each book, in the order of `books`.
    symbols
        Columns of the frames.
    statuses
        Status in the library of each factor that is traded.
    closing
        What signals say where nothing is traded any more and the rest is closed.
    """

    books: Mapping[str, tuple[RunBook, float]]
    left_out: Mapping[str, str]
    frames: Sequence[NDArray[np.float64]]
    symbols: tuple[str, ...]
    statuses: Mapping[str, str] = field(default_factory=dict)
    closing: Sizing | None = None

    def parts(self, row: int = -1) -> dict[str, dict[str, float]]:
        """Return the weights of each book after the close of a row, by run, without zeros."""
        return {
            run: {self.symbols[column]: share * float(frame[row, column]) for column in np.flatnonzero(frame[row])}
            for (run, (_, share)), frame in zip(self.books.items(), self.frames, strict=True)
        }

    def weights(self, row: int = -1) -> dict[str, float]:
        """Return the weights of all books together after the close of a row, without zeros."""
        return add_weights(self.parts(row))

    @property
    def sizing(self) -> Sizing:
        """Return horizon, doubt and evidence of all books together: the longest and the largest."""
        if self.closing is not None:
            return self.closing
        traded = [book for book, _ in self.books.values()]
        return Sizing(
            max(book.horizon_days for book in traded),
            max(book.doubt_e8 for book in traded),
            describe_combination(sorted({name for book in traded for name in book.weights})),
            SEPARATOR.join(sorted({name for book in traded for name in book.evidence})),
        )

    def tighten(self, policy: Policy, limits: RiskLimits | None = None) -> Policy:
        """Return a policy as the campaign files of the traded runs tighten it, and limits beside them."""
        for asked in (*(book.limits for book, _ in self.books.values()), limits):
            policy = policy if asked is None else policy.tightened(asked)[0]
        return policy


def add_weights(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the weight of each symbol in several books together."""
    weights: dict[str, float] = {}
    for run in sorted(parts):
        for name, weight in parts[run].items():
            weights[name] = weights.get(name, 0.0) + weight
    return weights


@dataclass(frozen=True)
class Targets:
    """The targets of a day: what is traded, what the risk gate was asked, and its answer."""

    live: LiveBooks
    trade: Trade


def build_targets(
    ledger: Ledger,
    panel: Panel,
    runner: Runner | None = None,
    run: str = "",
    held: Mapping[str, int] = MappingProxyType({}),
    limits: RiskLimits | None = None,
) -> Targets:
    """Return what the accepted factors would hold after the panel's last day, and what the risk gate says to it.

    Parameters are those of `find_live_books`; `held` are exposures held, in 1e-8 of equity, and `limits` may tighten
    the policy of the workspace further.
    """
    live = find_live_books(ledger, panel, runner, run)
    policy = live.tighten(read_policy(ledger.workspace), limits)
    return Targets(live, ask_gate(live.weights(), live.sizing, policy, panel, ledger, held))


def find_live_books(
    ledger: Ledger, panel: Panel, runner: Runner | None = None, run: str = "", row: int | None = None
) -> LiveBooks:
    """Return what the accepted and live factors of a library trade on a panel.

    Parameters
    ----------
    panel
        The newest data.
    runner
        Where Python factors run; without it a run that needs one is left out.
    run
        Only what this run accepted; empty for every run with a live factor in the library, and for each factor that was
        added by hand or proven on new days. All share equity equally. One whose evidence decays keeps
        `DECAYING_SHARE` of its part, and a retired one has none.
    row
        The row at whose close the library is read; None for all that it knows now.

    Raises
    ------
    RiskError
        Nothing that was accepted can be traded.
    """
    known = list_entries(ledger) if row is None else list_known_at(list_entries(ledger), panel.dates, row)
    entries = {entry.factor_id: entry for entry in known}
    found, left_out = _find_books(ledger, entries, run)
    left_out |= {book.run: why for book in found if (why := _find_obstacle(book, entries, panel, runner))}
    traded = [book for book in found if book.run not in left_out]
    if not traded:
        raise _nothing_to_trade(left_out, run)
    computing = open_computing(ledger, panel, runner)
    frames = [target_weights(_score(book, entries, computing), book.horizon_days) for book in traded]
    books = {book.run: (book, _share(book, entries) / len(traded)) for book in traded}
    names = {name for book in traded for name in (*book.evidence, *book.weights)}
    return LiveBooks(books, left_out, frames, panel.symbols, {name: entries[name].status for name in sorted(names)})


def _share(book: RunBook, entries: Mapping[str, Entry]) -> float:
    decays = any(entries[name].status == "decaying" for name in (*book.evidence, *book.weights))
    return DECAYING_SHARE if decays else 1.0


def _find_books(ledger: Ledger, entries: Mapping[str, Entry], run: str) -> tuple[list[RunBook], dict[str, str]]:
    """Return what each run trades, the oldest run first, and why others trade nothing."""
    own = {entry.run for entry in entries.values() if entry.origin == "accepted" and entry.status != "retired"}
    books, left_out = [], {}
    for found in ledger.runs.all():
        if found.id != run and (run or found.id not in own):
            continue
        results = ledger.artefacts.read(found.id, "results.json")
        book = _read_book(found, Results.read(json.loads(results))) if results else None
        if book is None:
            left_out[found.id] = (
                "it accepted nothing" if results else "it has no results: it did not end, or was no campaign"
            )
        else:
            books.append(book)
    alone = [] if run else [entry for entry in entries.values() if entry.origin in (ADDED_BY_HAND, PROMOTED)]
    return [*books, *(_stand_alone(entry) for entry in alone if entry.status != "retired")], left_out


def _stand_alone(entry: Entry) -> RunBook:
    """Return the book of a factor that no campaign combined: one added by hand, or proven on new days.

    By hand a formula is held as it is written.
    """
    terms = entry.terms
    sign, horizon = (terms.sign, terms.horizon_days) if terms else (1, DEFAULT_HORIZON_DAYS)
    return RunBook(
        run=entry.factor_id,
        evidence=(entry.factor_id,),
        weights={entry.factor_id: float(sign)},
        rate=RATE_ALONE,
        combiner="equal",
        tested=False,
        horizon_days=horizon,
        doubt_e8=UNITS_PER_EQUITY,
        limits=RiskLimits(),
    )


def _read_book(run: Run, results: Results) -> RunBook | None:
    """Return what a run trades, from its results; None if it accepted nothing."""
    combination, signals = results.combination, results.signals
    if combination is None or not combination.factors:
        return None
    tested = [entry.id for entry in results.accepted if sorted(entry.members or ()) == sorted(combination.factors)]
    evidence = tested if combination.tested and tested else sorted(entry.id for entry in results.accepted)
    doubt = signals.doubt_e8 if signals and signals.doubt_e8 is not None else UNITS_PER_EQUITY
    return RunBook(
        run=run.id,
        evidence=tuple(evidence),
        weights={name: float(weight or 0.0) for name, weight in combination.weights.items()},
        rate=float(combination.trading_rate or 1.0),
        combiner=combination.combiner or "equal",
        tested=combination.tested,
        horizon_days=int(run.config["settings"]["evidence"]["horizon_days"]),
        doubt_e8=doubt,
        limits=RiskLimits.model_validate_json(json.dumps(run.config["settings"].get("risk") or {})),
    )


def open_computing(ledger: Ledger, panel: Panel, runner: Runner | None) -> Computing:
    """Return what computes factors of the library on a panel; Python factors need a runner."""
    adjusted = adjust_forwards(panel)
    contained = Contained(adjusted, runner, ledger.workspace / PYTHON_FOLDER) if runner else None
    return Computing(Engine(adjusted), contained)


def _find_obstacle(book: RunBook, entries: Mapping[str, Entry], panel: Panel, runner: Runner | None) -> str:
    """Return why a book cannot be computed on a panel; empty if it can."""
    for name in (*book.evidence, *book.weights):
        entry = entries.get(name)
        if entry is None:
            return f"{name} is not in the library"
        if entry.status == "retired":
            return f"{name} is retired"
        missing = sorted(set(entry.fields) - {*panel.fields, *panel.groups})
        if missing:
            return f"{name} reads {', '.join(missing)}, which the panel does not have"
        if entry.expression.code and runner is None:
            return f"{name} is Python code, which needs the sandbox"
        if entry.expression.warmup >= panel.days:
            return f"{name} needs {entry.expression.warmup + 1} days, and the panel has {panel.days}"
    return ""


def _score(book: RunBook, entries: Mapping[str, Entry], computing: Computing) -> NDArray[np.float32]:
    """Return the score that a book follows, `[T, N]`: as the gate tested it, or the factors at their last weights."""
    if book.tested and len(book.evidence) == 1 and len(book.weights) > 1:
        return computing.evaluate([entries[book.evidence[0]].expression])[0]
    names = sorted(book.weights)
    values = computing.evaluate([entries[name].expression for name in names])
    parts = [
        CombinationPart(name, -1 if book.weights[name] < 0 else 1, frame)
        for name, frame in zip(names, values, strict=True)
    ]
    sizes: Sequence[float] = [abs(book.weights[name]) for name in names]
    hold = hold_fixed if book.combiner == "equal" or len(parts) == 1 else weigh_fixed
    return hold(parts, sizes, book.rate)


def _nothing_to_trade(left_out: Mapping[str, str], run: str) -> RiskError:
    """Return the error that says why there are no targets."""
    said = "; ".join(f"{name}: {why}" for name, why in sorted(left_out.items()))
    hint = "alphaloom library list shows what was accepted; alphaloom run searches for more."
    return RiskError(
        f"Nothing that was accepted can be traded{f' ({said})' if said else ''}.",
        field="--run" if run else "library",
        got=run or "nothing accepted and live",
        allowed="a finished run that accepted a factor",
        hint=hint,
        code="no_targets",
    )
