"""Long documents read once: cut, embedded and summarised, and then found again by any process."""

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
    """How much is kept, how long a dead worker is waited for, and what is suspected to be a secret."""

    most_bytes: int | None = 2 * 1024**3
    lease_seconds: float = LEASE_SECONDS
    secret: SecretTest = holds_key


@dataclass(frozen=True)
class Document:
    """A document that the cache knows; `id` is the SHA-256 of its text, so that equal texts are one document."""

    id: str
    sensitivity: Sensitivity
    characters: int
    tokens: int
    chunks: int


class ContextCache:
    """Keeps what was worked out of long documents, and finds the passages that have to do with a question.

    Parameters
    ----------
    store : Store
        Where it is kept; processes that share it share the work.
    embedder : Embedder, optional
        What makes vectors; hashed n-grams by default.
    summariser : Summariser, optional
        Who summarises, if anybody does.
    cutting : Cutting
        How documents are cut.
    limits : Limits
        How much is kept, and what is not.

    Notes
    -----
    A text is kept as it is, in the store that is given; a confidential one only in a store whose place is local. Labels
    only rise: a text that anybody added as confidential is confidential for all, and a label that is lost counts as the
    strictest.
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
        """Return what this process found, made and was spared."""
        return self._tally.now

    def size(self) -> Size:
        """Return what the store holds."""
        return self._shelf.store.size()

    def trim(self, most_bytes: int) -> int:
        """Forget what was used longest ago until no more than so many bytes are held."""
        return self._shelf.store.trim(most_bytes)

    def add(self, text: str, *, sensitivity: Sensitivity) -> Document:
        """Take a document in; one that is known is not read again.

        Raises
        ------
        ContextError
            If there is nothing to read in it.
        SecretFound
            If it holds what looks like a key or a password.
        Confidential
            If it is confidential, and the store is not on machines of one's own.
        """
        name = self._check_document(text, sensitivity)
        self._shelf.put(f"{sensitivity}:{name}", b"label", pinned=True)  # first: no text is ever there without a label
        label = self._label(name)
        self._permit(name, label)
        if self._shelf.get(f"text:{name}", counted=False) is None:
            self._shelf.put(f"text:{name}", text.encode())
        return self._make_document(name, self._index(name, text), text, label)

    def document(self, name: str) -> Document:
        """Return a document by its id.

        Raises
        ------
        ContextError
            If the store does not hold it, or no longer.
        """
        text = self._text(name)
        return self._make_document(name, self._index(name, text), text, self._label(name))

    def forget(self, document: Document) -> None:
        """Forget a document, its index and its summary by this cache's summariser; its label stays."""
        self._drop(document.id)

    def retrieve(self, query: str | Sequence[str], documents: Sequence[Document], *, most_tokens: int) -> list[Passage]:
        """Return the passages that have to do with a query, best first, no more than so many tokens together.

        Of several queries each has its turn: their best passages come first, then their second best.

        Raises
        ------
        ContextError
            If not even one chunk is sure to fit.
        ContextError
            If the store no longer holds one of the documents.
        """
        if most_tokens < self._cutting.most_tokens:
            raise ContextError(
                "one chunk may not fit",
                field="most_tokens",
                got=most_tokens,
                allowed=f"{self._cutting.most_tokens} or more",
            )
        known = {
            each.id: each for each in sorted(documents, key=lambda each: SENSITIVITY_ORDER.index(each.sensitivity))
        }
        sources = [self._source(known[name]) for name in sorted(known)]
        queries = [query] if isinstance(query, str) else query
        vectors = self._embedder.embed(queries)
        orders = [rank_chunks(each, vector, sources) for each, vector in zip(queries, vectors, strict=True)]
        return gather_passages(interleave_orders(orders), sources, most_tokens, self._cutting.tokenizer)

    async def summary(self, document: Document) -> Summary:
        """Return what a document says in short; a model is asked once for each document, prompt and model.

        Raises
        ------
        ContextError
            If no summariser was given.
        SummaryRefused
            If what the model says cannot stand for the document; nothing is kept then, as after any error of the model.
        SecretFound
            If what it says looks like a secret.
        """
        if self._summariser is None:
            raise ContextError("this cache has nobody who summarises", field="summariser", hint="Give it a Summariser.")
        by, label = self._summariser, find_strictest([document.sensitivity, self._label(document.id)])
        key = by.key(document.id, self._cutting.tokenizer)
        said = await self._shelf.once_later(key, partial(self._summarise, document.id, label, by))
        return Summary(document.id, said.decode(), label, by.model, by.prompt)

    async def _summarise(self, name: str, label: Sensitivity, by: Summariser) -> bytes:
        said = await summarise_text(self._text(name), label, by, self._cutting.tokenizer)
        if self._limits.secret(said):
            raise SecretFound("a summary holds what looks like a key or a password; it was not kept", field="summarise")
        return said.encode()

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
            raise ContextError("this document is not Unicode text", field="text", got=f"half a sign at {error.start}") from None  # fmt: skip
        if self._limits.secret(text):
            raise SecretFound(
                "this document holds what looks like a key or a password; it was not kept",
                field="text",
                hint="Take the secret out, then add the document.",
            )
        return compute_digest(body)

    def _permit(self, name: str, label: Sensitivity) -> None:
        """Refuse a document that may not be in this store, and forget it, if it came when it was less confidential."""
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

    def _label(self, name: str) -> Sensitivity:
        """Return the strictest label that anybody gave a document."""
        return find_strictest(
            each for each in SENSITIVITY_ORDER if self._shelf.get(f"{each}:{name}", counted=False) is not None
        )

    def _text(self, name: str) -> str:
        body = self._shelf.get(f"text:{name}", counted=False)
        if body is None or compute_digest(body) != name:
            raise ContextError(
                f"the context cache does not hold the document {name[:12]}",
                code="unknown_document",
                field="document",
                hint="Add it again.",
            )
        return body.decode()

    def _index(self, name: str, text: str) -> Index:
        """Return what is worked out of a text, which is done once."""
        key = self._cutting.key(name, self._embedder)
        return Index.unpacked(self._shelf.once(key, lambda: Index.of(text, self._cutting, self._embedder).packed()))

    def _source(self, document: Document) -> PassageSource:
        text = self._text(document.id)
        label = find_strictest([document.sensitivity, self._label(document.id)])
        return PassageSource(document.id, text, label, self._index(document.id, text))

    @staticmethod
    def _make_document(name: str, index: Index, text: str, label: Sensitivity) -> Document:
        return Document(name, label, len(text), index.tokens, len(index.places))
