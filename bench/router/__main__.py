"""The router measured: how long it takes, how often it is right, and what it saves.

python -m bench.router              latency, accuracy and replay, one after the other; some minutes
python -m bench.router latency      a decision, beside scikit-learn
python -m bench.router accuracy     on prompts by people who saw nothing that was trained on
python -m bench.router writers      each writer of the training prompts left out in turn; a quarter of an hour
python -m bench.router replay       cost and quality, by replaying a table that is drawn by a stated law
python -m bench.router failover     dead, hanging, dying and busy servers, beside LiteLLM's own router; two minutes
python -m bench.router misbehaving  92 kinds of misbehaving servers: who is asked, what is charged, the outcome
python -m bench.router serving      first token, later tokens and goodput of a real vLLM on this processor

`--embedding FOLDER` of latency, accuracy and replay adds a sentence embedding of yours: a folder as
sentence-transformers publishes it, with `onnx/model.onnx` (or `model.onnx`) and `tokenizer.json`;
docs/how-to/choose-models.md says how one is made. What takes scikit-learn is left out where that is not installed. Each
part is a module of this folder with a `main` that takes the rest of the command line; the exit code is that of the
worst.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..parts import run_part

PARTS = {
    "latency": "what a decision takes, beside scikit-learn and an embedding of yours",
    "accuracy": "intent, difficulty, what is sent small, and what noise changes, on prompts nothing was trained on",
    "writers": "the same on each writer of the training prompts, left out in turn",
    "replay": "what is saved at equal quality, beside an oracle, a cascade and five rivals",
    "failover": "what dead, hanging, dying and busy servers cost",
    "misbehaving": "who is asked and what is charged where servers misbehave in 92 ways",
    "serving": "a real vLLM at 1, 8 and 64 streams, with and without speculation",
}
USUAL = ("latency", "accuracy", "replay")


def main(given: Sequence[str]) -> int:
    """Run one part, or without a name the usual ones."""
    if given:
        return run_part(str(__package__), __doc__, PARTS, given)
    return max(run_part(str(__package__), __doc__, PARTS, [part]) for part in USUAL)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
