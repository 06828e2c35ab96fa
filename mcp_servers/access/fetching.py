"""One HTTP request to an OAuth server: small, short, without redirects, encrypted unless it stays on this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from ...ledger import AlphaloomError

FETCH_SECONDS = 5.0
"""Maximum duration of a request."""
MAX_FETCH_BYTES = 256 * 1024
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}


class FetchFailed(Exception):
    """The other server gave no usable answer; its text is not repeated.

    Parameters
    ----------
    reason : str
        What was wrong.
    status : int or None
        The HTTP status; None without an answer in time.
    """

    def __init__(self, reason: str = "", status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status

    @property
    def failing(self) -> bool:
        """Whether the server itself fails, so that another request would fail too."""
        return self.status is None or self.status in {408, 429} or self.status >= 500


def check_url(url: str, field: str) -> str:
    """Return an address that may be requested.

    Raises
    ------
    AlphaloomError
        If it is not https (http is allowed on this machine only), or contains a password.
    """
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS)
    if not safe or not parts.hostname or "@" in parts.netloc:
        raise AlphaloomError(
            "This address cannot be asked.",
            field=field,
            got=None if "@" in parts.netloc else url,
            allowed="https://..., without a password; http for localhost only",
        )
    return url


def fetch_body(url: str, form: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None) -> bytes:
    """Return the body of a GET, or of a POST of a form.

    Raises
    ------
    FetchFailed
        Unless the answer has the status 200 and comes within 5 seconds and 256 KB.
    """
    import httpx2

    end = time.monotonic() + FETCH_SECONDS
    headers = {"accept": "application/json"}
    try:
        with (
            httpx2.Client(timeout=FETCH_SECONDS, follow_redirects=False, auth=auth) as client,
            client.stream(
                "GET" if form is None else "POST", url, data=dict(form or {}) or None, headers=headers
            ) as answer,
        ):
            if answer.status_code != 200:
                raise FetchFailed(f"status {answer.status_code}", answer.status_code)
            return _read(answer.iter_bytes(), end)
    except httpx2.HTTPError as error:
        raise FetchFailed(type(error).__name__) from None


def _read(parts: object, end: float) -> bytes:
    body = b""
    for part in parts:  # type: ignore[attr-defined]
        body += part
        if len(body) > MAX_FETCH_BYTES:
            raise FetchFailed("too large", 200)
        if time.monotonic() > end:
            raise FetchFailed("too slow")
    return body
