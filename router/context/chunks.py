"""A text cut into chunks at headings, paragraphs, sentences or words; together the chunks are the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import ContextError

TOKEN_RULE = "bytes/4"
"""The name of the rule of `count_tokens`: a part of every key that depends on the count."""
CHUNK_BYTES_PER_TOKEN = 4
CHUNK_TOKENS, OVERLAP_TOKENS = 400, 40
"""Maximum tokens of a chunk of a document, and of what it repeats of the one before."""
MAX_HEADING_CHARS = 120
WORD_JOINT, SENTENCE_JOINT, PARAGRAPH_JOINT, HEADING_JOINT = range(1, 5)


def count_tokens(text: str) -> int:
    """Return the tokens of a text by rule: its bytes of UTF-8 over four, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // CHUNK_BYTES_PER_TOKEN)


class Chunk(NamedTuple):
    """A piece of a text, `text[first:stop]`, and its number of tokens."""

    first: int
    stop: int
    tokens: int


_HEADING = re.compile(
    r"^(?:#{1,6} \S"
    r"|(?:ITEM|Item|PART|Part|SECTION|Section|CHAPTER|Chapter|APPENDIX|Appendix) [0-9A-Z]"
    r"|\d{1,3}(?:\.\d{1,3}){0,4}\.? [A-Z][^\n]{0,80}$"
    r"|[A-Z][A-Z0-9 ,&'()/-]{3,79}$)",
    re.MULTILINE,
)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE_END = re.compile(r"""[.!?]["')\]]{0,3}\s+|[\u3002\uff01\uff1f]|\n""")
_WORD_GAP = re.compile(r"\s+")


@dataclass(frozen=True)
class _JointedText:
    """A text with its joints: the places where it may be cut, in order, and the strength of each.

    `sizes` are the bytes of UTF-8 before each character, and of the whole text, int64, ``[characters + 1]``.
    """

    joints: Sequence[int]
    strengths: Sequence[int]
    sizes: NDArray[np.int64]

    def count(self, first: int, stop: int) -> int:
        """Return the tokens of a piece, as `count_tokens` does."""
        return -(-int(self.sizes[stop] - self.sizes[first]) // CHUNK_BYTES_PER_TOKEN)

    def reach(self, first: int, most: int) -> int:
        """Return the largest stop of a chunk that begins at `first`; at least one character."""
        room = self.sizes[first] + CHUNK_BYTES_PER_TOKEN * most
        return max(int(np.searchsorted(self.sizes, room, side="right")) - 1, first + 1)

    def cut(self, first: int, floor: int, limit: int) -> int:
        """Return where to cut in (floor, limit].

        It is the last of the strongest joints in the second half of the chunk, else in all of it, else `limit`.
        """
        for bottom in (max(floor, (first + limit) // 2), floor):
            span = range(bisect_right(self.joints, bottom), bisect_right(self.joints, limit))
            if span:
                return self.joints[max(span, key=lambda at: (self.strengths[at], at))]
        return limit

    def back(self, first: int, stop: int, overlap: int) -> int:
        """Return the start of the next chunk: the earliest sentence, else word, within `overlap` repeated tokens."""
        if not overlap:
            return stop
        span = range(bisect_right(self.joints, first), bisect_left(self.joints, stop))
        for weakest in (SENTENCE_JOINT, WORD_JOINT):
            starts = [self.joints[at] for at in span if self.strengths[at] >= weakest]
            place = bisect_left(starts, True, key=lambda start: self.count(start, stop) <= overlap)
            if place < len(starts):
                return starts[place]
        return stop


def split_chunks(text: str, *, most_tokens: int = CHUNK_TOKENS, overlap: int = OVERLAP_TOKENS) -> tuple[Chunk, ...]:
    """Cut a text into chunks of at most `most_tokens`; the same text is always cut in the same way.

    Parameters
    ----------
    text : str
        Any text; an empty one has no chunks.
    most_tokens : int
        Maximum tokens of a chunk. Only a single character with more tokens exceeds it.
    overlap : int
        Maximum tokens that a chunk repeats of the one before it, in whole sentences or at least whole words.

    Returns
    -------
    tuple of Chunk
        In order: each begins at or before the end of the one before and ends after it; together they cover the text.

    Raises
    ------
    ContextError
        If the limit is below one token, or the overlap is not below it.
    """
    if most_tokens < 1:
        raise ContextError(
            "a chunk holds one token at least", field="most_tokens", got=most_tokens, allowed="1 or more"
        )
    if not 0 <= overlap < most_tokens:
        raise ContextError(
            "chunks overlap by less than their size", field="overlap", got=overlap, allowed=f"0 to {most_tokens - 1}"
        )
    return tuple(_yield_chunks(_JointedText(*_find_joints(text), _sum_bytes(text)), most_tokens, overlap))


def find_headings(text: str) -> list[tuple[int, str]]:
    """Return the start and the words of each heading of a text."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    return [(start, text[start : start + MAX_HEADING_CHARS].partition("\n")[0].strip()) for start in starts]


def _yield_chunks(whole: _JointedText, most: int, overlap: int) -> Iterator[Chunk]:
    first, stop, length = 0, 0, len(whole.sizes) - 1
    while stop < length:
        limit = whole.reach(first, most)
        if limit <= stop:  # no room for new text beside the repeated one: repeat nothing
            first = stop
            continue
        end = limit if limit == length else whole.cut(first, stop, limit)
        yield Chunk(first, end, whole.count(first, end))
        first, stop = whole.back(first, end, overlap), end


def _sum_bytes(text: str) -> NDArray[np.int64]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.ones(len(codes) + 1, np.int64)
    sizes[0] = 0
    for least in (0x80, 0x800, 0x10000):
        sizes[1:] += codes >= least
    return np.cumsum(sizes)


def _find_joints(text: str) -> tuple[list[int], list[int]]:
    """Return the places where a text may be cut, each once, with the greatest strength of each."""
    strengths = {match.end(): WORD_JOINT for match in _WORD_GAP.finditer(text)}
    strengths |= {match.end(): SENTENCE_JOINT for match in _SENTENCE_END.finditer(text)}
    strengths |= {match.end(): PARAGRAPH_JOINT for match in _PARAGRAPH.finditer(text)}
    strengths |= {match.start(): HEADING_JOINT for match in _HEADING.finditer(text)}
    places = sorted(strengths)
    return places, [strengths[place] for place in places]
