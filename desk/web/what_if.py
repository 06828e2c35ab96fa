"""The page on which a person asks what a factor's figures would be otherwise: on search days, and on no record.

The market of a run is opened once and kept, with every later day dropped (`evaluation.SearchBench`). That is a cache
alone: a restart of the desk loses nothing but its time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..errors import DeskError
from ..figures import count
from ..report.comparison import (
    FIGURE_LABELS,
    PairDrawings,
    Rows,
    draw_pair,
    list_sheet_rows,
    list_together,
)
from ..report.factor_page import list_warnings
from .factors import find_factor
from .pages import PageRequest

if TYPE_CHECKING:
    from ...evaluation import SearchBench, SearchQuestion
    from ...ledger import Ledger, Run

MAX_BENCHES: Final = 2
"""Markets that are kept open at once; each takes the memory of a panel's search days."""
MAX_WHAT_IF_HORIZON: Final = 20
COST_CHOICES: Final[Mapping[str, float]] = {"as they are": 1.0, "doubled": 2.0, "tripled": 3.0, "none": 0.0}
NOTHING_CHANGED = "Nothing is changed yet: both are the factor as the campaign scored it."


@dataclass(frozen=True)
class WhatIfForm:
    """The answers of the form, which are the page's query; `formula` is empty and `horizon` None for the run's own."""

    formula: str
    costs: str
    horizon: int | None
    neutral: bool
    span: str


@dataclass(frozen=True)
class SpanChoice:
    """A stretch of search days with its words and days."""

    code: str
    words: str
    first: str
    last: str


@dataclass(frozen=True)
class WhatIfPage:
    """A factor as it was scored, A, beside what it would be, B; all figures are of search days.

    Attributes
    ----------
    text
        The factor's formula.
    changes
        What differs, in words; one sentence if nothing does.
    rows, words, together
        Figures, sentences, and what concerns both.
    """

    run: str
    id: str
    text: str
    form: WhatIfForm
    horizon: int
    costs: Sequence[str]
    spans: Sequence[SpanChoice]
    has_sectors: bool
    changes: Sequence[str]
    days: str
    stamps: Sequence[str]
    rows: Rows
    words: Rows
    together: Sequence[tuple[str, str]]
    warnings: Sequence[str]
    drawings: PairDrawings


@dataclass(frozen=True)
class BenchShelf:
    """The open markets of the process, the one used last at the end; one question at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    benches: dict[tuple[str, str], SearchBench] = field(default_factory=dict)

    def take(self, ledger: Ledger, run: Run) -> SearchBench:
        """Return the market of a run, opened if it is not; the caller holds the lock."""
        key = (str(ledger.workspace.resolve()), run.id)
        bench = self.benches.pop(key, None) or open_bench(ledger, run)
        self.benches[key] = bench
        while len(self.benches) > MAX_BENCHES:
            del self.benches[next(iter(self.benches))]
        return bench


_SHELF = BenchShelf()


def open_bench(ledger: Ledger, run: Run) -> SearchBench:
    """Open the market of a run by its recorded settings, and drop every day after the search window.

    Raises
    ------
    AlphaloomError
        The prices are gone, or are not those that the run began with.
    """
    from ...campaign import Campaign, Settings
    from ...evaluation import SearchBench
    from ...evidence import fix_windows
    from ...search import SearchConstraints

    settings = Settings.from_record(run.config["settings"])
    campaign = Campaign(settings, ledger.workspace, run.id)
    panel, dataset = campaign.open_panel()
    campaign.check_panel(ledger, panel)
    windows = fix_windows(panel, ledger, settings.evidence.windows, dataset, store=False)
    return SearchBench.cut(panel, windows.search, settings.evidence, SearchConstraints(settings.steer.fields))


def load_what_if(view: PageRequest) -> WhatIfPage:
    """Return a factor's figures beside those of the query; nothing is recorded."""
    from ...evaluation.closing import FactorComparison

    record, form = find_factor(view.ledger, view.path["run"], view.path["factor"]), _read_form(view.query)
    text = record.score.text
    with _SHELF.lock:
        bench = _SHELF.take(view.ledger, record.run)
        pair = FactorComparison.read(bench.compare((text, form.formula or text), _ask(form)))
        spans = bench.stretches
    panel, window, own = bench.scorer.panel, bench.window, bench.scorer.settings.horizon_days
    days, rows = panel.dates[window.start :], list_sheet_rows(pair)
    return WhatIfPage(
        run=record.run.id,
        id=record.score.factor_id,
        text=text,
        form=form,
        horizon=own,
        costs=list(COST_CHOICES),
        spans=[SpanChoice(one.code, one.words, str(days[one.start]), str(days[one.stop - 1])) for one in spans],
        has_sectors=bench.has_sectors,
        changes=_list_changes(form, own) or [NOTHING_CHANGED],
        days=f"{window.first_day} to {window.last_day}, {count(len(panel.symbols))} symbols",
        stamps=list(panel.stamps),
        rows=[row for row in rows if row[0] in FIGURE_LABELS],
        words=[row for row in rows if row[0] not in FIGURE_LABELS],
        together=[row for row in list_together(pair) if "beside" not in row[0] or pair.a.beside.kept is not None],
        warnings=[
            f"{side}: {text}"
            for side, sheet in zip("AB", (pair.a, pair.b), strict=True)
            for text in list_warnings(sheet)[0]
        ],
        drawings=draw_pair(pair),
    )


def _read_form(query: Mapping[str, str]) -> WhatIfForm:
    """Return the answers of a query.

    Raises
    ------
    DeskError
        One of them is not among its choices.
    """
    costs = query.get("costs", "") or next(iter(COST_CHOICES))
    if costs not in COST_CHOICES:
        raise DeskError("These costs are no choice.", field="costs", got=costs[:64], allowed=list(COST_CHOICES))
    horizon = query.get("horizon", "")
    if horizon and not (horizon.isdecimal() and len(horizon) < 4 and 1 <= int(horizon) <= MAX_WHAT_IF_HORIZON):
        allowed = f"1 to {MAX_WHAT_IF_HORIZON} days"
        raise DeskError("This horizon is no choice.", field="horizon", got=horizon[:64], allowed=allowed)
    formula = query.get("formula", "").strip()
    return WhatIfForm(
        formula, costs, int(horizon) if horizon else None, query.get("neutral") == "yes", query.get("span", "")
    )


def _ask(form: WhatIfForm) -> tuple[SearchQuestion, SearchQuestion]:
    """Return the two questions: the run's own, and the form's."""
    from ...evaluation import SearchQuestion

    return SearchQuestion(), SearchQuestion(COST_CHOICES[form.costs], form.horizon, form.neutral, form.span)


def _list_changes(form: WhatIfForm, own: int) -> list[str]:
    changes = [f"the formula is {form.formula}"] if form.formula else []
    changes += [f"costs are {form.costs}"] if COST_CHOICES[form.costs] != 1.0 else []
    changes += [f"positions are held {form.horizon} days instead of {own}"] if form.horizon not in (None, own) else []
    changes += ["ranks are taken less the mean of their sector"] if form.neutral else []
    return [*changes, *([f"only the days of {form.span.replace('_', ' ')} count"] if form.span else [])]
