"""What a decision takes: every prompt once, one after the other, on one thread, by the clock and of CPU.

python -m bench.router latency                        2,000 prompts
python -m bench.router latency --embedding FOLDER     a sentence embedding of yours as well

A row reads a prompt or decides on it; the first hundred calls are not counted. Load and memory are those of a fresh
process: what the first reading takes of CPU once Python runs, imports included, and how much memory is held after it.
The exit code is 1 if the 99th percentile of a decision is not below five milliseconds of CPU.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.router import RouterConfig
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.policy.decision import Decider, RoutingQuestion
from bench.router.prompts import MODELS, mixed
from bench.router.scorers import beside

WARM = 100
LIMIT_MS = 5.0
_FRESH = """
import pathlib, resource, time
def pages():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1])
start, before = time.process_time(), pages()
{load}
print(time.process_time() - start, (pages() - before) * resource.getpagesize())
"""
_READ = """
from alphaloom.router.classifier.model import Classifier
Classifier.shipped().read("Which field holds the traded volume?")
"""
_NUMPY = "import numpy"


def main(given: Sequence[str]) -> int:
    """Time, print, and return 1 where a decision takes too long."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--prompts", type=int, default=2_000)
    options.add_argument("--embedding", type=Path, help="folder with model.onnx and tokenizer.json")
    arguments = options.parse_args(given)
    texts = mixed(arguments.prompts, seed=1)
    timed = {name: durations(call, texts) for name, call in calls(arguments.embedding).items()}
    print(f"{len(texts)} prompts, {np.mean([len(text) for text in texts]):.0f} characters in the mean\n{table(timed)}")
    for name, code in (("numpy alone", _NUMPY), ("the classifier, numpy included", _READ)):
        if (taken := fresh(code)) is not None:
            print(f"{name}: {1000 * taken[0]:.0f} ms of CPU, {taken[1] / 2**20:.1f} MiB")
    return int(float(np.quantile(timed["decide"][1], 0.99)) >= LIMIT_MS)


def calls(embedding: Path | None) -> Mapping[str, Callable[[str], object]]:
    """Return what is timed; without scikit-learn its row is left out."""
    classifier = Classifier.shipped()
    decider = Decider(RouterConfig.model_validate({"models": MODELS}), classifier)
    found: dict[str, Callable[[str], object]] = {
        "read": classifier.read,
        "decide": lambda text: decider.decide(RoutingQuestion(prompt=text, role="factor")),
    }
    tfidf, own = beside(embedding)
    return found | ({"TF-IDF + LR": tfidf.read} if tfidf else {}) | ({own.name: own.read} if own else {})


def durations(call: Callable[[str], object], texts: Sequence[str]) -> NDArray[np.float64]:
    """Return milliseconds of each call by the clock and of CPU, ``[2, texts]``."""
    for text in texts[:WARM]:
        call(text)
    values = np.empty((2, len(texts)))
    for at, text in enumerate(texts):
        clock, used = time.perf_counter_ns(), time.thread_time_ns()
        call(text)
        values[:, at] = time.perf_counter_ns() - clock, time.thread_time_ns() - used
    return values / 1e6


def table(timed: Mapping[str, NDArray[np.float64]]) -> str:
    """Return the rows as text; ratios are of CPU at the median, to the classifier's own."""
    lines = [f"{'ms':24s} {'CPU p50':>8s} {'p99':>8s} {'clock p50':>10s} {'p99':>8s} {'times read':>11s}"]
    own = np.median(timed["read"][1])
    for name, (clock, used) in timed.items():
        told = [float(np.quantile(times, share)) for times in (used, clock) for share in (0.5, 0.99)]
        lines.append(
            f"{name:24s} {told[0]:8.3f} {told[1]:8.3f} {told[2]:10.3f} {told[3]:8.3f} {np.median(used) / own:11.1f}"
        )
    return "\n".join(lines)


def fresh(load: str) -> tuple[float, float] | None:
    """Return seconds of CPU and bytes that some code takes in a fresh process; None where there is no /proc."""
    if not Path("/proc/self/statm").exists():
        return None
    done = subprocess.run([sys.executable, "-c", _FRESH.format(load=load)], capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split()
    return float(seconds), float(size)
