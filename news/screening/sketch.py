"""MinHash of a text's word pairs: texts that share most of them share a band of the sketch.

Twelve bands of three minima each. Two texts whose pairs overlap by J (Jaccard) share a given band with probability J^3, and any
of the twelve with 1 - (1 - J^3)^12: 0.02 at J = 0.12, 0.79 at 0.5, 0.9997 at 0.8 (Broder 1997; Leskovec, Rajaraman and Ullman,
Mining of Massive Datasets, section 3.4). Nothing is drawn: the hashes are fixed numbers.
"""

from __future__ import annotations

import re
import zlib
from itertools import pairwise

import numpy as np

from .injection.fold import fold_lookalikes

BAND_COUNT, ROWS_PER_BAND = 12, 3
MAX_SKETCH_WORDS = 4000
"""How many words of a text are looked at; a copy of a long text begins like it."""
MIN_SKETCH_WORDS = 4
"""A shorter text has no sketch: too many people say the same in three words."""
_PRIME = (1 << 31) - 1
_LINK_OR_HANDLE = re.compile(r"https?://\S+|\burl\b|@\w+|\bat_user\b|\$\s?[a-z][a-z.]{0,9}\b|^\s*rt\b:?|\bvia\b")
_SKETCH_WORD = re.compile(r"[^\W_]+")
_HASH_COEFFICIENTS = np.random.Generator(np.random.PCG64(20150101)).integers(
    1, _PRIME, size=(2, BAND_COUNT * ROWS_PER_BAND), dtype=np.int64
)


def bands(text: str) -> tuple[int, ...]:
    """Return the twelve band numbers of a text (64 bits each), or nothing where it is too short.

    Links, names of users and symbols, and the mark of a retweet are left out: they are what copies change.
    """
    words = _SKETCH_WORD.findall(_LINK_OR_HANDLE.sub(" ", fold_lookalikes(text)))[:MAX_SKETCH_WORDS]
    if len(words) < MIN_SKETCH_WORDS:
        return ()
    pairs = {f"{one} {other}" for one, other in pairwise(words)}
    hashes = np.fromiter((zlib.crc32(pair.encode()) % _PRIME for pair in pairs), dtype=np.int64, count=len(pairs))
    minima = (
        ((hashes[:, None] * _HASH_COEFFICIENTS[0] + _HASH_COEFFICIENTS[1]) % _PRIME)
        .min(axis=0)
        .reshape(BAND_COUNT, ROWS_PER_BAND)
    )
    return tuple(
        int(band[0]) << 33 ^ int(band[1]) << 16 ^ int(band[2]) ^ place << 58 for place, band in enumerate(minima)
    )
