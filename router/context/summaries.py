"""Summaries: by a model (a long text in parts first), or sentences of the text chosen by rule (`extract`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...ledger import compute_digest
from ..calls.task import Sensitivity
from ..errors import SummaryRefused
from .chunks import TOKEN_RULE, count_tokens, split_chunks
from .vectors import embed_texts

Summarise: TypeAlias = Callable[[str, Sensitivity], Awaitable[str]]
MAX_SUMMARY_RATIO = 0.8
"""Maximum length of the parts' summaries, as a share of the text: above it, the rounds would hardly end."""
EXTRACT_NAME = "alphaloom-extract-1"
"""Its number increases whenever the same text would give another extract."""
MAX_EXTRACT_TOKENS = 120
SENTENCE_TOKENS = 40
"""Longer sentences are cut into pieces."""


@dataclass(frozen=True)
class Summariser:
    """A function that summarises a text with its label, the digest of its prompt, and the name of its model.

    A text of over `window_tokens` is summarised in parts, `at_once` of them at a time.
    """

    ask: Summarise
    prompt: str
    model: str
    window_tokens: int = 6000
    at_once: int = 4

    def key(self, document: str) -> str:
        """Return the key of a document's summary."""
        return f"summary:{compute_digest([document, self.prompt, self.model, self.window_tokens, TOKEN_RULE])}"


@dataclass(frozen=True)
class Summary:
    """The summary of a document, with the document's label."""

    text: str
    sensitivity: Sensitivity


async def summarise_text(text: str, label: Sensitivity, by: Summariser) -> str:
    """Return the summary of a text.

    Raises
    ------
    SummaryRefused
        If a summary is empty, or the summaries of the parts are hardly shorter than the text.
    """
    tokens = count_tokens(text)
    while tokens > by.window_tokens:
        pieces = split_chunks(text, most_tokens=by.window_tokens, overlap=0)
        parts = await _summarise_each([text[piece.first : piece.stop] for piece in pieces], label, by)
        text, before = "\n\n".join(parts), tokens
        tokens = count_tokens(text)
        if tokens > MAX_SUMMARY_RATIO * before:
            raise SummaryRefused(
                f"{len(parts)} summaries by {by.model} together have {tokens} tokens, of {before} in the text",
                field="summarise",
                hint="Let the prompt ask for less, or widen window_tokens.",
            )
    (only,) = await _summarise_each([text], label, by)
    return only


async def _summarise_each(texts: Sequence[str], label: Sensitivity, by: Summariser) -> list[str]:
    """Return the summary of each text. After a failure no new request starts, and running requests are awaited."""
    slots, failed = asyncio.Semaphore(by.at_once), asyncio.Event()

    async def summarise(text: str) -> str:
        async with slots:
            if failed.is_set():
                return ""
            try:
                summary = (await by.ask(text, label)).strip()
                if not summary:
                    raise SummaryRefused(f"{by.model} gave an empty summary", field="summarise")
            except BaseException:
                failed.set()
                raise
            return summary

    results = await asyncio.gather(*(summarise(text) for text in texts), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, str)]


def extract_sentences(text: str, most_tokens: int = MAX_EXTRACT_TOKENS) -> str:
    """Return the sentences nearest to the centroid of a text, in their order, with at most `most_tokens`.

    Notes
    -----
    Radev et al. (2004), "Centroid-based summarization of multiple documents": the cosine of a sentence's vector with
    the sum of all vectors; of equal sentences the first is used.
    """
    pieces = split_chunks(text, most_tokens=min(SENTENCE_TOKENS, most_tokens), overlap=0)
    sentences = list(dict.fromkeys(" ".join(text[piece.first : piece.stop].split()) for piece in pieces))
    vectors = embed_texts(sentences).astype(float)
    middle = vectors.sum(axis=0)
    nearness = [
        round(float(vector @ middle), 6) for vector in vectors
    ]  # the last digits of a product depend on the machine
    left = most_tokens
    chosen: list[int] = []
    for place in sorted(range(len(sentences)), key=lambda place: (-nearness[place], place)):
        tokens = count_tokens(sentences[place] + " ")
        if sentences[place] and tokens <= left:
            chosen.append(place)
            left -= tokens
    return " ".join(sentences[place] for place in sorted(chosen))


async def _ask(text: str, _label: Sensitivity) -> str:
    return extract_sentences(text)


EXTRACT_SUMMARISER = Summariser(_ask, prompt=EXTRACT_NAME, model="built-in")
"""The summariser without a model."""
