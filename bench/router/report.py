"""The tables of a replay as text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.router.curve import LEVELS, Figures
from bench.router.measured import CASCADE, ORACLE, PRIMARY, SHIPPED, THEN_CASCADE, Measured
from bench.router.scorers import READERS, ROUTER

__all__ = ["interval", "report"]

KEPT = {SHIPPED: ORACLE, THEN_CASCADE: ORACLE + CASCADE}


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
        (
            f"{'':29s} {'':22s} {'saving':>{len(saved)}s} {'of the oracle':>22s} "
            f"{'router above by (area, saving at 95 %)':>44s}"
        ),
        f"{'order by':29s} {'area':>22s} {saved} {'at 95 %':>22s} {'':44s} {'equal cost':>11s} {'equal quality':>14s}",
    ]
    for name, found in measured.found.items():
        plain, best = CASCADE not in name, _best(name)
        savings = " ".join(f"{saving:8.1%}" for saving in found.savings)
        area = _told(measured, lambda each, name=name: each[name].area, "{:.3f}") if plain else ""
        share = _told(measured, lambda each, name=name, best=best: _share(each[name], each[best]), "{:.0%}")
        above = _above(measured, name) if name not in (ROUTER, ROUTER + CASCADE, best) else ""
        lines.append(
            f"{_marked(name):29s} {area:>22s} {savings} {share:>22s} {above:>44s} {found.quality_at:>11.1%} "
            f"{found.saving_at:>14.1%}"
        )
    lines.append(
        "* the same prompts as the router's, read by another model\n"
        f"equal cost: quality recovered at the cost of the {SHIPPED} (of a row with a cascade: {THEN_CASCADE}); "
        "equal quality: saving where it recovers as much"
    )
    return lines


def _share(own: Figures, best: Figures) -> float:
    return own.savings[PRIMARY] / best.savings[PRIMARY]


def _told(measured: Measured, figure: Callable[..., float], form: str) -> str:
    low, high = interval([figure(sample) for sample in measured.again])
    return f"{form.format(figure(measured.found))} ({form.format(low)} to {form.format(high)})"


def _best(name: str) -> str:
    return ORACLE + CASCADE if CASCADE in name else ORACLE


def _marked(name: str) -> str:
    return f"{name} *" if name.removesuffix(CASCADE) in READERS else name


def _above(measured: Measured, name: str) -> str:
    if CASCADE in name:
        own = ROUTER + CASCADE
        return _told(measured, lambda each: each[own].savings[PRIMARY] - each[name].savings[PRIMARY], "{:+.1%}")
    area = _told(measured, lambda each: each[ROUTER].area - each[name].area, "{:+.3f}")
    saving = _told(measured, lambda each: each[ROUTER].savings[PRIMARY] - each[name].savings[PRIMARY], "{:+.1%}")
    return f"{area}, {saving}"


def _points(measured: Measured) -> list[str]:
    lines = [f"{'one point':22s} {'saving':>26s} {'recovered':>28s}"]
    for name in measured.replay.points:
        saved, recovered = measured.replay.place(name, measured.once)
        again = [measured.replay.place(name, counts) for counts in measured.samples[:100]]
        spans = [interval([sample[at] for sample in again]) for at in (0, 1)]
        told = [
            f"{value:.1%} ({low:.1%} to {high:.1%})"
            for value, (low, high) in zip((saved, recovered), spans, strict=True)
        ]
        lines.append(f"{name:22s} {told[0]:>26s} {told[1]:>28s}")
    return [*lines, *(_kept(measured, point, best) for point, best in KEPT.items())]


def _kept(measured: Measured, point: str, best: str) -> str:
    """Return what a way keeps of an oracle's saving at the same quality."""
    place = measured.replay.place
    kept = place(point, measured.once)[0] / measured.found[best].saving_at
    again = [
        place(point, counts)[0] / each[best].saving_at
        for counts, each in zip(measured.samples, measured.again, strict=True)
    ]
    low, high = interval(again)
    return f"{point}: {kept:.0%} ({low:.0%} to {high:.0%}) of what the {best} saves at the same quality"
