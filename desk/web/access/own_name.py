"""The page on which a person without a user account gives the name that they sign with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import DeskError
from ...users import GivenNames

if TYPE_CHECKING:
    from ..pages import PageRequest


@dataclass(frozen=True)
class OwnName:
    """Who signs, and the account of this machine for which a name may be given; empty where none may."""

    signs: str
    account: str


def load_name(view: PageRequest) -> OwnName:
    """Return how the person who asks signs."""
    return OwnName(view.person, view.signer.account)


def give_name(view: PageRequest, form: dict[str, str]) -> str:
    """Keep the name for the account that signs, and return the page from which it was given."""
    account = view.signer.account
    if not account:
        raise DeskError(
            "Your name is given already, by alphaloom desk --by or as a user.",
            field="name",
            got=view.person,
            hint="Start alphaloom desk without --by, in a workspace without users.",
            code="name_given",
        )
    GivenNames(view.ledger.workspace).give(account, form.get("name", ""))
    back = form.get("back", "")
    is_ours = back.startswith("/") and not back.startswith(("//", "/\\"))
    return back if is_ours else "/inbox"
