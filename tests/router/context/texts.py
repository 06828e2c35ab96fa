"""Documents for the tests: prose that says something else in every sentence, the same for the same seed."""

from __future__ import annotations

import random

SUBJECTS = ("Net sales", "Operating costs", "Freight rates", "The pension fund", "Our largest customer", "Inventory")
VERBS = ("rose", "fell", "was restated", "remained flat", "was hedged", "drifted")
PLACES = ("in Europe", "in the Nordic markets", "at the Ohio plant", "across Asia", "in retail", "in mining")


def filing(seed: int, sentences: int = 400) -> str:
    """Return a document of so many different sentences under a few headings."""
    draw = random.Random(seed)
    parts = []
    for number in range(sentences):
        if number % 80 == 0:
            parts.append(f"\n\n# Part {number // 80 + 1}\n\n")
        said = [draw.choice(kind) for kind in (SUBJECTS, VERBS, PLACES)]
        parts.append(
            f"{' '.join(said)} by {draw.randint(1, 99)}.{draw.randint(0, 9)} % against plan {draw.randint(100, 9999)}. "
        )
        if number % 7 == 6:
            parts.append("\n\n")
    return "".join(parts)
