"""Access of outside callers to our servers: bearer tokens from a file, or from an external OAuth server.

Every verifier returns a `Caller` with scopes (`scopes`). `Tokens` reads the file that `alphaloom token` writes; `Jwts`
checks signed tokens against published keys; `Introspection` asks the server that issued them; `AnyOf` combines
verifiers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .arrivals import (
        LOCAL_HOSTS as LOCAL_HOSTS,
        LOCAL_ORIGINS as LOCAL_ORIGINS,
        Bucket as Bucket,
        find_misdirection as find_misdirection,
    )
    from .claims import Trust as Trust
    from .jwts import Jwts as Jwts, KeySet as KeySet
    from .oauth import Introspection as Introspection, Protected as Protected, read_oauth as read_oauth
    from .private_file import (
        FileSignature as FileSignature,
        find_exposure as find_exposure,
        lock_path as lock_path,
        read_guarded as read_guarded,
    )
    from .scopes import (
        DEFAULT_SCOPES as DEFAULT_SCOPES,
        EVERY_SCOPE as EVERY_SCOPE,
        SUPERVISOR_SCOPES as SUPERVISOR_SCOPES,
        Caller as Caller,
        Scope as Scope,
        parse_scope as parse_scope,
    )
    from .tokens import (
        AnyOf as AnyOf,
        Grant as Grant,
        Issued as Issued,
        TokenEntry as TokenEntry,
        Tokens as Tokens,
        TokenVerifier as TokenVerifier,
        create_token as create_token,
        describe_token_status as describe_token_status,
        list_tokens as list_tokens,
        revoke_token as revoke_token,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "arrivals": "LOCAL_HOSTS LOCAL_ORIGINS Bucket find_misdirection",
            "claims": "Trust",
            "jwts": "Jwts KeySet",
            "oauth": "Introspection Protected read_oauth",
            "private_file": "FileSignature find_exposure lock_path read_guarded",
            "scopes": "DEFAULT_SCOPES EVERY_SCOPE SUPERVISOR_SCOPES Caller Scope parse_scope",
            "tokens": (
                "AnyOf Grant Issued TokenEntry TokenVerifier Tokens create_token describe_token_status "
                "list_tokens revoke_token"
            ),
        },
    )
