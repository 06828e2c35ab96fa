"""Who may call our servers from outside, and what: bearer tokens of a file, or of somebody else's OAuth server.

Every way ends in a `Caller`. `Tokens` reads the file that `alphaloom token` writes; `Jwts` checks signed tokens against
published keys; `Introspection` asks the server that gave them. `AnyOf` takes several; `bearer.BearerAuth` is what the MCP
library takes.
"""

from __future__ import annotations

from .caller import Caller, Scope, checked_scope
from .claims import Trust
from .introspection import Introspection
from .jwts import Jwts
from .keys import KeySet
from .tokens import Grant, Issued, Tokens, create, listed, revoke
from .verifier import AnyOf, Verifier

__all__ = [
    "AnyOf",
    "Caller",
    "Grant",
    "Introspection",
    "Issued",
    "Jwts",
    "KeySet",
    "Scope",
    "Tokens",
    "Trust",
    "Verifier",
    "checked_scope",
    "create",
    "listed",
    "revoke",
]
