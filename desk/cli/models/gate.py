"""The command that lets several tenants share one model endpoint in fair turn: a gateway in front of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import stderr_console
from ..serve.listen import address

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....mcp_servers.access import Tokens
    from ....serving import ServingPlan
    from ....serving.gateway import GatewaySettings


DEFAULT_SERVER = "http://127.0.0.1:8000"
"""Default address of a server of `alphaloom models serve`."""
ASK_SCOPE, OPERATE_SCOPE = "model:ask", "model:operate"
DESCRIPTORS_PER_CONNECTION = 2
"""File descriptors of a connection: its own, and one to the server."""


def gate(
    endpoint: Annotated[
        str, typer.Argument(metavar="PLAN|URL", help="The plan of the server, or where it is: http://HOST:PORT.")
    ],
    auth: Annotated[
        Path, typer.Option("--auth", metavar="FILE", help="Bearer tokens, as `alphaloom token create` writes them.")
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where it listens; port 0: any that is free.")
    ] = "127.0.0.1:8100",
    tenants: Annotated[
        Path | None,
        typer.Option("--tenants", metavar="FILE", help="Shares, quotas and weights, YAML; all alike without."),
    ] = None,
    places: Annotated[
        int | None,
        typer.Option("--places", min=1, help="Calls that the server answers at once; the plan's by default."),
    ] = None,
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="With PLAN: where its server is.")
    ] = DEFAULT_SERVER,
    key_env: Annotated[
        str, typer.Option("--key-env", metavar="NAME", help="The variable with the key that the server wants, if any.")
    ] = "VLLM_API_KEY",
    grace: Annotated[int, typer.Option("--grace", min=0, help="Seconds that calls under way have at the end.")] = 2,
) -> None:
    """Stand in front of an OpenAI-compatible server: each bearer token is a tenant, and who was served least goes first.

    A call is passed on as it is once it has one of the server's places. Tokens need the scope model:ask; those that
    name the same --tenant share one turn. 401: no such token; 403: it may not ask models; 413: one call is more than a
    minute's quota; 429: its queue is full, or its quota is reached and it does not wait (over: refuse; by default a
    call waits for its quota, up to a minute); 503: the server is away. SIGTERM or Ctrl-C ends it: calls that hold a
    place have --grace seconds, those that wait are refused. It speaks plain HTTP, on this machine only unless --listen
    names another host: let a proxy in front of it speak TLS.
    """  # noqa: E501 - the summary of a command's help is one line
    from ....ledger import read_settings
    from ....serving.gateway import GatewaySettings

    host, port = address(listen, "--listen")
    plan, where = _resolve_endpoint(endpoint, server)
    settings = read_settings(tenants, GatewaySettings, [f"places={places}"] if places else [])
    _run(settings, plan, (where, os.environ.get(key_env) or None), auth, (host, port, grace))


def _resolve_endpoint(endpoint: str, server: str) -> tuple[ServingPlan | None, str]:
    """Return the plan, if one was given, and the address of the server."""
    from ....serving import read_plan

    if re.match(r"https?://", endpoint):
        if server != DEFAULT_SERVER:
            raise typer.BadParameter("is for a plan; the address is named already", param_hint="--server")
        return None, parse_server_url(endpoint, "PLAN|URL")
    if "://" in endpoint:
        raise typer.BadParameter(f"{endpoint!r} is no http:// or https:// address", param_hint="PLAN|URL")
    return read_plan(Path(endpoint)), parse_server_url(server, "--server")


def parse_server_url(text: str, option: str) -> str:
    """Return an address without a password, a query or a path other than /v1."""
    match = re.fullmatch(r"(https?://[A-Za-z0-9.:\[\]_-]+?)(/v1)?/?", text.strip())
    if match is None:
        raise typer.BadParameter("must be such as http://127.0.0.1:8000, and nothing more", param_hint=option)
    return match[1]


def _run(
    settings: GatewaySettings,
    plan: ServingPlan | None,
    behind: tuple[str, str | None],
    auth: Path,
    door: tuple[str, int, int],
) -> None:
    import time
    from datetime import UTC, datetime

    from ....mcp_servers.access import Tokens
    from ....serving.gateway import FairScheduler, Gateway, GatewayEndpoint, build_application
    from ..serve.listen import format_host, open_listener, quiet_signals
    from ..serve.server import ServerTerms, serve_until_signal

    fairness = settings.build_fairness(plan)
    tokens = Tokens.open(auth, clock=lambda: datetime.now(UTC))
    report = stderr_console().out
    for name in _find_unnamed_tenants(auth, settings):
        report(f"No live token of {auth} has the tenant {name}, which the file of tenants names.")
    host, port, grace = door
    with open_listener(host, port, "--listen") as listener, quiet_signals() as signals:
        host, port = listener.getsockname()[:2]
        report(
            f"http://{format_host(host)}:{port}/v1 passes calls on to {behind[0]}: {fairness.places} places, "
            f"a token out counts {fairness.output_weight / fairness.input_weight:g} times one in. Ctrl-C ends it."
        )
        turns = FairScheduler(fairness, clock=time.monotonic)
        gateway = Gateway(
            GatewayEndpoint(*behind),
            turns,
            fairness,
            settings,
            _make_tenant_lookup(tokens),
            _make_operator_check(tokens),
        )
        terms = ServerTerms(grace, settings.connections, DESCRIPTORS_PER_CONNECTION, gateway.end)
        serve_until_signal(build_application(gateway), listener, terms, lambda: bool(signals))
    report("Ended.")


def _find_unnamed_tenants(auth: Path, settings: GatewaySettings) -> list[str]:
    """Return the tenants in the settings that no token names, probably misspelt."""
    from ....mcp_servers.access import list_tokens

    tenants = {entry.tenant or entry.id for entry in list_tokens(auth) if entry.revoked is None}
    return sorted(settings.tenants.keys() - tenants)


def _make_tenant_lookup(tokens: Tokens) -> Callable[[str], str]:
    """Return a function from a token to its tenant."""
    from ....mcp_servers import TokenRefused
    from ....serving import GatewayError

    def who(bearer: str) -> str:
        try:
            caller = tokens.verify(bearer)
        except TokenRefused as refused:
            hint = "Send one of `alphaloom token create --scopes model:ask` as Authorization: Bearer TOKEN."
            raise GatewayError(
                refused.message, code="invalid_api_key", exit_code=1, status=401, field="authorization", hint=hint
            ) from None
        if not caller.allows(ASK_SCOPE):
            raise GatewayError(
                f"This token does not allow asking models: it has no scope {ASK_SCOPE}.",
                code="forbidden",
                exit_code=1,
                status=403,
                field="authorization",
            )
        return caller.tenant or caller.id

    return who


def _make_operator_check(tokens: Tokens) -> Callable[[str], bool]:
    """Return a function that checks whether a token is the operator's."""
    from ....mcp_servers import TokenRefused

    def operates(bearer: str) -> bool:
        try:
            return tokens.verify(bearer).allows(OPERATE_SCOPE)
        except TokenRefused:
            return False

    return operates
