"""Who may call our servers from outside, and what: bearer tokens of a file, or of somebody else's OAuth server.

Every way ends in a `Caller`. `Tokens` reads the file that `alphaloom token` writes; `Jwts` checks signed tokens against
published keys; `Introspection` asks the server that gave them. `AnyOf` takes several; `bearer.BearerAuth` is what the MCP
library takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .caller import Caller as Caller, Scope as Scope, check_scope as check_scope
    from .claims import Trust as Trust
    from .introspection import Introspection as Introspection
    from .jwts import Jwts as Jwts
    from .keys import KeySet as KeySet
    from .oauth import read_oauth as read_oauth
    from .token_file import TokenEntry as TokenEntry
    from .tokens import (
        Grant as Grant,
        Issued as Issued,
        Tokens as Tokens,
        create_token as create_token,
        list_tokens as list_tokens,
        revoke_token as revoke_token,
        token_status as token_status,
    )
    from .verifier import AnyOf as AnyOf, TokenVerifier as TokenVerifier
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "caller": "Caller Scope check_scope",
            "claims": "Trust",
            "introspection": "Introspection",
            "jwts": "Jwts",
            "keys": "KeySet",
            "oauth": "read_oauth",
            "token_file": "TokenEntry",
            "tokens": "Grant Issued Tokens create_token list_tokens revoke_token token_status",
            "verifier": "AnyOf TokenVerifier",
        },
    )
