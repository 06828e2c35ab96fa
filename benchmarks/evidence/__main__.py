"""Time what the evidence room does beside other ways to do it.

python -m benchmarks.evidence index               originality: known formulas by subtree, 10,000 to 1,000,000
python -m benchmarks.evidence index --sizes 10000
python -m benchmarks.evidence redundancy          values: the library's nearest factor, from 10,000 sketches
python -m benchmarks.evidence scoring             one factor's sheet, beside alphalens, pandas and bottleneck

Each part is a module of this folder with a `main` that takes the rest of the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

PARTS = {
    "index": "originality: the nearest of many known formulas, beside comparing pair by pair",
    "redundancy": "values: the most correlated of many factors, beside correlating with every one",
    "scoring": "one factor's sheet, beside alphalens, pandas and bottleneck",
}


def main(given: Sequence[str]) -> int:
    """Run one part, or list them."""
    if not given or given[0] not in PARTS:
        print(__doc__)
        print("\n".join(f"{name:10} {what}" for name, what in PARTS.items()))
        return 0 if not given or given[0] in ("-h", "--help") else 2
    part = import_module(f".{given[0]}", __package__)
    return int(part.main(given[1:]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
