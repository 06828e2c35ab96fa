"""The pages of a case before its verdict is shown, and of how such first judgements turned out."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ....ledger import compute_digest
from ...blind import (
    BlindJudgement,
    Calibration,
    parse_judgement,
    read_calibrations,
    record_judgement,
    was_decided,
)
from ...report.case_page import BlindPage, load_blind_page
from ...users import PersonScope
from ..pages import PageRequest
from .cases import find_reviewed, refuse_changed


@dataclass(frozen=True)
class BlindCase:
    """A case without anything that the gate found, the digest of this page, and whether a judgement will count."""

    blind: BlindPage
    shown: str
    counts: bool


def load_blind(view: PageRequest) -> BlindCase:
    """Return a case as it is shown before the first judgement."""
    reviews, name = find_reviewed(view)
    page = load_blind_page(reviews, name)
    return BlindCase(page, compute_digest(asdict(page)), not was_decided(reviews, name))


def judge(view: PageRequest, form: dict[str, str]) -> str:
    """Record a first judgement, and return the page with the verdict."""
    (reviews, name), now = find_reviewed(view), load_blind(view)
    refuse_changed(form, now.shown, name)
    choice = parse_judgement(form.get("judge", ""), form.get("probability", ""))
    record_judgement(reviews, BlindJudgement(name, *choice, view.person, view.signed_at, now.shown))
    return f"/runs/{reviews.run}/cases/{name}"


@dataclass(frozen=True)
class CalibrationPage:
    """One's own calibration; everybody's for who supervises."""

    people: list[Calibration]


def load_calibration(view: PageRequest) -> CalibrationPage:
    """Return the calibrations that a person may see."""
    sees_all = view.signer.may(PersonScope.SUPERVISE)
    people = read_calibrations(view.ledger)
    return CalibrationPage([one for one in people if sees_all or one.person.casefold() == view.person.casefold()])
