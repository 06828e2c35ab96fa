"""One case for a person to decide on, as an HTML file without scripts and as lines on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..cli.campaign.log import flatten_lines
from ..cli.console import stdout_console
from ..decisions import describe_stand
from ..figures import any_value, describe_costs, number, p_value_text, percent, plural
from ..formula_views import summarise_formula
from .cards import REFUTER_LABEL, Card, CardContext, build_card, describe_refuter
from .report import TEMPLATE_FOLDER, environment

if TYPE_CHECKING:
    from ...evaluation import PersonDecision, Reviews
    from ...evaluation.closing import ReviewCase, StatedHypothesis


Facts = Sequence[tuple[str, str]]
IDEA_LABELS = {
    "who_is_on_the_other_side": "who is on the other side",
    "why_it_persists": "why it persists",
    "regime": "regime",
    "refuted_by": "would be refuted by",
}
THRESHOLD_NOTE = (
    "Each trial on these selection days has its own threshold for p: it falls from trial to trial and rises with each "
    "discovery, so that false acceptances stay rare over all of them."
)
ADDED_NOTE = (
    "What it adds is measured three times, so the figures differ. Step incremental, on search days: beside what had "
    "passed before this test. Step statistics, on selection days: beside all that was tested or accepted before; this "
    "one decides. The list above, on search days: beside the library and all other cases of now, day by day."
)
PILL_STYLES = {"approve": "accepted", "reject": "rejected", "ask": "rejected"}


@dataclass(frozen=True)
class CasePage:
    """The content of the template."""

    run: str
    title: str
    stands: str
    windows: Facts
    summary: Facts
    warnings: Sequence[str]
    idea: Facts
    card: Card
    pill: str
    costs: str
    nearest: Sequence[Sequence[str]]
    commands: Sequence[str]


def build_case_page(
    run: str,
    case: ReviewCase,
    hypothesis: Mapping[str, Any],
    decision: PersonDecision | None = None,
    where: str = "",
) -> CasePage:
    """Return the page of a case.

    `hypothesis` is the Idea agent's record, `where` an option that names the workspace.
    """
    card = build_card(case, case.curve, CardContext(case.boundary, case.texts, is_case=True))
    idea = list_idea(case.hypothesis, hypothesis)
    told = {label for label, _ in idea}  # said once: the card leaves out what stands under the idea
    card = replace(card, facts=[fact for fact in card.facts if fact[0] not in told], notes=_list_notes(case, card))
    return CasePage(
        run=run,
        title=card.statement,
        stands=decision.sentence
        if decision
        else "It passed every step of the gate, and waits for a person's approval.",
        windows=_list_windows(case),
        summary=_list_summary(case),
        warnings=[warning.message for warning in case.warnings],
        idea=idea,
        card=card,
        pill=PILL_STYLES[decision.decision] if decision else "awaiting",
        costs=describe_costs(case.costs),
        nearest=[
            (
                summarise_formula(known.name),
                known.where,
                percent(known.ratio, 0),
                summarise_formula(known.shared),
            )
            for known in case.nearest
        ],
        commands=[] if decision else _list_commands(run, case.id, where),
    )


def _list_windows(case: ReviewCase) -> Facts:
    """Return the first and last day of search and selection, each with who sees its days."""
    windows = (
        ("Search days", case.curve.search.dates, "agents see these alone"),
        ("Selection days", case.curve.selection.dates, "the gate's test, which no agent has seen"),
    )
    return [(label, f"{days[0]} to {days[-1]}: {words}") for label, days, words in windows if days]


def _list_notes(case: ReviewCase, card: Card) -> Sequence[str]:
    """Return the notes of the card, with those on why figures differ within a case and thresholds between cases."""
    if case.metrics.selection is None or case.metrics.selection.level is None:
        return card.notes
    gated = any(reason.step == "incremental" for reason in case.reasons)
    return [*card.notes, THRESHOLD_NOTE, *([ADDED_NOTE] if gated and case.incremental else [])]


def load_case_page(reviews: Reviews, name: str, where: str = "") -> tuple[dict[str, Any], CasePage]:
    """Return the file on a case, and its page as the record has it now; `where` names the workspace."""
    from ...evaluation.closing import ReviewCase

    record = reviews.file(name)
    case = ReviewCase.read(record)
    noted = _read_hypothesis(reviews, case)
    page = build_case_page(reviews.run, case, noted, reviews.decision(name), where)
    return record, replace(page, stands=describe_stand(reviews, name) or page.stands)


def _read_hypothesis(reviews: Reviews, case: ReviewCase) -> Mapping[str, Any]:
    """Return the Idea agent's record of the hypothesis of a case; empty without one."""
    event = reviews.ledger.events.get(reviews.run, "agents.hypothesis", case.hypothesis.id if case.hypothesis else "")
    return event.body if event else {}


@dataclass(frozen=True)
class BlindPage:
    """A case without anything that the gate found: what a person judges first. Curves are of search days alone."""

    run: str
    id: str
    statement: str
    mechanism: str
    idea: Facts
    formulas: Sequence[str]
    explained: str
    cumulative: str
    quintiles: str
    decay: str
    years: str


def load_blind_page(reviews: Reviews, name: str) -> BlindPage:
    """Return what is shown of a case before the first judgement."""
    from ...evaluation.closing import DailyRankICByWindow, ReviewCase

    case = ReviewCase.read(reviews.file(name))
    # What the gate found is taken out of the record, not hidden on the page, so that no drawing can show it.
    found = {"metrics": case.metrics.model_copy(update={"selection": None}), "reasons": (), "trial": None}
    blind = case.model_copy(update=found)
    card = build_card(blind, DailyRankICByWindow(search=case.curve.search), CardContext(None, case.texts))
    return BlindPage(
        run=reviews.run,
        id=case.id,
        statement=card.statement,
        mechanism=card.mechanism,
        idea=list_idea(case.hypothesis, _read_hypothesis(reviews, case)),
        formulas=[card.text] if card.text else [member.text for member in card.members],
        explained=card.explained,
        cumulative=card.cumulative,
        quintiles=card.quintiles,
        decay=card.decay,
        years=card.years,
    )


def render_blind(page: BlindPage) -> str:
    """Return the HTML of a case that is to be judged."""
    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    return environment().get_template("blind_case.html.j2").render(page=page, style=style).strip() + "\n"


def print_blind(page: BlindPage) -> None:
    """Print what is shown of a case before the first judgement."""
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(f"{page.id}: judge it first; the gate's verdict is shown afterwards", style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    statement = f"{page.mechanism}: {page.statement}" if page.mechanism else page.statement
    rows = [("hypothesis", statement), *page.idea, *(("formula", text) for text in page.formulas)]
    for label, text in [*rows, ("in words", page.explained)]:
        grid.add_row(f"  {label}", Text(text if label == "formula" else flatten_lines(text)))
    console.print(grid)


def list_idea(stated: StatedHypothesis | None, hypothesis: Mapping[str, Any]) -> Facts:
    """Return what the author says of a mechanism; a survey states none, so that its words on one are left out."""
    if stated and stated.either_way:
        return []
    if stated and stated.stated_after_scoring:  # its own words, not those of the survey
        hypothesis = stated.record()
    words = [(label, any_value(hypothesis[name])) for name, label in IDEA_LABELS.items() if hypothesis.get(name)]
    refuter = describe_refuter(stated) if stated and hypothesis.get("refuted_by") else ""
    return [*words, *([(REFUTER_LABEL, refuter)] if refuter else [])]


def render_case(page: CasePage) -> str:
    """Return the page's HTML; the same input gives the same bytes."""
    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    return environment().get_template("case.html.j2").render(page=page, style=style).strip() + "\n"


def _list_summary(case: ReviewCase) -> Facts:
    search, selection, added = case.metrics.search, case.metrics.selection, case.incremental
    rows = [
        ("t on search", number(search.t, 1, sign=True)),
        ("RankIC on search", number(search.rank_ic, 4, sign=True)),
    ]
    if added and added.rank_ic is not None:
        beside = f"RankIC on search beside {plural(added.library, 'other')} (library, cases)"
        rows.append((f"{beside}, t {number(added.t, 1, sign=True)}", number(added.rank_ic, 4, sign=True)))
    rows += [
        ("turnover a day on search", percent(search.turnover)),
        ("Sharpe after costs on search", number(search.net_sharpe, 2, sign=True)),
    ]
    if selection:
        threshold = f" (threshold {p_value_text(selection.level)})" if selection.level is not None else ""
        rows.append(("RankIC on selection", number(selection.rank_ic, 4, sign=True)))
        rows.append((f"p on selection{threshold}", p_value_text(selection.p_value)))
    return rows


def _list_commands(run: str, factor_id: str, where: str) -> list[str]:
    review = f"alphaloom review {run} {factor_id}{where}"
    return [f'{review} --approve --comment "..."', f'{review} --reject --comment "..."', f'{review} --ask "..."']


def print_case(page: CasePage) -> None:
    """Print a case: hypothesis, formula, figures, verdict, doubts and its nearest known formulas."""
    from rich.table import Table
    from rich.text import Text

    console, card = stdout_console(), page.card
    console.print(Text(f"{card.id}, {card.kind}: {flatten_lines(page.stands)}", style="bold"), soft_wrap=True)
    for warning in page.warnings:
        console.print(Text(f"warning: {flatten_lines(warning)}", "yellow"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _list_lines(page):
        grid.add_row(f"  {label}", Text(text))
    console.print(grid)


def _list_lines(page: CasePage) -> list[tuple[str, str]]:
    card = page.card
    figures = ", ".join(f"{label} {value}" for label, value in page.summary)
    near = [f"{name} ({where}), {ratio} shared: {shared}" for name, where, ratio, shared in page.nearest[:3]]
    rows = [("hypothesis", f"{card.mechanism}: {card.statement}" if card.mechanism else card.statement), *page.idea]
    rows += [("formula", card.text)] if card.text else []
    rows += [("member", f"{member.id} {member.text}") for member in card.members]
    rows += [("in words", card.explained), ("figures", figures)]
    rows += [(reason.step, f"{reason.mark}: {reason.message}") for reason in card.reasons]
    rows += [("weak on search", "; ".join(card.doubts))] if card.doubts else []
    rows += [("doubt", doubt) for doubt in card.warnings]
    rows += [("nearest known", "; ".join(near) or "nothing known shares structure with it")]
    return [(label, value if label == "formula" else flatten_lines(value)) for label, value in rows]
