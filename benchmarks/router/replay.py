"""What routing saves at equal quality: a table of outcomes drawn by a stated law, replayed by everybody who chooses.

python -m benchmarks.router replay                    600 prompts, some minutes
python -m benchmarks.router replay --svg FILE         draw the curves there

The router is held against always-local, always-frontier, chance, length, TF-IDF with logistic regression (scikit-learn),
the nearest prompts and a matrix factorisation in the manner of RouteLLM, all trained on the same prompts; against a cascade;
and against an oracle that knows the law. The exit code is 1 unless, on the prompts as written and as typed, the router lies
above every rival both in area and in saving at 95 % of recovered quality, and the router with a cascade saves more there than the
cascade alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.noise import NOISES, noisy
from alphaloom.router.deciding import Asked, Decider
from alphaloom.router.decision import Decision
from benchmarks.router.curve import Curve, cascade, tier
from benchmarks.router.law import LOCAL, Law, drawn
from benchmarks.router.measured import ORACLE, PRIMARY, Measured, Replay
from benchmarks.router.picture import draw
from benchmarks.router.prompts import MODELS, Prompt, held_out, training
from benchmarks.router.report import report
from benchmarks.router.rows import FAILURE_USD, oracle, points
from benchmarks.router.scorers import ROUTER, Scorers


def replayed(prompts: Sequence[Prompt], scorers: Scorers, law: Law, seed: int) -> Replay:
    """Return the table of some prompts, with all curves and points."""
    table = drawn(prompts, law, seed)
    told = {name: score[table.owner] for name, score in scorers.scores([each.text for each in prompts]).items()}
    told = {ROUTER: told.pop(ROUTER), ORACLE: oracle(table), **told}
    low, both = tier(table, LOCAL), cascade(table, law.shown)
    curves = {name: Curve(table, scores, low, seed) for name, scores in told.items()}
    cascaded = {f"{name} + cascade": Curve(table, told[name], both, seed) for name in (ROUTER, "chance")}
    return Replay(table, curves, cascaded, points(table, law, decided(prompts), seed))


def decided(prompts: Sequence[Prompt]) -> list[Decision]:
    """Return the decisions of the router as it ships."""
    decider = Decider(RouterConfig.model_validate({"models": MODELS}), Classifier.shipped())
    return [decider.decide(Asked(prompt=each.text, role=each.role)) for each in prompts]


def typed(prompts: Sequence[Prompt], seed: int) -> list[Prompt]:
    """Return the prompts as somebody else would have typed them: each with one kind of noise that nobody was trained on."""
    kinds = list(NOISES)
    return [
        replace(each, text=noisy(each.text, kinds[at % len(kinds)], seed, learned=False))
        for at, each in enumerate(prompts)
    ]


def main(given: Sequence[str]) -> int:
    """Replay, print, and return 1 where the router does not lie above every rival."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--samples", type=int, default=500, help="bootstrap samples of the prompts")
    options.add_argument("--svg", type=Path, help="file for the picture of the curves, prompts as written")
    told = options.parse_args(given)
    law, written = Law(), held_out()
    scorers = Scorers(training(), law, told.seed)
    print(
        f"{len(written)} prompts, seed {told.seed}, {told.samples} bootstrap samples of prompts\n{law.told()};\na wrong reply that shows costs the learner US$ {FAILURE_USD} more\n"
    )
    behind = []
    for title, prompts in (("as written", written), ("as typed, with noise", typed(written, told.seed))):
        measured = Measured.of(replayed(prompts, scorers, law, told.seed), told.samples, told.seed)
        print(f"Prompts {title}\n{report(measured)}\n", flush=True)
        behind += [f"{name} ({title})" for name in measured.behind()]
        if told.svg and prompts is written:
            told.svg.write_text(draw(measured), "utf-8")
    print(sensitivity(written, scorers, law, told.seed))
    print(f"not above: {', '.join(behind)}" if behind else "the router lies above every rival")
    return int(bool(behind))


def sensitivity(prompts: Sequence[Prompt], scorers: Scorers, law: Law, seed: int) -> str:
    """Return what a cascade is worth by how many of its wrong replies show themselves."""
    lines = [
        f"{'wrong replies that show':26s} {'cascade recovers':>18s} {'and saves':>10s} {'router + cascade at 95 %':>26s}"
    ]
    for shown in (0.25, 0.5, 0.75, 0.9, 1.0):
        replay = replayed(prompts, scorers, replace(law, shown=shown), seed)
        counts = np.ones(len(prompts), dtype=np.int64)
        saved, recovered = replay.place("always cascade", counts)
        own = replay.figures(counts)["router + cascade"].savings[PRIMARY]
        lines.append(f"{shown:<26.0%} {recovered:>18.1%} {saved:>10.1%} {own:>26.1%}")
    return "\n".join(lines) + "\n"
