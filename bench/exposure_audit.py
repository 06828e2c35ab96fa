"""What the exposure audit finds: planted proxies by case, and harmless scores.

python -m bench.exposure_audit [--markets 100] [--number 1]

Each market has 200 assets, 60 days, a group of 30 % of the assets, a second attribute and sizes. `5 %` is one audit
alone, `charged` the threshold of the audit with this number in a workspace, without a finding before. The pooled t-test
takes each asset and day for a fresh draw: the usual mistake. `with size` leaves in what size explains. The cases of one
day have 500 assets. Seconds are CPU of one audit.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from scipy.stats import ttest_ind

from alphaloom.evidence.proxies import audit_groups, audit_level
from tests.evidence.planted_proxies import HARMLESS, LEAKS, ONE_DAY, plant

CHANCE = 0.05
HEAD = ("pooled t", "5 %", "charged", "with size", "permutations", "would see", "s")


def measure(case: str, markets: int, level: float) -> list[float]:
    """Return the share of markets in which each test finds the group, and means over them, in the order of `HEAD`."""
    rows = []
    for seed in range(markets):
        asked = plant(case, seed)
        inside = asked.groups["group"] == 1
        pooled = ttest_ind(asked.scores[:, inside].ravel(), asked.scores[:, ~inside].ravel()).pvalue <= CHANCE
        began = time.process_time()
        (one,) = audit_groups(asked, ["group"], level, seed)
        seconds = time.process_time() - began
        with_size = one.p_with_size is not None and one.p_with_size <= CHANCE
        rows.append((pooled, one.p_value <= CHANCE, one.found, with_size, one.permutations, one.smallest_gap, seconds))
    return list(np.mean(rows, axis=0, dtype=float))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=100)
    parser.add_argument("--number", type=int, default=1)
    options = parser.parse_args()
    level = audit_level(options.number, 0)
    print(f"threshold of audit {options.number}: {level:.2g}")
    print(f"{'case':30}" + "".join(f"{name:>13}" for name in HEAD))
    for title, cases in (("carries the group", LEAKS), ("does not", HARMLESS), ("one day, 500 assets", ONE_DAY)):
        print(title)
        for case in cases:
            row = measure(case, options.markets, level)
            print(f"  {case:28}" + "".join(f"{value:13.2f}" for value in row), flush=True)
    print(f"{options.markets} markets a case; the error of a share is at most {0.5 / np.sqrt(options.markets):.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
