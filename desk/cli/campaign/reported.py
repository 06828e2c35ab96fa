"""The campaign for scripts and the command line: one that ends with a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from ....campaign import Campaign as SilentCampaign
from ...report.report import write_report


class Campaign(SilentCampaign):
    """A campaign whose result carries the path of its report."""

    render: ClassVar[Callable[[Path], Path] | None] = staticmethod(write_report)
