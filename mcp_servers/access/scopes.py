"""Callers, their scopes, and the check of a scope before each call."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from ..errors import ScopeMissing

_JURISDICTION = re.compile(r"data:jurisdiction:[A-Z]{2}")


class Scope(StrEnum):
    """A right of a caller. In addition, `data:jurisdiction:XX` allows data that may be used in XX only."""

    DATA_READ = "data:read"
    NEWS_READ = "news:read"
    FACTOR_READ = "factor:read"
    FACTOR_WRITE = "factor:write"
    EVAL_RUN = "eval:run"
    GATE_SUBMIT = "gate:submit"
    RULES_READ = "rules:read"
    MODEL_ASK = "model:ask"
    MODEL_OPERATE = "model:operate"
    DATA_CONFIDENTIAL = "data:confidential"
    SUPERVISE = "supervise"


EVERY_SCOPE = frozenset(scope.value for scope in Scope if scope is not Scope.SUPERVISE)
"""All scopes of research, which a campaign's own agents have, except those of jurisdictions. A supervisor's is none of
them: an account tells verdicts with their figures, and no agent may read those."""
SUPERVISOR_SCOPES = frozenset({Scope.SUPERVISE.value})
"""Default scopes of a supervisor on stdio."""

DEFAULT_SCOPES = EVERY_SCOPE - {Scope.DATA_CONFIDENTIAL.value}
"""Default scopes of a client on stdio; confidential data must be requested explicitly."""
JURISDICTION_FORM = "data:jurisdiction:XX"
ALL_SCOPES = (*(scope.value for scope in Scope), JURISDICTION_FORM)


def is_scope(text: str) -> bool:
    """Return whether a text is a known scope."""
    return text in Scope._value2member_map_ or _JURISDICTION.fullmatch(text) is not None


def parse_scope(text: str) -> str:
    """Return a known scope; raise `ValueError` with a suggestion for any other text."""
    if is_scope(text):
        return text
    close = difflib.get_close_matches(text, ALL_SCOPES, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise ValueError(
        f"there is no scope of this name{meant} Allowed: {', '.join(ALL_SCOPES)} (XX: two capital letters)"
    )


@dataclass(frozen=True)
class Caller:
    """One caller, from any kind of token.

    Parameters
    ----------
    id : str
        The id in the record of calls: the token's id, "oauth:" and the subject, "stdio" or "anonymous".
    scopes : frozenset of str
        Its rights; each a `Scope` or `data:jurisdiction:XX`.
    fields : frozenset of str or None
        The fields of the panel that it may read; None for all.
    as_of : date or None
        The last day that it may know; None for no limit beside the server's own.
    expires : datetime or None
        The first moment at which it is refused; None where it ends with the connection.
    tenant : str
        Its name at a shared endpoint (`alphaloom models gate`).
    """

    id: str
    scopes: frozenset[str] = frozenset()
    fields: frozenset[str] | None = None
    as_of: date | None = None
    expires: datetime | None = None
    tenant: str = ""

    @property
    def labels(self) -> frozenset[str]:
        """The labels of data that it may see, such as "confidential" and "jurisdiction:CH", from its `data:` scopes."""
        labelled = (Scope.DATA_CONFIDENTIAL.value, JURISDICTION_FORM[:-2])
        return frozenset(scope.removeprefix("data:") for scope in self.scopes if scope.startswith(labelled))

    def check_scope(self, tool: str, scope: str | None) -> ScopeMissing | None:
        """Return why the caller may not call a tool; None where it may. Nobody may call a tool without a scope."""
        if scope is not None and self.allows(scope):
            return None
        return ScopeMissing(
            f"This token does not allow {tool}.",
            field="scope",
            got=sorted(self.scopes),
            allowed=None if scope is None else str(scope),
            hint=f"Ask for a token with the scope {scope}." if scope else "",
        )

    def allows(self, scope: str) -> bool:
        """Return whether the caller has a scope."""
        return str(scope) in self.scopes
