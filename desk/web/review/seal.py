"""The page on a campaign's request to open its sealed (hold-out) days, and the decision on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ....ledger import compute_digest
from ...decisions import decide_seal, find_seal_request, list_seal_facts
from ...errors import DeskError
from ..pages import PageRequest
from .cases import refuse_changed
from .inbox import read_waiting

SEAL_CHOICES = ("agree", "refuse")


@dataclass(frozen=True)
class SealPage:
    """A request to open sealed days.

    Attributes
    ----------
    facts
        What would be opened, with labels.
    accepted
        Id and text of each factor that would be examined.
    decision
        The decision that stands, in a sentence; empty before one.
    open
        Whether the person who asks may still decide, or decide anew.
    digest, shown
        Digests of the request, and of the record that this page shows.
    """

    run: str
    facts: list[tuple[str, str]]
    accepted: list[dict[str, str]]
    decision: str
    open: bool
    digest: str
    shown: str


def load_seal(view: PageRequest) -> SealPage:
    """Return the request of a run."""
    from ....evaluation import find_campaign

    run = find_campaign(view.ledger, view.path["run"])
    seals, request = find_seal_request(view.ledger, run.id)
    decision = seals.decision()
    facts = [fact for fact in list_seal_facts(request) if fact[0] != "accepted"]
    told = decision.sentence if decision else ""
    mine = decision is None or decision.by.casefold() == view.person.casefold()
    shown = compute_digest({"request": asdict(request), "decision": told})
    accepted = [dict(one) for one in request.accepted]
    return SealPage(run.id, facts, accepted, told, run.status == "paused" and mine, request.digest, shown)


def decide(view: PageRequest, form: dict[str, str]) -> str:
    """Record a person's decision on a request, and return the page of what waits next."""
    before = read_waiting(view)
    page = load_seal(view)
    refuse_changed(form, page.shown, page.run)
    choice = form.get("choice", "")
    if choice not in SEAL_CHOICES:
        raise DeskError("No decision was chosen.", field="choice", got=choice, allowed=SEAL_CHOICES, code="decision")
    seals, _ = find_seal_request(view.ledger, page.run)
    decide_seal(seals, (choice == "agree", form.get("reason", "").strip()), (view.person, view.signed_at), page.shown)
    return before.next_after(f"/runs/{page.run}/seal", read_waiting(view))
