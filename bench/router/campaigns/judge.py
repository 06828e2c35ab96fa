"""How much of a reply is of use: what a campaign would take over of it, by the campaign's own functions.

Nothing is recorded and no evaluation is spent. Ideas pass the filter of hypotheses; formulas are those that would be
chosen for scoring, so that are read, are new and are not refused; a critique names a weakness of the figures and a
change that cures one, and ends or continues the branch as the offline researcher's rule does; a summary may be shown
and speaks of its text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from alphaloom.agents.memory.diversity import HypothesisFilter, HypothesisIntake, compute_mechanism_quota
from alphaloom.agents.nodes.documents import is_useful_summary
from alphaloom.agents.nodes.factor_agent import CLAIM_KEYS
from alphaloom.agents.nodes.idea_agent import count_surveys_wanted, count_useful_ideas
from alphaloom.agents.offline.critique import CURES
from alphaloom.agents.records import BranchHypothesis, iterate_branches, read_hypothesis, read_memory
from alphaloom.agents.schemas import Candidates, Critique, Ideas, Mechanisms, ShortText
from alphaloom.campaign import Settings
from alphaloom.evaluation import Evaluator, pick_drafts
from alphaloom.evidence import Claim
from alphaloom.factors import FactorError
from alphaloom.ledger import Journal
from alphaloom.news import screen_text
from alphaloom.router import Task

__all__ = ["Judge"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Judge:
    """Judges the replies to the questions of one running campaign, in its present state."""

    evaluator: Evaluator
    settings: Settings

    def count_useful(self, task: Task, value: BaseModel, model: BaseModel) -> int:
        """Return how many parts of a reply are of use; `model` is the offline researcher's reply."""
        context: Json = json.loads(task.messages[-1].content)
        if isinstance(value, Ideas):
            return self._count_ideas(context, value)
        if isinstance(value, Candidates):
            return self._count_formulas(context, value)
        if isinstance(value, Mechanisms):
            return self._count_mechanisms(context, value)
        if isinstance(value, Critique) and isinstance(model, Critique):
            return int(_is_useful_critique(context, value, model))
        assert isinstance(value, ShortText)
        return int(is_useful_summary(value.summary, str(context["untrusted_text"]), _may_show))

    def _count_ideas(self, context: Json, ideas: Ideas) -> int:
        """Return how many hypotheses would get a branch; one without another side, or a survey too many, is none."""
        number, count = int(context["request"]["round"]), int(context["request"]["count"])
        journal, agents = Journal(self.evaluator.ledger, self.evaluator.run), self.settings.agents
        memory = read_memory(journal, f"r{number:02d}")
        known = [
            read_hypothesis(journal, branch)
            for earlier in range(1, number)
            for branch in iterate_branches(journal, earlier)
        ]
        sieve = HypothesisFilter(self.settings.steer, {*memory.fields, *memory.groups}, agents.max_likeness)
        intake = HypothesisIntake(sieve, known, count, compute_mechanism_quota(count, agents.islands))
        surveys = count_surveys_wanted(context["request"], agents.survey_share)
        return count_useful_ideas(intake, [body.model_dump(mode="json") for body in ideas.hypotheses[:count]], surveys)

    def _count_formulas(self, context: Json, candidates: Candidates) -> int:
        """Return how many drafts would be scored."""
        hypothesis = BranchHypothesis.parse(context["hypothesis"])
        claim = Claim.from_record(
            hypothesis.select(CLAIM_KEYS) | ({"either_way": True} if hypothesis.either_way else {})
        )
        texts = self._list_distinct(candidates)
        asked = int(context["request"]["count"])
        wanted = asked if context["task"] == "repair" else min(asked, self.settings.agents.candidates)
        return (
            len(pick_drafts(self.evaluator, texts, claim, wanted, either=hypothesis.either_way)["chosen"])
            if texts
            else 0
        )

    def _list_distinct(self, candidates: Candidates) -> list[str]:
        """Return the texts of different formulas that can be read."""
        found: dict[str, str] = {}
        for candidate in candidates.candidates:
            try:
                found.setdefault(self.evaluator.read(candidate.text).id, candidate.text)
            except FactorError:
                continue
        return list(found.values())

    def _count_mechanisms(self, context: Json, mechanisms: Mechanisms) -> int:
        """Return how many rows are about a candidate and have a rival that can be read."""
        ids = {row["id"] for row in context["candidates"]}
        useful = 0
        for row in {row.id: row for row in mechanisms.mechanisms if row.id in ids}.values():
            try:
                self.evaluator.read(row.refuter)
                useful += 1
            except FactorError:
                continue
        return useful


def _is_useful_critique(context: Json, critique: Critique, model: Critique) -> bool:
    rows = [text.partition(":")[0] for row in context["factors"] for text in row["weaknesses"]]
    true = {*rows, *(weakness.code for weakness in model.weaknesses)}
    named = {weakness.code.strip().casefold() for weakness in critique.weaknesses}
    cures = {operator for code in true for operator in CURES.get(code, ())}
    advised = {advice.operator for advice in critique.advice}
    return critique.keep == model.keep and (not true or bool(named & true)) and (not cures or bool(advised & cures))


def _may_show(summary: str) -> bool:
    return not screen_text(summary)[1]
