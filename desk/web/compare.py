"""The page that sets two factors, or two campaigns, side by side; by default it shows only what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...ledger import cut_member
from ..blind import refuse_unjudged
from ..errors import DeskError
from ..figures import DASH, any_value, number, p_value_text
from ..formula_views import TextChange, compare_texts
from ..report.comparison import PairDrawings, draw_pair, list_sheet_rows
from ..report.gate_steps import list_steps
from .campaigns import is_campaign
from .factors import RESULTS_FILE, FactorRecord, find_factor, list_price
from .pages import PageRequest
from .review import is_blind_for

if TYPE_CHECKING:
    from ...evaluation.closing import FactorComparison
    from ...ledger import Ledger, Run

PairRow = tuple[str, str, str]
Topic = tuple[str, Sequence[PairRow]]
MAX_RUNS_OFFERED = 200
PARTING = ":"
"""Between the run and the factor of a side, in the query."""
MAX_VALUE_CHARS = 160
"""Longest text of a value of a campaign's results that is a row; sentences are on its own page."""
RESULT_TOPICS = (
    "data", "windows", "attempts", "evaluations", "hypotheses", "trials", "prior_trials", "diversity", "clusters",
    "overfitting", "power", "combination", "book", "sealed", "spend",
)  # fmt: skip  # a table


@dataclass(frozen=True)
class ComparedSide:
    """One side: a factor of a run, or a whole run where `factor` is empty."""

    run: str
    factor: str
    title: str
    text: str


@dataclass(frozen=True)
class ComparedPage:
    """Two sides with their rows by topic.

    Attributes
    ----------
    asked
        The sides as the query names them.
    problem
        Why nothing is compared, or that both are the same.
    hidden
        Rows that are equal and not shown.
    change
        How the formula of A becomes that of B, word by word; empty for campaigns.
    offered
        Campaigns that the form offers.
    """

    asked: tuple[str, str]
    show_all: bool
    offered: Sequence[str]
    problem: str
    sides: Sequence[ComparedSide] = ()
    topics: Sequence[Topic] = ()
    hidden: int = 0
    change: Sequence[TextChange] = ()
    drawings: PairDrawings | None = None


def load_comparison(view: PageRequest) -> ComparedPage:
    """Return the comparison of the query's `a` and `b`; a form alone while one of them is missing."""
    from ...evaluation import Reviews

    asked = view.query.get("a", "").strip(), view.query.get("b", "").strip()
    show_all = view.query.get("all") == "1"
    offered = [run.id for run in view.ledger.runs.all() if is_campaign(run)][::-1][:MAX_RUNS_OFFERED]
    if not all(asked):
        return ComparedPage(asked, show_all, offered, "Name two factors, or two campaigns.")
    (run_a, _, factor_a), (run_b, _, factor_b) = (one.partition(PARTING) for one in asked)
    if bool(factor_a) != bool(factor_b):
        raise DeskError(
            "A factor cannot be compared with a campaign.",
            field="b",
            got=asked[1][:128],
            allowed=f"two factors, RUN{PARTING}FACTOR, or two campaigns, RUN",
            code="comparison",
        )
    if not factor_a:
        runs = _find_run(view.ledger, run_a), _find_run(view.ledger, run_b)
        sides = [ComparedSide(run.id, "", run.id, "") for run in runs]
        return _hide_equal(ComparedPage(asked, show_all, offered, "", sides, _compare_runs(view.ledger, *runs)))
    records = find_factor(view.ledger, run_a, factor_a), find_factor(view.ledger, run_b, factor_b)
    for record in records:
        reviews = Reviews.of(view.ledger, record.run)
        if is_blind_for(view, reviews, record.score.factor_id):
            refuse_unjudged(reviews, record.score.factor_id, view.person)
    pair = _pair_sheets(*records)
    change = compare_texts(pair.a.text, pair.b.text) if pair.a.text != pair.b.text else []
    sides, topics = [_describe_side(record) for record in records], _compare_records(records, pair)
    return _hide_equal(ComparedPage(asked, show_all, offered, "", sides, topics, 0, change, draw_pair(pair)))


def _hide_equal(page: ComparedPage) -> ComparedPage:
    """Return the page without rows that are equal on both sides, unless all are asked for."""
    topics = [(title, [row for row in rows if page.show_all or row[1] != row[2]]) for title, rows in page.topics]
    hidden = sum(len(rows) for _, rows in page.topics) - sum(len(rows) for _, rows in topics)
    same = "Both are the same." if page.sides[0] == page.sides[1] else ""
    return replace(page, topics=[(title, rows) for title, rows in topics if rows], hidden=hidden, problem=same)


def _join_rows(first: Mapping[str, str], second: Mapping[str, str]) -> list[PairRow]:
    """Return label, text of A and text of B, in the order of A."""
    return [(label, first.get(label, DASH), second.get(label, DASH)) for label in {**first, **second}]


# Two factors.


def _describe_side(record: FactorRecord) -> ComparedSide:
    stated = record.entry.hypothesis
    title = stated.title if stated and stated.title else "No hypothesis stated"
    return ComparedSide(record.run.id, record.entry.id, title, record.score.text)


def _pair_sheets(one: FactorRecord, other: FactorRecord) -> FactorComparison:
    """Return both sheets of search days as on record; what each adds to the other is not."""
    from ...evaluation.closing import FactorComparison

    return FactorComparison.read({"a": _gather_sheet(one), "b": _gather_sheet(other)})


def _gather_sheet(record: FactorRecord) -> dict[str, Any]:
    entry = record.entry
    profile = entry.profile.record() if entry.profile else {}
    daily = record.curve.search.record() if record.curve else {}
    added = entry.incremental.record() if entry.incremental else None
    words = {"id": entry.id, "text": record.score.text, "daily": daily, "incremental": added}
    return {**record.score.sheet, **profile, **words}


def _compare_records(records: tuple[FactorRecord, FactorRecord], pair: FactorComparison) -> list[Topic]:
    def join(rows: Callable[[FactorRecord], Iterable[tuple[str, str]]]) -> list[PairRow]:
        return _join_rows(*(dict(rows(record)) for record in records))

    return [
        ("Why", join(_list_reasons)),
        ("Search days", list_sheet_rows(pair)),
        ("The gate", join(_list_verdict)),
        ("Selection days", join(_list_selection)),
        ("Significance", join(list_price)),
    ]


def _list_reasons(record: FactorRecord) -> Iterator[tuple[str, str]]:
    yield "campaign", record.run.id
    if stated := record.entry.hypothesis:
        yield "hypothesis", stated.title
        yield "mechanism", stated.mechanism.replace("_", " ")
        yield "horizon claimed", f"{any_value(stated.horizon_days)} days"
    yield "weak points", "; ".join(weak.text for weak in record.entry.metrics.search.weaknesses) or "none"


def _list_verdict(record: FactorRecord) -> Iterator[tuple[str, str]]:
    yield "stands", record.standing
    for step in list_steps(record.entry):
        yield step.step, f"{step.mark}: {step.message}"


def _list_selection(record: FactorRecord) -> Iterator[tuple[str, str]]:
    selection = record.entry.metrics.selection
    if selection is None or record.entry.trial is None:
        return
    yield "RankIC", number(selection.rank_ic, 4, sign=True)
    yield "t, Newey-West", number(selection.t, 2, sign=True)
    yield "p, one-sided", p_value_text(selection.p_value)
    yield "Sharpe after costs", number(selection.net_sharpe, 2, sign=True)
    if record.sealed:
        yield "RankIC, sealed (hold-out)", number(record.sealed.rank_ic, 4, sign=True)


# Two campaigns.


def _find_run(ledger: Ledger, name: str) -> Run:
    from ...evaluation import find_campaign

    return find_campaign(ledger, name)


def _compare_runs(ledger: Ledger, one: Run, other: Run) -> list[Topic]:
    runs = one, other
    settings = [dict(_flatten(run.config["settings"])) for run in runs]
    bodies = [ledger.artefacts.read(run.id, RESULTS_FILE) for run in runs]
    verdicts = [_count_verdicts(ledger, run) for run in runs]
    figures = [_summarise_results(body) for body in bodies if body]
    standings = [{"status": run.status, "begun": run.started_at[:16], "data set": run.dataset} for run in runs]
    return [
        ("The campaigns", _join_rows(*standings)),
        ("Verdicts", _join_rows(*verdicts)),
        ("Settings", _join_rows(*settings)),
        ("Results", _join_rows(*figures) if len(figures) == len(runs) else []),
    ]


def _count_verdicts(ledger: Ledger, run: Run) -> dict[str, str]:
    from ...evaluation import Reviews

    reviews = Reviews.of(ledger, run)
    words = Counter(reviews.word(row) for row in ledger.verdicts.of(run.id))
    return {word: any_value(amount) for word, amount in sorted(words.items())}


def _summarise_results(body: bytes) -> dict[str, str]:
    figures = dict(_flatten({name: cut_member(body, name) for name in RESULT_TOPICS}))
    return {name: value for name, value in figures.items() if len(value) <= MAX_VALUE_CHARS}


def _flatten(record: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value of nested objects under its path, as text."""
    for name, value in record.items():
        words = f"{start}{name}".replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{words}, ")
        else:
            yield words, any_value(value) or DASH
