"""Who may call our servers from outside, and what: bearer tokens of a file, or of somebody else's OAuth server.

Every way ends in a `Caller`. `Tokens` reads the file that `alphaloom token` writes; `Jwts` checks signed tokens against
published keys; `Introspection` asks the server that gave them. `AnyOf` takes several; `bearer.BearerAuth` is what the MCP
library takes.
"""

from __future__ import annotations

from .caller import Caller, Scope, check_scope
from .claims import Trust
from .introspection import Introspection
from .jwts import Jwts
from .keys import KeySet
from .tokens import Grant, Issued, Tokens, create_token, list_tokens, revoke_token
from .verifier import AnyOf, TokenVerifier

__all__ = [
    "AnyOf",
    "Caller",
    "Grant",
    "Introspection",
    "Issued",
    "Jwts",
    "KeySet",
    "Scope",
    "TokenVerifier",
    "Tokens",
    "Trust",
    "check_scope",
    "create_token",
    "list_tokens",
    "revoke_token",
]
