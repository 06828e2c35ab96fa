"""Is the gate honest, and is it alive? Null markets, a known factor, planted markets; one table each.

python -m benchmarks.control null --seeds 20      nothing is there: nothing may be accepted
python -m benchmarks.control known --seeds 20     a strong factor sent straight to the gate must be accepted
python -m benchmarks.control planted --seeds 5    faint alphas that the agents must find and prove

Seeds are 0, 1, 2 ...; none is chosen. Each line is printed as soon as it is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from alphaloom.campaign import Campaign, Settings
from alphaloom.evidence import Bench, Budget, Claim, Evaluator, EvidenceSettings, Proposal
from alphaloom.factors import Engine, parse, sample
from alphaloom.ledger import Ledger, Run, read_settings
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate

KNOWN = "rank(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)) - rank(ts_mad(close / open, 23))"
"""A factor that is in no published list: what is planted for the gate to recognise."""
KNOWN_RANK_IC = 0.065


def clock() -> datetime:
    """Return one moment for every run: nothing that is measured depends on it."""
    return datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Size:
    """Days and names of a market."""

    days: int
    names: int


NULL_SETTINGS = ("agents.min_search_t=0", "agents.early_search_t=0", "agents.trials_per_round=5", "agents.rounds=20")


def null_campaign(seed: int, size: Size, budget: Budget, workspace: Path) -> tuple[int, int, int]:
    """Run a whole campaign on a market with nothing in it and return evaluations, trials and acceptances.

    The agents send whatever they have (no bar on search t). If steps before statistics refused some, the best of the
    rest are sent after the campaign's close until every trial of the budget is spent.
    """
    overrides = (
        *NULL_SETTINGS, f"seed={seed}", "market.synthetic.null=true", "market.plants.count=0",
        f"market.synthetic.days={size.days}", f"market.synthetic.names={size.names}",
        f"budget.evaluations={budget.evaluations}", f"budget.trials={budget.trials}",
    )  # fmt: skip
    campaign = Campaign(read_settings(None, Settings, overrides), workspace, clock=clock)
    result = campaign.run()
    accepted = len(result.record["accepted"])
    if result.record["trials"] >= budget.trials:
        return result.record["evaluations"], result.record["trials"], accepted
    panel, dataset = campaign.settings.market.open(seed)
    with Ledger.open(workspace, clock=clock) as ledger:
        evaluator = Bench.set_up(panel, ledger, campaign.settings.evidence, dataset).evaluator(result.run, budget)
        accepted += top_up(evaluator)
        return len(evaluator.rows), evaluator.trials_spent(), accepted


def top_up(evaluator: Evaluator) -> int:
    """Send scored factors to the gate until no trial is left; return how many were accepted."""
    judged = {row.factor_id for row in evaluator.ledger.verdicts(evaluator.run)}
    ranked = sorted(evaluator.rows.values(), key=lambda row: (-(row.sheet["merit"] or 0.0), row.factor_id))
    accepted = 0
    for row in ranked:
        if evaluator.trials_left() <= 0:
            break
        if row.factor_id in evaluator.claims() and row.factor_id not in judged:
            accepted += evaluator.submit([row.factor_id])[0].word == "accepted"
    return accepted


def known_factor(seed: int, size: Size, workspace: Path) -> tuple[float, float, str]:
    """Plant the known factor, send it as the tenth trial, and return selection t, RankIC and verdict."""
    config = SyntheticConfig(seed=seed, days=size.days, names=size.names)

    def signal(panel: Panel) -> np.ndarray:
        return Engine(panel).evaluate([KNOWN])[0]

    market = simulate(config, [Plant(KNOWN, signal, KNOWN_RANK_IC)])
    with Ledger.open(workspace, clock=clock) as ledger:
        bench = Bench.set_up(market.panel, ledger, EvidenceSettings(), f"known-{seed}")
        ledger.start_run(Run("known", {}, seed, f"known-{seed}", clock().isoformat()))
        evaluator = bench.evaluator("known", Budget(evaluations=200, trials=10))
        spend_nine(evaluator, seed)
        answer = evaluator.propose(Proposal(KNOWN, claim_of(KNOWN), "known"))
        verdict = evaluator.submit([answer["id"]])[0]
        sheet = verdict.selection or {}
        return sheet.get("t", math.nan), sheet.get("rank_ic", math.nan), verdict.word


def claim_of(text: str, direction: int = 1) -> Claim:
    """Return a hypothesis that a formula's own fields and direction keep."""
    return Claim(
        f"about {text}"[:100], "control", "a formula of the control", direction, 5, tuple(sorted(parse(text).fields))
    )


def spend_nine(evaluator: Evaluator, seed: int) -> None:
    """Spend nine trials on formulas drawn from the grammar, whatever they are worth."""
    rng = np.random.default_rng(seed)
    for number in range(500):
        if evaluator.trials_spent() >= 9:
            return
        text = sample(rng, fields=tuple(evaluator.panel.fields), max_size=8).canonical_text
        answer = evaluator.propose(Proposal(text, claim_of(text), f"junk-{number:03d}"))
        if answer["ok"] and (answer["sheet"]["rank_ic"] or 0.0) > 0:
            evaluator.submit([answer["id"]])
    raise SystemExit("nine trials could not be spent on 500 random formulas")
