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
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
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


def thinned(panel: Panel, names: int) -> Panel:
    """Return a panel of so many names, spread evenly over the alphabet."""
    if names >= panel.names:
        return panel
    columns = np.linspace(0, panel.names - 1, names).astype(int)
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
    given = options.parse_args()
    if given.panel is None:
        for seed in range(given.seeds):
            market = simulate(SyntheticConfig(seed=seed, days=given.days, names=given.names))
            measured(f"synthetic, seed {seed}", market.panel, given.factors, given.block)
        return 0
    panel = thinned(load_panel(PanelSource(given.panel, given.sectors)), given.names)
    measured("as it is", panel, given.factors, given.block)
    for seed in range(given.seeds):
        measured(f"made null by signs, seed {seed}", make_null_panel(panel, seed), given.factors, given.block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
