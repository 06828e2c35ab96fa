"""Our verifiers as the MCP library wants them."""

from __future__ import annotations

import anyio.to_thread
from mcp.server.auth.provider import AccessToken

from ..errors import TokenRefused
from .caller import Caller
from .verifier import TokenVerifier


class AdmittedCaller(AccessToken):
    """What the library hands to a tool of somebody who was let in: with the caller, and without the secret."""

    caller: Caller


class BearerAuth:
    """A token verifier of the MCP library (`mcp.server.auth.provider.TokenVerifier`) over one of ours."""

    def __init__(self, verifier: TokenVerifier, resource: str | None = None) -> None:
        self._verifier, self._resource = verifier, resource

    async def verify_token(self, token: str) -> AdmittedCaller | None:
        """Return who shows a token, or None: the library answers 401 then."""
        try:
            caller = (
                await anyio.to_thread.run_sync(self._verifier.verify, token)
                if self._verifier.waits
                else self._verifier.verify(token)
            )
        except TokenRefused:
            return None
        ends = int(caller.expires.timestamp()) if caller.expires else None
        return AdmittedCaller(
            token=caller.id, client_id=caller.id, subject=caller.id, scopes=sorted(caller.scopes), expires_at=ends,
            resource=self._resource, caller=caller,
        )  # fmt: skip
