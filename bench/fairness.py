"""Does one tenant's flood move another tenant's tail? Calls through the router's gate, in simulated time.

python -m bench.fairness                  FIFO, round robin and VTC in one run; a minute or two
python -m bench.fairness --calls 2000     fewer calls

A quiet tenant and one that always has 100 calls waiting share an endpoint, half each. The quiet one's calls come at
random (Poisson) and use half of what half the endpoint can do; its 99th percentile of waiting and service is held
against that of the same calls alone on half of the endpoint's places. The gate is the real one; time is simulated, so
nothing depends on the machine. A place answers at a constant speed, whatever the others do. VTC weighs tokens by how
long they keep a place; "VTC 1:2" has the weights of the paper, which are not this endpoint's: it is fair in other
tokens than those that cost time. No call is interrupted, so where places are few and the flood's replies long, waiting
for the next place to fall free is what is left; hence the fifth is promised from 16 places on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.serving.gateway.fairness import ORDERS, Scenario, ratios


def table(found: Sequence[tuple[Scenario, dict[str, float]]]) -> str:
    """Return the table as text."""
    lines = [
        f"{'places':>6s} {'load':>5s} {'replies of the flood':>20s}  " + "".join(f"{name:>12s}" for name in ORDERS)
    ]
    for scenario, by_order in found:
        cells = "".join(f"{by_order[name]:12.2f}" for name in ORDERS)
        lines.append(f"{scenario.places:6d} {scenario.load:5.1f} {scenario.longer:19.0f}x  {cells}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 if the flood moves the tail under VTC by more than a fifth, from 16 places on."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=10_000, help="calls of the quiet tenant")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    scenarios = [
        Scenario(places, load, longer, given.calls, given.seed)
        for places in (8, 16, 64)
        for load in (0.5, 0.9)
        for longer in (1.0, 4.0)
    ]
    found = [(scenario, ratios(scenario)) for scenario in scenarios]
    sys.stdout.write("p99 of waiting and service beside a flood, over that alone on half of the places\n")
    sys.stdout.write(table(found) + "\n")
    return int(any(by_order["VTC"] > 1.2 for scenario, by_order in found if scenario.places >= 16))


if __name__ == "__main__":
    sys.exit(main())
