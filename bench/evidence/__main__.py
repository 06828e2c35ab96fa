"""Time what the evidence room does beside other ways to do it.

python -m bench.evidence index               originality: known formulas by subtree, 10,000 to 1,000,000
python -m bench.evidence index --sizes 10000
python -m bench.evidence redundancy          values: the library's nearest factor, from 10,000 sketches
python -m bench.evidence scoring             one factor's sheet, beside alphalens, pandas and bottleneck

Each part is a module of this folder with a `main` that takes the rest of the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..parts import run_part

PARTS = {
    "index": "originality: the nearest of many known formulas, beside comparing pair by pair",
    "redundancy": "values: the most correlated of many factors, beside correlating with every one",
    "scoring": "one factor's sheet, beside alphalens, pandas and bottleneck",
}


def main(given: Sequence[str]) -> int:
    """Run one part, or list them."""
    return run_part(str(__package__), __doc__, PARTS, given)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
