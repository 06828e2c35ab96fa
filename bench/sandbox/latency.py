"""What a call costs, beside the ways in which others run generated code, in the same run.

python -m bench.sandbox latency              500 days x 40 names x six fields; then ten MB; as root and as nobody
python -m bench.sandbox latency --calls 50   fewer calls

Rivals do the same work on the same panel and take turns with us: a fresh interpreter that is sent the code and the
panel as a pickle and sends the answer back as one (what those do that call `python factor.py`), the same inside
bubblewrap, and a fork without any wall (our own server with every wall left out). Milliseconds by the wall clock, since
that is what waits: the least (what an idle machine would take), the median, the 95th percentile; ratios are of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from alphaloom.sandbox import Frames, Job, Limits, Sandbox
from alphaloom.sandbox.native.backend import LAYERS, Native
from tests.sandbox.attacks.users import NOBODY, OutOfReach, as_user, interpreter, paths, within_reach

FIELDS = ("close", "high", "low", "open", "returns", "volume")
SIZES = {"500 x 40": (500, 40), "10 MB": (2000, 109)}
CODE = """
def factor(panel):
    close, volume = panel["close"], panel["volume"]
    return -(close / close.shift(5) - 1).rank(axis=1) * (volume / volume.rolling(20).mean())
"""
CHILD = """
import pickle, sys
import numpy as np, pandas as pd
code, fields, dates, symbols = pickle.load(sys.stdin.buffer)
panel = {name: pd.DataFrame(values, index=dates, columns=symbols) for name, values in fields.items()}
world = {"np": np, "pd": pd}
exec(code, world)
pickle.dump(world["factor"](panel).to_numpy(), sys.stdout.buffer)
"""


@dataclass(frozen=True)
class Timed:
    """Milliseconds of one way on one panel."""

    size: str
    way: str
    least: float
    median: float
    p95: float
    calls: int


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox latency", description=__doc__)
    parser.add_argument(
        "--calls", type=int, default=200, help="warm calls of ours; rivals that start fresh make a tenth"
    )
    parser.add_argument("--json", type=Path, help="write what was measured")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Measure as whoever runs it, and as nobody too where root does."""
    options = arguments(given)
    if options.here:
        print(json.dumps(measured(options.calls)))
        return 0
    found = {}
    for name, user in (("root", None), ("nobody", NOBODY)) if os.getuid() == 0 else (("user", None),):
        try:
            found[name] = measured_as(user, options.calls)
        except OutOfReach as error:
            print(f"{name}: not measured, {error}")
            continue
        print("\n".join(lines(name, found[name])), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return 0


def measured_as(user: int | None, calls: int) -> dict[str, object]:
    """Return the figures of another user, whose process measures."""
    with within_reach(user, Path("/")) as place:
        command = [place.python, "-B", "-m", "bench.sandbox", "latency", "--here", "--calls", str(calls)]
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": place.paths}
        run = subprocess.run(  # type: ignore[call-overload]
            command, env=environment, cwd=place.root, stdout=subprocess.PIPE, check=True, **as_user(user)
        )
    return dict(json.loads(run.stdout))


def measured(calls: int) -> dict[str, object]:
    """Return every figure of this user: cold starts, calls, rivals, calls a second with one worker and with two."""
    rows = [row for size in SIZES for row in race(size, calls)]
    cold = statistics.median(cold_start() for _ in range(3))
    rates = {str(workers): rate(workers, calls) for workers in (1, 2)}
    return {"cold_ms": cold, "rows": [asdict(row) for row in rows], "rate": rates, "load": os.getloadavg()[0]}


def race(size: str, calls: int) -> list[Timed]:
    """Let every way run in turns on a panel of this size."""
    frames = panel(*SIZES[size])
    packed = pickle.dumps((CODE, dict(frames.fields), frames.dates.astype("datetime64[ns]"), list(frames.symbols)))
    fresh = [interpreter(), "-c", CHILD]
    ways: dict[str, tuple[int, Callable[[], object]]] = {}
    with Sandbox(Limits()) as ours, Sandbox(Limits(), backend=Native(LAYERS)) as bare:
        ways["alphaloom"] = calls, lambda: ours.run(CODE, frames)
        ways["alphaloom, new panel"] = max(calls // 5, 3), lambda: ours.run(CODE, panel(*SIZES[size]))
        ways["alphaloom, first half of the days"] = (
            max(calls // 5, 3),
            lambda: ours.run(CODE, frames, rows=len(frames.dates) // 2),
        )
        ways["a fork without walls"] = calls, lambda: bare.run(CODE, frames)
        ways["a fresh python with pickle"] = max(calls // 10, 3), lambda: answered(fresh, packed)
        if shutil.which("bwrap"):
            ways["the same inside bwrap"] = max(calls // 10, 3), lambda: answered([*bubble(), *fresh], packed)
        times = taken(ways)
    return [Timed(size, way, *_summary(times[way]), len(times[way])) for way in ways]


def taken(ways: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, list[float]]:
    """Return milliseconds of each call; ways take turns, those with few calls less often."""
    most = max(count for count, _ in ways.values())
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _, call in ways.values():
        call()  # warm
    for turn in range(most):
        for way, (count, call) in ways.items():
            if len(times[way]) * most <= turn * count and len(times[way]) < count:
                began = time.perf_counter()
                call()
                times[way].append(1000 * (time.perf_counter() - began))
    return times


def answered(command: Sequence[str], packed: bytes) -> object:
    """Send a pickle to a fresh interpreter and read its answer as a pickle, as rivals do."""
    environment = {"PYTHONPATH": paths(), "OPENBLAS_NUM_THREADS": "1", "PATH": os.environ.get("PATH", "")}
    run = subprocess.run(command, input=packed, stdout=subprocess.PIPE, env=environment, check=True)
    return pickle.loads(run.stdout)


def bubble() -> list[str]:
    """Return bubblewrap's part of a command: everything readable, nothing writable, nothing shared."""
    return [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
    ]


def cold_start() -> float:
    """Return milliseconds from nothing to the first answer."""
    frames = panel(*SIZES["500 x 40"])
    began = time.perf_counter()
    with Sandbox(Limits()) as ours:
        ours.run(CODE, frames)
        return 1000 * (time.perf_counter() - began)


def rate(workers: int, calls: int) -> float:
    """Return calls a second."""
    frames = panel(*SIZES["500 x 40"])
    with Sandbox(Limits(), workers=workers) as ours:
        list(ours.run_each(Job(CODE, frames) for _ in range(2 * workers)))
        began = time.perf_counter()
        for outcome in ours.run_each(Job(CODE, frames) for _ in range(calls)):
            outcome.unwrap()
        return calls / (time.perf_counter() - began)


def panel(days: int, names: int) -> Frames:
    """Return a panel of this size; a new one each time, so that its file is new too."""
    rng = np.random.default_rng(0)
    close = np.exp(0.01 * rng.standard_normal((days, names)).cumsum(axis=0))
    fields = {name: close * (1 + 0.01 * place) for place, name in enumerate(FIELDS)}
    return Frames(
        fields, np.datetime64("2016-01-01") + np.arange(days), tuple(f"S{place:04}" for place in range(names))
    )


def lines(user: str, found: dict[str, object]) -> list[str]:
    """Return the table of one user."""
    rows = [Timed(**row) for row in found["rows"]]  # type: ignore[attr-defined]
    rates, load = found["rate"], found["load"]
    ours = {row.size: row.median for row in rows if row.way == "alphaloom"}
    text = [
        f"as {user}, {os.cpu_count()} cores, load {load:.1f} before:",
        "",
        "| panel | way | least ms | median ms | p95 ms | times ours |",
        "|---|---|---:|---:|---:|---:|",
    ]
    text += [
        (
            f"| {row.size} | {row.way} | {row.least:.1f} | {row.median:.1f} | {row.p95:.1f} | "
            f"{row.median / ours[row.size]:.2f} |"
        )
        for row in rows
    ]
    told = ", ".join(f"{each:.0f} with {workers}" for workers, each in rates.items())  # type: ignore[attr-defined]
    return [*text, "", f"cold start {found['cold_ms']:.0f} ms; calls a second by workers: {told}", ""]


def _summary(times: Sequence[float]) -> tuple[float, float, float]:
    return min(times), statistics.median(times), float(np.quantile(times, 0.95))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
