"""Measure how much good and bad years scatter beside what the gate's null promises.

python -m bench.blocks                                the synthetic market
python -m bench.blocks --panel FILE [--sectors FILE]  your prices, and the same made null by a coin for each day

The gate takes a factor's daily RankIC for a constant mean plus independent shocks that overlap, and measures the error
of a mean by Newey-West within the window. A style that has good and bad years breaks that: the means of blocks of a
year then scatter more than the errors within the blocks promise. For each published factor the days are cut into
blocks, and this prints

- the variance of the block means over the mean squared Newey-West error (1: as promised; the estimate itself is noisy,
  and Newey-West errors are somewhat too small in blocks of this length, which the null distribution of the gate allows
  for);
- the share of blocks whose mean, less that of all blocks, has a t beyond the gate's two-sided 2 % and 0.2 %.

On a panel made null by coins the shocks are independent from day to day by construction, so no control of that kind can
show it.

--tests compares three ways to measure the error of a mean: Newey-West with a lag of 2h (what the gate does), with a
lag of a quarter (fixed-b), and the larger of the first and the scatter of quarters' means. Critical values of each are
those of overlapping noise. It prints the effect, in true standard errors, that is significant at 0.001 four times in
five, and the share of windows whose mean, less that of all days, is beyond the two-sided 10 %, 2 % and 0.2 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.newey_west import newey_west_t, null_distribution
from alphaloom.evidence.originality.published import published_expressions
from alphaloom.evidence.scoring.labels import cut_label
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, order_rows, row_rank_correlation
from alphaloom.market import Panel, PanelSource, SyntheticConfig, load_panel, make_null_panel, simulate

Series = NDArray[np.float64]
BLOCK_DAYS: Final = 299
WARMUP_DAYS: Final = 252
"""Days before the first block: windows of a year, and the exposures of labels, are full from then on."""
SHARES: Final = (0.02, 0.002)
SIZES: Final = (0.1, 0.02, 0.002)
QUARTER_DAYS: Final = 63
NOISE_RUNS: Final = 20_000
POWER_LEVEL: Final = 0.001
"""One-sided level at which power is compared."""


@dataclass(frozen=True)
class Scatter:
    """What the blocks of one factor say: variance over what was promised, and the t of each block."""

    ratio: float
    t: Series


def scatter(daily: Series, horizon: int, block_days: int) -> Scatter | None:
    """Return how much block means of a daily RankIC `[D]` scatter; None for fewer than three whole blocks.

    Between two blocks the last `horizon` days of labels are left out, so that no label lies in two.
    """
    lag = 2 * horizon
    starts = range(0, len(daily) - block_days + 1, block_days)
    found = [newey_west_t(daily[start : start + block_days - horizon], lag) for start in starts]
    found = [block for block in found if block.days > block_days / 2 and block.standard_error > 0]
    if len(found) < 3:
        return None
    means = np.array([block.mean for block in found])
    errors = np.array([block.standard_error for block in found])
    centred = (means - means.mean()) * np.sqrt(len(found) / (len(found) - 1))
    return Scatter(float(means.var(ddof=1) / np.mean(errors**2)), centred / errors)


def beyond(found: Iterable[Scatter], horizon: int, block_days: int, share: float) -> float:
    """Return the share of blocks whose t is beyond the two-sided bound of the gate's null at a share."""
    bound = null_distribution(block_days - horizon, horizon, 2 * horizon).t_required(share / 2)
    t = np.concatenate([block.t for block in found])
    return float(np.mean(np.abs(t) > bound))


def daily_series(panel: Panel, factors: int, settings: EvidenceSettings) -> list[Series]:
    """Return the daily RankIC of published factors on all days after the warm-up, in the order of their ids' hashes."""
    whole = Window("whole", WARMUP_DAYS, panel.days, "", "")
    order = order_rows(cut_label(Scorer(panel, settings).main_label, whole, settings.horizon_days))
    able = [each for _, each, _ in published_expressions() if each.fields <= {*panel.fields, *panel.groups}]
    chosen = sorted(able, key=lambda each: each.id)[:factors]
    return [row_rank_correlation(whole.cut(values), order) for values in Engine(panel).stream(chosen)]


def measured(name: str, panel: Panel, factors: int, block_days: int) -> dict[str, float]:
    """Print and return the figures of one panel."""
    settings = EvidenceSettings()
    horizon = settings.horizon_days
    found = [each for daily in daily_series(panel, factors, settings) if (each := scatter(daily, horizon, block_days))]
    ratios = np.array([block.ratio for block in found])
    row = {"factors": len(found), "mean": float(ratios.mean()), "median": float(np.median(ratios))}
    row |= {f"beyond {share:g}": beyond(found, horizon, block_days, share) for share in SHARES}
    blocks = len(found[0].t)
    shares = "  ".join(f"{row[f'beyond {share:g}']:.3f} of |t| beyond {share:g}" for share in SHARES)
    sys.stdout.write(
        f"{name:28s} {len(found):3d} factors, {blocks} blocks of {block_days} days  variance over promised: "
        f"mean {row['mean']:.2f}, median {row['median']:.2f}  {shares}\n"
    )
    sys.stdout.flush()
    return row


def newey_west_error(values: Series, lag: int) -> float:
    """Return the Newey-West error of the mean of a series `[D]` without NaN."""
    days, centred = len(values), values - values.mean()
    variance = centred @ centred / days
    for step in range(1, lag + 1):
        variance += 2 * (1 - step / (lag + 1)) * (centred[:-step] @ centred[step:]) / days
    return float(np.sqrt(max(variance, 1e-12) / days))


def quarters_error(values: Series) -> float:
    """Return the error of the mean of a series `[D]` that the scatter of its quarters' means shows; 0 below three."""
    means = [values[start : start + QUARTER_DAYS].mean() for start in range(0, len(values) - 62, QUARTER_DAYS)]
    return float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 2 else 0.0


ERRORS: Final[Mapping[str, Callable[[Series, int], float]]] = MappingProxyType(
    {
        "Newey-West, lag 2h": lambda values, horizon: newey_west_error(values, 2 * horizon),
        "Newey-West, lag 63 (fixed-b)": lambda values, horizon: newey_west_error(values, QUARTER_DAYS),
        "larger of lag 2h and quarters": lambda values, horizon: max(
            newey_west_error(values, 2 * horizon), quarters_error(values)
        ),
    }
)


def window_ts(daily: Sequence[Series], days: int, horizon: int, error: Callable[[Series, int], float]) -> Series:
    """Return the t of each window of so many days, half a window apart, about the mean of all days."""
    found = []
    for series in daily:
        known = np.isfinite(series)
        mean, left = float(series[known].mean()), np.sqrt(1 - days / known.sum())
        for start in range(0, len(series) - days + 1, days // 2):
            values = series[start : start + days - horizon - 1]
            values = values[np.isfinite(values)]
            if len(values) > 0.8 * days:
                found.append((values.mean() - mean) / error(values, horizon) / left)
    return np.array(found)


def compare_errors(panels: Mapping[str, Panel], factors: int, days: int) -> None:
    """Print size and power of each way to measure the error, on panels."""
    settings = EvidenceSettings()
    horizon, rng = settings.horizon_days, np.random.default_rng(0)
    length = days - horizon - 1
    sums = np.cumsum(np.pad(rng.standard_normal((NOISE_RUNS, length + horizon)), ((0, 0), (1, 0))), axis=1)
    noise = (sums[:, horizon:] - sums[:, :-horizon])[:, :length]
    daily = {name: daily_series(panel, factors, settings) for name, panel in panels.items()}
    for name, error in ERRORS.items():
        errors, means = np.array([error(row, horizon) for row in noise]), noise.mean(axis=1)
        needed = np.quantile(means / errors, 1 - POWER_LEVEL)
        effects = np.arange(2.0, 9.0, 0.05)
        effect = next(size for size in effects if np.mean((means + size * means.std()) / errors > needed) > 0.8)
        bounds = [np.quantile(np.abs(means / errors), 1 - share) for share in SIZES]
        sizes = {
            panel: [float(np.mean(np.abs(window_ts(rows, days, horizon, error)) > bound)) for bound in bounds]
            for panel, rows in daily.items()
        }
        shares = "  ".join(f"{panel}: {', '.join(f'{size:.4f}' for size in row)}" for panel, row in sizes.items())
        sys.stdout.write(f"{name:32s} effect {effect:.2f}  beyond {SIZES}: {shares}\n")
        sys.stdout.flush()


def thinned(panel: Panel, names: int) -> Panel:
    """Return a panel of so many names, spread evenly over the alphabet."""
    if names >= panel.names:
        return panel
    return take_columns(panel, np.linspace(0, panel.names - 1, names).astype(int))


def take_columns(panel: Panel, columns: NDArray[np.int64]) -> Panel:
    """Return a panel with some of its symbols, by their places."""
    return Panel(
        dates=panel.dates,
        symbols=tuple(panel.symbols[at] for at in columns),
        fields={name: np.ascontiguousarray(values[:, columns]) for name, values in panel.fields.items()},
        universe=np.ascontiguousarray(panel.universe[:, columns]),
        groups={name: codes[columns] for name, codes in panel.groups.items()},
        group_labels=panel.group_labels,
        notes=panel.notes,
        back_adjusted=panel.back_adjusted,
    )


def main() -> int:
    """Print one line for each panel."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", type=Path, help="prices, Parquet or CSV")
    options.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    options.add_argument("--names", type=int, default=250)
    options.add_argument("--days", type=int, default=2518, help="of the synthetic market")
    options.add_argument("--factors", type=int, default=83)
    options.add_argument("--block", type=int, default=BLOCK_DAYS, help="days of a block")
    options.add_argument("--seeds", type=int, default=3, help="null panels and synthetic markets")
    options.add_argument(
        "--tests", type=int, default=0, metavar="DAYS", help="compare errors on windows of so many days"
    )
    given = options.parse_args()
    if given.panel is None:
        for seed in range(given.seeds):
            market = simulate(SyntheticConfig(seed=seed, days=given.days, names=given.names))
            measured(f"synthetic, seed {seed}", market.panel, given.factors, given.block)
        return 0
    panel = thinned(load_panel(PanelSource(given.panel, given.sectors)), given.names)
    if given.tests:
        made_null = {f"null, seed {seed}": make_null_panel(panel, seed) for seed in range(given.seeds)}
        compare_errors({"as it is": panel, **made_null}, given.factors, given.tests)
        return 0
    measured("as it is", panel, given.factors, given.block)
    for seed in range(given.seeds):
        measured(f"made null by signs, seed {seed}", make_null_panel(panel, seed), given.factors, given.block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
