"""The outcome of a campaign as a table: accepted, watched and rejected factors with the reasons."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...figures import DASH, number, p_value_text, short_id
from ...formula_views import summarise_formula
from ...report.baseline import baseline_sentence, worth_sentence
from ...report.conclusion import conclude, verdict_sentence
from ...report.gate_steps import find_deciding_step, list_steps
from ...report.page import collect_notes
from ...report.sections.candidates import sort_by_strength, sort_by_trial

if TYPE_CHECKING:
    from rich.table import Table

    from ....evaluation.closing import FactorEntry, Results


MAX_REJECTED_PRINTED = 10
MAX_UNTESTED_PRINTED = 3
VERDICT_STYLES = {
    "accepted": "green",
    "proven, no book": "yellow",
    "watched": "yellow",
    "rejected": "red",
    "refused": "red",
    "member": "green",
    "not tested": "dim",
}


def print_verdicts(results: Results) -> None:
    """Print the conclusion, the table, the next trial's smallest provable effect, and how many are not shown."""
    from rich.text import Text

    from ..console import stdout_console

    console = stdout_console()
    console.print(Text(verdict_sentence(results), style="bold"), soft_wrap=True)
    for sentence in (*conclude(results), worth_sentence(results), baseline_sentence(results)):
        if sentence:
            console.print(Text(sentence), soft_wrap=True)
    table = _build_table(results)
    if table.row_count:
        console.print(table)
    for sentence in (_describe_hidden(results), results.power.sentence if results.power else ""):
        if sentence:
            console.print(Text(sentence), soft_wrap=True)
    for warning in collect_notes(results, data_only=False):
        console.print(Text(f"warning: {warning}", "yellow"), soft_wrap=True)


def _build_table(results: Results) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("factor", overflow="fold", min_width=24)
    for name in ("RankIC", "t", "on selection", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    strongest = sort_by_strength(results.rejected)[:MAX_REJECTED_PRINTED]
    untested = sort_by_strength(results.untested)[:MAX_UNTESTED_PRINTED]
    verdicts = (
        ("accepted", sort_by_trial(results.accepted)),
        ("member", sort_by_strength(results.members)),
        ("proven, no book", sort_by_trial(results.proven)),
        ("watched", sort_by_trial(results.watchlist)),
        ("rejected", [entry for entry in strongest if entry.trial is not None]),
        ("refused", [entry for entry in strongest if entry.trial is None]),
        ("not tested", untested),
    )
    for verdict, entries in verdicts:
        for entry in entries:
            _add_row(table, verdict, entry)
    return table


def _add_row(table: Table, verdict: str, entry: FactorEntry) -> None:
    from rich.text import Text

    search, selection = entry.metrics.search, entry.metrics.selection
    numbers = [
        number(search.rank_ic, 4, sign=True),
        number(search.t, 2, sign=True),
        number(selection.rank_ic if selection else None, 4, sign=True),
        p_value_text(selection.p_value if selection else None),
    ]
    table.add_row(
        Text(verdict, VERDICT_STYLES[verdict]), Text(_format_name(entry)), *numbers, Text(_find_reason(entry))
    )


def _format_name(entry: FactorEntry) -> str:
    if entry.members:
        return f"{short_id(entry.id)}: combination of {', '.join(map(short_id, entry.members))}"
    return f"{short_id(entry.id)}: {summarise_formula(entry.text or DASH)}"


def _find_reason(entry: FactorEntry) -> str:
    step = find_deciding_step(entry)
    if step:
        return f"{step.step}: {step.message}"
    steps = list_steps(entry)
    return (steps[-1].message if steps else "") or "every step passed"


def _describe_hidden(results: Results) -> str:
    """Return how many rejected and untested factors the table leaves out, and the steps that refused them."""
    hidden = [find_deciding_step(entry) for entry in sort_by_strength(results.rejected)[MAX_REJECTED_PRINTED:]]
    steps = Counter(step.step if step else "other" for step in hidden)
    tally = ", ".join(f"{step} {n}" for step, n in sorted(steps.items(), key=lambda item: (-item[1], item[0])))
    parts = [f"{len(hidden)} more rejected ({tally})"] if hidden else []
    untested = len(results.untested) - MAX_UNTESTED_PRINTED
    parts += [f"{untested} more not tested"] if untested > 0 else []
    return f"and {' and '.join(parts)}; all of them are in the report's results.json" if parts else ""
