"""The command that opens the desk in a browser."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from .console import print_plain
from .options import By, Workspace, signer_name
from .run_lookup import DEFAULT_WORKSPACE, open_record

GRACE_SECONDS = 1


def desk(
    workspace: Workspace = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = 0,
    by: By = None,
) -> None:
    """Review in a browser what campaigns found: everything that waits for a person, and every page on it.

    The address that is printed opens the desk once, in one browser, within ten minutes; other accounts of this machine
    cannot use it. Decisions are signed with your login name, or with the one of --by.
    """
    from ..web import Desk, build_app
    from .serve.listen import format_host, open_listener, quiet_signals
    from .serve.server import ServerTerms, serve_until_signal

    place = workspace or DEFAULT_WORKSPACE
    with open_record(place):
        person = signer_name(by)
    opened = Desk(place, lambda: datetime.now(UTC))
    with open_listener("127.0.0.1", port, "--port") as listener, quiet_signals() as signals:
        host, number = listener.getsockname()[:2]
        launch = opened.sessions.issue_launch(person)
        print_plain("Open this address in a browser; it works once, within ten minutes. Ctrl-C ends the desk.")
        print_plain(f"http://{format_host(host)}:{number}/enter/{launch}")
        serve_until_signal(build_app(opened), listener, ServerTerms(GRACE_SECONDS), lambda: bool(signals))
