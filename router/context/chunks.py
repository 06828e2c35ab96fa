"""A text cut into chunks at headings, paragraphs, sentences or words: none is over the limit, and together they are the text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..errors import ContextError

CHUNK_BYTES_PER_TOKEN = 4
MAX_HEADING_CHARS = 120
WORD_JOINT, SENTENCE_JOINT, PARAGRAPH_JOINT, HEADING_JOINT = range(1, 5)


class Tokenizer(Protocol):
    """What counts tokens; its name is part of every key that hangs on the count."""

    @property
    def name(self) -> str:
        """Return the name, with a version."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of a text; a longer text never has fewer."""
        ...


class ByteTokenizer:
    """The stated rule where no tokenizer is given: one token for every four bytes of UTF-8 begun."""

    name = "bytes/4"

    def count(self, text: str) -> int:
        """Return the bytes over four, rounded up."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // CHUNK_BYTES_PER_TOKEN)


class Chunk(NamedTuple):
    """A piece of a text, `text[first:stop]`, and its tokens."""

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
    """A text with its joints: where it may be cut, in order, and how well it is cut there."""

    text: str
    joints: Sequence[int]
    strengths: Sequence[int]
    tokenizer: Tokenizer

    def reach(self, first: int, most: int) -> int:
        """Return how far a chunk that begins here may go; a character at least."""
        end, step = len(self.text), CHUNK_BYTES_PER_TOKEN * most + 1
        low, high = min(first + 1, end), min(first + step, end)
        while self.tokenizer.count(self.text[first:high]) <= most:
            if high == end:
                return end
            step *= 2
            low, high = high, min(first + step, end)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self.tokenizer.count(self.text[first:middle]) <= most
            low, high = (middle, high) if fits else (low, middle)
        return low

    def cut(self, first: int, floor: int, limit: int) -> int:
        """Return where to cut in (floor, limit]: the strongest joint of the latter half, the last of these; else any."""
        for bottom in (max(floor, (first + limit) // 2), floor):
            span = range(bisect_right(self.joints, bottom), bisect_right(self.joints, limit))
            if span:
                return self.joints[max(span, key=lambda at: (self.strengths[at], at))]
        return limit

    def back(self, first: int, stop: int, overlap: int) -> int:
        """Return where the next chunk begins: the earliest sentence, else word, that repeats no more than `overlap`."""
        if not overlap:
            return stop
        span = range(bisect_right(self.joints, first), bisect_left(self.joints, stop))
        for weakest in (SENTENCE_JOINT, WORD_JOINT):
            starts = [self.joints[at] for at in span if self.strengths[at] >= weakest]
            place = bisect_left(starts, True, key=lambda start: self._repeats(start, stop) <= overlap)
            if place < len(starts):
                return starts[place]
        return stop

    def _repeats(self, start: int, stop: int) -> int:
        return self.tokenizer.count(self.text[start:stop])


def split_chunks(
    text: str, *, most_tokens: int = 400, overlap: int = 40, tokenizer: Tokenizer | None = None
) -> tuple[Chunk, ...]:
    """Cut a text into chunks of at most so many tokens; the same text is always cut in the same way.

    Parameters
    ----------
    text
        Any text; an empty one has no chunks.
    most_tokens
        The most tokens of a chunk. Only a single character that is more than that by itself exceeds it.
    overlap
        The most tokens that a chunk repeats of the one before it, whole sentences or at least whole words.
    tokenizer
        What counts; four bytes a token by default.

    Returns
    -------
    tuple of Chunk
        In order: each begins at or before the end of the one before and ends after it; together they are the text.

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
        raise ContextError("chunks overlap by less than their size", field="overlap", got=overlap, allowed=f"0 to {most_tokens - 1}")  # fmt: skip
    counter = tokenizer or ByteTokenizer()
    return tuple(_chunks(_JointedText(text, *_joints(text), counter), most_tokens, overlap))


def find_headings(text: str) -> list[tuple[int, str]]:
    """Return where the headings of a text begin, and what they say."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    return [(start, text[start : start + MAX_HEADING_CHARS].partition("\n")[0].strip()) for start in starts]


def _chunks(whole: _JointedText, most: int, overlap: int) -> Iterator[Chunk]:
    first = stop = 0
    while stop < len(whole.text):
        limit = whole.reach(first, most)
        if limit <= stop:  # nothing new beside what would be repeated: repeat nothing
            first = stop
            continue
        end = limit if limit == len(whole.text) else whole.cut(first, stop, limit)
        yield Chunk(first, end, whole.tokenizer.count(whole.text[first:end]))
        first, stop = whole.back(first, end, overlap), end


def _joints(text: str) -> tuple[list[int], list[int]]:
    """Return where a text may be cut and how well; each place once, at its strongest."""
    found = {match.end(): WORD_JOINT for match in _WORD_GAP.finditer(text)}
    found |= {match.end(): SENTENCE_JOINT for match in _SENTENCE_END.finditer(text)}
    found |= {match.end(): PARAGRAPH_JOINT for match in _PARAGRAPH.finditer(text)}
    found |= {match.start(): HEADING_JOINT for match in _HEADING.finditer(text)}
    places = sorted(found)
    return places, [found[place] for place in places]
