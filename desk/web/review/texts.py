"""The page on a text that is held back from every agent, and its release by a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import DeskError
from ...facts.texts import ShownText, release_text
from ..pages import PageRequest
from .inbox import read_waiting

if TYPE_CHECKING:
    from ....news import NewsStore


@dataclass(frozen=True)
class TextPage:
    """A text, as `alphaloom news show --json` gives it."""

    text: dict[str, Any]


def load_text(view: PageRequest) -> TextPage:
    """Return one text."""
    with _open_store(view) as store:
        return TextPage(ShownText.of(store, _find_text(store, view.path["text"])).record())


def release(view: PageRequest, form: dict[str, str]) -> str:
    """Release a text with a reason, and return the page of what waits next."""
    before = read_waiting(view)
    with _open_store(view) as store:
        name = _find_text(store, view.path["text"])
        release_text(store, name, (view.person, form.get("reason", "")), None, view.now)
    return before.next_after(f"/texts/{name}", read_waiting(view))


def _open_store(view: PageRequest) -> NewsStore:
    from ....news import NEWS_FOLDER, NewsStore

    folder = view.ledger.workspace / NEWS_FOLDER
    if not folder.is_dir():
        raise DeskError("There are no texts in this workspace.", code="unknown_text")
    return NewsStore(folder)


def _find_text(store: NewsStore, start: str) -> str:
    matches = store.find_by_prefix(start.lower())
    if len(matches) != 1:
        raise DeskError("No text has this id.", field="ID", got=start[:64], code="unknown_text")
    return matches[0].id
