"""The commands on formulas: check them, carry them to another language, explain one, and list the operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ..code import read_formula_source
from ..console import print_object
from ..options import DIALECTS, AsJson, DialectOption, FieldsOption, FormulaFile, GroupsOption
from .input import WrittenFormula, collect_formulas

__all__ = ["EXIT_UNREADABLE", "check", "explain", "operators", "readable_names", "translate"]

Facts = dict[str, Any]
Formulas = Annotated[
    list[str] | None, typer.Argument(metavar="EXPR", help="One or more formulas, in quotes; or FILE.py.")
]

EXIT_REFUSED, EXIT_UNREADABLE = 1, 2
UNTRANSLATABLE_STAGES = frozenset({"dialect", "causal"})
"""Stages at which a formula that can be read is refused because the other language has nothing that means it."""


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
    from .output import print_checks

    require_dialect(dialect)
    written = collect_formulas(expressions or (), file)
    names = readable_names(fields, groups)
    found = [check_formula(each.text, dialect=dialect, **names) for each in written]
    _mark_repeated(written, found)
    _mention_own_columns(found)
    if as_json:
        print_object(_one_object(written, found, alone=file is None))
    else:
        print_checks(written, found)
    _exit_by_stage(found)


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
    from .output import print_translations

    require_dialect(source)
    require_dialect(target)
    if source == target:
        raise typer.BadParameter(f"--from and --to are both {source}: name the other language, e.g. --from qlib")
    written = collect_formulas(expressions or (), file)
    names = readable_names(fields, groups)
    found = [translate_formula(each.text, source, target, **names) for each in written]
    if as_json:
        print_object(_one_object(written, found, alone=file is None))
    else:
        print_translations(written, found)
    _exit_by_stage(found, UNTRANSLATABLE_STAGES)


def explain(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'")],
    dialect: DialectOption = "alphaloom",
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    as_json: AsJson = False,
) -> None:
    """Say a formula in plain words, with its unit, the days and fields that it reads, its operators and its cost."""
    from ....factors import parse
    from ....factors.describe import explain_formula
    from .output import print_explanation

    facts = explain_formula(parse(read_formula_source(expression), dialect=dialect, **readable_names(fields, groups)))
    if as_json:
        print_object(facts)
    else:
        print_explanation(facts)


def operators(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One operator, by name or sign.")] = None,
    family: Annotated[str | None, typer.Option("--family", metavar="FAMILY", help="One family, e.g. logic.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the operators of the factor language, or document one."""
    from ....factors.describe import describe_operator, find_operator, list_families, summarise_operator
    from .output import print_operator, print_operators

    if name is not None:
        one = describe_operator(find_operator(name))
        print_object(one) if as_json else print_operator(one)
        return
    groups = list_families()
    if family is not None:
        groups = {_family(family, list(groups)): groups[_family(family, list(groups))]}
    found = {each: [summarise_operator(operator) for operator in members] for each, members in groups.items()}
    if as_json:
        print_object({"count": sum(map(len, found.values())), "families": found})
    else:
        print_operators(found)


def _family(asked: str, known: Sequence[str]) -> str:
    """Return the family that a person means: time-series, cross, ..."""
    plain = asked.lower().replace("-", " ").replace("_", " ")
    for family in known:
        if family.replace("-", " ").startswith(plain) and plain:
            return family
    raise typer.BadParameter(f"--family: there is no family '{asked}'; the families are {', '.join(known)}")


def readable_names(fields: str | None, groups: str | None) -> dict[str, frozenset[str]]:
    """Return the columns and groupings that may be read: the standard ones and those that were named."""
    from ....factors.language import STANDARD_FIELDS, STANDARD_GROUPS

    return {
        "fields": frozenset({*STANDARD_FIELDS, *map(str.lower, _split_names(fields))}),
        "groups": frozenset({*STANDARD_GROUPS, *_split_names(groups)}),
    }


def _split_names(names: str | None) -> list[str]:
    """Return the names of a list with commas; only what a formula can name."""
    found = [name.strip() for name in (names or "").split(",") if name.strip()]
    for name in found:
        if not (name.isidentifier() and name.isascii()):
            raise typer.BadParameter(f"'{name}' cannot be named in a formula: letters, digits and _ only")
    return found


def _mark_repeated(written: Sequence[WrittenFormula], found: Sequence[Facts]) -> None:
    """Warn of formulas that are the same factor as one before."""
    first: dict[str, WrittenFormula] = {}
    for each, facts in zip(written, found, strict=True):
        if not facts["ok"]:
            continue
        before = first.setdefault(facts["id"], each)
        if before is not each:
            named = f"{before.name} ({before.place()})" if before.name else before.place()
            facts["warnings"].append(f"the same factor as {named}")


def _mention_own_columns(found: Sequence[Facts]) -> None:
    """Say how a column of one's own panel is named, where an unknown one is like none of ours."""
    for mistake in (each for facts in found for each in facts["errors"]):
        if mistake["message"].startswith("unknown field") and "Did you mean" not in mistake["hint"]:
            mistake["hint"] += " A column of your own panel is named with --fields."


def _one_object(written: Sequence[WrittenFormula], found: Sequence[Facts], *, alone: bool) -> Facts:
    """Return the facts of one formula as they are, those of several or of a file as a list with counts."""
    if alone and len(found) == 1:
        return found[0]
    rows = [
        {"name": each.name, "file": each.file, "line": each.line, "column": each.offset + 1, **facts}
        for each, facts in zip(written, found, strict=True)
    ]
    refused = sum(not facts["ok"] for facts in found)
    return {"ok": refused == 0, "count": len(rows), "refused": refused, "formulas": rows}


def _exit_by_stage(found: Sequence[Facts], refused: frozenset[str] = frozenset()) -> None:
    """End with 2 where a formula cannot be read, and with 1 where all mistakes are of the stages that are `refused`."""
    stages = {mistake["stage"] for facts in found if not facts["ok"] for mistake in facts["errors"]}
    if stages:
        raise typer.Exit(EXIT_REFUSED if stages <= refused else EXIT_UNREADABLE)
