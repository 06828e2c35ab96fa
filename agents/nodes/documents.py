"""The person's documents in the Idea agent's context: relevant passages and summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from hashlib import sha256

from ...factors.describe import find_stems, has_other_letters
from ...router import SecretFound, SummaryRefused
from ...router.calls import Sensitivity, find_strictest, find_unfounded_figures
from ...router.context import (
    EXTRACT_SUMMARISER,
    ByteStore,
    CampaignDocument,
    ContextCache,
    ContextSettings,
    Document,
    Passage,
    Screen,
    Summariser,
)
from ..questions import TOLD_SENSITIVITY, Question, ask_model, find_strictest_sensitivity
from ..records import read_hypothesis
from ..schemas import ShortText
from ..search_context import Json, SearchContext
from . import review

__all__ = ["DOCUMENTS_PAGE", "Documents", "is_useful_summary", "recall_documents", "select_documents"]

DOCUMENTS_PAGE = "documents"
"""The prompt page that explains documents."""
SUMMARY_ROLE = "report"
"""The role that summarises, and the name of its page."""
OPENING_DOCUMENTS = 4
"""Documents that are summarised while there is nothing to search for yet."""
DOCUMENT_ID_CHARS = 12
MIN_SUMMARY_OVERLAP = 2 / 3
"""Share of the stems of a small model's summary that its text has."""


@dataclass(frozen=True)
class Documents:
    """The documents of a campaign that agents may see.

    Attributes
    ----------
    store
        Cache of derived texts, shared with other campaigns.
    given
        The documents, in the person's order.
    text
        Returns the text of an id; the run stores it, so that changes of the file or the store have no effect.
    screen
        Screens each passage and summary before it is shown.
    settings
        How much is shown, and who summarises.
    models
        Names of the models that may summarise: part of the cache key, since other models would word it differently.
    """

    store: ByteStore
    given: tuple[CampaignDocument, ...]
    text: Callable[[str], str]
    screen: Screen
    settings: ContextSettings
    models: str

    def may_quote(self, document: CampaignDocument, text: str) -> bool:
        """Return whether words of a document may be shown: none that address machines, unless a person released it."""
        return document.released or not self.screen(text)[1]


def select_documents(
    documents: Sequence[CampaignDocument], last_day: str
) -> tuple[tuple[CampaignDocument, ...], list[str]]:
    """Return the documents that agents may see, and notes for the person about the others and the undated.

    `last_day` is the last day that the agents see: a later document would describe the days on which factors are
    judged.
    """
    last = date.fromisoformat(last_day)
    late = [document for document in documents if not document.held and document.known and document.known > last]
    allowed = tuple(document for document in documents if not document.held and document not in late)
    undated = sum(document.known is None for document in allowed)
    notes = [
        f"{document.name} is held back, as it seems to speak to machines ({document.held}); "
        "read it, and give it `released: why` to have it told"
        for document in documents
        if document.held
    ]
    notes += [
        f"{document.name} was not known by the end of the search window, {last_day}, and is told to nobody"
        for document in late
    ]
    if undated:
        notes.append(
            f"{undated} of {len(allowed)} documents told have no day `known`: "
            "what they say of later days is known to the agents"
        )
    return allowed, notes


async def recall_documents(search: SearchContext, round_key: str) -> Json:
    """Return the round's rows of documents, with the strictest label that the run's agents have seen so far."""
    documents = search.documents
    if documents is None or not review.parse_round(round_key):
        return {}
    cache = ContextCache(documents.store, summariser=_choose_summariser(search, documents))
    cached = [cache.add(documents.text(entry.id), sensitivity=entry.sensitivity) for entry in documents.given]
    passages = cache.retrieve(_build_queries(search, round_key), cached, most_tokens=documents.settings.passage_tokens)
    cited = list(dict.fromkeys(passage.document for passage in passages))
    relevant = cited or [document.id for document in cached[:OPENING_DOCUMENTS]]
    rows, labels = [], [find_strictest_sensitivity(search, review.parse_round(round_key) - 1)]
    for entry, document in sorted(
        zip(documents.given, cached, strict=True), key=lambda pair: _rank_document(relevant, pair[1])
    ):
        row = await _describe_document(documents, cache, (entry, document), passages) if document.id in relevant else {}
        if row:
            rows.append(row)
            labels.append(document.sensitivity)
    if not rows:
        search.progress("no_passage", {"round": review.parse_round(round_key)})
    label = find_strictest(labels)
    return ({"documents": rows} if rows else {}) | ({TOLD_SENSITIVITY: label} if label != "public" else {})


def _rank_document(ids: Sequence[str], document: Document) -> int:
    return ids.index(document.id) if document.id in ids else len(ids)


async def _describe_document(
    documents: Documents, cache: ContextCache, one: tuple[CampaignDocument, Document], passages: Sequence[Passage]
) -> Json:
    """Return one document's row, under keys that mark a stranger's words; empty if nothing may be shown."""
    entry, document = one
    quotes = [
        passage.text
        for passage in passages
        if passage.document == document.id and documents.may_quote(entry, passage.text)
    ]
    summary = await _summarise(cache, document) if documents.settings.summaries != "none" else ""
    if summary and not documents.may_quote(entry, summary):
        summary = ""
    if not (quotes or summary):
        return {}
    return {
        "document": document.id[:DOCUMENT_ID_CHARS],
        "untrusted_name": entry.name,
        **({"known": entry.known.isoformat()} if entry.known else {}),
        **({"untrusted_summary": summary} if summary else {}),
        "untrusted_passages": quotes,
    }


async def _summarise(cache: ContextCache, document: Document) -> str:
    """Return a document's summary; empty if none could be made, since passages are shown without it."""
    try:
        return (await cache.summary(document)).text
    except (SummaryRefused, SecretFound):
        return ""


def _build_queries(search: SearchContext, round_key: str) -> list[str]:
    """Return the round's queries: the person's goal and focus, and the hypotheses of the round before."""
    before = f"r{review.parse_round(round_key) - 1:02d}"
    last = [read_hypothesis(search.journal, f"{before}/h{index:02d}") for index in range(search.config.hypotheses)]
    stated = [f"{hypothesis.mechanism.replace('_', ' ')} {hypothesis.statement}" for hypothesis in last]
    return [words for words in (search.steer.goal, *search.steer.focus, *stated) if words.strip()]


def _may_show(documents: Documents, text: str, summary: str) -> bool:
    return any(documents.may_quote(entry, summary) for entry in documents.given if text in documents.text(entry.id))


async def _check_summary(text: str, may_show: Callable[[str], bool], reply: ShortText) -> str:
    """Return why a small model's summary is of no use; empty where it may be shown and speaks of its text."""
    if is_useful_summary(reply.summary, text, may_show):
        return ""
    return "the summary is about something else, has figures that its text lacks, or may not be shown"


def is_useful_summary(summary: str, text: str, may_show: Callable[[str], bool]) -> bool:
    """Return whether a summary may be shown and speaks of its text: most of its stems and all figures are there.

    Stems are of words in Latin letters; where the summary has others, stems are not asked for.
    """
    said = {*find_stems(summary)}
    close = bool(said) and len(said & {*find_stems(text)}) >= MIN_SUMMARY_OVERLAP * len(said)
    return (close or has_other_letters(summary)) and not find_unfounded_figures(summary, text) and may_show(summary)


def _choose_summariser(search: SearchContext, documents: Documents) -> Summariser:
    """Return the summariser: the built-in rule, or this campaign's models."""
    if documents.settings.summaries != "model":
        return EXTRACT_SUMMARISER

    async def ask(text: str, label: Sensitivity) -> str:
        context: Json = {"task": "summary", "untrusted_text": text}
        key = f"summary/{sha256(text.encode()).hexdigest()[:16]}"
        question = Question(
            SUMMARY_ROLE, "summary", key, ShortText, context, sensitivity=label,
            check=partial(_check_summary, text, partial(_may_show, documents, text)),
        )  # fmt: skip  # a table
        reply = await ask_model(search, question)
        if "summary" not in reply:
            why = reply.get("ended") or reply.get("failed")
            raise SummaryRefused(f"no model gave a summary: {why}", field="context.summaries")
        summary = str(reply["summary"])
        if unfounded := find_unfounded_figures(summary, text):
            figures = ", ".join(unfounded)
            raise SummaryRefused(f"a summary has figures that its text lacks: {figures}", field="context.summaries")
        return summary

    return Summariser(ask, prompt=search.own.prompt(SUMMARY_ROLE).digest, model=documents.models)
