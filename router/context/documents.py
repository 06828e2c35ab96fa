"""The documents of a campaign: files are read and screened; each is accepted, refused or withheld from the agents."""

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
"""Makes a text harmless, and says why it is held back; nothing where it is not."""
DOCUMENT_SUFFIXES = (".md", ".txt")
MAX_DOCUMENTS = 5_000
MAX_DOCUMENT_CHARS = 8_000_000
MAX_DOCUMENT_NAME_CHARS = 100
MAX_DOCUMENTS_SHOWN = 8


class CampaignDocument(BaseModel):
    """A document of a run: the id of its text, and what is said of it; `held` says why it is held back."""

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
    """Return the documents that settings name, each text once, in their order, and the texts of those not held back by id.

    Parameters
    ----------
    settings
        Which files; what is named later holds where a file is named twice.
    label
        Of what has no label of its own.
    screen
        What every text passes first; it is kept and shown as it comes out of there.

    Raises
    ------
    ContextError
        Every mistake at once: a file is missing, empty, too long, no UTF-8 text, or holds what looks like a key.
    ContextError
        If the address of the store is none, or holds a secret.
    Confidential
        If a document is confidential, and the store not on machines of one's own.
    """
    mistakes: list[str] = []
    found: dict[str, CampaignDocument] = {}
    texts: dict[str, str] = {}
    for path, (name, said) in _files(settings.named, mistakes).items():
        text, why = _read(path, screen)
        if text is None:
            mistakes.append(f"{name} {why}")
            continue
        held = "" if said.released else why
        one = CampaignDocument(
            id=compute_digest(text), name=screen(name)[0][:MAX_DOCUMENT_NAME_CHARS], sensitivity=said.sensitivity or label,
            known=said.known, released=bool(said.released), held=held,
        )  # fmt: skip
        found[one.id] = _merge_given(found.get(one.id, one), one)
        texts[one.id] = text
    if mistakes:
        raise _unusable(mistakes)
    _permit(settings, found.values())
    return list(found.values()), {name: text for name, text in texts.items() if not found[name].held}


def _files(named: Sequence[DocumentSettings], mistakes: list[str]) -> dict[Path, tuple[str, DocumentSettings]]:
    """Return all files with their names and what is said of them."""
    found: dict[Path, tuple[str, DocumentSettings]] = {}
    for each in named:
        inside = list(_files_within(each.path))
        if not inside:
            why = f"holds no {' or '.join(DOCUMENT_SUFFIXES)}" if each.path.is_dir() else "is not there"
            mistakes.append(f"{each.path.name} {why}")
        found.update((path, (name, each)) for path, name in inside)
    if len(found) > MAX_DOCUMENTS:
        mistakes.append(f"{len(found):,} files are more than {MAX_DOCUMENTS:,}")
        return {}
    return found


def _files_within(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or those of a folder in the order of their names, without what is hidden; each with its name."""
    if path.is_file():
        yield path, path.name
    for each in sorted(path.rglob("*")) if path.is_dir() else ():
        inner = each.relative_to(path)
        if (
            each.is_file()
            and each.suffix.lower() in DOCUMENT_SUFFIXES
            and not any(part.startswith(".") for part in inner.parts)
        ):
            yield each, inner.as_posix()


def _read(path: Path, screen: Screen) -> tuple[str | None, str]:
    """Return the harmless text of a file and why it is held back, or nothing and what is wrong with it."""
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
    """Return what is said of one text that came twice: the stricter label, the later day, held back unless released."""
    known = max((each.known for each in (one, other) if each.known), default=None)
    label = find_strictest([one.sensitivity, other.sensitivity])
    released = one.released or other.released
    held = "" if released else one.held or other.held
    return one.model_copy(update={"sensitivity": label, "known": known, "released": released, "held": held})


def _permit(settings: ContextSettings, found: Iterable[CampaignDocument]) -> None:
    """Refuse to begin with what the store would refuse later."""
    check_address(settings.store)
    names = [each.name for each in found if each.sensitivity == SENSITIVITY_ORDER[-1]]
    if names and settings.store and settings.store_place != "local":
        raise Confidential(
            "a confidential document may not be kept in a store that is not on machines of yours", field="context.store",
            got=names[:MAX_DOCUMENTS_SHOWN], allowed="the file of the workspace, or a store with store_place: local",
        )  # fmt: skip


def _unusable(mistakes: Sequence[str]) -> ContextError:
    rest = f"; and {len(mistakes) - MAX_DOCUMENTS_SHOWN} more" if len(mistakes) > MAX_DOCUMENTS_SHOWN else ""
    return ContextError(
        f"These documents cannot be used: {'; '.join(mistakes[:MAX_DOCUMENTS_SHOWN])}{rest}.", code="document_unusable", field="context.documents",
        got=[each.partition(" ")[0] for each in mistakes[:MAX_DOCUMENTS_SHOWN]], allowed="UTF-8 text in .txt and .md files, and folders of them",
    )  # fmt: skip
