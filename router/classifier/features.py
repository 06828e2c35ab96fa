"""A prompt as numbers: hashed words, pairs of words and runs of letters, the same on every machine, in microseconds.

Greetings, thanks, roles, tags and headings around a request carry no information about it and are removed first.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .blocks import shorten

FEATURE_BUCKETS = 1 << 18
"""Rows of the weights; features with the same hash share a row."""
HASHED_HEAD_CHARS, HASHED_TAIL_CHARS = 3_000, 1_000
"""Characters read of a long prompt: its beginning, and its end, where the question often stands."""
RUN_LENGTHS = (2, 3, 4, 5)
"""Lengths of the runs, in bytes of UTF-8."""
MARK_BUCKETS, MARK_RUN_LENGTH = 1 << 16, 4
"""Number of buckets of marks; length, in bytes, of the runs that are marks."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_FACTOR, _MIX = np.uint32(0x01000193), np.uint32(0x85EBCA6B)
MIN_REQUEST_CHARS = 8
"""Minimum characters after the removal: a text that is only a greeting is read as it is."""
MAX_FRAME_LAYERS = 6
_ROLE = (
    r"user|human|assistant|system|ai|q|a|question|answer|input|output|task|request|instructions?|response|prompt|message|"
    r"query|context|format|body|from|ticket|content"
)
_FRAME_BEGINNINGS = (
    (r"\W{0,12}(?:hi|hello|hey|hallo|dear|yo|morning|good (?:morning|afternoon|evening|day)|bonjour|hola|greetings)\b"
    r"[^.,!:;?\n-]{0,30}(?:[.,!:;\n-]+|$)"),
    (r"(?:sorry (?:to|for) [^.,:;\n-]{0,40}|(?:many )?thanks? (?:you )?(?:a lot |so much )?for [^.,:;\n]{0,40}|"
    r"hope [^.!\n]{0,60})[.,!:;\n-]+"),
    (r"(?:(?:could|can|would|will) you (?:please |kindly )?(?:help (?:me|us)(?: with this)?|do this for (?:me|us))|"
    r"please help (?:me|us)(?: with this)?)\s*[:.?\n-]+"),
    (r"(?:ok(?:ay)?(?:,)? so|so|right|now|next one|one more thing|quick (?:one|question)|i have a question|if i may|"
    r"fyi(?: / ask)?|asking for [^.:\n]{0,30}|when you have (?:a|one) [a-z]{1,10})\s*[,:.\n]+\s*"),
    r"\((?:from|sent)[^)\n]{0,40}\)",
    r"you are (?:a|an) (?:helpful |useful |expert )?(?:assistant|expert|analyst|ai|model)\b[^.\n]{0,80}[.\n]+",
    (r"(?:be (?:brief|concise|exact|precise)|(?:answer|reply|respond|return)(?: only)? (?:in|with|using|the final)\b|"
    r"follow the instructions|think (?:before|step)|do not make|here is a message)[^.:;\n]{0,80}[.:;\n]+"),
    rf"\W{{0,12}}(?:{_ROLE})\W{{0,12}}:\s*",
    rf"\W{{0,12}}\b(?:role|prompt|content)\W{{1,4}}(?:{_ROLE})\W{{1,6}}",
    r"(?:begin|start) (?:request|task|prompt|input)\s*",
    r"#+\s*[\w ]{1,30}\n+",
    r"</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```[a-z]*|-{3,}|>{2,}|[\"'{\[]+(?=\w)",
)  # fmt: skip  # a table
_FRAME_ENDINGS = (
    (
        r"[\s,.;(-]*\b(?:many thanks|thanks?|thank you|thx|ty|ta|cheers|merci|danke|much appreciated|"
        r"appreciate (?:it|the help)|(?:best|kind|warm)(?: regards)?|regards|pls|please|asap|no rush|take your time|"
        r"let me know|i owe you(?: one)?)\b[^.?\n]{0,40}[\s.!):;\n]*(?:[A-Z]\.?)?"
    ),
    r"\s*:\)|\s*\.{3,}",
    rf"\s*(?:#+\s*)?\b(?:{_ROLE})\W{{0,3}}(?::|$)\W*(?:none|json|free text)?",
    r"\s*\b(?:end) (?:request|task|prompt|input)",
    r"\s*(?:</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```|-{3,}|#+\s*[\w ]{1,30}|[\"'}\]]{2,})",
    r"\s*(?:return|answer|reply)(?: only)?(?: with| in)? (?:the final answer|json|english)[^.\n]{0,20}\.?",
)
_FRAME_BEGINNING = re.compile(rf"(?:{'|'.join(_FRAME_BEGINNINGS)})\s*", re.IGNORECASE)
_FRAME_ENDING = re.compile(rf"(?:{'|'.join(_FRAME_ENDINGS)})\s*$", re.IGNORECASE)
_TAIL_CHARS = 120
"""Characters at the end that are searched for an ending."""


@dataclass(frozen=True)
class Features:
    """A sparse vector of a prompt; the part of its words has length 1, and so has the part of its runs.

    Attributes
    ----------
    rows : array, int64, [features]
        Rows of the weight table.
    weights : array, float32, [features]
        The value of each row.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]


def build_features(prompt: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a prompt; case, spacing and the digits of numbers are ignored.

    Parameters
    ----------
    prompt : str
    rarity : array, float32, [FEATURE_BUCKETS]
        Inverse document frequency of each bucket.
    """
    return weigh_text(normalise_prompt(prompt), rarity)


def weigh_text(text: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a normalised text (`normalise_prompt`); `rarity` as in `build_features`."""
    words, runs = _weigh_hashes(_hash_words(text), rarity), _weigh_hashes(_hash_runs(text), rarity)
    return Features(np.concatenate([words.rows, runs.rows]), np.concatenate([words.weights, runs.weights]))


def hash_buckets(prompt: str) -> NDArray[np.int64]:
    """Return the buckets of a prompt, int64, each once, in ascending order; the rarity is computed from them."""
    text = normalise_prompt(prompt)
    return np.unique(np.concatenate([_hash_words(text), _hash_runs(text)]) % np.uint32(FEATURE_BUCKETS)).astype(
        np.int64
    )


def hash_marks(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the marks of a normalised text: of words and pairs, and of runs of four bytes.

    Returns
    -------
    tuple of two arrays, int64
        Buckets from 0 to `MARK_BUCKETS` - 1, each once, in ascending order.
    """
    words, runs = (
        np.unique(hashes % np.uint32(MARK_BUCKETS)).astype(np.int64)
        for hashes in (_hash_words(text), _hash_runs(text, (MARK_RUN_LENGTH,)))
    )
    return words, runs


def normalise_prompt(prompt: str) -> str:
    """Return the normalised head and tail of a prompt: without frames, in lower case, NFKC, with digits as 0."""
    cut = shorten(prompt, HASHED_HEAD_CHARS, HASHED_TAIL_CHARS)
    folded = unicodedata.normalize("NFKC", strip_frames(cut)).lower()
    return re.sub(r"\d", "0", " ".join(folded.split()))


def _hash_words(text: str) -> NDArray[np.uint32]:
    """Return the hash of each word and of each pair of adjacent words."""
    words = [crc32(word.encode(errors="replace")) for word in _WORD_OR_SIGN.findall(text)]
    single = np.array([0, *words, 0], dtype=np.uint32)
    pairs = _mix_bits(single[:-1] * _FACTOR + single[1:])
    return np.concatenate([single[1:-1], pairs])


def _hash_runs(text: str, lengths: tuple[int, ...] = RUN_LENGTHS) -> NDArray[np.uint32]:
    """Return the hash of each run of bytes; every length has a hash function of its own."""
    letters = np.frombuffer(f" {text} ".encode(errors="replace"), dtype=np.uint8).astype(np.uint32)
    parts = [np.zeros(0, dtype=np.uint32)]
    for length in lengths:
        if len(letters) < length:
            break
        hashed = np.full(len(letters) - length + 1, length, dtype=np.uint32)
        for place in range(length):
            hashed = hashed * _FACTOR + letters[place : place + len(hashed)]
        parts.append(_mix_bits(hashed))
    return np.concatenate(parts)


def _mix_bits(hashed: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Mix the bits, so that hashes that differ in a few bits differ in many."""
    spread = (hashed ^ (hashed >> np.uint32(15))) * _MIX
    return np.asarray(spread ^ (spread >> np.uint32(13)))


def _weigh_hashes(hashes: NDArray[np.uint32], rarity: NDArray[np.float32]) -> Features:
    """Return each bucket once, weighted by rarity times 1 + log(count), scaled to length 1."""
    rows, counts = np.unique(hashes % np.uint32(FEATURE_BUCKETS), return_counts=True)
    weights = (1.0 + np.log(counts)) * rarity[rows]
    norm = float(np.sqrt(np.square(weights).sum())) or 1.0
    return Features(rows.astype(np.int64), (weights / norm).astype(np.float32))


def strip_frames(text: str) -> str:
    """Return a text without the frames around the request; a removal that would leave too little is skipped."""
    for _ in range(MAX_FRAME_LAYERS):
        inner = _strip_once(text)
        if inner == text:
            break
        text = inner
    return text


def _strip_once(text: str) -> str:
    stripped = text.lstrip()  # here and not in the pattern, which would try every length of the blanks
    match = _FRAME_BEGINNING.match(stripped)
    inner = stripped[match.end() :] if match and match.end() else text
    inner = inner if len(inner.strip()) >= MIN_REQUEST_CHARS else text
    tail = max(len(inner) - _TAIL_CHARS, 0)
    ending = _FRAME_ENDING.search(inner, tail)
    shorter = inner[: ending.start()] if ending else inner
    return shorter if len(shorter.strip()) >= MIN_REQUEST_CHARS else inner
