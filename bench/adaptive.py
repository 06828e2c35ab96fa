"""Compose candidates out of formulas that the gate was asked about before, and count the false acceptances.

python -m bench.adaptive                                synthetic markets in which nothing is
python -m bench.adaptive --panel FILE [--sectors FILE]  your prices, made null by a coin for each day

For each seed, K worthless formulas go to the real gate, one trial each. Then every strategy submits one more trial,
each to a copy of the workspace after those looks, so that no strategy knows of another:

- weighted     one formula: the ranks of the formulas with a positive selection t, added up in proportion to it
- equal        the same with equal weights
- words        the ranks of what was told "watchlist" (or "accepted"), added up: agents hear no more than that
- rank         the rank of the equal sum
- product      the product of the ranks
- set          the strongest ten as a set, which the gate refuses for members that were looked at
- unseen       a formula that nothing was learned about: what the stream's level promises

Every acceptance is false. A formula holds 2,000 characters and 200 nodes, so the sums stop at what fits, the strongest
first; `without a limit` adds up all of them outside the language and applies the gate's own test and level. Bounds on
complexity, likeness and redundancy are raised: they are no part of the error rate. The exit status says nothing: this
measures, and the gate does not promise it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from alphaloom.evaluation import Budget, Evaluator, PanelContext
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.gate.earlier_looks import Removal, list_lags
from alphaloom.evidence.gate.mean_test import run_mean_test
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.evidence.originality.incremental import cut_ranks
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.settings import ComplexitySettings, WindowSettings
from alphaloom.evidence.values.computing import Computing
from alphaloom.factors import Engine, ParseError, parse, rank_rows, sample
from alphaloom.factors.language.syntax import MAX_FORMULA_CHARS
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel, PanelSource, SyntheticConfig, load_panel, make_null_panel, simulate

from .blocks import thinned

RUN: Final = "adaptive"
SETTINGS: Final = EvidenceSettings(
    max_similarity=1.0,
    max_redundancy=1.0,
    published=False,
    windows=WindowSettings(search=0.4, selection=0.5),
    complexity=ComplexitySettings(max_size=5000, max_depth=500, max_constants=500, max_fields=50),
)
MOST_LENGTH: Final = 45
"""Characters of a formula that is looked at: short ones, so that many fit into one."""


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate: whether it was accepted, and its p-value; 1 for what was refused without a look."""

    accepted: bool
    p: float


REFUSED: Final = Outcome(accepted=False, p=1.0)


@dataclass(frozen=True)
class Seen:
    """A tested formula, written so that its RankIC on search is positive: selection t, p-value and verdict."""

    id: str
    text: str
    t: float
    word: str
    p: float = 1.0

    @property
    def outcome(self) -> Outcome:
        """Return what came of it."""
        return Outcome(self.word == "accepted", self.p)


def clock() -> datetime:
    """Return one moment for every run: nothing that is measured depends on it."""
    return datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Room:
    """A panel with what scores it, made once for all copies of a workspace."""

    panel: Panel
    engine: Computing
    scorer: Scorer

    @classmethod
    def of(cls, panel: Panel) -> Room:
        """Return the room of a panel."""
        return cls(panel, Computing(Engine(panel)), Scorer(panel, SETTINGS))

    def evaluator(self, ledger: Ledger) -> Evaluator:
        """Return the real evaluation service on a workspace."""
        settings = self.scorer.settings
        windows = PanelContext.set_up(self.panel, ledger, settings, RUN).windows
        rules = {"rules": {"evidence": settings.model_dump(mode="json")}, "panel": self.panel.digest}
        ledger.runs.start(Run(RUN, rules, 0, RUN, clock().isoformat()))
        return PanelContext(self.engine, self.scorer, windows, ledger).evaluator(
            RUN, Budget(evaluations=10**6, trials=10**6)
        )


def claim_of(text: str) -> Claim:
    """Return a hypothesis that a formula keeps: its own fields, and the direction in which it is written."""
    expression = parse(text)
    return Claim(
        f"about {expression.id}", "adaptive", "composed", 1, SETTINGS.horizon_days, tuple(sorted(expression.fields))
    )


def submitted(evaluator: Evaluator, text: str) -> Seen | None:
    """Score a formula and send it to the gate.

    It is negated where its RankIC on search is negative. None if it is refused before the test.
    """
    for written in (text, f"-({text})"):
        answer = evaluator.propose(Proposal(written, claim_of(written), written))
        if answer["ok"] and (answer["sheet"]["rank_ic"] or 0.0) > 0:
            verdict = evaluator.submissions.submit([answer["id"]])[0]
            told = verdict.selection or {}
            if told.get("t") is None:
                return None
            return Seen(answer["id"], written, float(told["t"]), verdict.word, float(told["p_value"]))
    return None


def looked(evaluator: Evaluator, rng: np.random.Generator, count: int) -> list[Seen]:
    """Look at so many short formulas, drawn from the grammar."""
    found: list[Seen] = []
    fields = tuple(evaluator.panel.fields)
    while len(found) < count:
        expression = sample(rng, fields=fields, max_size=5)
        if len(expression.text) <= MOST_LENGTH and (one := submitted(evaluator, expression.text)):
            found.append(one)
    return found


def positive(seen: Sequence[Seen]) -> list[Seen]:
    """Return those with a positive selection t, the strongest first."""
    return sorted((one for one in seen if one.t > 0), key=lambda one: -one.t)


def joined(parts: Sequence[str], between: str = " + ", around: str = "{}") -> str:
    """Join as many terms as a formula may hold, from the first."""
    text = ""
    for part in parts:
        longer = text + between + part if text else part
        if not _holds(around.format(longer)):
            break
        text = longer
    return around.format(text)


def _holds(text: str) -> bool:
    """Tell whether a formula may be so long; `submitted` may put a sign and parentheses around it."""
    try:
        parse(f"-({text})")
    except ParseError:
        return False
    return len(text) + 4 <= MAX_FORMULA_CHARS


def _weighted(seen: Sequence[Seen]) -> str:
    return joined([f"{one.t:.2f} * rank({one.text})" for one in positive(seen)])


def _equal(seen: Sequence[Seen]) -> str:
    return joined([f"rank({one.text})" for one in positive(seen)])


def _words(seen: Sequence[Seen]) -> str:
    return joined([f"rank({one.text})" for one in seen if one.word != "rejected"])


def _rank(seen: Sequence[Seen]) -> str:
    return joined([f"rank({one.text})" for one in positive(seen)], around="rank({})")


def _product(seen: Sequence[Seen]) -> str:
    return joined([f"(1 + rank({one.text}))" for one in positive(seen)], between=" * ")


STRATEGIES: Mapping[str, Callable[[Sequence[Seen]], str]] = MappingProxyType(
    {"weighted": _weighted, "equal": _equal, "words": _words, "rank": _rank, "product": _product}
)
LINES: Final = (*STRATEGIES, "set", "unseen", "without a limit")


def outcomes(room: Room, seed: int, counts: Sequence[int]) -> dict[tuple[int, str], Outcome]:
    """Return for each number of looks and each strategy what came of its candidate."""
    rng, found = np.random.default_rng([seed, 0xADA]), dict[tuple[int, str], Outcome]()
    seen: list[Seen] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        for count in sorted(counts):
            with Ledger.open(home, clock=clock) as ledger:
                evaluator = room.evaluator(ledger)
                seen += looked(evaluator, rng, count - len(seen))
                found[count, "without a limit"] = without_limit(evaluator, seen)
            for name in LINES[:-1]:
                found[count, name] = _on_a_copy(room, home, name, seen, rng)
    return found


def _on_a_copy(room: Room, home: Path, name: str, seen: Sequence[Seen], rng: np.random.Generator) -> Outcome:
    """Play one strategy on a copy of a workspace and return what the gate says."""
    copy = home.with_name("copy")
    shutil.copytree(home, copy)
    try:
        with Ledger.open(copy, clock=clock) as ledger:
            evaluator = room.evaluator(ledger)
            if name == "set":
                strongest = [one.id for one in positive(seen)[:10]]
                judged = evaluator.submissions.submit_set(strongest) if len(strongest) > 1 else None
                return (
                    Outcome(judged.word == "accepted", (judged.selection or {}).get("p_value", 1.0))
                    if judged
                    else REFUSED
                )
            if name == "unseen":
                return looked(evaluator, rng, 1)[0].outcome
            text = STRATEGIES[name](seen)
            one = submitted(evaluator, text) if text else None
            return one.outcome if one else REFUSED
    finally:
        shutil.rmtree(copy)


def without_limit(evaluator: Evaluator, seen: Sequence[Seen]) -> Outcome:
    """Apply the gate's removal of earlier looks, test and level to the weighted sum, without a limit on length."""
    weights = {one.text: one.t for one in positive(seen)}
    window, horizon = evaluator.windows.selection, SETTINGS.horizon_days
    total: NDArray[Any] = np.zeros(evaluator.panel.universe.shape)
    looks: list[NDArray[Any]] = []
    for one, values in zip(seen, evaluator.engine.stream([evaluator.read(one.text) for one in seen]), strict=True):
        ranks = rank_rows(values)
        total += weights.get(one.text, 0.0) * np.nan_to_num(ranks - 0.5)
        looks += list_lags(ranks[window.start - horizon : window.stop].astype(np.float32), horizon)
    whole = np.where(evaluator.panel.universe, total, np.nan).astype(np.float32)
    left = np.full(whole.shape, np.nan, np.float32)
    window.cut(left)[:] = Removal(looks)(cut_ranks(whole, window))
    p = run_mean_test(evaluator.scorer.daily_rank_ic(left, window), None, horizon, evaluator.scorer.lag).p_value(1)
    return Outcome(p <= lond_level(len(seen) + 1, 0, SETTINGS.level), p)


SMALL_P: Final = 0.01


def table(found: Sequence[Mapping[tuple[int, str], Outcome]], counts: Sequence[int]) -> list[str]:
    """Format by strategy and number of looks the share of seeds accepted, and of those with p <= 0.01."""
    head = "looks".ljust(18) + "".join(f"{count:>18d}" for count in counts)
    promised = "sum of levels".ljust(18) + "".join(
        f"{sum(lond_level(number, 0, SETTINGS.level) for number in range(1, count + 2)):18.4f}" for count in counts
    )
    return [
        head,
        promised,
        *(name.ljust(18) + "".join(_cell([row[count, name] for row in found]) for count in counts) for name in LINES),
    ]


def _cell(found: Sequence[Outcome]) -> str:
    accepted, small = (
        np.mean([outcome.accepted for outcome in found]),
        np.mean([outcome.p <= SMALL_P for outcome in found]),
    )
    return f"{accepted:.2f} (p {small:.2f})".rjust(18)


def main() -> int:
    """Print one line for each strategy."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", type=Path, help="prices, Parquet or CSV; made null by signs")
    options.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--looks", type=int, nargs="+", default=[20, 60, 120])
    options.add_argument("--days", type=int, default=900, help="of the synthetic market")
    options.add_argument("--names", type=int, default=60)
    given = options.parse_args()
    prices = given.panel and thinned(load_panel(PanelSource(given.panel, given.sectors)), given.names)
    found = []
    for seed in range(given.seeds):
        config = SyntheticConfig(seed=seed, days=given.days, names=given.names, nothing=True)
        found.append(
            outcomes(Room.of(make_null_panel(prices, seed) if prices else simulate(config).panel), seed, given.looks)
        )
        accepted = (
            ", ".join(f"{name} after {count}" for (count, name), each in found[-1].items() if each.accepted)
            or "nothing"
        )
        sys.stdout.write(f"seed {seed}: accepted {accepted}\n")
        sys.stdout.flush()
    sys.stdout.write(
        "\n".join([f"share of {given.seeds} seeds with a false acceptance", *table(found, given.looks), ""])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
