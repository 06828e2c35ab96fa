"""An evaluation service outside a campaign, and one factor scored with it by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

from ...campaign import WORKSPACE, Settings
from ...evaluation import Evaluator, PanelContext, stress_on_search
from ...evidence import Claim, Proposal
from ...evidence.originality import measure_beside, rank_correlation
from ...evidence.scoring import round_significant
from ...evidence.values import LazySandbox
from ...factors import Expression, parse
from ...factors.similarity import KnownFormula, compare_formulas
from ...ledger import Ledger, Run, compute_digest, read_settings
from ...library import find_entry
from ...market import Panel
from ...search import SearchConstraints
from ..errors import DeskError
from .console import tell_long_work
from .options import DataOptions

LIBRARY_ID = re.compile("f[0-9a-f]{2,16}")
"""An id of the library, or its start; a column of the panel with such a name is a formula."""
NO_HYPOTHESIS_NOTE = "submitted by hand, with no hypothesis but its own direction on the search window"


@contextmanager
def open_evaluator(purpose: str, place: DataOptions, *, recorded: bool) -> Iterator[Evaluator]:
    """Open an evaluation service with a campaign file's rules, or with the default ones on the synthetic market.

    Only with `recorded` does it become a run of the workspace; a plain score fixes no windows and writes no run.
    """
    settings = settings_at(place)
    with tell_long_work("reading the market"):
        panel, dataset = settings.market.open(settings.seed)
    clock = datetime.now(UTC)
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open(place.workspace or WORKSPACE, clock=lambda: datetime.now(UTC)))
        runner = stack.enter_context(LazySandbox(settings.sandbox)).ready()
        context = PanelContext.set_up(panel, ledger, settings.evidence, dataset, store=recorded, runner=runner)
        context = context.on_cluster(runner)
        name = f"{clock:%Y%m%d-%H%M%S}-{purpose}-{compute_digest(clock.isoformat())[:4]}"
        limits = SearchConstraints(settings.steer.fields, settings.steer.avoid)
        evaluator = context.evaluator(name, settings.budget, mandate=limits)
        if not recorded:
            yield evaluator
            return
        rules = settings.model_dump(mode="json")  # a campaign records the same under "settings"
        config = {"panel": panel.digest, "last_day": str(panel.dates[-1]), "sectors": "sector" in panel.groups}
        config |= {"rules": rules}
        ledger.runs.start(Run(name, config, settings.seed, dataset, clock.isoformat()))
        with ledger.runs.lock(name):
            yield evaluator
        ledger.runs.finish(name, "done")


def settings_at(place: DataOptions) -> Settings:
    """Return the file's settings, or the default ones, with the data that the person names instead of the file's."""
    settings = read_settings(place.campaign, Settings) if place.campaign else Settings()
    market = settings.market.beside(place.campaign.parent) if place.campaign else settings.market
    sandbox = settings.sandbox.given(place.executor, place.backend)
    market = market.given(place.panel, place.sectors, place.as_of).model_copy(update=dict(place.tables))
    if place.tables and market.panel is None:
        raise DeskError(
            "These options say how a file of prices is read, and there is none.",
            field="--panel",
            got=f"none, with {', '.join(place.tables)}",
            hint="Add --panel FILE, or --campaign FILE whose market names one.",
            code="no_data",
        )
    chosen = settings.on(market)
    return chosen.model_copy(update={"sandbox": sandbox})


def data_of(place: DataOptions, evaluator: Evaluator) -> dict[str, Any]:
    """Return the facts of an evaluator's prices: those of a file, or the synthetic market."""
    return describe_data(settings_at(place), evaluator.panel)


def describe_data(settings: Settings, panel: Panel) -> dict[str, Any]:
    """Return the facts of prices that settings name: those of a file, or the synthetic market."""
    file = settings.market.panel
    return {
        "synthetic": file is None,
        "seed": settings.seed if file is None else None,
        "file": None if file is None else str(file),
        "days": panel.days,
        "symbols": len(panel.symbols),
        "first_day": str(panel.dates[0]),
        "last_day": str(panel.dates[-1]),
    }


def score_factor(
    text: str, place: DataOptions, *, gate: bool, dialect: str = "alphaloom", stress: bool = False
) -> dict[str, Any]:
    """Return a factor's sheet on the search window with its costs; with `gate`, spend a trial on a verdict.

    With `stress` the sheet includes the factor's stress tests on the search window.

    Raises
    ------
    SettingsError
        Every mistake in the campaign file at once.
    ParseError
        The mistakes in the formula with their places.
    DeskError
        A step before scoring refused it, so that no trial was spent.
    """
    if gate and dialect != "alphaloom":
        raise DeskError(
            "The gate reads the language of Alphaloom alone.",
            field="--dialect",
            got=dialect,
            hint="Put what `alphaloom factor translate` prints before it, or leave --gate away.",
            code="gate_refused",
            exit_code=1,
        )
    if place.panel is None and place.campaign is None:
        parse(text, dialect=dialect)  # the synthetic market has the standard fields: report a typo without making it
    with open_evaluator("score", place, recorded=gate) as evaluator:
        sheet = evaluator.score(text, dialect)
        facts = {**sheet, "data": data_of(place, evaluator), "costs": evaluator.settings.costs.model_dump(mode="json")}
        if stress:
            facts["stress"] = _stress_factor(evaluator, text, dialect)
        return {**facts, "gate": _submit_to_gate(evaluator, text, sheet)} if gate else facts


def compare_factors(words: tuple[str, str], place: DataOptions, *, dialect: str = "alphaloom") -> dict[str, Any]:
    """Return the sheets of two factors on one panel, `a` and `b`, and what each adds to the other.

    Parameters
    ----------
    words
        Formulas, code of Python factors, or ids of the workspace's library and watchlist; the start of an id will do.

    Returns
    -------
    dict
        The JSON of `FactorComparison`, with `data` and `costs`. Undefined figures are None.

    Raises
    ------
    AlphaloomError
        As `score_factor`; or no factor has an id, or several do.
    """
    if place.panel is None and place.campaign is None:
        for word in words:
            if not LIBRARY_ID.fullmatch(word):
                parse(word, dialect=dialect)  # before the synthetic market is made, as for a score
    with open_evaluator("compare", place, recorded=False) as evaluator:
        expressions = [_read_factor(evaluator, word, dialect) for word in words]
        sheets = [
            evaluator.score(expression.text, expression_dialect) for expression, expression_dialect in expressions
        ]
        values = [evaluator.values(expression) for expression, _ in expressions]
        search, scorer = evaluator.windows.search, evaluator.scorer
        for sheet, own, other in zip(sheets, values, reversed(values), strict=True):
            beside = measure_beside(own, other, scorer, search).record()
            sheet["beside"] = {name: beside[name] for name in ("rank_ic", "t", "kept")}
        likeness = compare_formulas(expressions[0][0], KnownFormula.of("b", expressions[1][0], ""))
        return {
            "data": data_of(place, evaluator),
            "costs": evaluator.settings.costs.model_dump(mode="json"),
            "a": sheets[0],
            "b": sheets[1],
            "rank_correlation": round_significant(rank_correlation(values[0], values[1], search)),
            "shared": {"ratio": round_significant(likeness.ratio), "part": likeness.shared, "exact": likeness.exact},
        }


def _read_factor(evaluator: Evaluator, word: str, dialect: str) -> tuple[Expression, str]:
    """Return a factor of the library by its id, else the formula; with the language of its text."""
    if LIBRARY_ID.fullmatch(word) and word not in evaluator.panel.fields:
        return find_entry(evaluator.ledger, word).expression, "alphaloom"
    return evaluator.read(word, dialect), dialect


def _stress_factor(evaluator: Evaluator, text: str, dialect: str) -> dict[str, Any]:
    """Return one factor's record under stress, with the rule and the days."""
    table = stress_on_search(evaluator, [evaluator.read(text, dialect)])
    (record,) = table.pop("factors").values()
    return {**table, **record}


def _submit_to_gate(evaluator: Evaluator, text: str, sheet: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict with its numbers: a person who spends a trial by hand may see its result."""
    direction = -1 if (sheet["rank_ic"] or 0.0) < 0 else 1
    horizon = evaluator.settings.horizon_days
    fields = tuple(sorted(evaluator.read(text).fields))
    claim = Claim(f"by-hand-{sheet['id']}", "by hand", NO_HYPOTHESIS_NOTE, direction, horizon, fields)
    answer = evaluator.propose(Proposal(text, claim, "by-hand"))
    if not answer["ok"]:
        message = "; ".join(error["message"] for error in answer["errors"])
        raise DeskError(
            f"The gate refused it at {answer['stage']}: {message}",
            field="EXPR",
            got=text,
            hint="No trial was spent. Change the formula so that it passes this step, then send it again.",
            code="gate_refused",
            exit_code=1,
        )
    verdict = evaluator.submissions.submit([answer["id"]])[0]
    reasons = [reason.record() for reason in verdict.reasons]
    return {"verdict": verdict.word, "trial": verdict.trial, "reasons": reasons, "selection": verdict.selection}
