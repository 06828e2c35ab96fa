"""What every request of the web app must pass, and what every response tells the browser to refuse.

The app listens on this machine alone, but any page that the person has open in the same browser can send requests to
it. So the header Host must be local, a change must come from our own page, and no page may be framed or run foreign
script. All scripts and styles are files of ours: nothing inline, nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....mcp_servers.access import LOCAL_HOSTS, LOCAL_ORIGINS, find_misdirection

MAX_FORM_BYTES: Final = 64 * 1024
POLICY: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
REPORT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
"""For reports, which carry their style and no script."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REFUSALS: Final = {
    403: "This request came from another page, and was refused.",
    413: "This request is too long.",
    421: "This address is not one of this desk's: open the one that `alphaloom desk` printed.",
}


class Guards:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on and complete the headers of its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        status = find_refusal(scope)
        answer = self._app if status is None else PlainTextResponse(REFUSALS[status] + "\n", status)
        await answer(scope, receive, complete)


def find_refusal(scope: Scope) -> int | None:
    """Return the HTTP status of a refusal; None if the request may pass."""
    headers = Headers(scope=scope)
    misdirected = find_misdirection(scope["headers"], LOCAL_HOSTS, LOCAL_ORIGINS)
    if misdirected is not None:
        return misdirected
    if scope["method"] in ("GET", "HEAD"):
        return None
    # A browser says where a request comes from in one of two headers, and no page can set either.
    same_site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if same_site != "same-origin" and (same_site is not None or origin != f"http://{headers['host']}"):
        return 403
    length = headers.get("content-length", "")
    return None if length.isdecimal() and int(length) <= MAX_FORM_BYTES else 413
