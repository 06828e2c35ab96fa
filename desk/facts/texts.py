"""The facts of a text for people, and its release by one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...factors.describe import replace_invisible
from ...news import NewsItem, NewsStore, NewsStoreError, QuarantinedItem, Release, format_instant

LATEST_INSTANT = datetime.max.replace(tzinfo=UTC)
"""The instant for a person who names no day."""


def release_text(
    store: NewsStore, id: str, signature: tuple[str, str], begin: datetime | None, now: datetime
) -> Release:
    """Release a text as of when it was held back, or as of a later day `begin`; `signature` is who, and why.

    The store keeps the instant from which the release counts; the time of the decision is added to the reason.

    Raises
    ------
    NewsStoreError
        The text is not held back, or no reason is given.
    """
    entry = next((item for item in store.list_quarantine(LATEST_INSTANT) if item.item.id == id), None)
    if entry is None:
        hint = "alphaloom news show ID tells how it stands."
        raise NewsStoreError("this text is not held back", field="ID", got=id, hint=hint)
    reason = replace_invisible(signature[1]).strip()
    if not reason:
        raise NewsStoreError("a release says why", field="--reason", allowed="some words")
    moment = max(entry.since, begin) if begin else entry.since
    return store.release(id, signature[0], f"{reason} (decided {now:%Y-%m-%d %H:%M} UTC)", moment)


@dataclass(frozen=True)
class ShownText:
    """One text with its quarantine and its release."""

    item: NewsItem
    held: QuarantinedItem | None
    release: Release | None

    @classmethod
    def of(cls, store: NewsStore, id: str) -> ShownText:
        """Look up a text by its full id."""
        entry = next((row for row in store.list_quarantine(LATEST_INSTANT) if row.item.id == id), None)
        release = next((row for row in store.list_releases(LATEST_INSTANT) if row.id == id), None)
        return cls(store.find_by_prefix(id)[0], entry, release)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        entry, decision = self.held, self.release
        put_back = (
            {"by": decision.who, "reason": decision.reason, "served_from": format_instant(decision.at)}
            if decision
            else None
        )
        return {"item": self.item.record(evidence=True), "held": entry.record() if entry else None, "release": put_back}

    def lines(self) -> list[str]:
        """Return the lines above the text."""
        item = self.item
        place = f"{item.provenance.file}, record {item.provenance.record}, sha256 {item.provenance.sha256}"
        facts = {
            "id": item.id,
            "kind": item.kind,
            "source": f"{item.source} (believed {item.credibility:g})",
            "address": item.url,
            "about": " ".join(item.symbols),
            "published": format_instant(item.published),
            "known": format_instant(item.known),
            "read": place,
        }
        rows = [f"{name:<11}{value}" for name, value in facts.items() if value]
        signs = self.held.signs if self.held else item.flags
        rows += [f"{'sign':<11}{sign.name}, {sign.weight:g}: {sign.evidence}" for sign in signs]
        if self.held:
            rows.append(f"{'HELD BACK':<11}since {format_instant(self.held.since)}")
        if self.release:
            start = format_instant(self.release.at)
            rows.append(f"{'released':<11}by {self.release.who}, served from {start}: {self.release.reason}")
        return [row.replace("\n", " ") for row in rows]
