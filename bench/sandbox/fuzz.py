"""Mutate the hostile snippets for a while, and report what gets through with its number.

python -m bench.sandbox fuzz --seconds 60 --seed 0
python -m bench.sandbox fuzz --seconds 3600 --seed 7 --json escapes.json

The code of a number is the same for the same seed. Never as root. Exit code 1 if anything got through.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.sandbox.siege import besiege


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write what got through, with its code")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Fuzz, and count."""
    options = arguments(given)
    endings: Counter[str] = Counter()
    escapes, left = [], ["the attacks did not come to their end"]
    for record in besiege("--fuzz", str(options.seconds), "--seed", str(options.seed)):
        if "end" in record:
            left = record["left"]
            continue
        if "unavailable" in record:
            print(f"{record['unavailable']}: {record['message']}", file=sys.stderr)
            return 3
        endings[record["ended"]] += 1
        if record["escapes"]:
            escapes.append(record)
            print(f"{record['title']}: {'; '.join(record['escapes'])}\n{record['code']}", file=sys.stderr)
    text = ", ".join(f"{count} {name}" for name, count in endings.most_common())
    print(f"{endings.total()} mutated snippets (seed {options.seed}): {text}")
    print(f"{len(escapes)} got through; left behind: {', '.join(left) or 'nothing'}")
    if options.json:
        options.json.write_text(json.dumps(escapes, indent=1, sort_keys=True) + "\n")
    return 1 if escapes or left else 0
