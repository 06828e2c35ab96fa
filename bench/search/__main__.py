"""What a search finds, beside other ways to search.

python -m bench.search setup                 install the rivals, once
python -m bench.search planted               markets with known alphas, at equal evaluations and at equal CPU time
python -m bench.search planted --seeds 2 --method oracle --method random
python -m bench.search planted --ablation    what each part of Alphaloom is worth
python -m bench.search coverage              what choosing formulas for what they tell is worth, before any score
python -m bench.search real --panel FILE     your own prices, the last fifth of the days sealed

Markets and answers are kept in a folder (`--folder`), so that an interrupted run goes on. Each part is a module of this
folder with a `main` that takes the rest of the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..parts import run_part

PARTS = {
    "setup": "install gplearn and LightGBM in an environment of their own, once",
    "planted": "markets whose alphas are known: recall, and correlation with the noise-free expected return",
    "coverage": "how much of planted formulas others explain, by how these are chosen; no return is looked at",
    "real": "a real panel: sealed RankIC of the combinations, size-neutral, as paired differences",
}


def main(given: Sequence[str]) -> int:
    """Run one part, or list them."""
    return run_part(str(__package__), __doc__, PARTS, given)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
