"""The command that puts a paper book under a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...facts.stress import SCENARIO_FORMS, compute_stress, is_named, refuse_scenario
from ..console import print_object
from ..options import AsJson, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace
from ..run_lookup import open_record
from ..table_file import MistakeList, parse_number_cell, parse_text_cell, read_table_file
from ..targets import find_settings

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
    text = scenario.strip()
    moves = _read_moves(text)
    with open_record(place.workspace or DEFAULT_WORKSPACE) as ledger:
        facts = compute_stress(
            ledger,
            name,
            (Path(text).name if moves is not None else text, moves),
            lambda run: find_settings(ledger, run, place),
            lambda settings: settings.risk if place.campaign else None,
        )
    if as_json:
        print_object(facts)
    else:
        from .stress_page import print_stress

        print_stress(facts)


def _read_moves(text: str) -> dict[tuple[str, str], float] | None:
    """Return the moves of a table, or None where the text is another kind of scenario."""
    if is_named(text):
        return None
    file = Path(text)
    if not file.is_file():
        raise refuse_scenario(text, "This is no scenario, and no file has this name.", SCENARIO_FORMS)
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
