"""The offline researcher's summary: sentences of the text, chosen by rule."""

from __future__ import annotations

from ...router.context import extract_sentences
from .reading import Context, Json


def summarise(context: Context) -> Json:
    """Return the sentences that say most of what the text says."""
    return {"summary": extract_sentences(str(context.body.get("untrusted_text", "")))}
