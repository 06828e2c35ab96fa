"""What a campaign came to: the content of results.json, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...ledger import Ledger, Run, UnknownRun

ResultEntry = dict[str, Any]
"""One factor or set: id, form, text, hypothesis, reasons and metrics on search and selection."""


@dataclass(frozen=True)
class CampaignResult:
    """A finished run; `record` is all of results.json, `report` None where nothing renders one."""

    run: str
    folder: Path
    record: dict[str, Any]
    report: Path | None

    def _entries(self, word: str) -> list[ResultEntry]:
        found: list[ResultEntry] = self.record[word]
        return found

    @property
    def accepted(self) -> list[ResultEntry]:
        """Return what passed every step of the gate."""
        return self._entries("accepted")

    @property
    def watchlist(self) -> list[ResultEntry]:
        """Return what is promising and unproven."""
        return self._entries("watchlist")

    @property
    def rejected(self) -> list[ResultEntry]:
        """Return what was scored or judged, and thrown away."""
        return self._entries("rejected")

    @property
    def combination(self) -> Path | None:
        """Return the Parquet file (date, symbol, score) of the accepted factors together, None without any."""
        made = self.record["combination"]
        return self.folder / made["file"] if made else None

    @property
    def trials(self) -> int:
        """Return how many looks at the selection window the campaign took."""
        return int(self.record["trials"])

    @property
    def power(self) -> dict[str, Any]:
        """Return what the selection window could have proven."""
        found: dict[str, Any] = self.record["power"]
        return found


def find_campaign(ledger: Ledger, name: str) -> Run:
    """Return the campaign that RUN means; a factor judged by hand and tools that were served are runs, but none.

    Raises
    ------
    UnknownRun
        When no campaign has that name.
    """
    campaigns = [row for row in ledger.runs() if "settings" in row.config]
    row = campaigns[-1] if name == "latest" and campaigns else ledger.run(name)
    if "settings" not in row.config:
        what = "is no campaign: a factor was judged by hand, or tools were served"
        hint = "Name a campaign's run; alphaloom run starts one."
        raise UnknownRun(f"Run {row.id} {what}.", field="run", got=name, hint=hint)
    return row
