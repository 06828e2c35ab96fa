"""Measure the sandbox: what its walls stop, what they cost, and that it does not wear out.

python -m bench.sandbox latency                   a call beside a fresh interpreter, bwrap and a bare fork
python -m bench.sandbox calls --count 10000       memory and descriptors before and after many calls
python -m bench.sandbox ablation                  hostile code of every class, with walls left out; never as root
python -m bench.sandbox fuzz --seconds 60 --seed 0   mutated hostile code; whatever gets through, with its number

Each part is a module of this folder with a `main` that takes the rest of the command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..parts import run_part

PARTS = {
    "latency": "a call beside a fresh interpreter, bwrap and a bare fork",
    "calls": "memory and descriptors before and after many calls",
    "ablation": "hostile code of every class, with walls left out",
    "fuzz": "mutated hostile code",
}


def main(given: Sequence[str]) -> int:
    """Run one part, or list them."""
    return run_part(str(__package__), __doc__, PARTS, given)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
