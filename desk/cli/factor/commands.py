"""The commands on formulas: check them, carry them to another language, explain one, and list the operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ..code import source
from ..console import print_object
from ..options import DIALECTS, AsJson, Dialect, Fields, FormulaFile, Groups
from .input import Written, collected

__all__ = ["UNREADABLE", "check", "explain", "names_read", "operators", "translate"]

Facts = dict[str, Any]
Formulas = Annotated[
    list[str] | None, typer.Argument(metavar="EXPR", help="One or more formulas, in quotes; or FILE.py.")
]

REFUSED, UNREADABLE = 1, 2
NOT_CARRIED = frozenset({"dialect", "causal"})
"""Stages at which a formula that can be read is refused because the other language has nothing that means it."""


def check(
    expressions: Formulas = None,
    file: FormulaFile = None,
    dialect: Dialect = "alphaloom",
    fields: Fields = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Read formulas and say what each is, or everything that is wrong with it; exit code 2 when one is refused."""
    from ....factors.describe.facts import checked, known_dialect
    from .output import print_checks

    known_dialect(dialect)
    written = collected(expressions or (), file)
    names = names_read(fields, groups)
    found = [checked(each.text, dialect=dialect, **names) for each in written]
    _mark_repeated(written, found)
    _mention_own_columns(found)
    if as_json:
        print_object(_one_object(written, found, alone=file is None))
    else:
        print_checks(written, found)
    _leave(found)


def translate(
    expressions: Formulas = None,
    source: Annotated[str, typer.Option("--from", metavar="NAME", help=f"Their language: {DIALECTS}.")] = "alphaloom",
    target: Annotated[str, typer.Option("--to", metavar="NAME", help="The language to write them in.")] = "alphaloom",
    file: FormulaFile = None,
    fields: Fields = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Carry formulas to another language with the meaning that they have, and say what differs."""
    from ....factors.describe.facts import known_dialect, translated
    from .output import print_translations

    known_dialect(source)
    known_dialect(target)
    if source == target:
        raise typer.BadParameter(f"--from and --to are both {source}: name the other language, e.g. --from qlib")
    written = collected(expressions or (), file)
    names = names_read(fields, groups)
    found = [translated(each.text, source, target, **names) for each in written]
    if as_json:
        print_object(_one_object(written, found, alone=file is None))
    else:
        print_translations(written, found)
    _leave(found, NOT_CARRIED)


def explain(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="e.g. 'rank(ts_std(returns, 30)) * -1'")],
    dialect: Dialect = "alphaloom",
    fields: Fields = None,
    groups: Groups = None,
    as_json: AsJson = False,
) -> None:
    """Say a formula in plain words, with its unit, the days and fields that it reads, its operators and its cost."""
    from ....factors import parse
    from ....factors.describe.facts import explained
    from .output import print_explanation

    facts = explained(parse(source(expression), dialect=dialect, **names_read(fields, groups)))
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
    from ....factors.describe.handbook import described, families, listed, operator_named
    from .output import print_operator, print_operators

    if name is not None:
        one = described(operator_named(name))
        print_object(one) if as_json else print_operator(one)
        return
    groups = families()
    if family is not None:
        groups = {_family(family, list(groups)): groups[_family(family, list(groups))]}
    found = {each: [listed(operator) for operator in members] for each, members in groups.items()}
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


def names_read(fields: str | None, groups: str | None) -> dict[str, frozenset[str]]:
    """Return the columns and groupings that may be read: the standard ones and those that were named."""
    from ....factors.language.fields import FIELDS, GROUPS

    return {
        "fields": frozenset({*FIELDS, *map(str.lower, _listed(fields))}),
        "groups": frozenset({*GROUPS, *_listed(groups)}),
    }


def _listed(names: str | None) -> list[str]:
    """Return the names of a list with commas; only what a formula can name."""
    found = [name.strip() for name in (names or "").split(",") if name.strip()]
    for name in found:
        if not (name.isidentifier() and name.isascii()):
            raise typer.BadParameter(f"'{name}' cannot be named in a formula: letters, digits and _ only")
    return found


def _mark_repeated(written: Sequence[Written], found: Sequence[Facts]) -> None:
    """Warn of formulas that are the same factor as one before."""
    first: dict[str, Written] = {}
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


def _one_object(written: Sequence[Written], found: Sequence[Facts], *, alone: bool) -> Facts:
    """Return the facts of one formula as they are, those of several or of a file as a list with counts."""
    if alone and len(found) == 1:
        return found[0]
    rows = [
        {"name": each.name, "file": each.file, "line": each.line, "column": each.offset + 1, **facts}
        for each, facts in zip(written, found, strict=True)
    ]
    refused = sum(not facts["ok"] for facts in found)
    return {"ok": refused == 0, "count": len(rows), "refused": refused, "formulas": rows}


def _leave(found: Sequence[Facts], refused: frozenset[str] = frozenset()) -> None:
    """End with 2 where a formula cannot be read, and with 1 where all mistakes are of the stages that are `refused`."""
    stages = {mistake["stage"] for facts in found if not facts["ok"] for mistake in facts["errors"]}
    if stages:
        raise typer.Exit(REFUSED if stages <= refused else UNREADABLE)
