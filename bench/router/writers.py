"""How well the classifier reads a writer whom it has not heard: each of the six left out of its training in turn.

python -m bench.router writers                      a quarter of an hour on one core
python -m bench.router writers --writer voice_3     one of them
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from alphaloom.router.classifier.build import judge_left_out_voices
from bench.router.prompts import training


def main(given: Sequence[str]) -> int:
    """Train without each writer, and print how that reads it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--writer", action="append", help="this one only; may be given again")
    arguments = options.parse_args(given)
    print(f"{'left out':10s} {'prompts':>8s} {'intent':>8s} {'difficulty (balanced)':>22s}")
    for fold in judge_left_out_voices(training(), arguments.writer):
        print(f"{fold.voice:10s} {fold.prompts:8d} {fold.intent:8.1%} {fold.difficulty:22.1%}", flush=True)
    return 0
