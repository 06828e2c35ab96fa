"""What routing saves at equal quality: a table of outcomes drawn by a stated law, replayed by everybody who chooses.

python -m bench.router replay                       600 prompts, some minutes
python -m bench.router replay --svg FILE            draw the curves there
python -m bench.router replay --embedding FOLDER    two more rows: your embedding alone and plugged into the router

The router is held against methods of others (chance, length, a matrix factorisation in the manner of RouteLLM, a
sentence embedding with logistic regression where one is given), against the very prompts that it learned from as other
models read them (the nearest prompts; TF-IDF with logistic regression of scikit-learn), against always-local,
always-frontier and a cascade, and against an oracle that knows the law. Everybody has a row with the same cascade too;
its best cut is looked up on the prompts asked of, where the router as it ships has only its own limit. The exit code is
1 unless, on the prompts as written and as typed, the router lies above every rival both in area and in saving at 95 %
of recovered quality, and the router with a cascade saves more there than every rival with one and than the cascade
alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.training_prompts import NOISES, add_noise
from alphaloom.router.policy.decision import Decider, RoutingDecision, RoutingQuestion
from bench.router.curve import Curve, cascade, tier
from bench.router.law import LOCAL, Law, drawn
from bench.router.measured import CASCADE, ORACLE, PRIMARY, Measured, Replay
from bench.router.picture import draw
from bench.router.prompts import MODELS, Prompt, held_out, training
from bench.router.report import report
from bench.router.rows import FAILURE_USD, oracle, oracle_of_cascade, points
from bench.router.scorers import READERS, ROUTER, Scorers, embedded


def replayed(prompts: Sequence[Prompt], scorers: Scorers, law: Law, seed: int) -> Replay:
    """Return the table of some prompts, with all curves and points."""
    table = drawn(prompts, law, seed)
    told = {name: score[table.owner] for name, score in scorers.scores([prompt.text for prompt in prompts]).items()}
    told = {ROUTER: told.pop(ROUTER), ORACLE: oracle(table), **told}
    low, both = tier(table, LOCAL), cascade(table, law.shown)
    curves = {name: Curve(table, scores, low, seed) for name, scores in told.items()}
    best = {**told, ORACLE: oracle_of_cascade(table, law.shown)}
    cascaded = {name + CASCADE: Curve(table, scores, both, seed) for name, scores in best.items()}
    return Replay(table, curves, cascaded, points(table, law, decided(prompts), seed))


def decided(prompts: Sequence[Prompt]) -> list[RoutingDecision]:
    """Return the decisions of the router as it ships."""
    decider = Decider(RouterConfig.model_validate({"models": MODELS}), Classifier.shipped())
    return [decider.decide(RoutingQuestion(prompt=prompt.text, role=prompt.role)) for prompt in prompts]


def typed(prompts: Sequence[Prompt], seed: int) -> list[Prompt]:
    """Return the prompts as others would type them: each with one kind of noise unseen in training."""
    kinds = list(NOISES)
    return [
        replace(each, text=add_noise(each.text, kinds[at % len(kinds)], seed, learned=False))
        for at, each in enumerate(prompts)
    ]


def main(given: Sequence[str]) -> int:
    """Replay, print, and return 1 where the router does not lie above every rival."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--samples", type=int, default=500, help="bootstrap samples of the prompts")
    options.add_argument("--svg", type=Path, help="file for the picture of the curves, prompts as written")
    options.add_argument("--embedding", type=Path, help="folder with model.onnx and tokenizer.json")
    arguments = options.parse_args(given)
    law, written = Law(), held_out()
    scorers = Scorers(training(), law, arguments.seed, embedded(arguments.embedding))
    print(
        f"{len(written)} prompts, seed {arguments.seed}, {arguments.samples} bootstrap samples of prompts\n"
        f"{law.told()};\n"
        f"a wrong reply that shows costs the learner US$ {FAILURE_USD} more\n"
    )
    behind = []
    for title, prompts in (("as written", written), ("as typed, with noise", typed(written, arguments.seed))):
        measured = Measured.of(replayed(prompts, scorers, law, arguments.seed), arguments.samples, arguments.seed)
        print(f"Prompts {title}\n{report(measured)}\n", flush=True)
        behind += [(name, title) for name in measured.behind()]
        print(f"not told apart from the router, 95 %: {', '.join(measured.level()) or 'nobody'}\n")
        if arguments.svg and prompts is written:
            arguments.svg.write_text(draw(measured), "utf-8")
    print(sensitivity(written, scorers, law, arguments.seed))
    print(verdict(behind))
    return int(bool(behind))


def verdict(behind: Sequence[tuple[str, str]]) -> str:
    """Name the rows above which the router does not lie: methods of others, and other readers of its prompts."""
    readers = {reader + end for reader in READERS for end in ("", CASCADE)}
    lines = []
    for kind, chosen in (
        ("methods of others", [row for row in behind if row[0] not in readers]),
        ("the same prompts read by another model", [row for row in behind if row[0] in readers]),
    ):
        rows = ", ".join(f"{name} ({title})" for name, title in chosen)
        lines.append(f"{kind}: {f'not above {rows}' if rows else 'the router lies above every row'}")
    return "\n".join(lines)


def sensitivity(prompts: Sequence[Prompt], scorers: Scorers, law: Law, seed: int) -> str:
    """Return what a cascade is worth by how many of its wrong replies show themselves."""
    lines = [
        (
            f"{'wrong replies that show':26s} {'cascade recovers':>18s} {'and saves':>10s} "
            f"{'router + cascade at 95 %':>26s}"
        )
    ]
    for shown in (0.25, 0.5, 0.75, 0.9, 1.0):
        replay = replayed(prompts, scorers, replace(law, shown=shown), seed)
        counts = np.ones(len(prompts), dtype=np.int64)
        saved, recovered = replay.place("always cascade", counts)
        own = replay.figures(counts)["router + cascade"].savings[PRIMARY]
        lines.append(f"{shown:<26.0%} {recovered:>18.1%} {saved:>10.1%} {own:>26.1%}")
    return "\n".join(lines) + "\n"
