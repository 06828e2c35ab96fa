"""How the router decides on the questions of campaigns that nothing was trained on, by labels from outcomes.

python -m bench.router.campaigns exam
python -m bench.router.campaigns exam --small 0.1 0.4 --frontier 3 15     US dollars per million tokens, in and out

Hard is a question that the offline researcher answered to use and the small model did not; easy is one that the small
model answered as well. The labels hold for the pair of models that the file names. Intervals are 95 %
(Clopper-Pearson). Of the questions in `CHECKED` a campaign checks a small model's reply, nearly by the rule of these
labels, and asks the frontier where it is of no use. So a hard one that went down is asked twice, and counts as answered
above. *At equal outcomes* a question whose reply is of no use is asked again of the frontier model. For critiques,
which nothing checks, that is as if the campaign noticed.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.evaluation.checks import share_interval
from alphaloom.router import RouterConfig
from alphaloom.router.config import RoutingSettings
from alphaloom.router.policy.decision import Decider, RoutingQuestion

__all__ = ["main"]

EXAM = Path(__file__).resolve().parents[3] / "tests" / "router" / "classifier" / "campaigns" / "exam.jsonl"
CHECKED = frozenset({"hypotheses", "formulas", "repair", "summary"})
"""Intents of the questions whose replies a campaign checks."""
LOCAL_TRIES = RoutingSettings().local_tries
"""Calls of the small model where its reply does not fit its schema; the labels are of one."""
MOST_HARD_SENT_DOWN, LEAST_EASY_KEPT, MOST_ECE = 0.03, 0.60, 0.05
BINS = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Edges of the bins of the reliability table, and of the calibration error."""


@dataclass(frozen=True, eq=False)
class Exam:
    """The labelled questions, and what the router decided on each with no role or intent fixed."""

    rows: Sequence[Mapping[str, Any]]
    hard: NDArray[np.bool_]
    chance: NDArray[np.float64]
    down: NDArray[np.bool_]
    checked: NDArray[np.bool_]

    @classmethod
    def take(cls, rows: Sequence[Mapping[str, Any]], small: Sequence[float], frontier: Sequence[float]) -> Exam:
        """Return the decisions on all questions that at least one of the models answered."""
        kept = [row for row in rows if row["small"] or row["researcher"]]
        priced = {"small": ("local", small), "large": ("frontier", frontier)}
        models = {name: _price_model(f"a/{name}", *of) for name, of in priced.items()}
        decider = Decider(RouterConfig.model_validate({"models": models}))
        made = [decider.decide(_ask(row)) for row in kept]
        return cls(
            kept,
            np.array([row["small"] < row["researcher"] for row in kept]),
            np.array([decision.signals["hard"] for decision in made]),
            np.array([decision.tier == "local" for decision in made]),
            np.array([row["intent"] in CHECKED for row in kept]),
        )

    def calibration_error(self) -> float:
        """Return the mean distance of probability and share over the bins, weighted by their questions."""
        return sum(count * abs(told - share) for _, count, told, share in self.reliability()) / len(self.rows)

    def reliability(self) -> Iterable[tuple[str, int, float, float]]:
        """Yield bin, questions, mean probability and share of hard ones."""
        places = np.clip(np.digitize(self.chance, BINS) - 1, 0, len(BINS) - 2)
        for place in np.unique(places):
            of = places == place
            name = f"{BINS[place]:.2f} to {BINS[place + 1]:.2f}"
            yield name, int(of.sum()), float(self.chance[of].mean()), float(self.hard[of].mean())


def _price_model(model: str, tier: str, usd_per_mtok: Sequence[float]) -> Mapping[str, Any]:
    prices = dict(zip(("input_cost_per_mtok", "output_cost_per_mtok"), usd_per_mtok, strict=True))
    return {"model": model, "tier": tier, "place": "local" if tier == "local" else "remote", **prices}


def _ask(row: Mapping[str, Any]) -> RoutingQuestion:
    return RoutingQuestion(
        prompt="", role=row["role"], intent=row["intent"], context_tokens=row["tokens"], reply_tokens=4_000,
        schema_depth=row["depth"], refused=row["refused"], checked=row["intent"] in CHECKED,
    )  # fmt: skip  # a table


def main(given: Sequence[str]) -> int:
    """Print the exam; 1 where a bar is not held."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", type=float, nargs=2, default=(0.1, 0.4), metavar=("IN", "OUT"))
    options.add_argument("--frontier", type=float, nargs=2, default=(3.0, 15.0), metavar=("IN", "OUT"))
    options.add_argument("--labels", type=Path, default=EXAM)
    asked = options.parse_args(given)
    head, *rows = [json.loads(line) for line in asked.labels.read_text("utf-8").splitlines()]
    exam = Exam.take(rows, asked.small, asked.frontier)
    campaigns = len({row["campaign"] for row in exam.rows})
    print(f"{len(rows)} questions of {campaigns} campaigns; {head['small']} beside {head['other']}")
    print(f"{len(rows) - len(exam.rows)} that neither answered are left out\n")
    _print_kinds(exam)
    sent, kept = _print_shares(exam)
    error = exam.calibration_error()
    print(f"calibration error {error:.3f}")
    for name, count, told, share in exam.reliability():
        print(f"  probability {name}: {count:4d} questions, mean {told:.2f}, hard {share:.2f}")
    _print_costs(exam, asked.small, asked.frontier)
    return int(sent > MOST_HARD_SENT_DOWN or kept < LEAST_EASY_KEPT or error > MOST_ECE)


def _print_kinds(exam: Exam) -> None:
    kinds: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(exam.rows):
        kinds[f"{row['role']}/{row['intent']}"].append(place)
    print(f"{'question':18s} {'asked':>5s} {'fits':>5s} {'of use':>6s} {'hard':>5s} {'down':>5s}")
    for kind, places in sorted(kinds.items()):
        fits = sum(exam.rows[place]["fits"] for place in places)
        useful = len(places) - int(exam.hard[places].sum())
        figures = (len(places), fits, useful, int(exam.hard[places].sum()), int(exam.down[places].sum()))
        print(f"{kind:18s} {figures[0]:5d} {figures[1]:5d} {figures[2]:6d} {figures[3]:5d} {figures[4]:5d}")


def _print_shares(exam: Exam) -> tuple[float, float]:
    """Print the shares; return that of hard questions answered by the small model, and of easy ones kept there."""
    shares, down = [], exam.down
    of_hard = (("hard asked of the small model", down), ("hard answered by it in the end", down & ~exam.checked))
    for name, of, hit in (*((name, exam.hard, hit) for name, hit in of_hard), ("easy kept", ~exam.hard, down)):
        hits, count = int(hit[of].sum()), int(of.sum())
        low, high = share_interval(hits, count)
        shares.append(hits / count if count else float("nan"))
        print(f"{name:30s} {hits} of {count}: {shares[-1]:.1%} [{low:.1%}, {high:.1%}]")
    return shares[1], shares[2]


def _print_costs(exam: Exam, small: Sequence[float], frontier: Sequence[float]) -> None:
    """Print what all questions cost by three ways, each until every reply is of use."""
    tries = np.array([1 if row["fits"] else LOCAL_TRIES for row in exam.rows])
    cheap = tries * np.array([_price(row["small_tokens"], small) for row in exam.rows])
    dear = np.array([_price(row["frontier_tokens"], frontier) for row in exam.rows])
    mended = cheap + np.where(exam.hard, dear, 0.0)
    ways = {"always frontier": dear, "always small": mended, "router": np.where(exam.down, mended, dear)}
    for name, usd in ways.items():
        print(f"{name:15s} {1_000 * usd.mean():.3f} thousandths of a dollar a question at equal outcomes")


def _price(tokens: Sequence[int], usd_per_mtok: Sequence[float]) -> float:
    return (tokens[0] * usd_per_mtok[0] + tokens[1] * usd_per_mtok[1]) / 1e6
