"""Long documents processed once: cut, embedded and summarised, then retrieved by any process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...ledger import compute_digest
from ..calls.task import SENSITIVITY_ORDER, Sensitivity, find_strictest
from ..errors import Confidential, ContextError, SecretFound
from ..keys import holds_key
from .cached_values import LEASE_SECONDS, ValueStore
from .chunks import CHUNK_TOKENS
from .index import Index, find_index_key
from .passages import Passage, PassageSource, gather_passages, interleave_orders, rank_chunks
from .store import ByteStore
from .summaries import Summariser, Summary, summarise_text
from .vectors import embed_texts

MAX_CACHE_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class Document:
    """A document in the cache; `id` is the SHA-256 of its text, so that equal texts are one document."""

    id: str
    sensitivity: Sensitivity


class ContextCache:
    """Keeps the indices and summaries of long documents, and retrieves the passages that match a query.

    Parameters
    ----------
    store : ByteStore
        The storage; processes that share it share the work.
    summariser : Summariser, optional
        Summarises documents; without it `summary` is refused.
    most_bytes : int
        Maximum bytes of the store, labels aside.
    lease_seconds : float
        Seconds after which a dead worker is replaced.

    Notes
    -----
    Texts are stored unchanged; a confidential text only in a store whose place is local. Sensitivity only rises: a text
    that anyone added as confidential is confidential for all, and a lost label counts as the strictest.
    """

    def __init__(
        self,
        store: ByteStore,
        summariser: Summariser | None = None,
        *,
        most_bytes: int = MAX_CACHE_BYTES,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._summariser = summariser
        self._shelf = ValueStore(store, lease_seconds, most_bytes)

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
        if self._shelf.get(f"text:{name}") is None:
            self._shelf.put(f"text:{name}", text.encode())
        self._load_index(name, text)
        return Document(name, label)

    def retrieve(self, query: str | Sequence[str], documents: Sequence[Document], *, most_tokens: int) -> list[Passage]:
        """Return the passages that match a query, best first, with at most `most_tokens` together.

        Several queries take turns: the best passage of each, then the second best of each.

        Raises
        ------
        ContextError
            If one chunk may exceed `most_tokens`, or the store no longer contains one of the documents.
        """
        if most_tokens < CHUNK_TOKENS:
            raise ContextError(
                "one chunk may not fit",
                field="most_tokens",
                got=most_tokens,
                allowed=f"{CHUNK_TOKENS} or more",
            )
        by_id = {
            document.id: document
            for document in sorted(documents, key=lambda document: SENSITIVITY_ORDER.index(document.sensitivity))
        }
        sources = [self._load_source(by_id[name]) for name in sorted(by_id)]
        queries = [query] if isinstance(query, str) else query
        vectors = embed_texts(queries)
        orders = [rank_chunks(text, vector, sources) for text, vector in zip(queries, vectors, strict=True)]
        return gather_passages(interleave_orders(orders), sources, most_tokens)

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
        body = await self._shelf.once_later(by.key(document.id), partial(self._summarise, document.id, label, by))
        return Summary(body.decode(), label)

    async def _summarise(self, name: str, label: Sensitivity, by: Summariser) -> bytes:
        summary = await summarise_text(self._load_text(name), label, by)
        if holds_key(summary):
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
        if holds_key(text):
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
        self._shelf.store.drop(find_index_key(name))
        if self._summariser is not None:
            self._shelf.store.drop(self._summariser.key(name))

    def _find_label(self, name: str) -> Sensitivity:
        """Return the strictest label with which a document was added."""
        return find_strictest(label for label in SENSITIVITY_ORDER if self._shelf.get(f"{label}:{name}") is not None)

    def _load_text(self, name: str) -> str:
        body = self._shelf.get(f"text:{name}")
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
        return Index.unpacked(self._shelf.once(find_index_key(name), lambda: Index.of(text).packed()))

    def _load_source(self, document: Document) -> PassageSource:
        text = self._load_text(document.id)
        label = find_strictest([document.sensitivity, self._find_label(document.id)])
        return PassageSource(document.id, text, label, self._load_index(document.id, text))
