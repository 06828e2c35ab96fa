"""The commands that read a policy and compare two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import count, plural
from ..console import make_text, print_object, print_plain, stdout_console
from ..options import AsJson, Workspace
from . import agreement
from .policy_facts import SHIPPED_POLICY, describe_changes, describe_policy, load_policy, read_policy_file, read_today

app = typer.Typer(no_args_is_help=True, help="Read the limits of a policy file, compare two, or sign them.")
app.command(short_help="Print the key with which you sign policies.")(agreement.key)
app.command(short_help="Sign the limits of a workspace.")(agreement.sign)
app.command(short_help="Say who signed them, and who has not.")(agreement.signed)


@app.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A policy file; policy.yaml of the workspace by default.")
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Read a policy: every mistake at once, else each limit beside the shipped one, and the exceptions with days left.

    A workspace without a policy has the shipped limits.
    """
    place = workspace or DEFAULT_WORKSPACE
    facts = describe_policy(*load_policy(file, place), read_today())
    if as_json:
        print_object(facts)
    else:
        _print_policy(facts, place)


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="A policy file.")],
    second: Annotated[
        Path | None, typer.Argument(metavar="B", help="Another policy file; the shipped policy by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is tighter, looser, added or gone in policy A beside policy B. Exit code 1: they differ."""
    from ....risk import Policy, compare_policies

    own, other = (read_policy_file(file) if file else Policy() for file in (first, second))
    facts = describe_changes(compare_policies(own, other), str(first), str(second) if second else SHIPPED_POLICY)
    if as_json:
        print_object(facts)
    else:
        _print_changes(facts)
    if not facts["equal"]:
        raise typer.Exit(1)


def _print_policy(facts: Mapping[str, Any], place: Path) -> None:
    source = facts["file"] or f"{SHIPPED_POLICY} ({place} has no policy.yaml)"
    print_plain(f"Policy: {source}, digest {facts['digest'][:16]}.")
    for name, value in facts["people"].items():
        print_plain(f"{name}: {format_setting(value)}")
    rows = [
        [row["limit"], format_setting(row["value"]), row["unit"],
         f"{format_setting(row['shipped'])} ({name_change(row['change'])})" if row["change"] else ""]
        for row in facts["limits"]
    ]  # fmt: skip  # a table
    _print_table(("limit", "value", "unit", "shipped"), rows)
    for one in facts["exceptions"]:
        left = "EXPIRED" if one["expired"] else f"{plural(one['days_left'], 'day')} left"
        said = f"{one['evidence']} need not pass {one['rule']} until {one['until']} ({left})"
        print_plain(f"Exception: {said}: {one['reason']} ({one['owner']}).")
    expired = sum(one["expired"] for one in facts["exceptions"])
    differing = sum(bool(row["change"]) for row in facts["limits"])
    exceptions = f"{plural(len(facts['exceptions']), 'exception')}, {count(expired)} expired"
    print_plain(f"{plural(differing, 'limit')} other than shipped; {exceptions}.")


def _print_changes(facts: Mapping[str, Any]) -> None:
    if facts["equal"]:
        print_plain(f"{facts['first']} and {facts['second']} set the same limits and exceptions.")
        return
    print_plain(f"{facts['first']} beside {facts['second']}:")
    rows = [
        [row["name"], name_change(row["change"]), _format_side(row["first"]), _format_side(row["second"]),
         row["unit"]]
        for row in facts["changes"]
    ]  # fmt: skip  # a table
    _print_table(("limit", "change", "A", "B", "unit"), rows)


def name_change(change: str) -> str:
    """Return a change in words."""
    return "tighter and looser" if change == "both" else change


def _print_table(heads: tuple[str, ...], rows: list[list[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(make_text, row))
    stdout_console().print(table)


def _format_side(value: Any) -> str:
    """Return a value of one of two policies as text; of an exception its last day."""
    return f"until {value['until']}" if isinstance(value, dict) else format_setting(value)


def format_setting(value: Any) -> str:
    """Return a limit as text."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return ("on" if value else "off") if isinstance(value, bool) else count(value)
