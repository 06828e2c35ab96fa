"""Genetic programming by gplearn over Alpha158 features: fitness is the mean daily RankIC on search days.

python -m bench.rivals.gplearn_search FOLDER

Every program of every generation is a candidate, not the last generation's only; they are put in order by what each
adds.
"""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..search.pursuit import Distinct, by_gain
from .days import Array, Asked, Days, daily_rank_ic

STEP = 5
"""Every fifth day: labels of five days overlap, and a search five times as long is worth more."""
POPULATION = 200
WIDE = 1000
"""Population where time decides and not the number of evaluations."""
LOOKED_AT, ORDERED, SKETCHED = 400, 30, 10
FUNCTIONS = ("add", "sub", "mul", "div", "sqrt", "log", "abs", "neg", "max", "min")
STALE = 3
"""Times as many programs as it may spend after which it ends, though most were bred twice."""
PARSIMONY = 1e-4
"""RankIC that a node must be worth."""


def main() -> None:
    """Evolve until what may be spent is spent, and write the values of the candidates on all days."""
    asked = Asked.read()
    warnings.simplefilter("ignore")
    days = Days.read(asked.folder, STEP)
    table = days.table()
    programs = evolved(asked, days, table)
    best = different(unique(programs), table, days)
    columns = [ranked(program.execute(table).reshape(days.label.shape), days.label) for program in best]
    there = ~np.isnan(days.label)
    order = by_gain([column[there] for column in columns], np.nan_to_num(days.label)[there], most=ORDERED)
    chosen = [best[place] for place in order]
    asked.answer(
        values=np.stack([on_all_days(program, days.features) for program in chosen]),
        names=[str(program) for program in chosen],
        fitness=[float(program.raw_fitness_) for program in chosen],
        evaluations=len(unique(programs)),
    )


def evolved(asked: Asked, days: Days, table: Array) -> list[Any]:
    """Return every program that was tried."""
    genetic, fitness = import_module("gplearn.genetic"), import_module("gplearn.fitness")

    def rank_ic(_: Array, values: NDArray[np.float64], weight: Array) -> float:
        if len(values) != days.label.size:  # gplearn tries a new metric on two cells
            return 0.0
        return abs(float(np.mean(daily_rank_ic(values.reshape(days.label.shape).astype(np.float32), days.label))))

    population = WIDE if asked.cpu_s is not None else max(min(POPULATION, asked.evaluations // 3), 5)
    estimator = genetic.SymbolicRegressor(
        population_size=population, generations=1, tournament_size=max(population // 20, 2), function_set=FUNCTIONS,
        metric=fitness.make_fitness(function=rank_ic, greater_is_better=True, wrap=False),
        parsimony_coefficient=PARSIMONY, init_depth=(1, 4), stopping_criteria=1.0, warm_start=True,
        random_state=asked.seed, n_jobs=1,
    )  # fmt: skip  # a table
    goal = np.nan_to_num(days.label).ravel()
    tried: list[Any] = []
    while True:
        began = time.process_time()
        estimator.set_params(generations=len(tried) // population + 1).fit(table, goal)
        tried += estimator._programs[-1]  # at the next generation gplearn forgets those that have no children
        cost = time.process_time() - began
        spent = len(unique(tried))  # what is bred twice is charged once
        if asked.left < cost if asked.cpu_s is not None else spent + population > asked.evaluations:
            return tried
        if asked.cpu_s is None and len(tried) >= STALE * asked.evaluations:
            return tried


def unique(programs: list[Any]) -> list[Any]:
    """Return programs that are written differently, the first of each."""
    return list({str(program): program for program in reversed(programs)}.values())


def different(programs: list[Any], table: Array, days: Days) -> list[Any]:
    """Return the fittest programs, near-copies of fitter ones left out."""
    cells = np.zeros(days.label.shape, np.bool_)
    cells[::SKETCHED] = True
    few, label = table[cells.ravel()], days.label[::SKETCHED]
    kept = Distinct(LOOKED_AT)
    ordered = sorted(programs, key=lambda each: (-each.raw_fitness_, each.length_, str(each)))
    return [
        program for program in ordered if kept.takes(ranked(program.execute(few).reshape(label.shape), label).ravel())
    ]


def ranked(values: NDArray[np.float64], label: Array) -> Array:
    """Return centred ranks of each day, ``[D, N]``, of the cells with a label."""
    there = ~np.isnan(label)
    order = np.argsort(np.argsort(np.where(there, values, np.inf), axis=1), axis=1)
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    return np.where(there, (order + 1) / count - 0.5, 0.0).astype(np.float32)


def on_all_days(program: Any, features: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return a program's values on all days, ``[T, N]``, a hundred days at a time."""
    out = np.empty(features.shape[1:], np.float32)
    for start in range(0, len(out), 100):
        rows = np.asarray(features[:, start : start + 100], dtype=np.float32)
        out[start : start + 100] = program.execute(rows.reshape(len(rows), -1).T).reshape(rows.shape[1:])
    return out


if __name__ == "__main__":
    main()
