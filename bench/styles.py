"""What the real gate accepts where styles have good and bad times and a long-run mean of 0.

python -m bench.styles --panel FILE [--sectors FILE]

Each market is a part of your panel: some names and a span of days, both drawn by the seed. Prices stay as they are. The
label of every day is multiplied by a coin that is drawn anew for each block of days, so that inside a block every
formula keeps its own good or bad time, and over blocks it earns nothing. `bench.honesty panel` draws a coin for each
day, and therefore cannot show what such blocks do to a p-value.

On each market 60 published formulas are scored on search days. Then the gate tests the combination of the strongest,
and after it the strongest one by one: those that a campaign would test. Limits on likeness and redundancy are raised.
An acceptance counts whether or not the factor pays its costs. Blocks of up to a quarter of the selection window are the
null that the gate claims; `--block-days` takes longer ones, whose size is reported and not judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alphaloom.evaluation import Evaluator
from alphaloom.evaluation.checks import share_interval
from alphaloom.evidence import EvidenceSettings, Proposal
from alphaloom.evidence.gate.earlier_looks import PLAN_EVENT
from alphaloom.evidence.originality.published import published_expressions
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.values.computing import Computing
from alphaloom.factors import Engine, ParseError, parse
from alphaloom.ledger import Ledger
from alphaloom.market import Panel, PanelSource, load_panel
from bench.adaptive import Room, claim_of, clock
from bench.blocks import take_columns

Frame = NDArray[np.float64]
SETTINGS: Final = EvidenceSettings(max_similarity=1.0, max_redundancy=1.0, published=False)
DAYS: Final = 1500
NAMES: Final = 60
FORMULAS: Final = 60
"""Published formulas that are scored on each market, drawn by its seed."""
LOOKS: Final = 6
MEMBERS: Final = 5
"""Members of the combination, which is the first look."""
SELECTION_SHARE: Final = 0.2
MOST_FOOLED: Final = 6
"""Markets of 240 with an acceptance: the exact 95 % limit of their share is .05 then."""


@dataclass(frozen=True)
class CoinScorer(Scorer):
    """Scores against labels and returns that a coin turns, one coin `[T]` a day, equal within a block."""

    coins: Frame

    def label(self, days: int, rows: slice = slice(None)) -> Frame:
        """Return the label of any horizon on some rows, turned by their coins."""
        return super().label(days, rows) * self.coins[rows, None]

    @cached_property
    def returns(self) -> Frame:
        """Return the raw label of the main horizon, turned by its coins."""
        return Scorer(self.panel, self.settings).returns * self.coins[:, None]

    @cached_property
    def daily_returns(self) -> Frame:
        """Return each name's next open-to-open return, turned by its coin."""
        return Scorer(self.panel, self.settings).daily_returns * self.coins[:, None]


def draw_coins(rng: np.random.Generator, days: int, block_days: int) -> Frame:
    """Return 1 or -1 for each day, equal within blocks of so many days; the first block is cut at random."""
    first = int(rng.integers(block_days))
    coins: Frame = rng.choice((-1.0, 1.0), days // block_days + 2)
    return coins[(np.arange(days) + first) // block_days]


def draw_part(panel: Panel, rng: np.random.Generator, days: int, names: int) -> Panel:
    """Return a part of a panel: a span of days, and names drawn among those that are in the universe on all of them."""
    start = int(rng.integers(panel.days - days + 1)) if panel.days > days else 0
    span = panel.rows(start, min(start + days, panel.days))
    steady = np.flatnonzero(span.universe.mean(axis=0) > 0.95)
    columns = np.sort(rng.choice(steady, min(names, len(steady)), replace=False))
    return take_columns(span, columns)


@dataclass(frozen=True)
class MarketAnswer:
    """What the gate said on one market: tests taken, significant ones, the smallest p-value."""

    seed: int
    looks: int
    significant: int
    smallest_p: float


def list_formulas(panel: Panel) -> list[str]:
    """Return the published formulas that a panel can compute, in our language; those with odd units are left out."""
    texts = []
    for _, expression, _ in published_expressions():
        with suppress(ParseError):
            if parse(expression.canonical_text).fields <= {*panel.fields, *panel.groups}:
                texts.append(expression.canonical_text)
    return texts


def score_published(evaluator: Evaluator, formulas: Sequence[str]) -> list[str]:
    """Propose the formulas, each with the sign that search gives it; return their ids, the largest t first."""
    scored: dict[str, float] = {}
    for formula in formulas:
        for text in (formula, f"-({formula})"):
            answer = evaluator.propose(Proposal(text, claim_of(text), text))
            if answer["ok"] and (answer["sheet"]["rank_ic"] or 0.0) > 0:
                scored[answer["id"]] = float(answer["sheet"]["t"] or 0.0)
                break
    return sorted(scored, key=lambda name: (-scored[name], name))


def ask_gate(panel: Panel, seed: int, days: int, names: int, block_days: int) -> MarketAnswer:
    """Draw a market, score published formulas on it, and test the strongest."""
    rng = np.random.default_rng([seed, 0x57])
    part = draw_part(panel, rng, days, names)
    scorer = CoinScorer(part, SETTINGS, draw_coins(rng, part.days, block_days))
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder), clock=clock) as ledger:
        evaluator = Room(part, Computing(Engine(part)), scorer).evaluator(ledger)
        formulas = list_formulas(part)
        drawn = np.sort(rng.choice(len(formulas), min(FORMULAS, len(formulas)), replace=False))
        strongest = score_published(evaluator, [formulas[at] for at in drawn])
        plan = {"combination": strongest[:MEMBERS], "factors": strongest}
        ledger.events.record(evaluator.run, PLAN_EVENT, "list", plan)
        verdicts = [evaluator.submissions.submit_set(strongest[:MEMBERS])]
        for name in strongest:
            tested = [verdict for verdict in verdicts if (verdict.selection or {}).get("t") is not None]
            if len(tested) == LOOKS:
                break
            verdicts += evaluator.submissions.submit([name])
    tested = [verdict for verdict in verdicts if (verdict.selection or {}).get("t") is not None]
    p_values = [float((verdict.selection or {})["p_value"]) for verdict in tested]
    significant = sum(verdict.word in {"accepted", "proven"} for verdict in tested)
    return MarketAnswer(seed, len(tested), significant, min(p_values, default=1.0))


def main() -> int:
    """Print one line a market and the count; 1 if more are fooled than a quarter's blocks may."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", type=Path, required=True, help="prices, Parquet or CSV")
    options.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    options.add_argument("--markets", type=int, default=240, help="how many, with the seeds 0, 1, 2 ...")
    options.add_argument("--days", type=int, default=DAYS, help="of each market")
    options.add_argument("--names", type=int, default=NAMES, help="of each market")
    options.add_argument("--block-days", type=int, help="days that share a coin; a quarter of the selection window")
    given = options.parse_args()
    panel = load_panel(PanelSource(given.panel, given.sectors))
    quarter = int(min(given.days, panel.days) * SELECTION_SHARE / 4)
    block_days = given.block_days or quarter
    answers = []
    for seed in range(given.markets):
        began = time.monotonic()
        answers.append(ask_gate(panel, seed, given.days, given.names, block_days))
        last = answers[-1]
        sys.stdout.write(
            f"seed {seed}: {last.looks} looks, {last.significant} significant, smallest p {last.smallest_p:.2g}, "
            f"{time.monotonic() - began:.1f} s\n"
        )
        sys.stdout.flush()
    fooled = sum(1 for answer in answers if answer.significant)
    low, high = share_interval(fooled, len(answers))
    looks = sum(answer.looks for answer in answers)
    sys.stdout.write(
        f"blocks of {block_days} days: {fooled} of {len(answers)} markets with an acceptance "
        f"(95 % interval {low:.4f} to {high:.4f}), {looks} looks; "
        f"smallest p below .05 / {LOOKS} on {sum(answer.smallest_p < 0.05 / LOOKS for answer in answers)}\n"
    )
    return int(block_days <= quarter and fooled > MOST_FOOLED * given.markets / 240)


if __name__ == "__main__":
    sys.exit(main())
