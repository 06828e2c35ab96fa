"""One factor on search days, as an HTML file without scripts: what `alphaloom factor score --html` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli.options import data_line
from ..errors import DeskError, ReportError
from ..figures import (
    DASH,
    NORMAL_QUANTILE_95,
    describe_added_value,
    describe_costs,
    number,
    p_value_text,
    percent,
    short_id,
)
from ..formula_views import summarise_formula
from ..profile import (
    EXPOSURE_WORDS,
    REGIME_ORDER,
    SHOWN_HORIZONS,
    STRESS_GROUP_TITLES,
    describe_scenario,
    format_stressed_figures,
    profile_rows,
)
from .cards import MIN_CLEAR_T, Card, CardContext, build_card
from .plots import Bars, bar_chart
from .report import TEMPLATE_FOLDER, environment
from .svg import Frame

if TYPE_CHECKING:
    from ...evaluation.closing import (
        FactorProfile,
        FactorSheet,
        FactorStress,
        Figure,
        HandVerdict,
        RegimeIC,
        WindowMetrics,
    )


Facts = Sequence[tuple[str, str]]
Record = Mapping[str, Any]
FACTOR_PAGE_MARK = '<meta name="generator" content="alphaloom factor">'
"""The line by which a page of this command is recognised, and may be replaced."""
MARK_CHARS = 2_000
PAIR_FRAME = Frame(460, 180)
MAX_TITLE_CHARS = 70
MIN_EXPOSURE_REACH = 0.1
"""Least reach of the axis of rank correlations."""
DATA_CODE = "data"
VERDICT_PILLS = {"accepted": "accepted", "watchlist": "watched"}
UNTESTED_SENTENCE = (
    "These are search (in-sample) days. The factor has not been tested on later days: --gate does so, and spends a "
    "trial."
)


@dataclass(frozen=True)
class StressLine:
    """One line of the stress table; `cells` are those of `format_stressed_figures`."""

    words: str
    cells: Sequence[str]
    verdict: str


@dataclass(frozen=True)
class StressSection:
    """The stress tests of one factor: sentences, a table by group, and the rule of the verdicts."""

    sentences: Sequence[str]
    groups: Sequence[tuple[str, Sequence[StressLine]]]
    rule: str


@dataclass(frozen=True)
class FactorPage:
    """The content of the template."""

    title: str
    id: str
    data: str
    synthetic: bool
    strength: str
    standing: str
    pill: str
    verdict: str
    tested: bool
    summary: Facts
    card: Card
    decay: str
    regimes: str
    exposures: str
    facts: Facts
    costs: str
    notes: Sequence[str]
    stress: StressSection | None
    warnings: Sequence[str]
    data_notes: Sequence[str]


def build_factor_page(record: Record) -> FactorPage:
    """Return the page of a factor's sheet, the JSON of `alphaloom factor score --json`."""
    from ...evaluation.closing import FactorSheet

    sheet = FactorSheet.read(record)
    warnings, data_notes = list_warnings(sheet)
    series = [("search", sheet)]
    card = _build_sheet_card(record, sheet)
    return FactorPage(
        title=_write_title(sheet),
        id=sheet.id,
        data=data_line(record["data"]),
        synthetic=bool(record["data"]["synthetic"]),
        strength=describe_strength(sheet),
        standing=_describe_standing(sheet.gate),
        pill=VERDICT_PILLS.get(sheet.gate.verdict, "rejected") if sheet.gate else "",
        verdict=sheet.gate.verdict if sheet.gate else "",
        tested=sheet.gate is not None and sheet.gate.selection is not None,
        summary=_list_summary(sheet),
        card=card,
        decay=draw_decay(series),
        regimes=draw_regimes(series),
        exposures=draw_exposures(series),
        facts=[*profile_rows(sheet), ("beside the library, on search", describe_added_value(sheet.incremental))],
        costs=describe_costs(sheet.costs),
        notes=card.notes,
        stress=build_stress(record.get("stress")),
        warnings=warnings,
        data_notes=data_notes,
    )


def _write_title(sheet: FactorSheet) -> str:
    text = summarise_formula(sheet.text)
    return text if len(text) <= MAX_TITLE_CHARS else f"Factor {short_id(sheet.id)}"


def describe_strength(sheet: WindowMetrics) -> str:
    """Return one sentence: RankIC with its t, what that means, and the Sharpe ratio after costs."""
    if sheet.rank_ic is None or sheet.t is None:
        return "On search days it has no RankIC: too few symbols have a value."
    figures = f"RankIC {number(sheet.rank_ic, 4, sign=True)} on search days (t {number(sheet.t, 1, sign=True)})"
    clear = "" if abs(sheet.t) >= MIN_CLEAR_T else ", not distinguishable from zero"
    side = " held with the opposite sign" if sheet.rank_ic < 0 else ""
    net = f"Sharpe ratio{side} after costs {number(sheet.net_sharpe, 2, sign=True)}"
    return f"{figures}{clear}; {net}."


def _describe_standing(gate: HandVerdict | None) -> str:
    """Return what the gate said of the selection days, or that it was not asked."""
    if gate is None:
        return UNTESTED_SENTENCE
    if gate.trial is None or gate.selection is None:
        return "The gate refused it before the test on selection days, so no trial was spent. The steps are below."
    tested = gate.selection
    p_values = f"p = {p_value_text(tested.p_value)} (threshold {p_value_text(tested.level)}, trial {gate.trial})"
    rank_ic = number(tested.rank_ic, 4, sign=True)
    return f"On selection (test) days: RankIC {rank_ic}, {p_values}."


def _list_summary(sheet: FactorSheet) -> Facts:
    return [
        ("RankIC", number(sheet.rank_ic, 4, sign=True)),
        ("t, Newey-West", number(sheet.t, 2, sign=True)),
        ("Sharpe before costs", number(sheet.gross_sharpe, 2, sign=True)),
        ("Sharpe after costs", number(sheet.net_sharpe, 2, sign=True)),
        ("turnover a day", percent(sheet.turnover)),
        ("horizon", f"{sheet.horizon_days} days" if sheet.horizon_days else DASH),
    ]


def _build_sheet_card(record: Record, sheet: FactorSheet) -> Card:
    """Return the sheet as a card of the report; figures of selection days are there only with a trial."""
    from ...evaluation.closing import DailyRankICByWindow, FactorEntry

    gate = record.get("gate") or {}
    metrics = {"search": record, "selection": gate.get("selection")}
    given = {name: gate.get(name) for name in ("reasons", "trial") if gate.get(name) is not None}
    entry = FactorEntry.read(
        {"id": sheet.id, "text": sheet.text, "explained": sheet.explained, "metrics": metrics, **given}
    )
    return build_card(entry, DailyRankICByWindow(search=sheet.daily), CardContext(None, {}))


def draw_decay(series: Sequence[tuple[str, WindowMetrics]]) -> str:
    """Draw the RankIC by horizon; each series is a style and its metrics. Only round horizons are written."""
    days = sorted({day for _, metrics in series for day in metrics.decay}, key=int)
    rows = [(kind, [metrics.decay.get(day) for day in days]) for kind, metrics in series]
    labels = [day if day in SHOWN_HORIZONS else "" for day in days]
    return bar_chart(Bars("RankIC by horizon in days", labels, rows, lambda value: number(value, 3)))


def draw_regimes(series: Sequence[tuple[str, FactorProfile]]) -> str:
    """Draw the RankIC by the market's regime; each series is a style and its sheet."""
    names = [name for name in REGIME_ORDER if any(name in sheet.by_regime for _, sheet in series)]
    rows = [
        (kind, [sheet.by_regime[name].rank_ic if name in sheet.by_regime else None for name in names])
        for kind, sheet in series
    ]
    spreads = [[_spread_regime(sheet.by_regime.get(name)) for name in names] for _, sheet in series]
    title = "RankIC by market regime"
    return bar_chart(Bars(title, names, rows, lambda value: number(value, 3), PAIR_FRAME, spreads=spreads))


def _spread_regime(regime: RegimeIC | None) -> Figure:
    """Return half the width of the 95 % interval of a RankIC, from its t; None where that is unknown."""
    if regime is None or not regime.t or regime.rank_ic is None:
        return None
    return NORMAL_QUANTILE_95 * abs(regime.rank_ic / regime.t)


def draw_exposures(series: Sequence[tuple[str, FactorProfile]]) -> str:
    """Draw the mean daily rank correlation with each style; each series is a style of bar and its sheet."""
    rows = [
        (kind, [getattr(sheet.exposures, name) if sheet.exposures else None for name in EXPOSURE_WORDS])
        for kind, sheet in series
    ]
    names, title = list(EXPOSURE_WORDS.values()), "Rank correlation with styles"
    return bar_chart(Bars(title, names, rows, lambda value: number(value, 2), PAIR_FRAME, MIN_EXPOSURE_REACH))


def list_warnings(sheet: FactorSheet) -> tuple[list[str], list[str]]:
    """Return the warnings about the factor and those about the data, each once."""
    own = [note.text for note in sheet.warnings if note.code != DATA_CODE]
    data = [note.text for note in sheet.warnings if note.code == DATA_CODE]
    return list(dict.fromkeys(own)), list(dict.fromkeys(data))


def build_stress(record: Record | None) -> StressSection | None:
    """Return the stress tests of a factor, `FactorStress` as JSON with the `rule` of its verdicts; None without any."""
    from ...evaluation.closing import FactorStress

    if not record:
        return None
    stress = FactorStress.read(record)
    sentences = [weakness.message for weakness in stress.weaknesses] or [stress.sentence]
    even = stress.clean.break_even_bps or 0.0
    costs = f"Nothing is left of its book at {number(even, 1)} bp a side. " if even > 0 else ""
    return StressSection(sentences, _group_scenarios(stress), f"{costs}{record['rule']}")


def _group_scenarios(stress: FactorStress) -> list[tuple[str, Sequence[StressLine]]]:
    groups: dict[str, list[StressLine]] = {}
    for scenario in stress.scenarios:
        line = StressLine(describe_scenario(scenario), format_stressed_figures(scenario), scenario.verdict)
        groups.setdefault(STRESS_GROUP_TITLES.get(scenario.group, scenario.group), []).append(line)
    return list(groups.items())


# The file.


def render_page(template: str, page: object) -> str:
    """Return the HTML of a page; the same input gives the same bytes."""
    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    content = environment().get_template(template).render(page=page, style=style, mark=FACTOR_PAGE_MARK)
    return content.strip() + "\n"


def refuse_foreign_file(target: Path) -> None:
    """Refuse a target that cannot be written, or that another program wrote; before anything is computed.

    Raises
    ------
    DeskError
        It is a folder, its folder is missing, or it is a file without the mark of a factor's page.
    """
    if target.is_dir() or not target.parent.is_dir():
        reason = f"{target} is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise DeskError(
            f"The page cannot be written: {reason}.",
            field="--html",
            got=str(target),
            allowed="a file in a folder that is there",
            code="no_such_folder",
        )
    if target.exists() and not _is_factor_page(target):
        raise DeskError(
            f"{target} is there already, and this command did not write it.",
            field="--html",
            got=str(target),
            allowed="a new file, or a page of an earlier factor score or compare",
            hint="Name another file, or remove this one.",
            code="file_exists",
            exit_code=1,
        )


def _is_factor_page(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return FACTOR_PAGE_MARK in file.read(MARK_CHARS)
    except (OSError, UnicodeDecodeError):
        return False


def write_factor_page(target: Path, text: str) -> Path:
    """Write a page atomically and return its absolute path.

    Raises
    ------
    DeskError
        As `refuse_foreign_file`.
    ReportError
        The file cannot be written.
    """
    from ...ledger.files import write_whole

    refuse_foreign_file(target)
    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise ReportError(
            f"the page cannot be written ({error.strerror or error})",
            field="--html",
            got=str(target),
            hint="free some disk space or make the folder writable, then run the command again",
        ) from error
    return target.resolve()
