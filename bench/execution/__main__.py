"""Measure execution algorithms in the simulated market of `execution/simulation`.

python -m bench.execution algorithms             schedules beside naive slicing, three sizes, 200 sessions
python -m bench.execution real --panel FILE      the same with real daily volumes, opens and closes
python -m bench.execution routing                smart routing beside simpler routers
python -m bench.execution observer               how well an observer of the tape predicts the next child

Each part is a module of this folder with a `main` that takes the rest of the command line. Intervals are 95 %, by
bootstrap over sessions. Algorithms trade the same sessions, so differences are paired.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..parts import run_part

PARTS = {
    "algorithms": "schedules beside naive slicing, by size of the order",
    "real": "the same with real daily volumes, opens and closes",
    "routing": "smart routing beside simpler routers",
    "observer": "how well an observer of the tape predicts the next child",
}


def main(given: Sequence[str]) -> int:
    """Run one part, or list them."""
    return run_part(str(__package__), __doc__, PARTS, given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
