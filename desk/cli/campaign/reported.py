"""The campaign for scripts and the command line: one that ends with a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from ....campaign import Campaign as SilentCampaign, Settings
from ....ledger import Ledger
from ...report.report import write_report
from ...report.sections.run_notes import read_run_notes
from ...run_remark import add_run_remark


def write_run_report(settings: Settings, ledger: Ledger, run: str) -> Path:
    """Let the campaign's local model remark on the results, then write the report."""
    add_run_remark(settings, ledger, run)
    return write_report(ledger.runs.folder(run), read_run_notes(ledger, run))


class Campaign(SilentCampaign):
    """A campaign whose result carries the path of its report."""

    render: ClassVar[Callable[[Settings, Ledger, str], Path] | None] = staticmethod(write_run_report)
