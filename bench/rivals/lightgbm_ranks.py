"""Gradient boosting by LightGBM on Alpha158 features forecasts the label's rank; early stopping is purged.

python -m bench.rivals.lightgbm_ranks FOLDER

An evaluation is a tree. Where time decides, settings are drawn until it is spent and the best on validation days is
kept.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .days import Array, Asked, Days, daily_rank_ic

STEP = 5
VALIDATION = 0.2
"""Share of the search days, the last ones, on which training is stopped."""
PURGE = 12
"""Days left out between training and validation: labels reach six days ahead, and as many again for what lingers."""
PATIENCE = 50
USUAL = {
    "learning_rate": 0.03,
    "num_leaves": 31,
    "min_data_in_leaf": 500,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "lambda_l2": 10.0,
}
DRAWN: dict[str, tuple[float, ...]] = {
    "learning_rate": (0.01, 0.02, 0.03, 0.05),
    "num_leaves": (7, 15, 31, 63),
    "min_data_in_leaf": (200, 500, 1000, 3000),
    "feature_fraction": (0.1, 0.2, 0.3, 0.5, 0.8),
    "bagging_fraction": (0.5, 0.7, 0.9),
    "lambda_l2": (0.0, 1.0, 10.0, 100.0),
}


def main() -> None:
    """Train, and write the forecast on all days with the features in the order of their gain."""
    asked = Asked.read()
    days = Days.read(asked.folder, STEP)
    last = int(days.rows[-1] * (1 - VALIDATION))
    early, late = days.part(days.rows < last - PURGE), days.part(days.rows >= last)
    tables = (early.table(), late.table())
    rng, trees, best, best_settings, rounds = np.random.default_rng(asked.seed), 0, -np.inf, dict(USUAL), 1
    settings: dict[str, float] = dict(USUAL)
    while True:
        began = time.process_time()
        model, score, tried = trained(asked, settings, (early, late), tables)
        trees += tried
        if score > best:
            best, best_settings, rounds = score, settings, model.best_iteration
        cost = time.process_time() - began
        if asked.cpu_s is None or asked.left < 2.5 * cost:  # what is chosen is trained once more on all days
            break
        settings = {name: rng.choice(choices).item() for name, choices in DRAWN.items()}
    model = final(asked, best_settings, int(rounds / (1 - VALIDATION)), days)
    gain = model.feature_importance("gain")
    asked.answer(
        values=forecast(model, days.features),
        names=[int(place) for place in np.argsort(-gain, kind="stable")],
        evaluations=trees,
        settings=best_settings,
        validation=best,
    )


def trained(asked: Asked, settings: dict[str, float], parts: tuple[Days, Days], tables: tuple[Array, Array]) -> Any:
    """Return a model, its RankIC on validation days, and how many trees were grown."""
    lgb = import_module("lightgbm")
    early, late = parts
    there = ~np.isnan(early.label).ravel()
    data = lgb.Dataset(tables[0][there], early.label.ravel()[there])
    there = ~np.isnan(late.label).ravel()
    check = lgb.Dataset(tables[1][there], late.label.ravel()[there], reference=data)
    filled = np.full(late.label.size, np.nan, np.float32)

    def rank_ic(values: NDArray[np.float64], _: Any) -> tuple[str, float, bool]:
        filled[there] = values
        return "rank_ic", float(np.mean(daily_rank_ic(filled.reshape(late.label.shape), late.label))), True

    grown = [0]
    model = lgb.train(
        parameters(asked, settings),
        data,
        asked.evaluations,
        valid_sets=[check],
        feval=rank_ic,
        callbacks=[lgb.early_stopping(PATIENCE, first_metric_only=True, verbose=False), lambda _: counted(grown)],
    )
    return model, float(model.best_score["valid_0"]["rank_ic"]), grown[0]


def counted(grown: list[int]) -> None:
    """Count a tree."""
    grown[0] += 1


def final(asked: Asked, settings: dict[str, float], trees: int, days: Days) -> Any:
    """Return the model of all search days."""
    lgb = import_module("lightgbm")
    there = ~np.isnan(days.label).ravel()
    data = lgb.Dataset(days.table()[there], days.label.ravel()[there])
    return lgb.train(parameters(asked, settings), data, max(trees, 1))


def parameters(asked: Asked, settings: dict[str, float]) -> dict[str, Any]:
    """Return LightGBM's parameters: one thread, the same bytes for the same seed."""
    fixed = {
        "objective": "regression",
        "metric": "None",
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
    }
    return {**settings, **fixed, "bagging_freq": 1, "seed": asked.seed, "verbose": -1}


def forecast(model: Any, features: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the forecast on all days, ``[1, T, N]``, a hundred days at a time."""
    out = np.empty((1, *features.shape[1:]), np.float32)
    for start in range(0, out.shape[1], 100):
        rows = np.asarray(features[:, start : start + 100], dtype=np.float32)
        out[0, start : start + 100] = model.predict(rows.reshape(len(rows), -1).T, num_threads=1).reshape(
            rows.shape[1:]
        )
    return out


if __name__ == "__main__":
    main()
