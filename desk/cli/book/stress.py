"""The command that puts a paper book under a scenario."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ..console import print_object
from ..options import AsJson, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace
from ..run_lookup import DEFAULT_WORKSPACE, open_record
from ..table_file import MistakeList, parse_number_cell, parse_text_cell, read_table_file

if TYPE_CHECKING:
    from ....campaign.what_if import BookScenario, BookStress, HeldBook
    from ....ledger import Ledger
    from ....market import Panel

MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
FIELD_MOVE = re.compile(r"([A-Za-z_]\w*)\s+([+-][0-9]+(?:\.[0-9]+)?)")
SCENARIO_FORMS = (
    'crash, a month such as 2008-10, a column with its change such as "yield_10y +2.0", or a table of moves'
)
MAX_MOVE = 100.0


def stress(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The book's name.")],
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario", metavar="SCENARIO", help=f"What happens: {SCENARIO_FORMS} (symbol or sector, and move)."
        ),
    ],
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what a book would lose in a scenario: by name, sector and run, the limits that bind, and days to sell it.

    The book is taken as its last step left it. Nothing is recorded.
    """
    place = DataOptions(campaign, panel, sectors, None, workspace)
    facts = compute_stress(name, scenario.strip(), place)
    if as_json:
        print_object(facts)
    else:
        from .stress_page import print_stress

        print_stress(facts)


def compute_stress(name: str, text: str, place: DataOptions) -> dict[str, Any]:
    """Return what a book would lose in a scenario, as plain facts."""
    from ....campaign.what_if import find_policy, read_held_book, stress_book
    from ..targets import find_settings

    given = _read_moves(text)
    with open_record(place.workspace or DEFAULT_WORKSPACE) as ledger:
        held = read_held_book(ledger, name)
        if not held.account.holdings:
            raise DeskError(
                "The book holds nothing, so nothing can fall.",
                field="NAME",
                got=name,
                hint=f"alphaloom book step {name} takes it through new days.",
                code="empty_book",
                exit_code=1,
            )
        settings = find_settings(ledger, held.run, place)
        panel, dataset = settings.market.open(settings.seed)
        cut = held.cut(panel)
        held = held.follow(cut)
        scenario = _build_scenario(text, given, ledger, held, (cut, dataset))
        asked = settings.risk if place.campaign else None
        policy, _ = find_policy(ledger, [held.evidence], cut, asked=asked)
        found = stress_book(held, cut, policy, scenario)
    return {"book": name, **_tell(found)}


def _read_moves(text: str) -> dict[tuple[str, str], float] | None:
    """Return the moves of a table, or None where the text is another kind of scenario."""
    if text == "crash" or MONTH.fullmatch(text) or FIELD_MOVE.fullmatch(text):
        return None
    file = Path(text)
    if not file.is_file():
        raise DeskError(
            "This is no scenario, and no file has this name.",
            field="--scenario",
            got=text,
            allowed=SCENARIO_FORMS,
            hint="A change is in the unit of the column: +2.0 for two points of a yield in percent.",
            code="scenario",
        )
    return read_moves(file)


def read_moves(file: Path) -> dict[tuple[str, str], float]:
    """Return the moves of a table by ("symbol", name) or ("sector", name); every mistake names its line."""
    mistakes, moves = MistakeList(file), dict[tuple[str, str], float]()
    for line, row in read_table_file(file, ["move"], "--scenario"):
        named = [kind for kind in ("symbol", "sector") if row.get(kind) not in (None, "")]
        move = mistakes.read(line, row, "move", lambda value: parse_number_cell(value, -1.0, MAX_MOVE))
        if len(named) != 1:
            mistakes.add(line, "symbol", "each row needs a symbol (or * for all others) or a sector, one of both")
            continue
        key = (named[0], mistakes.read(line, row, named[0], parse_text_cell))
        if key in moves:
            mistakes.add(line, named[0], f"{key[1]} is there twice")
        if move is not None and key[1] is not None:
            moves[key] = move
    mistakes.refuse()
    return moves


def _build_scenario(
    text: str,
    given: dict[tuple[str, str], float] | None,
    ledger: Ledger,
    held: HeldBook,
    data: tuple[Panel, str],
) -> BookScenario:
    from ....campaign.what_if import make_crash, make_field_move, make_given, make_month

    panel, dataset = data
    names: Sequence[str] = sorted(held.account.holdings)
    if given is not None:
        _refuse_unknown_sectors(given, panel)
        return make_given(panel, given, names, Path(text).name)
    if text == "crash":
        return make_crash(panel, names)
    if MONTH.fullmatch(text):
        return make_month(ledger, panel, dataset, text, names, held.evidence)
    field, change = text.split()
    return make_field_move(panel, field.lower(), float(change), names)


def _refuse_unknown_sectors(given: dict[tuple[str, str], float], panel: Panel) -> None:
    known = sorted(panel.group_labels.get("sector", ()))
    lost = sorted(name for kind, name in given if kind == "sector" and name not in known)
    if lost:
        raise DeskError(
            "The scenario names sectors that the panel does not have.",
            field="--scenario",
            got=", ".join(lost),
            allowed=", ".join(known) or "symbols alone: the panel has no sectors, see --sectors",
            code="scenario",
        )


def _tell(found: BookStress) -> dict[str, Any]:
    from dataclasses import asdict

    from ....campaign.what_if import tell_check

    before = {check.rule: tell_check(check)["actual"] for check in found.before}
    return {
        "scenario": found.scenario.title,
        "assumptions": list(found.scenario.notes),
        "day": found.day,
        "equity": found.equity,
        "loss": found.loss,
        "loss_share": found.loss / found.equity if found.equity > 0 else None,
        "names": [asdict(one) for one in found.names],
        "by_sector": dict(found.by_sector),
        "by_part": dict(found.by_part),
        "rules": [{**tell_check(check), "before": before[check.rule]} for check in found.after],
        "binding": [{**tell_check(check), "new": new} for check, new in found.binding],
        "days_to_sell_most": found.most_days,
        "unsold": list(found.unsold),
    }
