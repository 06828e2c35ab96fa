"""The command that stops all trading of a workspace, and the one that lets it go on."""

from __future__ import annotations

import getpass
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...facts.standing import DEFAULT_WORKSPACE, workspace_option
from ...figures import plural
from ..console import make_text, print_object, print_plain, stderr_console
from ..options import SECOND_PASSWORD_FILE_VARIABLE, AsJson, Workspace, signer_name
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....execution import Halt, HaltSwitch

US_PER_SECOND = 1_000_000


def kill(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; needed to release a halt.")] = "",
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who stops it; your login by default.")] = "",
    release: Annotated[bool, typer.Option("--release", help="Let trading go on: takes two persons.")] = False,
    second: Annotated[str, typer.Option("--second", metavar="NAME", help="Who agrees to the release.")] = "",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Stop every order of a workspace at once, until two people release it.

    The halt is a file, HALTED, that is read before each order: no password, no record and no other process is needed
    to make it. Then the open books are halted on record. Killing twice changes nothing, and records what could not be
    recorded before.
    """
    from ....execution import Halt, HaltSwitch

    place, now = workspace or DEFAULT_WORKSPACE, datetime.now(UTC)
    with HaltSwitch(place) as switch:
        if release:
            _release(switch, Halt(reason, by, _to_us(now)), second, as_json=as_json)
            return
        halt = switch.set(Halt(reason or "no reason was given", by or _find_login(), _to_us(now)))
    if not as_json:
        print_plain(f"HALTED: no order leaves {place} any more. {_describe(halt)}")
    books, mistake = _halt_books(place, halt, now)
    if as_json:
        print_object({"halted": True, **halt.record(), "books": books, "not_recorded": mistake})
        return
    if books:
        print_plain(f"On record in {plural(len(books), 'book')}: {', '.join(books)}.")
    option = workspace_option(workspace)
    print_plain(f"To go on: alphaloom kill --release --reason TEXT --by NAME --second NAME{option}")


def _halt_books(place: Path, halt: Halt, now: datetime) -> tuple[list[str], str]:
    """Halt the books on record, and return their names; where the record cannot take it, the file stands and why."""
    from ....campaign import halt_books

    try:
        with open_record(place) as ledger:
            return halt_books(ledger, halt.reason, halt.by or "unknown", now), ""
    except Exception as error:  # noqa: BLE001 - the switch must end well whatever else is broken
        mistake = " ".join(str(error).split()) or type(error).__name__
        line = f"The record could not take it: {mistake} The file stands. Once the record is whole: alphaloom kill"
        stderr_console().print(make_text(line), style="yellow")
        return [], mistake


def _release(switch: HaltSwitch, words: Halt, second: str, *, as_json: bool) -> None:
    """Resume the books and clear their breakers on record, then take the file away."""
    from ....campaign import clear_books, resume_books
    from ....execution import Halt, check_people

    place = switch.workspace
    check_people(words, second)
    people = (
        signer_name(words.by, place, "risk:approve"),
        signer_name(second, place, "risk:approve", field="--second", variable=SECOND_PASSWORD_FILE_VARIABLE),
    )
    with open_record(place) as ledger:
        now = datetime.now(UTC)
        halted, cleared = switch.is_set(), clear_books(ledger, words.reason, people, now)
        books = resume_books(ledger, words.reason, people, now) if halted else []
        words = Halt(words.reason, people[0], _to_us(now))
        halt = switch.release(words, people[1]) if halted or not cleared else None
    if as_json:
        released = {"reason": words.reason, "by": people[0], "second": people[1]}
        was = halt.record() if halt else None
        print_object({"halted": False, "halt": was, "released": released, "books": books, "breakers": cleared})
        return
    was_halted = _describe(halt) if halt else "It was held to reductions by a breaker."
    print_plain(f"Released by {people[0]} and {people[1]}: orders of {place} may leave again. {was_halted}")
    if books:
        print_plain(f"Resumed on record, from the next day on: {', '.join(books)}.")
    for line in cleared:
        print_plain(f"Cleared in {line}")


def _describe(halt: Halt) -> str:
    at = f", {datetime.fromtimestamp(halt.at_us / US_PER_SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC" if halt.at_us else ""
    return f"Halted by {halt.by or 'a file that names nobody'}{at}: {halt.reason}."


def _find_login() -> str:
    with suppress(KeyError, OSError):  # no entry for this user, and no variable with a name
        return getpass.getuser()
    return ""


def _to_us(at: datetime) -> int:
    return int(at.timestamp() * US_PER_SECOND)
