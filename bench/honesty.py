"""Is the gate honest, and is it alive? One line for each seed, then the count with its exact interval.

python -m bench.honesty null                      20 whole campaigns where nothing is: nothing may be accepted
python -m bench.honesty small                     200 small ones: at most 3 with an acceptance
python -m bench.honesty panel --panel FILE        20 on your own panel, its returns made null: nothing
python -m bench.honesty known                     20 strong factors sent straight to the gate: at least 18 accepted
python -m bench.honesty planted                   20 searches for faint alphas: what was accepted, false and missed
python -m bench.honesty all [--panel FILE]        every one of them, one after the other

Seeds are 0, 1, 2 ...; none is chosen. What is known is kept, so the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.campaign import Campaign, Settings
from alphaloom.desk.cli.evidence.control import CONTROL_HEADER, describe_tally, format_seed_line
from alphaloom.desk.cli.evidence.null_runs import (
    AnswerFolder,
    NullRuns,
    digest_code,
    make_panel_settings,
    make_synthetic_settings,
)
from alphaloom.evaluation import Budget, Evaluator, PanelContext
from alphaloom.evaluation.checks.negative_control import ControlTally, NullRun, share_interval
from alphaloom.evaluation.closing.results import VERDICTS
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.windows import Window, fix_windows
from alphaloom.factors import Engine, build_planted_market, parse, row_rank_correlation, sample
from alphaloom.ledger import Ledger, Run, compute_digest, read_settings
from alphaloom.market import Nulling, Panel, Plant, SyntheticConfig, simulate

KNOWN = "rank(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17)) - rank(ts_mad(close / open, 23))"
"""A factor that is in no published list: what is planted for the gate to recognise."""
KNOWN_RANK_IC = 0.065
PLANTED_SETTINGS = (
    "market.plants.count=8",
    "market.plants.rank_ic=[0.03, 0.04]",
    "market.plants.fading=0",
    "market.plants.dying=0",
    "agents.rounds=40",
    "agents.survey_share=0.85",  # a wide search: plants are random formulas, no documented effects
)
FALSE = 0.02
"""An acceptance is false if its mean rank correlation with the noise-free expected return of the selection days, in the
direction in which it is held, is below this."""
LIKE = 0.5
"""A planted alpha is found if an accepted factor or set has this absolute mean rank correlation with it."""
LEVEL = 0.05
"""The largest share of false acceptances that the gate states."""


def clock() -> datetime:
    """Return one moment for every run: nothing that is measured depends on it."""
    return datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Size:
    """Days and names of a market, and factors scored on it."""

    days: int
    names: int
    evaluations: int

    def __str__(self) -> str:
        """Say it."""
        return f"{self.days:,} days x {self.names:,} names, {self.evaluations:,} evaluations"

    @property
    def budget(self) -> Budget:
        """Return the budget: ten trials, as everywhere."""
        return Budget(evaluations=self.evaluations, trials=10)

    def settings(self, seed: int, *more: str) -> Settings:
        """Return the settings of a campaign on a synthetic market of this size."""
        asked = (
            f"seed={seed}",
            f"market.synthetic.days={self.days}",
            f"market.synthetic.names={self.names}",
            f"budget.evaluations={self.evaluations}",
            "budget.trials=10",
            *more,
        )
        return read_settings(None, Settings, asked)


SIZES = {
    "null": Size(1500, 400, 200),
    "small": Size(450, 50, 60),
    "panel": Size(0, 0, 200),
    "known": Size(1500, 400, 200),
    "planted": Size(1500, 400, 300),
}
SEEDS = {"null": 20, "small": 200, "panel": 20, "known": 20, "planted": 20}
MOST_FOOLED = {"null": 0, "small": 3, "panel": 0}
LEAST_SHARE_KNOWN = 0.9


@dataclass(frozen=True)
class Question:
    """One line of the benchmark: over how many seeds, at what size, on which panel, and where answers are kept."""

    name: str
    seeds: int
    size: Size
    folder: Path
    panel: Path | None = None
    sectors: Path | None = None

    def kept(self, seed: int, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the answer of a seed, made once; `seconds` says how long it took."""
        place = (
            self.folder
            / f"{self.name}-{compute_digest([str(self.size), digest_code(), Path(__file__).read_text()])[:8]}"
        )
        place.mkdir(parents=True, exist_ok=True)

        def timed() -> dict[str, Any]:
            began = time.monotonic()
            return make() | {"seconds": round(time.monotonic() - began, 1)}

        return AnswerFolder(place).answer(f"seed-{seed:04d}", timed)


def nothing_there(question: Question) -> bool:
    """Print what campaigns accept where nothing is; return whether it is within the bound."""
    base = Settings()
    if question.name == "panel":
        if question.panel is None:
            say("no panel: name one with --panel FILE")
            return True
        base = base.on(base.market.given(question.panel, question.sectors, None))
        settings = make_panel_settings(base, Nulling(), question.size.budget)
        say(f"{question.panel.name}, its returns made null, {question.size.evaluations} evaluations\n{CONTROL_HEADER}")
    else:
        settings = make_synthetic_settings(base, question.size.days, question.size.names, question.size.budget)
        say(f"nothing in {question.size}\n{CONTROL_HEADER}")
    runs: list[NullRun] = []
    for run in NullRuns(settings, question.folder, clock).outcomes(question.seeds):
        runs.append(run)
        say(format_seed_line(run))
    tally = ControlTally(question.name, runs)
    say(describe_tally(tally))
    most = MOST_FOOLED[question.name]
    return verdict(tally.fooled <= most, f"{tally.fooled} markets with an acceptance, at most {most} asked")


def known(question: Question) -> bool:
    """Print what the gate says of a known factor as the tenth trial; return whether nine tenths were accepted."""
    say(f"a known factor as the tenth trial, {question.size}\nseed  selection t  RankIC  verdict    seconds")
    answers = []
    for seed in range(question.seeds):
        with fresh() as workspace:
            answer = question.kept(seed, partial(known_factor, seed, question.size, workspace))
        answers.append(answer)
        say(
            f"{seed:4d}  {answer['t']:11.1f}  {answer['rank_ic']:6.3f}  {answer['verdict']:9s}  "
            f"{answer['seconds']:7.0f}"
        )
    accepted = sum(row["verdict"] == "accepted" for row in answers)
    strong = [row for row in answers if row["t"] >= 8]
    of_strong = sum(row["verdict"] == "accepted" for row in strong)
    say(f"t at least 8 on {len(strong)} seeds, of which accepted: {with_interval(of_strong, len(strong))}")
    enough = accepted >= LEAST_SHARE_KNOWN * question.seeds
    return verdict(enough, f"accepted on {with_interval(accepted, question.seeds)}, nine tenths asked")


def known_factor(seed: int, size: Size, workspace: Path) -> dict[str, Any]:
    """Plant the known factor, send it as the tenth trial, and return selection t, RankIC and verdict."""
    config = SyntheticConfig(seed=seed, days=size.days, names=size.names)

    def signal(panel: Panel) -> NDArray[np.float32]:
        return Engine(panel).evaluate([KNOWN])[0]

    market = simulate(config, [Plant(KNOWN, signal, KNOWN_RANK_IC)])
    with Ledger.open(workspace, clock=clock) as ledger:
        bench = PanelContext.set_up(market.panel, ledger, EvidenceSettings(), f"known-{seed}")
        ledger.runs.start(Run("known", {}, seed, f"known-{seed}", clock().isoformat()))
        evaluator = bench.evaluator("known", size.budget)
        spend_nine(evaluator, seed)
        answer = evaluator.propose(Proposal(KNOWN, claim_of(KNOWN), "known"))
        judged = evaluator.submissions.submit([answer["id"]])[0]
        sheet = judged.selection or {}
        return {"t": sheet.get("t") or 0.0, "rank_ic": sheet.get("rank_ic") or 0.0, "verdict": judged.word}


def claim_of(text: str, direction: int = 1) -> Claim:
    """Return a hypothesis that a formula's own fields and direction keep."""
    return Claim(
        f"about {text}"[:100], "control", "a formula of the control", direction, 5, tuple(sorted(parse(text).fields))
    )


def spend_nine(evaluator: Evaluator, seed: int) -> None:
    """Spend nine trials on formulas drawn from the grammar, whatever they are worth."""
    rng = np.random.default_rng(seed)
    for number in range(500):
        if evaluator.meter.trials_spent() >= 9:
            return
        text = sample(rng, fields=tuple(evaluator.panel.fields), max_size=8).canonical_text
        answer = evaluator.propose(Proposal(text, claim_of(text), f"junk-{number:03d}"))
        if answer["ok"] and (answer["sheet"]["rank_ic"] or 0.0) > 0:
            evaluator.submissions.submit([answer["id"]])
    raise SystemExit("nine trials could not be spent on 500 random formulas")


def planted(question: Question) -> bool:
    """Print what searches for faint alphas accept; return whether the share of false ones is at or below the level."""
    say(f"eight alphas of RankIC 0.03 to 0.04 in {question.size}")
    say("seed  evaluations  trials  accepted  false  found  likeness  truth of each                      seconds")
    answers = []
    for seed in range(question.seeds):
        answer = question.kept(seed, partial(planted_campaign, seed, question))
        answers.append(answer)
        truth = " ".join(f"{likeness:+.2f}" for likeness in answer["truth"])
        say(
            f"{seed:4d}  {answer['evaluations']:11d}  {answer['trials']:6d}  {len(answer['truth']):8d}  "
            f"{false_ones(answer):5d}  {answer['found']:5d}  {answer['likeness']:8.2f}  {truth:33s}  "
            f"{answer['seconds']:7.0f}"
        )
    wrong, accepted = sum(map(false_ones, answers)), sum(len(row["truth"]) for row in answers)
    alphas, seen = sum(row["alphas"] for row in answers), sum(row["found"] for row in answers)
    alive = sum(1 for row in answers if row["likeness"] >= LIKE)
    say(f"planted alphas found, alone or in a combination: {with_interval(seen, alphas)}; missed {alphas - seen}")
    parts, true_parts = sum(row["parts"] for row in answers), sum(row["true_parts"] for row in answers)
    say(f"true alphas among the members of accepted combinations: {with_interval(true_parts, parts)}")
    say(f"markets on which one of them was found and accepted: {with_interval(alive, question.seeds)}")
    share = wrong / accepted if accepted else 0.0
    return verdict(
        share <= LEVEL, f"false among the accepted: {with_interval(wrong, accepted)}, {LEVEL:.0%} at most asked"
    )


def false_ones(answer: dict[str, Any]) -> int:
    """Count the acceptances that know nothing of the expected return."""
    return sum(1 for likeness in answer["truth"] if likeness < FALSE)


def planted_campaign(seed: int, question: Question) -> dict[str, Any]:
    """Search a market with eight faint alphas alive throughout and hold what was accepted against the truth.

    `truth` is, for each acceptance, the mean daily rank correlation with the noise-free expected return over the
    selection days, in the direction in which search holds it. The workspace is kept until the answer is, so that a
    campaign that was cut short goes on.
    """
    workspace = question.folder / f"planted-{seed:04d}-at-work"
    settings = question.size.settings(seed, *PLANTED_SETTINGS)
    record = finished(settings, workspace)
    config = settings.market.synthetic.model_copy(update={"seed": seed})
    market = build_planted_market(config, settings.market.plants)
    engine, whole = Engine(market.panel), Window("whole", 0, market.panel.days, "", "")
    with fresh() as empty, Ledger.open(empty, clock=clock) as ledger:
        selection = fix_windows(market.panel, ledger, settings.evidence.windows, "planted", store=False).selection
    signs = [-1 if entry["metrics"]["search"]["rank_ic"] < 0 else 1 for entry in record["accepted"]]
    values = engine.evaluate([entry["text"] for entry in record["accepted"]])
    plants = engine.evaluate([plant.text for plant in market.plants])
    expected = market.expected_return.astype(np.float32)
    truth = [sign * mean_rank_ic(one, expected, selection) for sign, one in zip(signs, values, strict=True)]
    texts = {entry["id"]: entry["text"] for kind in VERDICTS for entry in record.get(kind) or ()}
    members = {name for entry in record["accepted"] for name in entry.get("members") or ()}
    parts = engine.evaluate([texts[name] for name in sorted(members)])
    true_parts = sum(1 for one in parts if abs(mean_rank_ic(one, expected, selection)) >= FALSE)
    held = [*values, *parts]
    likeness = [max((abs(mean_rank_ic(one, plant, whole)) for one in held), default=0.0) for plant in plants]
    shutil.rmtree(workspace, ignore_errors=True)
    return {
        "evaluations": record["evaluations"],
        "trials": record["trials"],
        "truth": [round(value, 4) for value in truth],
        "alphas": len(plants),
        "found": sum(1 for value in likeness if value >= LIKE),
        "likeness": round(max(likeness, default=0.0), 4),
        "parts": len(parts),
        "true_parts": true_parts,
    }


def finished(settings: Settings, workspace: Path) -> dict[str, Any]:
    """Run a campaign to its end, going on where it was cut short."""
    with Ledger.open(workspace, clock=clock) as ledger:
        begun = ledger.runs.all()
    if begun:
        return Campaign.resume(begun[-1].id, workspace=workspace).record
    return Campaign(settings, workspace, clock=clock).run().record


def mean_rank_ic(values: NDArray[np.float32], other: NDArray[np.float32], window: Window) -> float:
    """Return the mean daily rank correlation over a window."""
    daily = row_rank_correlation(window.cut(values), window.cut(other))
    return float(np.nanmean(daily)) if np.isfinite(daily).any() else 0.0


def with_interval(count: int, of: int) -> str:
    """Say a count and the exact 95 % interval of its share."""
    low, high = share_interval(count, of)
    return f"{count} of {of} (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


@contextmanager
def fresh() -> Iterator[Path]:
    """Give a workspace that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def verdict(holds: bool, text: str) -> bool:
    """Print whether a line of the benchmark holds."""
    say(f"{'holds' if holds else 'DOES NOT HOLD'}: {text}\n")
    return holds


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


ANSWERS: dict[str, Callable[[Question], bool]] = {
    "null": nothing_there,
    "small": nothing_there,
    "panel": nothing_there,
    "known": known,
    "planted": planted,
}


def asked(given: argparse.Namespace) -> Sequence[Question]:
    """Return the questions of a command line."""
    names = list(ANSWERS) if given.question == "all" else [given.question]
    questions = []
    for name in names:
        usual = SIZES[name]
        size = Size(given.days or usual.days, given.names or usual.names, given.evaluations or usual.evaluations)
        questions.append(Question(name, given.seeds or SEEDS[name], size, given.folder, given.panel, given.sectors))
    return questions


def main() -> int:
    """Answer what was asked and return 0 if every line holds."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("question", choices=(*ANSWERS, "all"))
    options.add_argument("--seeds", type=int, help="how many, from 0")
    options.add_argument("--days", type=int, help="of the market")
    options.add_argument("--names", type=int, help="in the market")
    options.add_argument("--evaluations", type=int, help="of each campaign")
    options.add_argument("--panel", type=Path, help="prices, Parquet or CSV")
    options.add_argument("--sectors", type=Path, help="sectors, Parquet or CSV")
    options.add_argument("--folder", type=Path, default=Path(".alphaloom/control"), help="where answers are kept")
    holds = [ANSWERS[question.name](question) for question in asked(options.parse_args())]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
