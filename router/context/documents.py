"""The documents of a campaign: each file is read and screened, then accepted, refused or withheld from the agents."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from ...ledger import compute_digest
from ...ledger.files import open_given
from ..calls.task import SENSITIVITY_ORDER, Sensitivity, find_strictest
from ..errors import Confidential, ContextError
from ..keys import holds_key
from .settings import ContextSettings, DocumentSettings, check_address

Screen: TypeAlias = Callable[[str], tuple[str, str]]
"""Returns a text made harmless, and the reason why it is withheld; an empty reason where it is not."""
DOCUMENT_SUFFIXES = (".md", ".txt")
MAX_DOCUMENTS = 5_000
MAX_DOCUMENT_CHARS = 8_000_000
MAX_DOCUMENT_NAME_CHARS = 100
MAX_DOCUMENTS_SHOWN = 8


class CampaignDocument(BaseModel):
    """A document of a run: the id of its text, and its settings; `held` is the reason why it is withheld."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    sensitivity: Sensitivity
    known: date | None = None
    released: bool = False
    held: str = ""


def read_documents(
    settings: ContextSettings, label: Sensitivity, screen: Screen
) -> tuple[list[CampaignDocument], dict[str, str]]:
    """Return the configured documents, each text once and in order, and the texts of those not withheld, by id.

    Parameters
    ----------
    settings : ContextSettings
        Names the files; for a file that is named twice, the later entry applies.
    label : Sensitivity
        The label of documents without one of their own.
    screen : callable
        Screens every text first; its result is stored and shown.

    Raises
    ------
    ContextError
        With every mistake at once: a file is missing, empty, too long, no UTF-8 text, or contains a possible key. Also
        if the address of the store is invalid or contains a secret.
    Confidential
        If a document is confidential, and the store is not local.
    """
    mistakes: list[str] = []
    documents: dict[str, CampaignDocument] = {}
    texts: dict[str, str] = {}
    for path, (name, entry) in _list_files(settings.named, mistakes).items():
        text, why = _read(path, screen)
        if text is None:
            mistakes.append(f"{name} {why}")
            continue
        reason = "" if entry.released else why
        document = CampaignDocument(
            id=compute_digest(text),
            name=screen(name)[0][:MAX_DOCUMENT_NAME_CHARS],
            sensitivity=entry.sensitivity or label,
            known=entry.known,
            released=bool(entry.released),
            held=reason,
        )
        documents[document.id] = _merge_given(documents.get(document.id, document), document)
        texts[document.id] = text
    if mistakes:
        raise _build_refusal(mistakes)
    _permit(settings, documents.values())
    return list(documents.values()), {name: text for name, text in texts.items() if not documents[name].held}


def _list_files(named: Sequence[DocumentSettings], mistakes: list[str]) -> dict[Path, tuple[str, DocumentSettings]]:
    """Return all files with their names and settings; extend `mistakes`."""
    files: dict[Path, tuple[str, DocumentSettings]] = {}
    for entry in named:
        inner = list(_yield_files(entry.path))
        if not inner:
            why = f"holds no {' or '.join(DOCUMENT_SUFFIXES)}" if entry.path.is_dir() else "is not there"
            mistakes.append(f"{entry.path.name} {why}")
        files.update((path, (name, entry)) for path, name in inner)
    if len(files) > MAX_DOCUMENTS:
        mistakes.append(f"{len(files):,} files are more than {MAX_DOCUMENTS:,}")
        return {}
    return files


def _yield_files(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or the files of a folder in alphabetical order without hidden ones, each with its name."""
    if path.is_file():
        yield path, path.name
    for file in sorted(path.rglob("*")) if path.is_dir() else ():
        inner = file.relative_to(path)
        if (
            file.is_file()
            and file.suffix.lower() in DOCUMENT_SUFFIXES
            and not any(part.startswith(".") for part in inner.parts)
        ):
            yield file, inner.as_posix()


def _read(path: Path, screen: Screen) -> tuple[str | None, str]:
    """Return the screened text of a file and the reason to withhold it, or None and the mistake."""
    if path.suffix.lower() not in DOCUMENT_SUFFIXES:
        return None, f"is no {' or '.join(DOCUMENT_SUFFIXES)}"
    try:
        with io.TextIOWrapper(open_given(path), encoding="utf-8") as file:
            raw = file.read(MAX_DOCUMENT_CHARS + 1)
    except (OSError, UnicodeDecodeError) as error:
        return None, f"cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}"
    if len(raw) > MAX_DOCUMENT_CHARS:
        return None, f"has more than {MAX_DOCUMENT_CHARS:,} characters"
    text, why = screen(raw)
    if not text.strip():
        return None, "says nothing"
    if holds_key(raw) or holds_key(text):
        return None, "holds what looks like a key or a password: take it out"
    return text, why


def _merge_given(one: CampaignDocument, other: CampaignDocument) -> CampaignDocument:
    """Merge two entries of one text: the stricter label, the later day, withheld if either is, unless released."""
    known = max((document.known for document in (one, other) if document.known), default=None)
    label = find_strictest([one.sensitivity, other.sensitivity])
    released = one.released or other.released
    reason = "" if released else one.held or other.held
    return one.model_copy(update={"sensitivity": label, "known": known, "released": released, "held": reason})


def _permit(settings: ContextSettings, documents: Iterable[CampaignDocument]) -> None:
    """Refuse documents that the store would refuse later."""
    check_address(settings.store)
    names = [document.name for document in documents if document.sensitivity == SENSITIVITY_ORDER[-1]]
    if names and settings.store and settings.store_place != "local":
        raise Confidential(
            "a confidential document may not be kept in a store that is not on machines of yours",
            field="context.store",
            got=names[:MAX_DOCUMENTS_SHOWN],
            allowed="the file of the workspace, or a store with store_place: local",
        )


def _build_refusal(mistakes: Sequence[str]) -> ContextError:
    rest = f"; and {len(mistakes) - MAX_DOCUMENTS_SHOWN} more" if len(mistakes) > MAX_DOCUMENTS_SHOWN else ""
    return ContextError(
        f"These documents cannot be used: {'; '.join(mistakes[:MAX_DOCUMENTS_SHOWN])}{rest}.",
        code="document_unusable",
        field="context.documents",
        got=[mistake.partition(" ")[0] for mistake in mistakes[:MAX_DOCUMENTS_SHOWN]],
        allowed="UTF-8 text in .txt and .md files, and folders of them",
    )
