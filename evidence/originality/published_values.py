"""What the published factors say on the panel at hand: values that rank the names alike are not new, however they are written.

Their sketches are made once for a panel and kept in the workspace beside those of the library: 3.7 CPU-seconds for the 222 that
the S&P panel of 494 names and 2,518 days can compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ...factors import Expression
from ...ledger import LibraryRow
from ..code.computing import Computes
from ..settings import EvidenceSettings
from ..windows import Window
from .published import published_expressions
from .redundancy import LibraryValues, Overlap

__all__ = ["describe_twin", "values_of_published"]


def values_of_published(engine: Computes, window: Window, workspace: Path, settings: EvidenceSettings) -> LibraryValues:
    """Return the published factors that a panel can compute, ready to be compared with; none where settings leave them out."""
    rows = _rows() if settings.published else {}
    return LibraryValues(
        engine, window, workspace, lambda row: rows[row.factor_id][1], [row for row, _ in rows.values()]
    )


def describe_twin(twin: Overlap) -> str:
    """Say which published factor values are like, and how much."""
    where = _rows()[twin.factor_id][0].terms["where"]
    return f"ranks the names like {twin.factor_id} ({where}): rank correlation {twin.rank_correlation:+.2f}"


@cache
def _rows() -> Mapping[str, tuple[LibraryRow, Expression]]:
    """Return each published factor as a library row under its name, with its formula."""
    found = {}
    for name, each, where in published_expressions():
        fields = {"fields": sorted(each.fields)}
        found[name] = LibraryRow(name, each.text, each.shown, "", "", fields, "published", {"where": where}), each
    return MappingProxyType(found)
