"""The commands on formulas: check, translate, explain and list operators."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ...facts.similar import ReadableNames, list_standard_names
from ...figures import any_value, count, plural
from ..console import print_object, print_plain, stderr_console, stdout_console
from ..formula_source import read_formula_source
from ..models.router_file import ConfidentialOption, RemarkFile, RemarkSource
from ..options import DIALECTS, AsJson, DialectOption, FieldsOption, FormulaFile, GroupsOption, Workspace

if TYPE_CHECKING:
    from rich.console import Console

    from ...remarks import ModelRemark


Facts = dict[str, Any]
Formulas = Annotated[
    list[str] | None, typer.Argument(metavar="EXPR", help="One or more formulas, in quotes; or FILE.py.")
]

EXIT_REFUSED, EXIT_UNREADABLE = 1, 2
UNTRANSLATABLE_STAGES = frozenset({"dialect", "causal"})
"""Stages at which a readable formula is refused because the other language has no equivalent."""


def check(
    expressions: Formulas = None,
    file: FormulaFile = None,
    dialect: DialectOption = "alphaloom",
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    as_json: AsJson = False,
) -> None:
    """Read formulas and say what each is, or everything that is wrong with it; exit code 2 when one is refused."""
    from ....factors.describe import check_formula, require_dialect

    require_dialect(dialect)
    formulas = collect_formulas(expressions or (), file)
    names = readable_names(fields, groups)
    results = [check_formula(formula.text, dialect=dialect, **names) for formula in formulas]
    _mark_repeated(formulas, results)
    _mention_own_columns(results)
    if as_json:
        print_object(_build_json(formulas, results, alone=file is None))
    else:
        print_checks(formulas, results)
    _exit_by_stage(results)


def translate(
    expressions: Formulas = None,
    source: Annotated[str, typer.Option("--from", metavar="NAME", help=f"Their language: {DIALECTS}.")] = "alphaloom",
    target: Annotated[str, typer.Option("--to", metavar="NAME", help="The language to write them in.")] = "alphaloom",
    file: FormulaFile = None,
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    as_json: AsJson = False,
) -> None:
    """Carry formulas to another language with the meaning that they have, and say what differs."""
    from ....factors.describe import require_dialect, translate_formula

    require_dialect(source)
    require_dialect(target)
    if source == target:
        raise typer.BadParameter(f"--from and --to are both {source}: name the other language, e.g. --from qlib")
    formulas = collect_formulas(expressions or (), file)
    names = readable_names(fields, groups)
    results = [translate_formula(formula.text, source, target, **names) for formula in formulas]
    if as_json:
        print_object(_build_json(formulas, results, alone=file is None))
    else:
        print_translations(formulas, results)
    _exit_by_stage(results, UNTRANSLATABLE_STAGES)


def explain(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'")],
    dialect: DialectOption = "alphaloom",
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    router: RemarkFile = None,
    confidential: ConfidentialOption = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say a formula in plain words, with its unit, the days and fields that it reads, its operators and its cost.

    Where a router.yaml names a local model, that model says it in its own words too, marked as a model's. Its words are
    withheld where they have a figure that it was not given, or only repeat. Its call is recorded and capped like every
    other, as a run of the workspace.
    """
    from ....factors import parse
    from ....factors.describe import explain_formula

    facts = explain_formula(parse(read_formula_source(expression), dialect=dialect, **readable_names(fields, groups)))
    if remark := _ask_remark(facts, RemarkSource(router, workspace, confidential)):
        facts["remark"] = remark.record()
    if as_json:
        print_object(facts)
    else:
        print_explanation(facts, remark.line() if remark else "")


def _ask_remark(facts: Facts, source: RemarkSource) -> ModelRemark | None:
    """Return a model's words for a formula; None where no model is named for it."""
    if source.place is None:
        return None
    from ...remarks import RemarkQuestion

    remarks = source.ask("explain", [RemarkQuestion.about_formula(facts)])
    return remarks[0] if remarks else None


def operators(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One operator, by name or sign.")] = None,
    family: Annotated[str | None, typer.Option("--family", metavar="FAMILY", help="One family, e.g. logic.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the operators of the factor language, or document one."""
    from ....factors.describe import describe_operator, find_operator, list_families, summarise_operator

    if name is not None:
        one = describe_operator(find_operator(name))
        print_object(one) if as_json else print_operator(one)
        return
    groups = list_families()
    if family is not None:
        groups = {_find_family(family, list(groups)): groups[_find_family(family, list(groups))]}
    families = {
        family_name: [summarise_operator(operator) for operator in members] for family_name, members in groups.items()
    }
    if as_json:
        print_object({"count": sum(map(len, families.values())), "families": families})
    else:
        print_operators(families)


def _find_family(word: str, families: Sequence[str]) -> str:
    """Return the family that a person's word begins: time-series, cross, ..."""
    plain = word.lower().replace("-", " ").replace("_", " ")
    for family in families:
        if family.replace("-", " ").startswith(plain) and plain:
            return family
    raise typer.BadParameter(f"--family: there is no family '{word}'; the families are {', '.join(families)}")


def readable_names(fields: str | None, groups: str | None) -> ReadableNames:
    """Return the columns and groupings that may be read: the standard ones and the given ones."""
    standard = list_standard_names()
    return {
        "fields": standard["fields"] | set(map(str.lower, _split_names(fields))),
        "groups": standard["groups"] | set(_split_names(groups)),
    }


def _split_names(names: str | None) -> list[str]:
    """Return the names of a comma-separated list; refuse those that a formula cannot contain."""
    words = [name.strip() for name in (names or "").split(",") if name.strip()]
    for name in words:
        if not (name.isidentifier() and name.isascii()):
            raise typer.BadParameter(f"'{name}' cannot be named in a formula: letters, digits and _ only")
    return words


def _mark_repeated(formulas: Sequence[WrittenFormula], results: Sequence[Facts]) -> None:
    """Add a warning to formulas that are the same factor as an earlier one."""
    first: dict[str, WrittenFormula] = {}
    for formula, facts in zip(formulas, results, strict=True):
        if not facts["ok"]:
            continue
        before = first.setdefault(facts["id"], formula)
        if before is not formula:
            reference = f"{before.name} ({before.place()})" if before.name else before.place()
            facts["warnings"].append(f"the same factor as {reference}")


def _mention_own_columns(results: Sequence[Facts]) -> None:
    """Extend the hint of an unknown field that resembles none of ours: own columns are named with --fields."""
    for mistake in (error for facts in results for error in facts["errors"]):
        if mistake["message"].startswith("unknown field") and "Did you mean" not in mistake["hint"]:
            mistake["hint"] += " A column of your own panel is named with --fields."


def _build_json(formulas: Sequence[WrittenFormula], results: Sequence[Facts], *, alone: bool) -> Facts:
    """Return the facts of a single formula as they are, those of several or of a file as a list with counts."""
    if alone and len(results) == 1:
        return results[0]
    rows = [
        {"name": formula.name, "file": formula.file, "line": formula.line, "column": formula.offset + 1, **facts}
        for formula, facts in zip(formulas, results, strict=True)
    ]
    refused = sum(not facts["ok"] for facts in results)
    return {"ok": refused == 0, "count": len(rows), "refused": refused, "formulas": rows}


def _exit_by_stage(results: Sequence[Facts], refused: frozenset[str] = frozenset()) -> None:
    """Exit with 2 if a formula cannot be read, with 1 if all mistakes are of the stages in `refused`."""
    stages = {mistake["stage"] for facts in results if not facts["ok"] for mistake in facts["errors"]}
    if stages:
        raise typer.Exit(EXIT_REFUSED if stages <= refused else EXIT_UNREADABLE)


NAMED_LINE = re.compile(r"\s*(\w[\w.#-]*)\s*(?::|=(?!=))\s*(?=\S)")
"""``alpha1: formula`` or ``alpha1 = formula``; ``close == open`` has no name."""
NUMBERED_LINE = re.compile(r"\s*([0-9]+)[.)]?\s+(?=[A-Za-z_($])")
"""``12 formula`` or ``12. formula``, if every line begins so; ``2 close`` alone is a mistake."""
COMMENT = re.compile(r"(?:^|\s)#.*")


@dataclass(frozen=True)
class WrittenFormula:
    """One formula and its place in the input.

    Attributes
    ----------
    text : str
        The formula.
    name : str
        The author's name for it; empty if it has none.
    file : str
        Its file; empty for an argument.
    line : int
        The line of the file, or the number of the argument, from 1.
    offset : int
        Columns of the line before it.
    """

    text: str
    name: str = ""
    file: str = ""
    line: int = 1
    offset: int = 0

    def place(self, at: int | None = None) -> str:
        """Return the place of the formula, or of a column in it, as editors read it: ``file:line:column``."""
        start = f"{self.file}:{self.line}" if self.file else f"formula {self.line}"
        if at is None:
            return start
        return f"{start}:{self.offset + at + 1}" if self.file else f"{start}, column {at + 1}"


def collect_formulas(texts: Sequence[str], file: str | None) -> list[WrittenFormula]:
    """Return the formulas of the command line, then those of a file; ``-`` is standard input.

    Raises
    ------
    DeskError
        There are none, or the file is not text.
    OSError
        The file cannot be read.
    """
    formulas = [WrittenFormula(read_formula_source(text), line=number) for number, text in enumerate(texts, start=1)]
    if file is not None:
        formulas += _parse_lines(_read_content(file), "stdin" if file == "-" else file)
    if not formulas:
        missing = f"there is no formula in {file}" if file else "no formula was given"
        hint = "Write one formula a line." if file else "Put it in quotes, or name a file: --file FILE"
        raise DeskError(missing, field="--file" if file else "EXPR", hint=hint, code="no_formula")
    return formulas


def _read_content(file: str) -> str:
    from ....ledger.files import read_given

    raw = sys.stdin.buffer.read() if file == "-" else read_given(Path(file))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"{file} is not text in UTF-8: line {line} has other bytes"
        raise DeskError(message, field="--file", got=file, hint="Save it as UTF-8.", code="no_formula") from None


def _parse_lines(content: str, file: str) -> Iterator[WrittenFormula]:
    lines = {number: COMMENT.sub("", line).rstrip() for number, line in enumerate(content.split("\n"), start=1)}
    texts = {number: text for number, text in lines.items() if text.strip()}
    names = NUMBERED_LINE if len(texts) > 1 and all(map(NUMBERED_LINE.match, texts.values())) else NAMED_LINE
    for number, text in texts.items():
        label = names.match(text)
        offset = label.end() if label else len(text) - len(text.lstrip())
        yield WrittenFormula(text[offset:], label[1] if label else "", file, number, offset)


Rows = Sequence[tuple[str, str]]


def print_checks(formulas: Sequence[WrittenFormula], results: Sequence[Facts]) -> None:
    """Print one formula with its facts, or for several the mistakes and warnings with a total."""
    console = stdout_console()
    if len(results) == 1 and results[0]["ok"]:
        _print_rows(console, results[0]["text"], _list_check_rows(results[0]))
    for formula, facts in zip(formulas, results, strict=True):
        _print_mistakes(console, formula, facts)
        for warning in facts["warnings"]:
            place = f"{formula.place()}: " if len(results) > 1 else ""
            _print_line(console, (place, ""), ("warning: ", "yellow"), (warning, ""))
    if len(results) > 1 or formulas[0].file:
        _print_line(console, (_summarise_results(results), "bold"))


def print_translations(formulas: Sequence[WrittenFormula], results: Sequence[Facts]) -> None:
    """Print translations that can be read again; notes and refusals go to standard error, or into comments."""
    console = stderr_console()
    commented = len(results) > 1 or bool(formulas[0].file)
    for formula, facts in zip(formulas, results, strict=True):
        for note in facts["notes"]:
            if commented:
                print_plain(f"# {formula.name or formula.place()}: {note}")
            else:
                _print_line(console, ("note: ", "yellow"), (note, ""))
        if facts["ok"]:
            print_plain(f"{formula.name}: {facts['translation']}" if formula.name else facts["translation"])
        elif commented:
            print_plain(f"# {formula.name or formula.place()} was refused: {facts['errors'][0]['message']}")
        _print_mistakes(console, formula, facts)
    if commented:
        _print_line(console, (_summarise_results(results, "can be carried over"), "bold"))


def print_explanation(facts: Facts, remark: str = "") -> None:
    """Print the explanation of a formula, with a model's remark below it."""
    console = stdout_console()
    rows = [("", facts["explained"])]
    rows += [("a model's words", remark)] if remark else []
    if facts["alphaloom"] != facts["text"] and "amounts_to" not in facts:
        rows.append(("in alphaloom", facts["alphaloom"]))
    ns = facts["cost"]["ns_per_cell"]
    cost = f"about {any_value(ns)} ns a cell on one core, {any_value(ns)} ms for a million cells: an estimate"
    rows += [
        *_list_check_rows(facts),
        ("depth", f"{plural(facts['depth'], 'level')}, {plural(facts['constants'], 'chosen number')}"),
        *([] if "amounts_to" in facts else [("cost", cost)]),
        *_list_column("fields", [(part["name"], f"{part['meaning']}, {part['unit']}") for part in facts["fields"]]),
        *_list_column("operators", [(part["signature"], part["meaning"]) for part in facts["operators"]]),
    ]
    _print_rows(console, facts["text"], rows)
    for warning in facts["warnings"]:
        _print_line(console, ("warning: ", "yellow"), (warning, ""))


def print_operators(families: Mapping[str, Sequence[Facts]]) -> None:
    """Print signature and meaning of operators, by family, and their number."""
    console = stdout_console()
    for family, members in families.items():
        _print_rows(console, family, [(operator["signature"], operator["meaning"]) for operator in members])
        console.print()
    total = plural(sum(map(len, families.values())), "operator")
    _print_line(console, (f"{total}. One with every argument: alphaloom factor operators NAME", "bold"))


def print_operator(facts: Facts) -> None:
    """Print the full documentation of an operator."""
    arguments = [
        (part["name"], part["takes"] + (f"; {part['default']} by default" if part["default"] else ""))
        for part in facts["arguments"]
    ]
    ns = facts["ns_per_cell"]
    window = " at a window of 20" if any(part["name"] == "window" for part in facts["arguments"]) else ""
    rows = [
        ("", facts["meaning"]),
        ("family", facts["family"] + (f", written {facts['symbol']}" if facts["symbol"] else "")),
        *_list_column("takes", arguments),
        ("unit", facts["unit"]),
        ("missing values", facts["nan"]),
        *([("defined as", facts["definition"])] if facts["definition"] else []),
        *([("cost", f"about {any_value(ns)} ns a cell{window}: an estimate")] if ns is not None else []),
        ("example", facts["example"]),
        *_list_column("elsewhere", [(part["dialect"], _format_spelling(part)) for part in facts["elsewhere"]]),
    ]
    _print_rows(stdout_console(), facts["signature"], rows)


def _format_spelling(spelling: Facts) -> str:
    note = f" ({spelling['note']})" if spelling["note"] else ""
    return f"{spelling['written']} is {spelling['meaning']}{note}"


def _list_column(title: str, pairs: Rows) -> list[tuple[str, str]]:
    """Return rows under one title: names with their descriptions."""
    return [(title if place == 0 else "", f"{name}: {text}") for place, (name, text) in enumerate(pairs)]


def _list_check_rows(facts: Facts) -> list[tuple[str, str]]:
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


def _summarise_results(results: Sequence[Facts], verb: str = "can be used") -> str:
    refused = [facts for facts in results if not facts["ok"]]
    sentence = f"{count(len(results) - len(refused))} of {plural(len(results), 'formula')} {verb}"
    if doubtful := sum(bool(facts["ok"] and (facts.get("warnings") or facts.get("notes"))) for facts in results):
        sentence += f", {count(doubtful)} with warnings"
    if refused:
        mistakes = sum(len(facts["errors"]) for facts in refused)
        sentence += f"; {count(len(refused))} refused, with {plural(mistakes, 'mistake')}"
    return f"{sentence}."


def _print_mistakes(console: Console, formula: WrittenFormula, facts: Facts) -> None:
    """Print every mistake of a formula: its place, the message, a caret, and the hint."""
    from ....factors import ParseError

    for mistake in facts["errors"]:
        text = mistake.get("got", formula.text)
        error = ParseError(mistake["message"], at=mistake["at"], text=text)
        own = text == formula.text
        _print_line(
            console, (formula.place(mistake["at"] if own else None), "bold"), (f": {mistake['message']}", "red")
        )
        for line in [*error.caret().split("\n"), mistake["hint"]]:
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
    """Print a line that is never wrapped."""
    from rich.text import Text

    console.print(Text.assemble(*parts), soft_wrap=True)
