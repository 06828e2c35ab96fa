"""What a person decides on a factor of the library: that it stays, or that it is retired."""

from __future__ import annotations

from ...errors import DeskError
from ...facts.library import describe_fully
from ...revalidation import digest_entry, revalidate
from ..pages import PageRequest
from ..review import read_waiting, refuse_changed
from .entry import read_condition

LIBRARY_CHOICES = ("revalidate", "retire")


def decide(view: PageRequest, form: dict[str, str]) -> str:
    """Record that a factor stays, or retire it, with a reason; return the page of what waits next."""
    from ....evaluation import retire_factor

    before = read_waiting(view)
    choice, reason = form.get("choice", ""), " ".join(form.get("reason", "").split())
    if choice not in LIBRARY_CHOICES:
        raise DeskError("No decision was chosen.", field="choice", got=choice, allowed=LIBRARY_CHOICES, code="decision")
    if not reason:
        raise DeskError("A decision needs a reason.", field="reason", got="", hint="It is kept with the factor.")
    condition = read_condition(view)
    name, facts = condition.entry.factor_id, describe_fully(view.ledger, condition)
    refuse_changed(form, digest_entry(facts), name)
    if choice == "revalidate":
        revalidate(view.ledger, condition.entry, facts, (reason, view.person), view.now)
    else:
        retire_factor(view.ledger, name, f"{reason} ({view.person})", view.now.date().isoformat(), "")
    return before.next_after(f"/library/{name}", read_waiting(view))
