"""Rivals that are installed in an environment of their own: gplearn and LightGBM, over Alpha158 features."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.ledger import compute_digest

from ...engine.environments import NUMPY, default_folder, python_of
from ...engine.process import ONE_THREAD, ROOT
from ..features import NAMED, alpha158, formula, hand_over
from ..world import Ground
from .method import Allowance, Answer, Factor, cpu_seconds

__all__ = ["ENVIRONMENT", "PACKAGES", "Outside", "boosted", "genetic"]

Values = NDArray[np.float32]
ENVIRONMENT = "search"
PACKAGES = ("gplearn==0.4.3", "lightgbm==4.7.0", "scikit-learn==1.9.1", "scipy==1.17.1", NUMPY)
Read = Callable[[Ground, dict[str, Any], Values], Answer]


@dataclass(frozen=True)
class Outside:
    """Runs one module of `bench.rivals` on a folder and reads its answer."""

    name: str
    module: str
    read: Read
    environments: Path
    fixed: bool = False

    def missing(self) -> str:
        """Say that it is not installed, or nothing."""
        there = Path(python_of(self.environments / ENVIRONMENT)).exists()
        return "" if there else "it is not installed: python -m bench.search setup"

    def state(self) -> str:
        """Return the digest of what its process runs, and of the packages."""
        files = [ROOT / "bench" / "rivals" / f"{name}.py" for name in (self.module, "days")]
        return self.module + compute_digest([*PACKAGES, *(file.read_text() for file in files)])[:8]

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Hand over features and search labels, wait, and read what it wrote; what the features cost is its own."""
        began = cpu_seconds()
        with tempfile.TemporaryDirectory(prefix="alphaloom-rival-") as place:
            folder = Path(place)
            hand_over(ground, folder)
            left = None if allowance.cpu_s is None else max(allowance.cpu_s - (cpu_seconds() - began), 1.0)
            asked = {"seed": seed, "evaluations": allowance.evaluations, "cpu_s": left}
            (folder / "asked.json").write_text(json.dumps(asked))
            self._run(folder)
            told: dict[str, Any] = json.loads((folder / "answer.json").read_text())
            values = np.load(folder / "values.npy")
        universe = ground.whole.universe
        return self.read(ground, told, np.where(universe, values, np.nan).astype(np.float32))

    def _run(self, folder: Path) -> None:
        command = [python_of(self.environments / ENVIRONMENT), "-m", f"bench.rivals.{self.module}", str(folder)]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.name} ended with code {done.returncode}:\n{done.stderr[-2000:]}")


def genetic(environments: Path | None = None) -> Outside:
    """Return genetic programming by gplearn."""
    return Outside("gplearn on Alpha158", "gplearn_search", _programs, environments or default_folder())


def boosted(environments: Path | None = None) -> Outside:
    """Return gradient boosting by LightGBM."""
    return Outside("LightGBM on Alpha158", "lightgbm_ranks", _forecast, environments or default_folder())


def _programs(ground: Ground, told: dict[str, Any], values: Values) -> Answer:
    """Return the programs in the order in which they came."""
    days = ground.search
    tests = [ground.test(np.ascontiguousarray(days.cut(value))).t for value in values]
    factors = [Factor(name, t, each) for name, t, each in zip(told["names"], tests, values, strict=True)]
    return Answer(tuple(factors), told["evaluations"])


def _forecast(ground: Ground, told: dict[str, Any], values: Values) -> Answer:
    """Return the forecast, then the features by gain; its own combination is the forecast."""
    names = list(alpha158())
    t = ground.test(np.ascontiguousarray(ground.search.cut(values[0]))).t
    features = [NAMED + names[place] for place in told["names"][:40]]
    factors = [
        Factor("the forecast", t, values[0]),
        *(Factor(feature, ground.score(formula(feature)).t) for feature in features),
    ]
    return Answer(tuple(factors), told["evaluations"], combined=values[0], more={"validation": told["validation"]})
