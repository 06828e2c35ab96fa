"""A prompt as numbers: hashed words, pairs of words and runs of letters; the same everywhere, and in microseconds.

Greetings, thanks, roles, tags and headings round a request say nothing of it and are removed first.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

FEATURE_BUCKETS = 1 << 18
"""Rows of the weights; what is hashed to one row shares it."""
HASHED_HEAD_CHARS, HASHED_TAIL_CHARS = 3_000, 1_000
"""Characters of a long prompt that are looked at: its beginning, and its end, where the question often stands."""
RUN_LENGTHS = (2, 3, 4, 5)
"""Lengths of the runs, in bytes of UTF-8."""
MARK_BUCKETS, MARK_RUN_LENGTH = 1 << 16, 4
"""Numbers that a mark may have; length of the runs that are marks."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_FACTOR, _MIX = np.uint32(0x01000193), np.uint32(0x85EBCA6B)
MIN_REQUEST_CHARS = 8
"""Characters that must be left: a text that is nothing but a greeting is read as it is."""
MAX_FRAME_LAYERS = 6
_ROLE = r"user|human|assistant|system|ai|q|a|question|answer|input|output|task|request|instructions?|response|prompt|message|query|context|format|body|from|ticket|content"
_FRAME_BEGINNINGS = (
    r"\W{0,12}(?:hi|hello|hey|hallo|dear|yo|morning|good (?:morning|afternoon|evening|day)|bonjour|hola|greetings)\b[^.,!:;?\n-]{0,30}(?:[.,!:;\n-]+|$)",
    r"(?:sorry (?:to|for) [^.,:;\n-]{0,40}|(?:many )?thanks? (?:you )?(?:a lot |so much )?for [^.,:;\n]{0,40}|hope [^.!\n]{0,60})[.,!:;\n-]+",
    r"(?:(?:could|can|would|will) you (?:please |kindly )?(?:help (?:me|us)(?: with this)?|do this for (?:me|us))|please help (?:me|us)(?: with this)?)\s*[:.?\n-]+",
    (r"(?:ok(?:ay)?(?:,)? so|so|right|now|next one|one more thing|quick (?:one|question)|i have a question|if i may|fyi(?: / ask)?|asking for [^.:\n]{0,30}|"
    r"when you have (?:a|one) [a-z]{1,10})\s*[,:.\n]+\s*"),
    r"\((?:from|sent)[^)\n]{0,40}\)",
    r"you are (?:a|an) (?:helpful |useful |expert )?(?:assistant|expert|analyst|ai|model)\b[^.\n]{0,80}[.\n]+",
    r"(?:be (?:brief|concise|exact|precise)|(?:answer|reply|respond|return)(?: only)? (?:in|with|using|the final)\b|follow the instructions|think (?:before|step)|do not make|here is a message)[^.:;\n]{0,80}[.:;\n]+",
    rf"\W{{0,12}}(?:{_ROLE})\W{{0,12}}:\s*",
    rf"\W{{0,12}}\b(?:role|prompt|content)\W{{1,4}}(?:{_ROLE})\W{{1,6}}",
    r"(?:begin|start) (?:request|task|prompt|input)\s*",
    r"#+\s*[\w ]{1,30}\n+",
    r"</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```[a-z]*|-{3,}|>{2,}|[\"'{\[]+(?=\w)",
)  # fmt: skip
_FRAME_ENDINGS = (
    (r"[\s,.;(-]*\b(?:many thanks|thanks?|thank you|thx|ty|ta|cheers|merci|danke|much appreciated|appreciate (?:it|the help)|"
    r"(?:best|kind|warm)(?: regards)?|regards|pls|please|asap|no rush|take your time|let me know|i owe you(?: one)?)\b[^.?\n]{0,40}[\s.!):;\n]*(?:[A-Z]\.?)?"),
    r"\s*:\)|\s*\.{3,}",
    rf"\s*(?:#+\s*)?\b(?:{_ROLE})\W{{0,3}}(?::|$)\W*(?:none|json|free text)?",
    r"\s*\b(?:end) (?:request|task|prompt|input)",
    r"\s*(?:</?[a-z_]{1,20}>|\[/?inst\]|\|[a-z]{1,12}\||```|-{3,}|#+\s*[\w ]{1,30}|[\"'}\]]{2,})",
    r"\s*(?:return|answer|reply)(?: only)?(?: with| in)? (?:the final answer|json|english)[^.\n]{0,20}\.?",
)  # fmt: skip
_FRAME_BEGINNING = re.compile(rf"(?:{'|'.join(_FRAME_BEGINNINGS)})\s*", re.IGNORECASE)
_FRAME_ENDING = re.compile(rf"(?:{'|'.join(_FRAME_ENDINGS)})\s*$", re.IGNORECASE)
_TAIL_CHARS = 120
"""Characters at the end among which an ending is looked for."""


@dataclass(frozen=True)
class Features:
    """Rows of the weights that a prompt touches, and how strongly; its words have length one together, and so have its runs."""

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]


def build_features(prompt: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a prompt; case, spacing and the digits of its numbers are left out of account.

    `rarity` has a number for each bucket: what is in few prompts tells more (inverse document frequency).
    """
    return weigh_text(normalise_prompt(prompt), rarity)


def weigh_text(text: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a text in its one spelling, see `build_features`."""
    words, runs = _weigh_hashes(_words(text), rarity), _weigh_hashes(_runs(text), rarity)
    return Features(np.concatenate([words.rows, runs.rows]), np.concatenate([words.weights, runs.weights]))


def hash_buckets(prompt: str) -> NDArray[np.int64]:
    """Return the rows that a prompt touches, each once: of these the rarity is counted."""
    text = normalise_prompt(prompt)
    return np.unique(np.concatenate([_words(text), _runs(text)]) % np.uint32(FEATURE_BUCKETS)).astype(np.int64)


def hash_marks(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words and pairs, and the runs of four letters, by which a text in its one spelling is found; each once."""
    words, runs = (
        np.unique(each % np.uint32(MARK_BUCKETS)).astype(np.int64)
        for each in (_words(text), _runs(text, (MARK_RUN_LENGTH,)))
    )
    return words, runs


def normalise_prompt(prompt: str) -> str:
    """Return the part of a prompt that is looked at, in the one spelling in which it is."""
    cut = (
        prompt
        if len(prompt) <= HASHED_HEAD_CHARS + HASHED_TAIL_CHARS
        else f"{prompt[:HASHED_HEAD_CHARS]} {prompt[-HASHED_TAIL_CHARS:]}"
    )
    folded = unicodedata.normalize("NFKC", strip_frames(cut)).lower()
    return re.sub(r"\d", "0", " ".join(folded.split()))


def _words(text: str) -> NDArray[np.uint32]:
    """Return the hash of each word and of each pair of neighbours."""
    words = [crc32(word.encode(errors="replace")) for word in _WORD_OR_SIGN.findall(text)]
    single = np.array([0, *words, 0], dtype=np.uint32)
    pairs = _mix_bits(single[:-1] * _FACTOR + single[1:])
    return np.concatenate([single[1:-1], pairs])


def _runs(text: str, lengths: tuple[int, ...] = RUN_LENGTHS) -> NDArray[np.uint32]:
    """Return the hash of each run of letters; every length has hashes of its own."""
    letters = np.frombuffer(f" {text} ".encode(errors="replace"), dtype=np.uint8).astype(np.uint32)
    found = [np.zeros(0, dtype=np.uint32)]
    for length in lengths:
        if len(letters) < length:
            break
        hashed = np.full(len(letters) - length + 1, length, dtype=np.uint32)
        for place in range(length):
            hashed = hashed * _FACTOR + letters[place : place + len(hashed)]
        found.append(_mix_bits(hashed))
    return np.concatenate(found)


def _mix_bits(hashed: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Spread what differs in a few bits over all of them."""
    spread = (hashed ^ (hashed >> np.uint32(15))) * _MIX
    return np.asarray(spread ^ (spread >> np.uint32(13)))


def _weigh_hashes(hashes: NDArray[np.uint32], rarity: NDArray[np.float32]) -> Features:
    """Return each row once, weighted by its rarity and the logarithm of how often it came; together of length one."""
    rows, counts = np.unique(hashes % np.uint32(FEATURE_BUCKETS), return_counts=True)
    weights = (1.0 + np.log(counts)) * rarity[rows]
    norm = float(np.sqrt(np.square(weights).sum())) or 1.0
    return Features(rows.astype(np.int64), (weights / norm).astype(np.float32))


def strip_frames(text: str) -> str:
    """Return a text without what stands round the request; what would leave nothing is left as it is."""
    for _ in range(MAX_FRAME_LAYERS):
        inner = _strip_once(text)
        if inner == text:
            break
        text = inner
    return text


def _strip_once(text: str) -> str:
    begun = text.lstrip()  # cut off here: a pattern would try every length of it
    found = _FRAME_BEGINNING.match(begun)
    inner = begun[found.end() :] if found and found.end() else text
    inner = inner if len(inner.strip()) >= MIN_REQUEST_CHARS else text
    tail = max(len(inner) - _TAIL_CHARS, 0)
    ending = _FRAME_ENDING.search(inner, tail)
    shorter = inner[: ending.start()] if ending else inner
    return shorter if len(shorter.strip()) >= MIN_REQUEST_CHARS else inner
