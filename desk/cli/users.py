"""The commands on the users of a workspace: who may sign, and for what."""

from __future__ import annotations

import getpass
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DeskError
from ..facts.standing import DEFAULT_WORKSPACE
from .console import make_text, print_object, print_plain, stdout_console
from .options import AsJson, Workspace, read_password_file
from .run_lookup import open_record

if TYPE_CHECKING:
    from ..users import User, Users

app = typer.Typer(
    no_args_is_help=True, help="Say who may sign in this workspace, and for what; without users nobody is asked."
)
UserName = Annotated[str, typer.Argument(metavar="NAME", help="The name that signs.")]
UserScopes = Annotated[
    str,
    typer.Option(
        "--scopes",
        metavar="SCOPE,...",
        help="Of review:decide, risk:approve, run:control, seal:open, library:write, text:release, supervise.",
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="Its first line is the password; only you may read it."),
]


@app.command(short_help="Add a user; the password is asked for.")
def add(
    name: UserName,
    scopes: UserScopes,
    password_file: PasswordFile = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Add a user. From the first one on, the desk asks for a password, and every signature on the command line too.

    review:decide decides on cases; risk:approve acknowledges leak alarms, halts and resumes books and moves their
    money; run:control starts, stops and resumes campaigns; seal:open opens sealed days; library:write retires and
    restores factors; text:release releases texts; supervise exports the record of calls and sees every analyst's
    calibration.
    """
    users = _open_users(workspace)
    user = users.add(name.strip(), _split(scopes), _choose_password(name, password_file), datetime.now(UTC))
    _print_user(user, "added", as_json=as_json)


@app.command(short_help="Change what a user may do.")
def scopes(name: UserName, scopes: UserScopes, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Give a user other scopes; they hold from the next request or command on."""
    user = _open_users(workspace).change(name, {"scopes": list(dict.fromkeys(_split(scopes)))})
    _print_user(user, "changed", as_json=as_json)


@app.command(short_help="Set a new password.")
def password(
    name: UserName, password_file: PasswordFile = None, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Set a new password of a user, which ends all their sessions."""
    users = _open_users(workspace)
    user = users.change(name, {"password": _choose_password(name, password_file)})
    _print_user(user, "changed, and all sessions of this user are over", as_json=as_json)


@app.command(short_help="Remove a user; what they signed stays.")
def remove(name: UserName, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Remove a user, which ends their sessions at once. What they signed stays on record."""
    left = _open_users(workspace).remove(name)
    if as_json:
        print_object({"removed": name, "left": len(left)})
        return
    print_plain(f"{name} is removed")
    if not left:
        print_plain("No user is left: from now on nobody is asked for a password, and every name signs.")


@app.command("list", short_help="List the users and what each may do.")
def list_(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List the users of a workspace. Their passwords are nowhere, only hashes."""
    rows = [_describe(user) for user in _open_users(workspace).all()]
    if as_json:
        print_object({"count": len(rows), "users": rows})
        return
    if not rows:
        print_plain("This workspace has no users: nobody is asked for a password.")
        return
    from rich import box
    from rich.table import Table

    table = Table("name", "scopes", "since", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(make_text(text) for text in (row["name"], " ".join(row["scopes"]) or "-", row["created"][:10])))
    stdout_console().print(table)


def _open_users(workspace: Path | None) -> Users:
    from ..users import Users

    place = workspace or DEFAULT_WORKSPACE
    with open_record(place):  # a mistyped folder must not become a workspace with users
        return Users(place)


def _split(scopes: str) -> list[str]:
    return [scope.strip() for scope in scopes.split(",") if scope.strip()]


def _choose_password(name: str, file: Path | None) -> str:
    """Return the password of a file, or the one that is typed twice."""
    if file is not None:
        return read_password_file(file)
    if not sys.stdin.isatty():
        hint = "Run it on a terminal, or name a file that only you can read: --password-file FILE."
        raise DeskError("Nobody can be asked for a password here.", field="password", hint=hint, code="password")
    typed = getpass.getpass(f"New password of {name}: ")
    if getpass.getpass("Again: ") != typed:
        raise DeskError("The two differ; nothing was changed.", field="password", code="password")
    return typed


def _describe(user: User) -> dict[str, Any]:
    return user.model_dump(mode="json", exclude={"password"})


def _print_user(user: User, word: str, *, as_json: bool) -> None:
    if as_json:
        print_object(_describe(user))
    else:
        print_plain(f"{user.name}  {' '.join(user.scopes) or 'no scopes: reads only'}")
        print_plain(word)
