"""What the Idea agent is told of the person's documents: the passages that have to do with what it works on, and summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

from ...router import SecretFound, SummaryRefused
from ...router.calls import Sensitivity, find_strictest
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
from ..model_calls import TOLD_SENSITIVITY, Question, ask_model, find_strictest_sensitivity
from ..records import read_hypothesis
from ..schemas import ShortText
from ..search_context import Json, SearchContext
from . import review

__all__ = ["DOCUMENTS_PAGE", "Documents", "recall_documents", "select_documents"]

DOCUMENTS_PAGE = "documents"
"""The page that says what documents are."""
SUMMARY_ROLE = "report"
"""The role that summarises, and its page."""
OPENING_DOCUMENTS = 4
"""Documents of which summaries are told where there is nothing to look for yet."""
DOCUMENT_ID_CHARS = 12


@dataclass(frozen=True)
class Documents:
    """The documents of a campaign that may be told.

    Attributes
    ----------
    store
        What was worked out of them, shared with other campaigns.
    given
        The documents, in the person's order.
    text
        Returns the text of an id: the run has it, whatever became of the file and the store.
    screen
        What each passage and summary passes before it is told.
    settings
        How much is told, and who summarises.
    models
        Names of the models that may summarise: others would say it in other words.
    """

    store: ByteStore
    given: tuple[CampaignDocument, ...]
    text: Callable[[str], str]
    screen: Screen
    settings: ContextSettings
    models: str

    def may_quote(self, given: CampaignDocument, text: str) -> bool:
        """Tell whether words of a document may be told: none that speak to machines, unless a person released it."""
        return given.released or not self.screen(text)[1]


def select_documents(
    given: Sequence[CampaignDocument], last_day: str
) -> tuple[tuple[CampaignDocument, ...], list[str]]:
    """Return the documents that agents may be told of, and what a person is to know of the others and of the undated.

    `last_day` is the last that the agents see: a later document tells of the days on which factors are judged.
    """
    last = date.fromisoformat(last_day)
    late = [each for each in given if not each.held and each.known and each.known > last]
    told = tuple(each for each in given if not each.held and each not in late)
    undated = sum(each.known is None for each in told)
    said = [f"{each.name} is held back, as it seems to speak to machines ({each.held}); read it, and give it `released: why` to have it told" for each in given if each.held]  # fmt: skip
    said += [f"{each.name} was not known by the end of the search window, {last_day}, and is told to nobody" for each in late]  # fmt: skip
    if undated:
        said.append(f"{undated} of {len(told)} documents told have no day `known`: what they say of later days is known to the agents")  # fmt: skip
    return told, said


async def recall_documents(desk: SearchContext, round_key: str) -> Json:
    """Return what the round is told of documents, with the strictest label that the run's agents have seen by now."""
    documents = desk.documents
    if documents is None or not review.parse_round(round_key):
        return {}
    cache = ContextCache(documents.store, summariser=_summariser(desk, documents))
    known = [cache.add(documents.text(each.id), sensitivity=each.sensitivity) for each in documents.given]
    passages = cache.retrieve(_queries(desk, round_key), known, most_tokens=documents.settings.passage_tokens)
    found = list(dict.fromkeys(each.document for each in passages)) or [each.id for each in known[:OPENING_DOCUMENTS]]
    rows, labels = [], [find_strictest_sensitivity(desk, review.parse_round(round_key) - 1)]
    for given, document in sorted(zip(documents.given, known, strict=True), key=lambda pair: _place(found, pair[1])):
        row = await _row(documents, cache, (given, document), passages) if document.id in found else {}
        if row:
            rows.append(row)
            labels.append(document.sensitivity)
    if not rows:
        desk.progress("no_passage", {"round": review.parse_round(round_key)})
    label = find_strictest(labels)
    return ({"documents": rows} if rows else {}) | ({TOLD_SENSITIVITY: label} if label != "public" else {})


def _place(found: Sequence[str], document: Document) -> int:
    return found.index(document.id) if document.id in found else len(found)


async def _row(
    documents: Documents, cache: ContextCache, one: tuple[CampaignDocument, Document], passages: Sequence[Passage]
) -> Json:
    """Return what is told of one document, under keys that say whose words they are; nothing where nothing may be told."""
    given, document = one
    said = [each.text for each in passages if each.document == document.id and documents.may_quote(given, each.text)]
    summary = await _summary(cache, document) if documents.settings.summaries != "none" else ""
    if summary and not documents.may_quote(given, summary):
        summary = ""
    if not (said or summary):
        return {}
    return {
        "document": document.id[:DOCUMENT_ID_CHARS],
        "untrusted_name": given.name,
        **({"known": given.known.isoformat()} if given.known else {}),
        **({"untrusted_summary": summary} if summary else {}),
        "untrusted_passages": said,
    }


async def _summary(cache: ContextCache, document: Document) -> str:
    """Return what a document says in short, nothing where nobody could say it: passages are told without it."""
    try:
        return (await cache.summary(document)).text
    except (SummaryRefused, SecretFound):
        return ""


def _queries(desk: SearchContext, round_key: str) -> list[str]:
    """Return what the round looks for: the person's goal and focus, and what each hypothesis of the round before says."""
    before = f"r{review.parse_round(round_key) - 1:02d}"
    last = [read_hypothesis(desk.journal, f"{before}/h{index:02d}") for index in range(desk.config.hypotheses)]
    stated = [f"{hypothesis.mechanism.replace('_', ' ')} {hypothesis.statement}" for hypothesis in last]
    return [words for words in (desk.steer.goal, *desk.steer.focus, *stated) if words.strip()]


def _summariser(desk: SearchContext, documents: Documents) -> Summariser:
    """Return who summarises: the rule that is built in, or the models of this campaign, as any question of an agent."""
    if documents.settings.summaries != "model":
        return EXTRACT_SUMMARISER

    async def ask(text: str, label: Sensitivity) -> str:
        context: Json = {"task": "summary", "untrusted_text": text}
        key = f"summary/{sha256(text.encode()).hexdigest()[:16]}"
        said = await ask_model(desk, Question(SUMMARY_ROLE, "summary", key, ShortText, context, sensitivity=label))
        if "summary" not in said:
            why = said.get("ended") or said.get("failed")
            raise SummaryRefused(f"no model gave a summary: {why}", field="context.summaries")
        return str(said["summary"])

    return Summariser(ask, prompt=desk.own.prompt(SUMMARY_ROLE).digest, model=documents.models)
