"""What a factor's test had to show, and what it showed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...figures import any_value, number, p_value_text, plural

if TYPE_CHECKING:
    from ....evaluation.closing import FactorEntry, SelectionMetrics


def list_trial(entry: FactorEntry) -> Sequence[tuple[str, str]]:
    """Return label and text of what the trial of a factor needed and found; empty for one that had none."""
    selection = entry.metrics.selection
    if selection is None or selection.p_value is None:
        return []
    sign = -1 if (entry.metrics.search.rank_ic or 0.0) < 0 else 1
    tested = selection.added.rank_ic if selection.added else selection.rank_ic
    power, costs = selection.power, selection.costs
    beside = f", beside {plural(len(selection.beside), 'earlier formula')}" if selection.beside else ""
    rows = [
        ("test", f"no. {any_value(entry.trial)}, {_count_before(selection)}"),
        ("p, one-sided", f"{p_value_text(selection.p_value)} (threshold {p_value_text(selection.level)})"),
        (f"RankIC that was tested{beside}", number(sign * tested, 4, sign=True) if tested is not None else ""),
    ]
    if power:
        rows.append(("smallest significant RankIC", number(power.rank_ic_provable, 4)))
        rows.append(("t, and the t it needed", f"{number(power.t, 2)} (needed {number(power.t_required, 2)})"))
    if costs:
        paid = f"{number(costs.search, 2, sign=True)} on search, {number(costs.selection, 2, sign=True)} on selection"
        rows.append(("Sharpe ratio after costs; neither may be negative", paid))
    return [(label, value) for label, value in rows if value]


def _count_before(selection: SelectionMetrics) -> str:
    return plural(selection.discoveries_before or 0, "discovery before it", "discoveries before it")
