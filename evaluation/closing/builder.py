"""A campaign's evidence as one record: every factor with every reason, the counts, and what could have been proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...evidence import Claim, Window
from ...evidence.gate import PAID_EVENT, list_doubts
from ...evidence.originality import nearest
from ...evidence.scoring import Profiler, count_unlabelled, round_significant
from ...evidence.values import UNCONTAINED_CODE
from ...factors import Expression, explain
from ...ledger import VerdictRow
from ...portfolio import earlier_openings
from ...search import own_troubles, read_operator_table, variety
from ...search.surrogate import MAX_LEADERS
from ..checks.power import few_labels, next_power, read_first_power
from ..drafts import find_leaders
from ..service import Evaluator
from .alternatives import TrialStream
from .candidates import CandidateSet, gather_candidates

VERDICT_WORDS = ("accepted", "watchlist", "rejected")
MAX_NEAREST_SHOWN = 5
"""Known formulas that are shown beside a case."""


@dataclass(frozen=True)
class ResultsBuilder:
    """Reads one run's evidence from the ledger, for `results.json` and the report."""

    evaluator: Evaluator

    @cached_property
    def verdicts(self) -> Mapping[str, VerdictRow]:
        """Return the gate's verdicts by factor id."""
        return {row.factor_id: row for row in self.evaluator.ledger.verdicts(self.evaluator.run)}

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Return the hypothesis of each scored factor and set."""
        run, ledger = self.evaluator.run, self.evaluator.ledger
        sets = {event.key for event in ledger.events(run, "set")}
        bodies = {event.key: event.body for event in ledger.events(run, "claim")}
        return {**{name: Claim.from_record(bodies[f"set-{name}"]) for name in sets}, **self.evaluator.claims()}

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Return the members of each set that was submitted."""
        return {event.key: event.body for event in self.evaluator.ledger.events(self.evaluator.run, "set")}

    @cached_property
    def candidates(self) -> CandidateSet:
        """Return the single factors of the run side by side on search, held as they were claimed."""
        return gather_candidates(self.evaluator, self.claims, self.members)

    @cached_property
    def looks(self) -> TrialStream:
        """Return every look that counts against this selection window, those of other runs and declared ones included."""
        evaluator = self.evaluator
        key = evaluator.windows.key(evaluator.windows.selection)
        elsewhere = max(evaluator.settings.prior_trials, evaluator.ledger.prior(key))
        past = evaluator.ledger.overlapping_trials(key)
        return TrialStream(evaluator.ledger, elsewhere, past, self.verdicts, evaluator.settings.level)

    def record(self) -> dict[str, Any]:
        """Return everything the evidence room has to say of a run, as JSON without a clock, a path or the run's id."""
        evaluator, entries, looks = self.evaluator, self.entries(), self.looks
        key = evaluator.windows.key(evaluator.windows.selection)
        paid = {event.key for event in evaluator.ledger.events(evaluator.run, PAID_EVENT)}
        own = [
            one for one in looks.trials if one.run == evaluator.run or (one.window == key and str(one.number) in paid)
        ]
        told = {row.metrics["trial"] for row in self.verdicts.values()} - {None}
        return {
            "settings": self._settings(),
            "data": self._data(),
            "windows": self._windows(),
            **entries,
            "attempts": self.attempts(),
            "leaders": [leader.record() for leader in find_leaders(evaluator, MAX_LEADERS)],
            "diversity": variety(evaluator.ledger, evaluator.run),
            "operators": read_operator_table(evaluator.ledger, evaluator.run),
            "evaluations": evaluator.evaluations_spent(),
            "trials": evaluator.trials_spent(),
            "prior_trials": len(looks.trials) - len(own) + looks.declared,
            "looks_reused": len(told - {trial.number for trial in own}),
            "hypotheses": len({claim.id for claim in self.claims.values() if claim.mechanism != "set"}),
            "power": self.power(),
            "power_before": read_first_power(evaluator),
            "stream_rules": looks.record(),
            "overfitting": self.overfitting(),
            "superior": self.candidates.superior(),
            "cross_validation": self.candidates.cross_validation(),
            "clusters": self.candidates.clusters(),
            **({"reviews": [each.record() for each in evaluator.reviews.decisions()]} if evaluator.approve else {}),
            "warnings": self.warnings(),
        }

    def _settings(self) -> dict[str, Any]:
        """Return the rules that every figure rests on."""
        evidence = self.evaluator.settings.model_dump(mode="json")
        return {"evidence": evidence, "budget": self.evaluator.budget.model_dump(mode="json", exclude_none=True)}

    def _data(self) -> dict[str, Any]:
        panel = self.evaluator.panel
        return {
            "name": self.evaluator.windows.boundaries.dataset,
            "digest": panel.digest,
            "days": panel.days,
            "names": panel.names,
            "first_day": str(panel.dates[0]),
            "last_day": str(panel.dates[-1]),
            "notes": list(panel.notes),
        }

    def _windows(self) -> dict[str, Any]:
        windows, settings = self.evaluator.windows, self.evaluator.settings
        named = {window.name: window.record() for window in (windows.search, windows.selection, windows.sealed)}
        missing = count_unlabelled(
            self.evaluator.panel, windows.search, self.evaluator.scorer.returns, settings.horizon_days
        )
        sealed = windows.key(windows.sealed)
        return {
            **named,
            "openings": earlier_openings(self.evaluator.ledger, sealed, self.evaluator.run),
            "embargo_days": windows.embargo_days,
            "horizon_days": settings.horizon_days,
            "returns": settings.returns,
            "search_cells_without_an_open": missing,
        }

    def entries(self) -> dict[str, list[dict[str, Any]]]:
        """Return accepted, watched and rejected factors, each sorted by id."""
        found: dict[str, list[dict[str, Any]]] = {word: [] for word in VERDICT_WORDS}
        for name in sorted({*self.evaluator.rows, *self.verdicts}):
            if name in self.claims:
                row = self.verdicts.get(name)
                found[self._word(row)].append(self._entry(name, row))
        return found

    def _word(self, row: VerdictRow | None) -> str:
        """Return what became of a factor; what no person had decided on when the run was closed is not accepted."""
        word = self.evaluator.reviews.word(row) if row else "rejected"
        return word if word in VERDICT_WORDS else "rejected"

    def _entry(
        self, name: str, row: VerdictRow | None, *, selection: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        evaluation = self.evaluator.rows[name]
        expression = self.evaluator.read(evaluation.text)
        search = {key: value for key, value in evaluation.sheet.items() if key != "fields"}
        word = "awaiting" if selection else self._word(row)
        return {
            "id": name,
            "form": "python" if expression.code else "expression",
            "text": expression.shown,
            "explained": explain(expression),
            "hypothesis": self.claims[name].record(),
            "alignment": self._alignment(name, expression),
            "reasons": self.evaluator.reviews.reasons(row)
            if row
            else [self._make_unsent_reason(name, evaluation.sheet)],
            "metrics": {"search": search, "selection": selection or self._selection(name, row)},
            "trial": row.metrics["trial"] if row else None,
            "members": self.members.get(name),
            "library_correlation": self._library_correlation(name) if word != "rejected" else None,
            "profile": self._profile(name) if word != "rejected" else None,
            "incremental": self._incremental(name) if row and row.metrics["trial"] is not None else None,
        }

    def _alignment(self, name: str, expression: Expression) -> dict[str, Any]:
        """Return what a rule suspects of a factor and its words, and what a model said of them: nothing here decided."""
        claim, search = self.claims[name], self.evaluator.rows[name].sheet
        rules = [] if name in self.members else [each["message"] for each in list_doubts(expression, claim, search)]
        return {"doubts": rules, "opinions": self.opinions.get(claim.id, [])}

    @cached_property
    def opinions(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return what the Eval agent said of formulas and their hypothesis, by hypothesis, step by step."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        events = self.evaluator.ledger.events(self.evaluator.run, "agents.critique")
        for event in sorted(events, key=lambda each: each.key):
            branch, _, step = event.key.rpartition("/s")
            if said := event.body.get("alignment"):
                found.setdefault(branch, []).append({"step": int(step), **said})
        return found

    def _selection(self, name: str, row: VerdictRow | None) -> dict[str, Any] | None:
        """Return what selection showed, with the Sharpe ratio that is deflated for clusters beside those of the verdict."""
        found = row.metrics["selection"] if row else None
        if not found:
            return None
        again = {"by_clusters": self.looks.deflated(name, self.candidates.effective)}
        return {**found, "deflated_sharpe": {**found["deflated_sharpe"], **again}}

    def _library_correlation(self, name: str) -> float | None:
        mine = self.evaluator.values(self.evaluator.read(self.evaluator.rows[name].text))
        found = self.evaluator.library_values.closest(mine, but=name)
        return round_significant(found.rank_correlation) if found else None

    def _profile(self, name: str) -> dict[str, Any]:
        """Return regimes, exposures and capacity on search, as on the sheet of `factor score`."""
        return self._profiler.profile(self.evaluator.values(self.evaluator.read(self.evaluator.rows[name].text)))

    @cached_property
    def _profiler(self) -> Profiler:
        return Profiler(self.evaluator.scorer, self.evaluator.windows.search)

    def _incremental(self, name: str) -> dict[str, Any] | None:
        """Return what a factor that was looked at on selection adds to the rest of the library, on search."""
        mine = self.evaluator.values(self.evaluator.read(self.evaluator.rows[name].text))
        added = self.evaluator.beside.addition(mine, but=name)
        return added.record() if added else None

    def attempts(self) -> dict[str, Any]:
        """Return how much was proposed, and how much was refused at each step before scoring."""
        rows = self.evaluator.ledger.attempts(self.evaluator.run)
        refused = Counter(row.stage for row in rows if row.stage != "scored")
        scored = [row.factor_id for row in rows if row.stage == "scored"]
        refused["duplicate"] += len(scored) - len(set(scored))
        return {"total": len(rows), "refused": {stage: count for stage, count in sorted(refused.items()) if count}}

    def power(self) -> dict[str, Any]:
        """Return the smallest RankIC that the next trial on this selection window could prove."""
        found = self.evaluator.gate.count_discoveries()
        return next_power(self.evaluator, len(self.looks.trials) + self.looks.declared, found)

    def overfitting(self) -> dict[str, Any] | None:
        """Return the probability of backtest overfitting over the campaign's candidates; it never blocks."""
        return self.candidates.overfitting()

    def case(self, name: str) -> dict[str, Any]:
        """Return what a person who has to approve a factor is shown: its entry, its curves, what it is nearest to."""
        row, evaluator = self.verdicts[name], self.evaluator
        evaluation = evaluator.rows[name]
        expression = evaluator.read(evaluation.text)
        values = evaluator.values(expression, evaluator.windows.selection)
        windows = (evaluator.windows.search, evaluator.windows.selection)
        near = [
            like for like in nearest(expression, evaluator.known(), MAX_NEAREST_SHOWN + 1) if like.known.name != name
        ]
        return {
            **self._entry(name, row, selection=row.metrics["selection"]),
            "reasons": list(row.reasons),
            "curve": {window.name: self._curve(values, window) for window in windows},
            "boundary": str(evaluator.panel.dates[evaluator.windows.selection.start]),
            "nearest": [
                {
                    "name": like.known.name,
                    "where": like.known.where,
                    "ratio": round_significant(like.ratio),
                    "shared": like.shared,
                }
                for like in near[:MAX_NEAREST_SHOWN]
            ],
            "texts": {part: evaluator.read(evaluator.rows[part].text).shown for part in self.members.get(name, ())},
            "data": self._data(),
            "costs": evaluator.settings.costs.model_dump(mode="json"),
            "warnings": self.warnings(),
        }

    def curves(self) -> dict[str, Any]:
        """Return the daily RankIC of what was accepted or is watched, on search and on selection."""
        windows = self.evaluator.windows
        found = {}
        for name in sorted(name for name, row in self.verdicts.items() if row.verdict != "rejected"):
            values = self.evaluator.values(self.evaluator.read(self.evaluator.rows[name].text), windows.selection)
            found[name] = {window.name: self._curve(values, window) for window in (windows.search, windows.selection)}
        return found

    def _curve(self, values: np.ndarray[Any, np.dtype[np.float32]], window: Window) -> dict[str, Any]:
        daily = self.evaluator.scorer.daily_rank_ic(values, window)
        dates = [str(day) for day in self.evaluator.panel.dates[window.start : window.stop]]
        return {"dates": dates, "rank_ic": [round_significant(value) for value in daily]}

    def warnings(self) -> list[dict[str, str]]:
        """Return the doubts that stay with the whole campaign: the data's, and leak alarms on selection."""
        found = [{"code": "data", "message": note} for note in self.evaluator.panel.notes]
        if self.evaluator.windows.inherited:
            said = "an earlier campaign on these days and names fixed the windows; the shares in this one's file do not count"
            found.append({"code": "windows", "message": said})
        if few := few_labels(self.evaluator.windows.selection.days, self.evaluator.settings.horizon_days):
            found.append({"code": "few_labels", "message": few})
        if heard := self.evaluator.reviews.heard():
            said = f"{len(heard)} comments of a person who could see selection figures reached the agents: later trials are not blind"
            found.append({"code": "reviewed", "message": said})
        noted = [each for row in self.evaluator.rows.values() for each in row.sheet["warnings"]]
        stamps = [each["message"] for each in noted if each["code"] == UNCONTAINED_CODE]
        found += [
            {"code": UNCONTAINED_CODE, "message": f"{stamps.count(one)} factors were {one}"}
            for one in sorted({*stamps})
        ]
        ledger, run = self.evaluator.ledger, self.evaluator.run
        found += [{"code": "own_part", "message": said} for said in own_troubles(ledger, run)]
        return found + [
            {
                "code": "leak_alarm",
                "message": f"{name}: its RankIC on selection is too good; find out why before trading it",
            }
            for name in self.alarms()
        ]

    def alarms(self) -> list[str]:
        """Return the single factors whose mean RankIC on selection is beyond the leak threshold, whatever their verdict."""
        limit = self.evaluator.settings.leak_rank_ic
        looked = {name: row.metrics["selection"] for name, row in self.verdicts.items() if name not in self.members}
        return sorted(name for name, sheet in looked.items() if sheet and abs(sheet["rank_ic"] or 0.0) > limit)

    def _make_unsent_reason(self, name: str, sheet: Mapping[str, Any]) -> dict[str, Any]:
        """Return why a factor never came before the gate."""
        agents = self.evaluator.ledger.run(self.evaluator.run).config.get("settings", {}).get("agents", {})
        bar, direction = agents.get("min_search_t", 0.0), self.claims[name].direction
        why = _explain_unsent(sheet["t"], bar, direction, bool(self.verdicts))
        numbers = {"t": sheet["t"], "merit": sheet["merit"]}
        return {"step": "search", "passed": False, "message": f"not tested: {why}", "numbers": numbers}


def _explain_unsent(t: float | None, bar: float, direction: int, others: bool) -> str:
    """Return what kept a factor from the gate; that others were preferred is said only where others were sent."""
    if t is None:
        return "t is undefined in sample"
    if abs(t) < bar:
        return f"|t| = {abs(t):.1f} in sample, below agents.min_search_t, {bar:g}"
    if t * direction < 0:
        return f"it shows the opposite of its hypothesis (in-sample t = {t:.1f})"
    return f"{'other candidates were preferred' if others else 'nothing was sent to the gate'} (in-sample t = {t:.1f})"
