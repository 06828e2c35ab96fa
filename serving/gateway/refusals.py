"""How a caller is told no: in OpenAI's form, so that every client of that API understands it."""

from __future__ import annotations

import math

from starlette.responses import JSONResponse

from ...ledger import AlphaloomError
from ...router import CallTooLarge, GatewayEnds, GatewayError, QueueFull, QuotaReached

__all__ = ["refusal_response"]

ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def refusal_response(error: AlphaloomError, held_s: float) -> JSONResponse:
    """Return the answer to a call that is refused; `held_s` is how long a call holds a place, about."""
    status = _status(error)
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    message = " ".join(line if line[-1] in ".!?" else f"{line}." for line in lines)
    told = {"message": message, "type": kind, "param": error.field or None, "code": error.code}
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if (wait := _retry_after(error, held_s)) is not None:
        headers["retry-after"] = str(max(1, math.ceil(wait)))
    return JSONResponse({"error": told}, status, headers)


def _status(error: AlphaloomError) -> int:
    if isinstance(error, CallTooLarge):  # it would be too large a minute later too
        return 413
    if isinstance(error, QueueFull | QuotaReached):
        return 429
    return error.status if isinstance(error, GatewayError) else 500


def _retry_after(error: AlphaloomError, held_s: float) -> float | None:
    """Return when it is worth asking again: as the quota says, else when a place is free."""
    if isinstance(error, CallTooLarge):
        return None
    if isinstance(error, QuotaReached) and math.isfinite(error.seconds):
        return error.seconds
    return held_s if isinstance(error, QueueFull | QuotaReached | GatewayEnds) else None
