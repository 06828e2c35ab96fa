"""What the commands on formulas print for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...figures import any_value, count, plural
from ..console import print_plain, stderr_console, stdout_console
from .input import WrittenFormula

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_checks", "print_explanation", "print_operator", "print_operators", "print_translations"]

Facts = Mapping[str, Any]
Rows = Sequence[tuple[str, str]]


def print_checks(written: Sequence[WrittenFormula], found: Sequence[Facts]) -> None:
    """Print one formula with its facts, or of several what is wrong or doubtful and a line that counts."""
    console = stdout_console()
    if len(found) == 1 and found[0]["ok"]:
        _print_rows(console, found[0]["text"], _check_rows(found[0]))
    for each, facts in zip(written, found, strict=True):
        _print_mistakes(console, each, facts)
        for warning in facts["warnings"]:
            place = f"{each.place()}: " if len(found) > 1 else ""
            _print_line(console, (place, ""), ("warning: ", "yellow"), (warning, ""))
    if len(found) > 1 or written[0].file:
        _print_line(console, (_summary(found), "bold"))


def print_translations(written: Sequence[WrittenFormula], found: Sequence[Facts]) -> None:
    """Print what can be read again: formulas with their names; notes and refusals go to standard error, or into comments."""
    console = stderr_console()
    commented = len(found) > 1 or bool(written[0].file)
    for each, facts in zip(written, found, strict=True):
        for note in facts["notes"]:
            if commented:
                print_plain(f"# {each.name or each.place()}: {note}")
            else:
                _print_line(console, ("note: ", "yellow"), (note, ""))
        if facts["ok"]:
            print_plain(f"{each.name}: {facts['translation']}" if each.name else facts["translation"])
        elif commented:
            print_plain(f"# {each.name or each.place()} was refused: {facts['errors'][0]['message']}")
        _print_mistakes(console, each, facts)
    if commented:
        _print_line(console, (_summary(found, "can be carried over"), "bold"))


def print_explanation(facts: Facts) -> None:
    """Print a formula on a card."""
    console = stdout_console()
    rows = [("", facts["explained"])]
    if facts["alphaloom"] != facts["text"] and "amounts_to" not in facts:
        rows.append(("in alphaloom", facts["alphaloom"]))
    ns = facts["cost"]["ns_per_cell"]
    cost = f"about {any_value(ns)} ns a cell on one core, {any_value(ns)} ms for a million cells: an estimate"
    rows += [
        *_check_rows(facts),
        ("depth", f"{plural(facts['depth'], 'level')}, {plural(facts['constants'], 'chosen number')}"),
        *([] if "amounts_to" in facts else [("cost", cost)]),
        *_column("fields", [(each["name"], f"{each['meaning']}, {each['unit']}") for each in facts["fields"]]),
        *_column("operators", [(each["signature"], each["meaning"]) for each in facts["operators"]]),
    ]
    _print_rows(console, facts["text"], rows)
    for warning in facts["warnings"]:
        _print_line(console, ("warning: ", "yellow"), (warning, ""))


def print_operators(families: Mapping[str, Sequence[Facts]]) -> None:
    """Print signature and meaning of operators, by family, and how many there are."""
    console = stdout_console()
    for family, members in families.items():
        _print_rows(console, family, [(each["signature"], each["meaning"]) for each in members])
        console.print()
    total = plural(sum(map(len, families.values())), "operator")
    _print_line(console, (f"{total}. One with every argument: alphaloom factor operators NAME", "bold"))


def print_operator(facts: Facts) -> None:
    """Print the whole documentation of an operator."""
    arguments = [
        (each["name"], each["takes"] + (f"; {each['default']} by default" if each["default"] else ""))
        for each in facts["arguments"]
    ]
    ns = facts["ns_per_cell"]
    window = " at a window of 20" if any(each["name"] == "window" for each in facts["arguments"]) else ""
    rows = [
        ("", facts["meaning"]),
        ("family", facts["family"] + (f", written {facts['symbol']}" if facts["symbol"] else "")),
        *_column("takes", arguments),
        ("unit", facts["unit"]),
        ("missing values", facts["nan"]),
        *([("defined as", facts["definition"])] if facts["definition"] else []),
        *([("cost", f"about {any_value(ns)} ns a cell{window}: an estimate")] if ns is not None else []),
        ("example", facts["example"]),
        *_column("elsewhere", [(each["dialect"], _spelling(each)) for each in facts["elsewhere"]]),
    ]
    _print_rows(stdout_console(), facts["signature"], rows)


def _spelling(each: Facts) -> str:
    note = f" ({each['note']})" if each["note"] else ""
    return f"{each['written']} is {each['meaning']}{note}"


def _column(title: str, pairs: Rows) -> list[tuple[str, str]]:
    """Return rows under one title, names and what is said of each."""
    return [(title if place == 0 else "", f"{name}: {said}") for place, (name, said) in enumerate(pairs)]


def _check_rows(facts: Facts) -> list[tuple[str, str]]:
    if "amounts_to" in facts:
        return [
            ("amounts to", facts["amounts_to"]),
            ("id", facts["id"]),
            ("reads", f"back about {plural(facts['warmup'], 'row')}, by the numbers in it"),
            ("size", plural(facts["size"], "step")),
        ]
    first, last = facts["interval"]
    days = "today only" if first == last == 0 else f"the rows from {first} to {last}, today being 0"
    return [
        ("canonical", facts["canonical"]),
        ("id", facts["id"]),
        ("unit", facts["type"]),
        ("reads", f"{days}; {plural(facts['warmup'], 'row')} of warm-up"),
        ("size", plural(facts["size"], "node")),
    ]


def _summary(found: Sequence[Facts], verb: str = "can be used") -> str:
    refused = [facts for facts in found if not facts["ok"]]
    said = f"{count(len(found) - len(refused))} of {plural(len(found), 'formula')} {verb}"
    if doubtful := sum(bool(facts["ok"] and (facts.get("warnings") or facts.get("notes"))) for facts in found):
        said += f", {count(doubtful)} with warnings"
    if refused:
        mistakes = sum(len(facts["errors"]) for facts in refused)
        said += f"; {count(len(refused))} refused, with {plural(mistakes, 'mistake')}"
    return f"{said}."


def _print_mistakes(console: Console, each: WrittenFormula, facts: Facts) -> None:
    """Print every mistake of a formula: where, what, a caret, and how to mend it."""
    from ....factors import ParseError

    for mistake in facts["errors"]:
        text = mistake.get("got", each.text)
        shown = ParseError(mistake["message"], at=mistake["at"], text=text)
        own = text == each.text
        _print_line(console, (each.place(mistake["at"] if own else None), "bold"), (f": {mistake['message']}", "red"))
        for line in [*shown.caret().split("\n"), mistake["hint"]]:
            if line:
                _print_line(console, (f"    {line}", ""))


def _print_rows(console: Console, title: str, rows: Rows) -> None:
    from rich.table import Table
    from rich.text import Text

    _print_line(console, (title, "bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(f"  {name}", style="dim"), Text(value))
    console.print(table)


def _print_line(console: Console, *parts: tuple[str, str]) -> None:
    """Print a line that is never folded."""
    from rich.text import Text

    console.print(Text.assemble(*parts), soft_wrap=True)
