"""How often would the gate call a worthless factor significant? Measured against nominal, from 0.05 to 1e-5.

python -m bench.tails                      2,000,000 draws a row: six to eight minutes of one core
python -m bench.tails --draws 20000        a glance

Each cell says how many were significant, how many a test of exactly nominal size expects, the ratio of the two and its
exact 95 % binomial interval (for the market rows widened by how much windows differ). The exit code is 1 if any claimed
cell is above nominal beyond sampling error. Seeds count from 0; none is chosen. The rows under "limits" are not
claimed: they show what it takes to leave the claim.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from .cells import DAYS, DOUBT, HORIZONS, Cell, above_nominal, table
from .laws import LAWS, LIMITS
from .sizes import law_cells, market_cells

DRAWS = 2_000_000
MARKET_SHARE = 5
"""Random factors take this part of the draws, for each of the ways in which they change."""


def measured(draws: int) -> Iterator[list[Cell]]:
    """Yield the cells of each block of rows."""
    for number, law in enumerate((*LAWS, *LIMITS)):
        yield [cell for days in DAYS for cell in law_cells(law, days, draws, (number, days))]
    rows = [(days, horizon) for days in DAYS for horizon in HORIZONS]
    yield [cell for days, horizon in rows for cell in market_cells(days, horizon, draws // MARKET_SHARE, 0)]


def main(given: Sequence[str]) -> int:
    """Print the tables, and say whether any claimed cell is above nominal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS, help="simulated series of each row (%(default)s)")
    draws = max(parser.parse_args(given).draws, 4_000)
    cells: list[Cell] = []
    for block in measured(draws):
        cells += block
        print(f"{block[0].law}: {time.process_time():.0f} s CPU so far", file=sys.stderr, flush=True)
    claimed = [cell for cell in cells if cell.claimed]
    print("Each cell: significant of expected: measured size over nominal (95 % interval).\n")
    print(table(claimed))
    print("\nLimits, not claimed:\n")
    print(table([cell for cell in cells if not cell.claimed]))
    found = above_nominal(cells)
    text = ", ".join(f"{cell.law} ({cell.days} days, h {cell.horizon}, {cell.level:g})" for cell in found)
    verdict = f"above nominal: {text}" if found else "none is above nominal beyond sampling error"
    print(f"\n{len(claimed)} claimed cells, {verdict} (chance of a false alarm {DOUBT:g} for the whole table).")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
