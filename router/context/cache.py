"""Long documents processed once: cut, embedded and summarised, then retrieved by any process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ...ledger import compute_digest
from ..calls.task import SENSITIVITY_ORDER, Sensitivity, find_strictest
from ..errors import Confidential, ContextError, SecretFound
from ..keys import holds_key
from .cached_values import LEASE_SECONDS, CacheTally, Statistics, ValueStore
from .index import Cutting, Index
from .passages import Passage, PassageSource, gather_passages, interleave_orders, rank_chunks
from .store import ByteStore, Size
from .summaries import Summariser, Summary, summarise_text
from .vectors import Embedder, HashedEmbedder

SecretTest: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True)
class CacheLimits:
    """Maximum size of the cache, duration of a dead worker's lease, and the test for secrets."""

    most_bytes: int | None = 2 * 1024**3
    lease_seconds: float = LEASE_SECONDS
    secret: SecretTest = holds_key


@dataclass(frozen=True)
class Document:
    """A document in the cache; `id` is the SHA-256 of its text, so that equal texts are one document."""

    id: str
    sensitivity: Sensitivity
    characters: int
    tokens: int
    chunks: int


class ContextCache:
    """Keeps the indices and summaries of long documents, and retrieves the passages that match a query.

    Parameters
    ----------
    store : ByteStore
        The storage; processes that share it share the work.
    embedder : Embedder, optional
        Computes vectors; hashed n-grams by default.
    summariser : Summariser, optional
        Summarises documents; without it `summary` is refused.
    cutting : Cutting, optional
        How documents are cut.
    limits : CacheLimits, optional
        Maximum size, and the test for secrets.

    Notes
    -----
    Texts are stored unchanged; a confidential text only in a store whose place is local. Sensitivity only rises: a text
    that anyone added as confidential is confidential for all, and a lost label counts as the strictest.
    """

    def __init__(
        self,
        store: ByteStore,
        embedder: Embedder | None = None,
        summariser: Summariser | None = None,
        *,
        cutting: Cutting | None = None,
        limits: CacheLimits | None = None,
    ) -> None:
        self._embedder: Embedder = embedder or HashedEmbedder()
        self._summariser = summariser
        self._cutting = cutting or Cutting()
        self._limits = limits or CacheLimits()
        self._tally = CacheTally()
        self._shelf = ValueStore(store, self._tally, self._limits.lease_seconds, self._limits.most_bytes)

    @property
    def statistics(self) -> Statistics:
        """Return this process's counts of values found and computed, and the time saved."""
        return self._tally.now

    def size(self) -> Size:
        """Return the size of the store."""
        return self._shelf.store.size()

    def trim(self, most_bytes: int) -> int:
        """Delete the least recently used items until at most `most_bytes` remain; return how many were deleted."""
        return self._shelf.store.trim(most_bytes)

    def add(self, text: str, *, sensitivity: Sensitivity) -> Document:
        """Add a document; a known one is not processed again.

        Raises
        ------
        ContextError
            If its label is unknown, or the text is blank or not valid Unicode.
        SecretFound
            If it contains a possible key or password.
        Confidential
            If it is confidential, and the store is not local.
        """
        name = self._check_document(text, sensitivity)
        # The label is stored first, so that no text is ever without one.
        self._shelf.put(f"{sensitivity}:{name}", b"label", pinned=True)
        label = self._find_label(name)
        self._permit(name, label)
        if self._shelf.get(f"text:{name}", counted=False) is None:
            self._shelf.put(f"text:{name}", text.encode())
        return self._make_document(name, self._load_index(name, text), text, label)

    def document(self, name: str) -> Document:
        """Return a document by its id.

        Raises
        ------
        ContextError
            If the store does not contain it.
        """
        text = self._load_text(name)
        return self._make_document(name, self._load_index(name, text), text, self._find_label(name))

    def forget(self, document: Document) -> None:
        """Delete a document, its index and this summariser's summary; its label stays."""
        self._drop(document.id)

    def retrieve(self, query: str | Sequence[str], documents: Sequence[Document], *, most_tokens: int) -> list[Passage]:
        """Return the passages that match a query, best first, with at most `most_tokens` together.

        Several queries take turns: the best passage of each, then the second best of each.

        Raises
        ------
        ContextError
            If one chunk may exceed `most_tokens`, or the store no longer contains one of the documents.
        """
        if most_tokens < self._cutting.most_tokens:
            raise ContextError(
                "one chunk may not fit",
                field="most_tokens",
                got=most_tokens,
                allowed=f"{self._cutting.most_tokens} or more",
            )
        by_id = {
            document.id: document
            for document in sorted(documents, key=lambda document: SENSITIVITY_ORDER.index(document.sensitivity))
        }
        sources = [self._load_source(by_id[name]) for name in sorted(by_id)]
        queries = [query] if isinstance(query, str) else query
        vectors = self._embedder.embed(queries)
        orders = [rank_chunks(text, vector, sources) for text, vector in zip(queries, vectors, strict=True)]
        return gather_passages(interleave_orders(orders), sources, most_tokens, self._cutting.tokenizer)

    async def summary(self, document: Document) -> Summary:
        """Return the summary of a document; a model is asked once for each document, prompt and model.

        Raises
        ------
        ContextError
            If the cache has no summariser.
        SummaryRefused
            If the summary is empty or too long. Nothing is stored then, nor after any other error of the model.
        SecretFound
            If the summary contains a possible secret.
        """
        if self._summariser is None:
            raise ContextError("this cache has nobody who summarises", field="summariser", hint="Give it a Summariser.")
        by, label = self._summariser, find_strictest([document.sensitivity, self._find_label(document.id)])
        key = by.key(document.id, self._cutting.tokenizer)
        body = await self._shelf.once_later(key, partial(self._summarise, document.id, label, by))
        return Summary(document.id, body.decode(), label, by.model, by.prompt)

    async def _summarise(self, name: str, label: Sensitivity, by: Summariser) -> bytes:
        summary = await summarise_text(self._load_text(name), label, by, self._cutting.tokenizer)
        if self._limits.secret(summary):
            raise SecretFound("a summary holds what looks like a key or a password; it was not kept", field="summarise")
        return summary.encode()

    def _check_document(self, text: str, sensitivity: Sensitivity) -> str:
        """Return the id of a text that may be kept."""
        if sensitivity not in SENSITIVITY_ORDER:
            raise ContextError(
                "a document needs a label", field="sensitivity", got=sensitivity, allowed=list(SENSITIVITY_ORDER)
            )
        if not text.strip():
            raise ContextError("there is nothing to read in this document", field="text")
        try:
            body = text.encode()
        except UnicodeEncodeError as error:
            raise ContextError(
                "this document is not Unicode text", field="text", got=f"half a sign at {error.start}"
            ) from None
        if self._limits.secret(text):
            raise SecretFound(
                "this document holds what looks like a key or a password; it was not kept",
                field="text",
                hint="Take the secret out, then add the document.",
            )
        return compute_digest(body)

    def _permit(self, name: str, label: Sensitivity) -> None:
        """Refuse a document that may not be in this store, and delete it: it may have been added with a lower label."""
        if label == SENSITIVITY_ORDER[-1] and self._shelf.store.place != "local":
            self._drop(name)
            raise Confidential(
                "a confidential document may not be kept in a store that is not on machines of yours",
                field="sensitivity",
                got=label,
                hint="Use a store whose place is local.",
            )

    def _drop(self, name: str) -> None:
        self._shelf.store.drop(f"text:{name}")
        self._shelf.store.drop(self._cutting.key(name, self._embedder))
        if self._summariser is not None:
            self._shelf.store.drop(self._summariser.key(name, self._cutting.tokenizer))

    def _find_label(self, name: str) -> Sensitivity:
        """Return the strictest label with which a document was added."""
        return find_strictest(
            label for label in SENSITIVITY_ORDER if self._shelf.get(f"{label}:{name}", counted=False) is not None
        )

    def _load_text(self, name: str) -> str:
        body = self._shelf.get(f"text:{name}", counted=False)
        if body is None or compute_digest(body) != name:
            raise ContextError(
                f"the context cache does not hold the document {name[:12]}",
                code="unknown_document",
                field="document",
                hint="Add it again.",
            )
        return body.decode()

    def _load_index(self, name: str, text: str) -> Index:
        """Return the index of a text, computed once."""
        key = self._cutting.key(name, self._embedder)
        return Index.unpacked(self._shelf.once(key, lambda: Index.of(text, self._cutting, self._embedder).packed()))

    def _load_source(self, document: Document) -> PassageSource:
        text = self._load_text(document.id)
        label = find_strictest([document.sensitivity, self._find_label(document.id)])
        return PassageSource(document.id, text, label, self._load_index(document.id, text))

    @staticmethod
    def _make_document(name: str, index: Index, text: str, label: Sensitivity) -> Document:
        return Document(name, label, len(text), index.tokens, len(index.places))
