"""The form by which a person halts a paper book, holds it to reductions, or resumes it with a second person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ...errors import DeskError
from ...users import PersonScope, Users
from ..access import LoginLimit
from ..pages import PageRequest

if TYPE_CHECKING:
    from ....risk import Mode

_TRIES: Final = LoginLimit()
"""Whoever is at the desk could guess the password of another person here, as at the login."""


def order(view: PageRequest, form: dict[str, str]) -> str:
    """Record what may pass from the next step on, and return the book's page."""
    from ....campaign import find_book, order_mode
    from ....risk import MODES

    book = find_book(view.ledger, view.path["book"])[0].removeprefix("book-")
    mode = form.get("mode", "")
    if mode not in MODES:
        raise DeskError("No order was chosen.", field="mode", got=mode[:64], allowed=list(MODES), code="book_order")
    second = " ".join(form.get("second", "").split())
    if second:
        _admit_second(view, second, form.get("second_password", ""))
    signed = (form.get("reason", ""), view.person, second)
    order_mode(view.ledger, book, cast("Mode", mode), signed, view.now)
    return f"/books/{book}"


def _admit_second(view: PageRequest, name: str, password: str) -> None:
    """Refuse a second person who gives no right password or lacks the scope, where the workspace has users."""
    users = Users(view.ledger.workspace)
    if not users.all():
        return
    if _TRIES.take(name):
        raise DeskError(
            "Too many tries of a password.", field="second", got=name[:64], hint="Wait a minute, then try again."
        )
    user = users.admit(name, password)
    if user is None:
        raise DeskError(
            "Name or password of the second person is wrong.", field="second", got=name[:64],
            hint="Nothing was recorded.", code="not_admitted",
        )  # fmt: skip  # a table
    user.as_signer().check(PersonScope.RISK_APPROVE)
