"""The seed of what is tried on a factor: drawn once its code is in, so that no author can choose code that fits it."""

from __future__ import annotations

import secrets

__all__ = ["draw_seed"]

SEED_BITS = 53
"""A seed passes through JSON; readers there hold whole numbers up to this size."""


def draw_seed() -> int:
    """Draw a seed from the operating system, 0 or more.

    This is the one draw of this room that nobody passes in: whoever writes the code may know everything but it. What
    was tried is repeated with the seed that the proof names.
    """
    return secrets.randbits(SEED_BITS)
