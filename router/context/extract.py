"""A document said shorter in sentences of its own, chosen by rule: no model, the same on every machine."""

from __future__ import annotations

from ..calls.task import Sensitivity
from .chunks import ByteTokenizer, split_chunks
from .embedding import HashedEmbedder
from .summaries import Summariser

EXTRACT_NAME = "alphaloom-extract-1"
"""Goes up whenever the same text would be said in other words."""
MAX_EXTRACT_TOKENS = 120
SENTENCE_TOKENS = 40
"""A longer sentence is cut into pieces."""


def extract_sentences(text: str, most_tokens: int = MAX_EXTRACT_TOKENS) -> str:
    """Return the sentences nearest to what a text says on the whole, in their order, no more than so many tokens.

    Notes
    -----
    Radev et al. (2004), "Centroid-based summarization of multiple documents": the cosine of a sentence's vector with the
    sum of all; of sentences that say the same the first stays.
    """
    pieces = split_chunks(text, most_tokens=min(SENTENCE_TOKENS, most_tokens), overlap=0)
    said = list(dict.fromkeys(" ".join(text[piece.first : piece.stop].split()) for piece in pieces))
    vectors = HashedEmbedder().embed(said).astype(float)
    middle = vectors.sum(axis=0)
    nearness = [round(float(each @ middle), 6) for each in vectors]  # the last digits of a product hang on the machine
    counter, left = ByteTokenizer(), most_tokens
    taken: list[int] = []
    for place in sorted(range(len(said)), key=lambda place: (-nearness[place], place)):
        tokens = counter.count(said[place] + " ")
        if said[place] and tokens <= left:
            taken.append(place)
            left -= tokens
    return " ".join(said[place] for place in sorted(taken))


async def _ask(text: str, _label: Sensitivity) -> str:
    return extract_sentences(text)


EXTRACT_SUMMARISER = Summariser(_ask, prompt=EXTRACT_NAME, model="built-in")
"""Who summarises where no model is asked."""
