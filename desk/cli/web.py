"""The command that opens the desk in a browser."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from ..facts.standing import DEFAULT_WORKSPACE
from . import users
from .console import print_plain
from .options import By, Workspace, signer_name
from .run_lookup import open_record

GRACE_SECONDS = 1

app = typer.Typer(invoke_without_command=True)
app.add_typer(users.app, name="user", short_help="Say who may sign, and for what.")


@app.callback()
def desk(
    context: typer.Context,
    workspace: Workspace = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = 0,
    by: By = None,
) -> None:
    """Review in a browser what campaigns found: everything that waits for a person, and every page on it.

    The address that is printed opens the desk once, in one browser, within ten minutes; other accounts of this machine
    cannot use it. Decisions are signed with the name that you give in the browser once, with your login name beside it,
    or with the name of --by. Where the workspace has users
    (alphaloom desk user add), the desk asks for name and password; with --by the password is asked for here instead.
    """
    if context.invoked_subcommand is not None:
        return
    from ...ledger import find_account
    from ..web import Desk, build_app
    from .serve.listen import format_host, open_listener, quiet_signals
    from .serve.server import ServerTerms, serve_until_signal

    opened = Desk(workspace or DEFAULT_WORKSPACE, lambda: datetime.now(UTC))
    with open_record(opened.workspace):
        has_users = bool(opened.users.all())
        person = None if has_users and by is None else signer_name(by, opened.workspace)
    with open_listener("127.0.0.1", port, "--port") as listener, quiet_signals() as signals:
        host, number = listener.getsockname()[:2]
        place = f"http://{format_host(host)}:{number}"
        if person is None:
            print_plain("Open this address in a browser, and give your name and password. Ctrl-C ends the desk.")
            print_plain(f"{place}/login")
        else:
            print_plain("Open this address in a browser; it works once, within ten minutes. Ctrl-C ends the desk.")
            # The account and not its name: a name that is given later in the browser then holds at once.
            launched = person if has_users or by is not None else find_account()
            print_plain(f"{place}/enter/{opened.issue_launch(launched)}")
        serve_until_signal(build_app(opened), listener, ServerTerms(GRACE_SECONDS), lambda: bool(signals))
