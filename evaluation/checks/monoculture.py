"""How alike a run's agents, models and factors are, each figure beside its null and its noise floor.

A share of agreement or an effective number says nothing alone: some hypotheses agree by chance, and unrelated series of
few days correlate. So each figure stands beside what chance gives with the same counts, and with the value that chance
undercuts in 5 %. Replies and series are kept whole: hypotheses of one reply, and days that follow each other, are no
fresh draws.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...evidence import RunArchive, read_trial_evidence
from ...evidence.scoring import round_significant
from ...ledger import Ledger, Run
from ...search import HYPOTHESIS_EVENT, ROUND_PATTERN, effective_number

Frame = NDArray[np.float64]
DRAWS: Final = 999
BAND: Final = 0.95
MIN_SHARED_DAYS: Final = 60
FEW_MECHANISMS_EVENT: Final = "agents.few_mechanisms"
AUTHOR_ROLES: Final = ("idea", "factor")
JUDGE_ROLE: Final = "eval"


@dataclass(frozen=True)
class ChanceComparison:
    """One figure beside its null.

    Attributes
    ----------
    figure
        What is measured.
    observed
        Its value.
    null
        The mean that chance gives with the same counts.
    limit
        The value below which 5 % of chance lies: the noise floor.
    alike
        Of an effective number: it is below the limit. Of the agreement of authors: it is not.
    count
        How many hypotheses, or series, were compared.
    """

    figure: str
    observed: float
    null: float
    limit: float
    alike: bool
    count: int

    def record(self) -> dict[str, Any]:
        """Return it as JSON, with numbers that any machine rounds alike."""
        return {
            name: round_significant(value) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def measure_mechanisms(names: Sequence[str], known: int) -> ChanceComparison | None:
    """Return the effective number of mechanisms beside draws from as many mechanisms, all equally likely.

    Parameters
    ----------
    names
        The mechanism of each hypothesis.
    known
        How many mechanisms are known, at least the different ones among `names`; with fewer than two there is no null.
    """
    return compare_mechanisms(effective_number(names), len(names), known)


def compare_mechanisms(observed: float, count: int, known: int) -> ChanceComparison | None:
    """Return the effective number of mechanisms of some hypotheses beside its null; see `measure_mechanisms`."""
    if count < 2 or known < 2:
        return None
    random = np.random.default_rng([count, known])
    drawn = [effective_number(map(str, row)) for row in random.integers(0, known, (DRAWS, count))]
    return _compare("effective mechanisms", observed, np.array(drawn), count)


def measure_authors(rows: Sequence[tuple[str, str, str]]) -> ChanceComparison | None:
    """Return how often hypotheses of different authors name one mechanism, beside a permutation of the authors.

    Parameters
    ----------
    rows
        Round, author and mechanism of each hypothesis. What an author wrote in a round is kept whole. Authors that
        differ agree less often than permuted ones do, so the limit is the value below which 5 % of permutations lie,
        and authors are alike where they are not below it.

    Returns
    -------
    ChanceComparison or None
        None with one author, or with too few replies for a permutation to be rare.
    """
    blocks: dict[tuple[str, str], list[str]] = {}
    for number, author, mechanism in rows:
        blocks.setdefault((number, author), []).append(mechanism)
    authors = [author for _, author in blocks]
    groups = math.factorial(len(authors)) // math.prod(math.factorial(one) for one in Counter(authors).values())
    if len({*authors}) < 2 or groups < 2.0 / (1.0 - BAND):  # two: authors may change places
        return None
    counts = [Counter(names) for names in blocks.values()]
    same, pairs = (np.zeros((len(counts), len(counts))) for _ in range(2))
    for one, other in combinations(range(len(counts)), 2):
        same[one, other] = sum(counts[one][name] * counts[other][name] for name in counts[one])
        pairs[one, other] = counts[one].total() * counts[other].total()

    def agree(labels: NDArray[np.str_]) -> float:
        apart = labels[:, None] != labels
        return float(same[apart].sum() / max(pairs[apart].sum(), 1.0))

    random, labels = np.random.default_rng(len(rows)), np.array(authors)
    drawn = np.array([agree(random.permutation(labels)) for _ in range(DRAWS)])
    limit = float(np.quantile(drawn, 1.0 - BAND))
    observed = agree(labels)
    return ChanceComparison(
        "agreement of authors", observed, float(drawn.mean()), limit, observed > limit - 1e-12, len(rows)
    )


def measure_series(series: Frame) -> tuple[ChanceComparison, ...]:
    """Return two effective numbers of series ``[n, D]`` beside those of the same series, each rotated in time.

    A rotation keeps how a series follows itself, as overlapping labels do, and no series meets another at its own time.
    Days on which one is NaN are left out; empty with fewer than two series or 60 days.

    References
    ----------
    Roy and Vetterli (2007), "The effective rank": the exponential of the entropy of the eigenvalues. The participation
    ratio is the squared sum of the eigenvalues over the sum of their squares.
    """
    known = series[:, np.isfinite(series).all(axis=0)]
    known = known[known.std(axis=1) > 0] if known.shape[1] >= MIN_SHARED_DAYS else known[:0]
    if len(known) < 2:
        return ()
    days = known.shape[1]
    scaled = (known - known.mean(axis=1, keepdims=True)) / known.std(axis=1, keepdims=True)
    offsets = np.random.default_rng(known.shape).integers(0, days, (DRAWS, len(known)))
    drawn = []
    for row in offsets:
        rotated = np.take_along_axis(scaled, (np.arange(days) + row[:, None]) % days, axis=1)
        drawn.append(_count_directions(rotated @ rotated.T / days))
    names = "effective rank", "participation ratio"
    pairs = zip(names, count_directions(known), np.array(drawn).T, strict=True)
    return tuple(_compare(name, found, null, len(known)) for name, found, null in pairs)


def count_directions(series: Frame) -> tuple[float, float]:
    """Return effective rank and participation ratio of the correlations of series ``[n, D]``."""
    return _count_directions(np.asarray(np.corrcoef(series)))


def _count_directions(correlations: Frame) -> tuple[float, float]:
    values = np.maximum(np.linalg.eigvalsh(correlations), 0.0)
    shares = values[values > 0] / values.sum()
    return math.exp(-float((shares * np.log(shares)).sum())), float(values.sum() ** 2 / (values**2).sum())


def _compare(figure: str, observed: float, drawn: Frame, count: int) -> ChanceComparison:
    """Return an effective number beside its null: fewer than chance gives is alike."""
    limit = float(np.quantile(drawn, 1.0 - BAND))
    return ChanceComparison(figure, observed, float(drawn.mean()), limit, observed < limit - 1e-12, count)


@dataclass(frozen=True)
class Monoculture:
    """How alike what a run was made by and what it found are.

    Attributes
    ----------
    mechanisms, authors, factors
        Figures on hypotheses, on who wrote them, and on the daily RankIC of tested factors; None or empty where there
        is too little.
    models
        Share of the model calls that each model answered.
    concentration
        Sum of the squared shares (Herfindahl-Hirschman), 1 for one model; None without calls.
    judged_by_author
        Models that wrote hypotheses or formulas and also judged them.
    few_rounds
        Rounds with fewer than three effective mechanisms: each made the next one take mechanisms that were not used.
    """

    mechanisms: ChanceComparison | None
    authors: ChanceComparison | None
    factors: tuple[ChanceComparison, ...]
    models: Mapping[str, float]
    concentration: float | None
    judged_by_author: tuple[str, ...]
    few_rounds: tuple[int, ...]

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        single = {name: getattr(self, name) for name in ("mechanisms", "authors")}
        return {
            **{name: one.record() if one else None for name, one in single.items()},
            "factors": [one.record() for one in self.factors],
            "models": {name: round_significant(share) for name, share in self.models.items()},
            "concentration": None if self.concentration is None else round_significant(self.concentration),
            "judged_by_author": list(self.judged_by_author),
            "few_rounds": list(self.few_rounds),
        }


def read_monoculture(ledger: Ledger, run: Run) -> Monoculture:
    """Compute it from the record of a run alone."""
    calls = ledger.calls.of(run.id)
    answered = Counter(call.model for call in calls)
    shares = {name: answered[name] / len(calls) for name in sorted(answered)}
    rows = _list_hypotheses(ledger, run)
    names = [mechanism for _, _, mechanism in rows if mechanism]
    roles = {role: {call.model for call in calls if call.role == role} for role in (*AUTHOR_ROLES, JUDGE_ROLE)}
    authors = set().union(*(roles[role] for role in AUTHOR_ROLES))
    few = (re.fullmatch(r"r(\d+)", event.key) for event in ledger.events.of(run.id, FEW_MECHANISMS_EVENT))
    return Monoculture(
        measure_mechanisms(names, len({*names})),
        measure_authors([row for row in rows if row[2]]),
        measure_series(_read_series(ledger, run)),
        shares,
        math.fsum(share**2 for share in shares.values()) if shares else None,
        tuple(sorted(authors & roles[JUDGE_ROLE])),
        tuple(sorted(int(match[1]) for match in few if match)),
    )


def _list_hypotheses(ledger: Ledger, run: Run) -> list[tuple[str, str, str]]:
    """Return round, author and mechanism of each hypothesis; a survey has no mechanism.

    The author is the person's part that it came from, else the model whose reply contains its statement.
    """
    asked = [call for call in ledger.calls.of(run.id) if call.intent == "hypotheses"]
    replies = [(call.model, ledger.objects.get(call.reply).decode(errors="replace")) for call in asked]
    rows = []
    for event in ledger.events.of(run.id, HYPOTHESIS_EVENT):
        match, body = ROUND_PATTERN.match(event.key), event.body
        if match is None or int(match[1]) == 0:
            continue
        words = json.dumps(str(body.get("statement", "")), ensure_ascii=False)[1:-1]
        model = next((model for model, reply in replies if words and words in reply), "")
        author = str(body.get("source") or model)
        rows.append((match[1], author, "" if body.get("either_way") else str(body["mechanism"])))
    return rows


def _read_series(ledger: Ledger, run: Run) -> Frame:
    """Return the daily RankIC on selection of what the run tested, ``[n, D]``, of the span that most trials share."""
    archive = RunArchive(ledger, run)
    found = [
        evidence.rank_ic
        for trial in archive.trials
        if trial.run == run.id and (evidence := read_trial_evidence(archive, trial, [])[0]) is not None
    ]
    if not found:
        return np.empty((0, 0))
    (length, _), *_ = Counter(len(one) for one in found).most_common(1)
    return np.array([one for one in found if len(one) == length], dtype=np.float64)
