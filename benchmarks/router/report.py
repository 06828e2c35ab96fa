"""The tables of a replay as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.router.curve import LEVELS, Figures
from benchmarks.router.measured import ORACLE, PRIMARY, SHIPPED, Measured
from benchmarks.router.scorers import ROUTER

__all__ = ["interval", "report"]


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of bootstrap values."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def report(measured: Measured) -> str:
    """Return all tables of one replay."""
    return "\n".join([*_curves(measured), "", *_points(measured)])


def _curves(measured: Measured) -> list[str]:
    saved = " ".join(f"{f'at {level:.0%}':>8s}" for level in LEVELS)
    lines = [
        f"{'':20s} {'':22s} {'saving':>{len(saved)}s} {'of the oracle':>22s} {'router above by (area, saving at 95 %)':>44s}",
        f"{'order by':20s} {'area':>22s} {saved} {'at 95 %':>22s} {'':44s} {'equal cost':>11s} {'equal quality':>14s}",
    ]
    for name, found in measured.found.items():
        plain = "cascade" not in name
        savings = " ".join(f"{each:8.1%}" for each in found.savings)
        area = _told(measured, lambda each, name=name: each[name].area, "{:.3f}") if plain else ""
        share = _told(measured, lambda each, name=name: _share(each[name], each[ORACLE]), "{:.0%}")
        above = _above(measured, name) if plain and name not in (ROUTER, ORACLE) else ""
        lines.append(
            f"{name:20s} {area:>22s} {savings} {share:>22s} {above:>44s} {found.quality_at:>11.1%} {found.saving_at:>14.1%}"
        )
    lines.append(
        "equal cost: quality recovered at the cost of the router as shipped; equal quality: saving where it recovers as much"
    )
    return lines


def _share(own: Figures, best: Figures) -> float:
    return own.savings[PRIMARY] / best.savings[PRIMARY]


def _told(measured: Measured, figure: Callable[..., float], form: str) -> str:
    low, high = interval([figure(each) for each in measured.again])
    return f"{form.format(figure(measured.found))} ({form.format(low)} to {form.format(high)})"


def _above(measured: Measured, name: str) -> str:
    area = _told(measured, lambda each: each[ROUTER].area - each[name].area, "{:+.3f}")
    saving = _told(measured, lambda each: each[ROUTER].savings[PRIMARY] - each[name].savings[PRIMARY], "{:+.1%}")
    return f"{area}, {saving}"


def _points(measured: Measured) -> list[str]:
    lines = [f"{'one point':22s} {'saving':>26s} {'recovered':>28s}"]
    for name in measured.replay.points:
        saved, recovered = measured.replay.place(name, measured.once)
        again = [measured.replay.place(name, counts) for counts in measured.samples[:100]]
        spans = [interval([each[at] for each in again]) for at in (0, 1)]
        told = [
            f"{value:.1%} ({low:.1%} to {high:.1%})"
            for value, (low, high) in zip((saved, recovered), spans, strict=True)
        ]
        lines.append(f"{name:22s} {told[0]:>26s} {told[1]:>28s}")
    shipped = measured.replay.place(SHIPPED, measured.once)[0]
    best = measured.found[ORACLE].saving_at
    lines.append(f"the router as shipped saves {shipped / best:.0%} of what the oracle saves at the same quality")
    return lines
