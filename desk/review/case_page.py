"""The page of one case: what a person reads before a decision, as one HTML file without a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..cli.code import summarise_formula
from ..figures import DASH, any_value, number, p_value_text, percent
from ..report.cards import Card, card
from ..report.report import TEMPLATE_FOLDER, environment
from ..rules import costs

if TYPE_CHECKING:
    from ...evaluation import PersonDecision

__all__ = ["CasePage", "case_page", "render_case"]

Facts = Sequence[tuple[str, str]]
IDEA_LABELS = {
    "who_is_on_the_other_side": "who is on the other side",
    "why_it_persists": "why it persists",
    "regime": "regime",
    "refuted_by": "would be refuted by",
}
PILL_STYLES = {"approve": "accepted", "reject": "rejected", "ask": "rejected"}


@dataclass(frozen=True)
class CasePage:
    """Everything that the template prints."""

    run: str
    title: str
    stands: str
    summary: Facts
    warnings: Sequence[str]
    idea: Facts
    card: Card
    pill: str
    costs: str
    nearest: Sequence[Sequence[str]]
    commands: Sequence[str]


def case_page(
    run: str,
    case: Mapping[str, Any],
    hypothesis: Mapping[str, Any],
    decision: PersonDecision | None = None,
    where: str = "",
) -> CasePage:
    """Return the page of a case from what was kept of it, and from what the Idea agent said of its hypothesis."""
    shown = card(case, case["curve"], case["boundary"], case["texts"])
    return CasePage(
        run=run,
        title=shown.statement,
        stands=decision.sentence
        if decision
        else "It passed every step of the gate, and waits for a person's approval.",
        summary=_summary(case),
        warnings=[str(each["message"]) for each in case["warnings"]],
        idea=[(label, any_value(hypothesis[name])) for name, label in IDEA_LABELS.items() if hypothesis.get(name)],
        card=shown,
        pill=PILL_STYLES[decision.decision] if decision else "awaiting",
        costs=costs(case["costs"]),
        nearest=[
            (
                summarise_formula(each["name"]),
                each["where"],
                percent(each["ratio"], 0),
                summarise_formula(each["shared"]),
            )
            for each in case["nearest"]
        ],
        commands=[] if decision else _commands(run, str(case["id"]), where),
    )


def render_case(page: CasePage) -> str:
    """Return the page's HTML; the same input gives the same bytes."""
    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    return environment().get_template("case.html.j2").render(page=page, style=style).strip() + "\n"


def _summary(case: Mapping[str, Any]) -> Facts:
    search, selection = case["metrics"]["search"], case["metrics"]["selection"] or {}
    return [
        ("t on search", number(search.get("t"), 1, sign=True)),
        ("RankIC on search", number(search.get("rank_ic"), 4, sign=True)),
        ("turnover a day on search", percent(search.get("turnover"))),
        ("Sharpe after costs on search", number(search.get("net_sharpe"), 2, sign=True)),
        ("trial", any_value(case["trial"]) if case["trial"] is not None else DASH),
        ("p on selection", p_value_text(selection.get("p_value"))),
        ("level asked", p_value_text(selection.get("level"))),
    ]


def _commands(run: str, factor_id: str, where: str) -> list[str]:
    review = f"alphaloom review {run} {factor_id}{where}"
    return [f'{review} --approve --comment "..."', f'{review} --reject --comment "..."', f'{review} --ask "..."']
