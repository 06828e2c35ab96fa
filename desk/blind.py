"""First judgements of people who have not seen the gate's verdict, and how well they were calibrated.

With `judge_blind: true` in the workspace's policy a case shows hypothesis, formula and curves of search days alone
until the person has said what they think of it. Such a judgement is an event of its own. No agent can read it, since
all kinds of their journal begin with "agents.", and nothing is decided from it. It is a discipline and no wall: whoever
owns the workspace can read its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Literal, get_args

from .errors import DeskError

if TYPE_CHECKING:
    from ..evaluation import Reviews
    from ..evaluation.closing import SealedExam
    from ..ledger import Ledger

BLIND_EVENT = "blind-judgement"
"""Kind of the event; its key is CASE/PERSON, and the first one stands."""
FirstJudgement = Literal["approve", "reject", "unsure"]
FIRST_JUDGEMENTS: tuple[FirstJudgement, ...] = get_args(FirstJudgement)
PROBABILITY_BINS = (0, 20, 40, 60, 80, 101)
"""Limits of the stated probabilities that are counted together, in percent."""


@dataclass(frozen=True)
class BlindJudgement:
    """What a person thought of a case before they saw the verdict.

    Attributes
    ----------
    probability
        That the factor holds on the sealed (hold-out) days, in percent.
    shown
        Digest of the page that they saw; empty on the command line.
    counts
        False where the case had been decided before, and the decision was taken back: while it stood, anybody could
        read the verdict, so the judgement may not be blind.
    """

    case: str
    judgement: FirstJudgement
    probability: int
    by: str
    at: str
    shown: str = ""
    counts: bool = True


def must_judge(reviews: Reviews, case: str, person: str) -> bool:
    """Return whether a person has to judge a case blind before anything else of it is shown to them.

    After the end of the run nobody has to: its report shows what was found, so that no judgement would be blind.
    """
    from ..risk import read_policy

    if not read_policy(reviews.ledger.workspace).judge_blind or reviews.decision(case) is not None:
        return False
    if any(vote.by.casefold() == person.casefold() for vote in reviews.votes(case)):
        return False
    ledger = reviews.ledger
    judged = ledger.events.get(reviews.run, BLIND_EVENT, _key(case, person)) is not None
    return not judged and ledger.runs.find(reviews.run).status != "done"


def refuse_unjudged(reviews: Reviews, case: str, person: str) -> None:
    """Refuse a decision of a person who has yet to judge blind."""
    if must_judge(reviews, case, person):
        raise DeskError(
            "Judge it first: this workspace asks for a first judgement before the verdict is shown.",
            field="case",
            got=case,
            allowed=FIRST_JUDGEMENTS,
            hint=f"alphaloom review {reviews.run} {case} --judge approve --probability 70",
            code="judge_first",
            exit_code=1,
        )


def parse_judgement(judgement: str, probability: str | int) -> tuple[FirstJudgement, int]:
    """Return a judgement and a whole probability in percent; refuse anything else."""
    text = str(probability).strip()
    if judgement not in FIRST_JUDGEMENTS:
        raise DeskError(
            "No judgement was chosen.", field="judge", got=judgement, allowed=FIRST_JUDGEMENTS, code="judge"
        )
    if not (text.isascii() and text.isdigit() and len(text) <= len("100") and int(text) <= 100):
        raise DeskError(
            "A judgement needs a probability.", field="probability", got=text[:20], allowed="0 to 100, whole percent",
            hint="How likely is it that the factor holds on the sealed (hold-out) days?", code="judge",
        )  # fmt: skip  # a table
    return judgement, int(text)


def record_judgement(reviews: Reviews, judgement: BlindJudgement) -> None:
    """Record a first judgement; a second one, or one after the verdict was seen, is refused."""
    if not must_judge(reviews, judgement.case, judgement.by):
        raise DeskError(
            "No first judgement of this case is asked for.",
            field="judge",
            got=judgement.case,
            hint="It was judged or decided before, or policy.yaml does not set judge_blind.",
            code="judge",
            exit_code=1,
        )
    counts = not was_decided(reviews, judgement.case)
    body = {key: value for key, value in asdict(replace(judgement, counts=counts)).items() if key != "case"}
    reviews.ledger.events.record(reviews.run, BLIND_EVENT, _key(judgement.case, judgement.by), body)


def was_decided(reviews: Reviews, case: str) -> bool:
    """Return whether a decision ever stood on a case, also one that was taken back."""
    from ..evaluation import find_outcome

    votes = reviews.votes(case)
    return any(find_outcome(votes[: place + 1]) is not None for place in range(len(votes)))


def _key(case: str, person: str) -> str:
    return f"{case}/{person.casefold()}"


@dataclass(frozen=True)
class CalibrationBin:
    """Judgements with a stated probability of `low` to under `high` percent, and the share of factors that held."""

    low: int
    high: int
    count: int
    stated: float | None
    held: float | None


@dataclass(frozen=True)
class Calibration:
    """How one analyst's first judgements turned out.

    Attributes
    ----------
    judged, known
        First judgements that count, and those whose factor was examined on the sealed days.
    brier
        Mean squared difference of stated probability and outcome: 0 is perfect, 0.25 is what 50 % always gets.
    right
        Share of the judgements approve and reject that the sealed days confirmed; unsure is left out.
    """

    person: str
    judged: int
    known: int
    brier: float | None
    right: float | None
    bins: tuple[CalibrationBin, ...]


def read_calibrations(ledger: Ledger) -> list[Calibration]:
    """Return the calibration of everybody who judged in a workspace, by name."""
    found: dict[str, list[tuple[BlindJudgement, bool | None]]] = {}
    for judgement, held in _read_judgements(ledger):
        if judgement.counts:
            found.setdefault(judgement.by.casefold(), []).append((judgement, held))
    return [_calibrate(found[name]) for name in sorted(found)]


def _read_judgements(ledger: Ledger) -> Iterator[tuple[BlindJudgement, bool | None]]:
    """Yield every first judgement, and whether its factor held on the sealed days; None while that is unknown."""
    from ..evaluation import read_sealed_exam

    for run in ledger.runs.all():
        events = ledger.events.of(run.id, BLIND_EVENT)
        exam = read_sealed_exam(ledger, run.id) if events else None
        for event in events:
            case, _, _ = event.key.partition("/")
            yield BlindJudgement(case, **event.body), _find_outcome(exam, case)


def _find_outcome(exam: SealedExam | None, case: str) -> bool | None:
    from .report.cards import is_borne_out

    known = exam is not None and exam.opened and case in exam.factors
    return is_borne_out(exam.factors[case]) if exam is not None and known else None


def _calibrate(rows: Sequence[tuple[BlindJudgement, bool | None]]) -> Calibration:
    known = [(judgement, held) for judgement, held in rows if held is not None]
    firm = [(one.judgement == "approve") == held for one, held in known if one.judgement != "unsure"]
    errors = [(one.probability / 100 - held) ** 2 for one, held in known]
    bins = []
    for low, high in pairwise(PROBABILITY_BINS):
        inside = [(one, held) for one, held in known if low <= one.probability < high]
        stated, held_share = _mean([one.probability / 100 for one, _ in inside]), _mean([held for _, held in inside])
        bins.append(CalibrationBin(low, min(high, 100), len(inside), stated, held_share))
    return Calibration(rows[0][0].by, len(rows), len(known), _mean(errors), _mean(firm), tuple(bins))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
