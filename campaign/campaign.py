"""Run a campaign: connect the rooms in the order in which a factor passes them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from ..agents import (
    OFFLINE_MODEL_NAME,
    QUESTION_WORDS,
    AgentsConfig,
    Attendance,
    Models,
    Own,
    SearchContext,
    State,
    Steer,
    Toolset,
    describe_unusable_replies,
    run_graph,
    silence_interruption,
)
from ..agents.nodes import Documents, select_documents
from ..agents.offline import OFFLINE_DESCRIPTION, OfflineResearcher
from ..evaluation import (
    Budget,
    Closing,
    Evaluator,
    PanelContext,
    ResultsBuilder,
    begin_run,
    close,
    close_baseline,
    describe_baseline,
    find_campaign,
    list_known_effects,
    record_baseline,
    refuse_other_stream,
    spell_days,
    write_closing,
)
from ..evaluation.checks import record_first_power
from ..evaluation.closing import SealAnswer, answer_seal, find_planted_truth
from ..evidence import RECORDED_CONTEXT, EvidenceSettings, complete_settings
from ..evidence.values import LazySandbox, SandboxSettings
from ..factors import MarketSettings, warm_up
from ..ledger import AlphaloomError, Journal, Ledger, count_stops, find_account, read_json, read_settings, write_json
from ..market import ALL_FIELDS, Panel, drop_fields, find_withheld_fields
from ..news import screen_text
from ..risk import RiskLimits, read_policy
from ..router import Confidential, ModelSettings, Router, drop_removed_settings
from ..router.calls import Sensitivity, find_strictest
from ..router.context import ContextSettings, open_store, read_documents
from ..router.endpoints import find_silent_models, refuse_keyless
from ..router.policy import bar_reason
from ..sandbox import draw_seed
from ..search import SearchConstraints, read_seeds
from .book_record import WORKSPACE
from .changes import UsedVersion, collect_versions, record_versions, refuse_unbenched
from .progress import STATUS_RUNNING, Progress, ProgressReporter, refuse_undecided
from .trade import Trade, summary, trade
from .traded_result import TradedResult
from .what_if import rehearse

CONTEXT_FILE = "context.db"
"""File of a workspace with what was derived from documents; rebuilt if it is missing."""
Clock = Callable[[], datetime]
Show = Callable[[Progress], None]


REMOVED_AGENT_SETTINGS = frozenset({"trials_per_round", "early_search_t"})
"""Settings of older runs, of whom some tested before the search ended."""


class Settings(BaseModel):
    """One campaign file, read once and written into the ledger with the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(default="campaign", description="part of the run's id")
    seed: int = Field(default=7, ge=0, description="of every draw: the agents' and the synthetic market's")
    market: MarketSettings = MarketSettings()
    steer: Steer = Steer()
    context: ContextSettings = ContextSettings()
    agents: AgentsConfig = AgentsConfig()
    models: Models = Models()
    evidence: EvidenceSettings = EvidenceSettings()
    budget: Budget = Budget()
    approve: bool = Field(default=False, description="what passes the gate waits for a person: alphaloom review")
    sandbox: SandboxSettings = SandboxSettings()
    risk: RiskLimits = Field(
        default=RiskLimits(), description="tightens the policy of the workspace; looser limits do not hold"
    )

    @field_serializer("risk")
    def _dump_risk(self, risk: RiskLimits) -> dict[str, Any]:
        """Write only the limits that the file names: the others are those of the workspace's policy."""
        return risk.model_dump(mode="json", exclude_unset=True)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
            raise ValueError("should be of small letters a to z, digits and hyphens, no hyphen first, 41 at most")
        return name

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the settings that a run recorded, also those of an older version."""
        agents = {name: value for name, value in record["agents"].items() if name not in REMOVED_AGENT_SETTINGS}
        changed = {"models": drop_removed_settings(record["models"]), "evidence": complete_settings(record["evidence"])}
        settings = {**record, "agents": agents, **changed}
        return cls.model_validate(settings, context={RECORDED_CONTEXT: True})

    def on(self, market: MarketSettings) -> Settings:
        """Return the settings with another market."""
        return self.model_copy(update={"market": market})

    def beside(self, folder: Path) -> Settings:
        """Return the settings with relative paths resolved against a folder."""
        sections = {name: getattr(self, name).beside(folder) for name in ("market", "steer", "context", "models")}
        return self.model_copy(update=sections)


def compile_kernels(show: Show) -> None:
    """Compile the kernels that are not compiled yet; say that it happens once."""
    warm_up(lambda line: show(Progress("compiling the kernels, once on this machine", message=line)))


@dataclass(frozen=True)
class Campaign:
    """One search: its settings, its workspace and its clocks.

    Attributes
    ----------
    run_id
        A run to resume; empty for a new one.
    draw
        Returns the seed of the screens of Python code, which no author may know.
    ledger
        Address of the PostgreSQL database with the record of a new workspace; empty: a file in the workspace.
    """

    settings: Settings
    workspace: Path = WORKSPACE
    run_id: str = ""
    clock: Clock = lambda: datetime.now(UTC)
    draw: Callable[[], int] = draw_seed
    ledger: str = ""
    render: ClassVar[Callable[[Settings, Ledger, str], Path] | None] = None
    """Writes the report of a run whose results are recorded, and returns its path."""

    @classmethod
    def from_yaml(  # noqa: PLR0913 - the options of `alphaloom run`
        cls,
        path: str | Path,
        *,
        panel: str | Path | None = None,
        sectors: str | Path | None = None,
        as_of: date | None = None,
        seed: int | None = None,
        workspace: str | Path | None = None,
        overrides: Sequence[str] = (),
        ledger: str = "",
    ) -> Self:
        """Read a campaign file; arguments take precedence over it, and `overrides` are like `"budget.trials=4"`.

        Raises
        ------
        SettingsError
            Every mistake in the file at once.
        """
        seeded = [] if seed is None else [f"seed={seed}"]
        settings = read_settings(Path(path), Settings, [*overrides, *seeded]).beside(Path(path).parent)
        market = settings.market.given(panel, sectors, as_of)
        return cls(settings.on(market), Path(workspace or WORKSPACE), ledger=ledger)

    def contained(self, executor: str | None = None, backend: str | None = None) -> Self:
        """Return the campaign with another executor or sandbox backend; None keeps the settings'."""
        sandbox = self.settings.sandbox.given(executor, backend)
        return replace(self, settings=self.settings.model_copy(update={"sandbox": sandbox}))

    @classmethod
    def resume(
        cls,
        run: str,
        *,
        workspace: Path | None = None,
        progress: Show | None = None,
        where: tuple[str | None, str | None] = (None, None),
    ) -> TradedResult:
        """Continue an interrupted run, or read a finished one; `where` holds the arguments of `contained`."""
        place = workspace or WORKSPACE
        with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
            row = find_campaign(ledger, run)
            folder = ledger.runs.files(row.id) if row.status == "done" else ledger.runs.folder(row.id)
            refuse_undecided(ledger, row)
            if row.status == "done":
                ledger.artefacts.check(row.id)
        if row.status == "done":
            return TradedResult(row.id, folder, read_json(folder / "results.json"), folder / "report.html")
        settings = Settings.from_record(row.config["settings"])
        return cls(settings, place, row.id).contained(*where).run(progress)

    def run(self, progress: Show | None = None) -> TradedResult:
        """Run the campaign to its end and write results.json, curves.json and the report."""
        show = progress or (lambda _: None)
        if not self.run_id:  # a resumed run may have all the replies that it needs on record
            refuse_keyless(self._find_allowed_models(self.settings.agents.sensitivity), os.environ)
        own, texts = (Own(), {}) if self.run_id else self._read_own_inputs(show)
        panel, dataset = self._open_market(show)
        with (
            Ledger.open(self.workspace, clock=self.clock, address=self.ledger) as ledger,
            LazySandbox(self.settings.sandbox) as sandbox,
        ):
            sandbox.ready(needed=self.settings.agents.python)
            self.check_panel(ledger, panel)
            python, steer = self.settings.agents.python, self.settings.steer
            SearchConstraints(steer.fields).fit(panel)
            panel_context = PanelContext.set_up(panel, ledger, self.settings.evidence, dataset, runner=sandbox)
            panel_context = panel_context.on_cluster(sandbox)
            if not self.run_id:
                refuse_other_stream(ledger, panel_context.windows, self.settings.evidence)
            for text in texts.values():
                ledger.objects.put(text.encode())
            if self.run_id:
                own = Own.model_validate(ledger.runs.find(self.run_id).config.get("own", {}))
            versions = self._check_versions(ledger, own)
            run = self.run_id or begin_run(
                self.settings, ledger, panel, (dataset, self.clock(), self.draw()), own.model_dump(mode="json")
            )
            stops = count_stops(ledger.events, run)
            own = Own.model_validate(ledger.runs.find(run).config.get("own", {}))
            mandate = SearchConstraints(steer.fields, steer.avoid, frozenset(seed.text for seed in own.seeds))
            with ledger.runs.lock(run):
                ledger.runs.finish(run, STATUS_RUNNING)
                ledger.objects.put(spell_days(panel))
                record_versions(ledger, run, versions, find_account())
                compile_kernels(show)
                settings = self.settings
                evaluator = panel_context.evaluator(
                    run, settings.budget, python=python, mandate=mandate, approve=settings.approve
                )
                reporter = ProgressReporter(evaluator, settings.agents.rounds, show, self.clock, stops)
                result = self._finish(ledger, run, self._search(evaluator, own, reporter))
                reporter.note("done")
                return result

    def _open_market(self, show: Show) -> tuple[Panel, str]:
        """Return the panel and its name; kernels are compiled before they are needed, once on a machine."""
        if self.settings.market.panel is None:  # planting alphas computes formulas; a file is read, and refused, first
            compile_kernels(show)
            show(Progress("making the synthetic market"))
        else:
            show(Progress("reading the market"))
        return self.open_panel()

    def open_panel(self) -> tuple[Panel, str]:
        """Return the panel that the settings name, without fields that its models may not see, and its name."""
        panel, dataset = self.settings.market.open(self.settings.seed)
        return self._drop_withheld_fields(panel), dataset

    def _check_versions(self, ledger: Ledger, own: Own) -> tuple[UsedVersion, ...]:
        """Return the versions that the campaign uses; refuse those that the policy wants benched first."""
        policy = read_policy(ledger.workspace)
        versions = collect_versions(self.settings, own, policy)
        if policy.bench_changes:
            refuse_unbenched(ledger, versions)
        return versions

    def _read_own_inputs(self, show: Show) -> tuple[Own, dict[str, str]]:
        """Return the person's own parts, and the texts of the documents in them by id."""
        own, context = Own.gather(self.settings.steer, read_settings, read_seeds), self.settings.context
        if context.documents:
            show(Progress("reading the documents"))
        documents, texts = read_documents(context, self.settings.agents.sensitivity, screen_text)
        if documents:
            self._find_allowed_models(
                find_strictest(document.sensitivity for document in documents if not document.held)
            )
        return own.model_copy(update={"documents": tuple(documents)}), texts

    def _find_allowed_models(self, label: Sensitivity) -> dict[str, ModelSettings]:
        """Return the models that may see data with a label."""
        models, agents = self.settings.models.models, self.settings.agents
        bound = find_strictest([agents.sensitivity, label]), agents.jurisdiction
        allowed = {
            name: model for name, model in models.items() if not bar_reason(model, *bound, bool(model.attestation))
        }
        if not allowed:
            raise Confidential(
                "no model of this campaign may be told what its agents ask",
                field="models.models",
                got=[f"{name} ({model.place})" for name, model in models.items()],
                allowed="a model with place: local, or place: attested with an attestation",
                hint="Add one, or change agents.sensitivity, agents.jurisdiction or the labels of context.documents.",
            )
        return allowed

    def _drop_withheld_fields(self, panel: Panel) -> Panel:
        """Return the panel without the marked fields that a model of this campaign may not see.

        The agents' questions reach only the models that their label allows (`bar_reason`), so those models count as
        bearing that label.
        """
        agents = self.settings.agents
        models = self._find_allowed_models(agents.sensitivity)
        remote = sorted(name for name, model in models.items() if model.place != "local")
        labels = ["confidential"] if agents.sensitivity == "confidential" else []
        labels += [f"jurisdiction:{agents.jurisdiction}"] if agents.jurisdiction else []
        withheld = find_withheld_fields(panel, self.settings.market.labels, labels) if remote else frozenset()
        if ALL_FIELDS in withheld:
            raise AlphaloomError(
                "This data is marked, and a model that is not local would be told of it.",
                field="market.labels",
                got=remote,
                allowed="models with place: local",
                hint="Leave the others out of models.models, or let agents.sensitivity be confidential.",
            )
        return drop_fields(panel, withheld)

    def check_panel(self, ledger: Ledger, panel: Panel) -> None:
        """Check that a resumed run has the same panel as when it began."""
        digest = ledger.runs.find(self.run_id).config["panel"] if self.run_id else panel.digest
        if digest != panel.digest:
            raise AlphaloomError(
                "The panel is not the one that this run began with.",
                field="panel",
                got=panel.digest[:12],
                allowed=digest[:12],
                hint="Restore the file, or start a new run.",
            )

    def _search(self, evaluator: Evaluator, own: Own, reporter: ProgressReporter) -> dict[str, Any]:
        """Let the agents search, then close: combination, sealed days, backtest, risk gate; return the results.

        Raises
        ------
        RunHalted
            The search is paused; `resume` continues it.
        """
        evaluator.library.record_start()
        unheard = self.settings.models.find_unmatched(self.settings.steer)
        _, doubts = select_documents(own.documents, evaluator.windows.search.last_day)
        for message in [*record_first_power(evaluator), *unheard, *doubts]:
            reporter.show(Progress("searching", message=message))
        known_effects = self._score_published(evaluator, reporter)
        self._report_silent_models(reporter)
        router = Router(
            self.settings.models, evaluator.ledger, providers={"offline": OfflineResearcher}, clock=self.clock
        )
        with evaluator.ledger.explained(evaluator.run), silence_interruption():
            state = asyncio.run(self._research(evaluator, own, router, reporter, known_effects))
        if state["waiting"] or not state["finished"]:
            raise reporter.pause_run()
        builder = ResultsBuilder(evaluator)
        seal = self._answer_seal(builder, reporter)
        reporter.say("closing", "combination, book, risk gate, report")
        record = builder.record() | {"format": 1, "seed": self.settings.seed, "researcher": self._describe_researcher()}
        record |= {"steer": self.settings.steer.record(), "own": own.record()}
        record["warnings"] += [{"code": "steer", "message": message} for message in unheard]
        record["warnings"] += [{"code": "documents", "message": message} for message in doubts]
        events = (event for kind in QUESTION_WORDS for event in evaluator.ledger.events.of(evaluator.run, kind))
        useless = describe_unusable_replies((event.kind, event.key, event.body) for event in events)
        record["warnings"] += [{"code": "replies", "message": message} for message in useless]
        record["warnings"] += [{"code": "seal", "message": seal.refusal}] if seal.refusal else []
        spend = router.spend(evaluator.run).record()
        record |= {"ended": state["ended"] or None, "spend": spend, "report": "report.html"}
        return record | self._close(builder, [entry["id"] for entry in record["accepted"]], seal)

    def _answer_seal(self, builder: ResultsBuilder, reporter: ProgressReporter) -> SealAnswer:
        """Return whether the close opens the sealed days.

        Raises
        ------
        RunHalted
            The workspace's policy wants a person to agree, and nobody has decided.
        """
        evaluator = builder.evaluator
        wanted = self.settings.evidence.open_sealed
        asks = wanted and read_policy(evaluator.ledger.workspace).approve_seal
        answer = answer_seal(evaluator, builder.accepted_ids, wanted=wanted, must_ask=asks)
        if answer is None:
            raise reporter.pause_for_seal()
        return answer

    def _score_published(self, evaluator: Evaluator, reporter: ProgressReporter) -> list[dict[str, Any]]:
        """Score the published formulas on search days, once in a run; return the known effects that agents are told."""
        phase = "scoring published formulas"
        baseline = record_baseline(
            evaluator, lambda done, of: reporter.show(Progress(phase, message=f"{done} of {of}"))
        )
        if baseline is None:
            return []
        reporter.show(Progress("searching", message=describe_baseline(baseline)))
        return list_known_effects(baseline.formulas)

    def _report_silent_models(self, reporter: ProgressReporter) -> None:
        """Report models that cannot be called now: their agents would seem to work without any result."""
        hindered = asyncio.run(
            find_silent_models(self._find_allowed_models(self.settings.agents.sensitivity), {"offline"}, os.environ)
        )
        if hindered:
            message = "; ".join(hindered)
            reporter.show(Progress("looking for the models", message=message))
            reporter.event(message, {})

    async def _research(
        self,
        evaluator: Evaluator,
        own: Own,
        router: Router,
        reporter: ProgressReporter,
        known_effects: Sequence[dict[str, Any]],
    ) -> State:
        """Run the agents' graph over sessions on our own servers; return the state in which it ended or was paused."""
        from ..mcp_servers import open_own_sessions  # the protocol's library is slow to import

        ledger, run, settings = evaluator.ledger, evaluator.run, self.settings
        attendance = Attendance(lambda: reporter.report_doing(attendance.doing))
        try:
            async with (
                open_own_sessions(evaluator, self.clock) as sessions,
                self._open_documents(evaluator, own) as documents,
            ):
                search = SearchContext(
                    attendance.asker(router), attendance.tools(Toolset(sessions)), Journal(ledger, run), run,
                    settings.seed, settings.agents, settings.evidence.horizon_days,
                    reporter.event, reporter.is_halted, reporter.find_end_reason,
                    settings.budget.hypotheses, steer=settings.steer, own=own, documents=documents,
                    known_effects=known_effects,
                )  # fmt: skip  # a table
                return await run_graph(search, ledger.checkpoints(run), run, resume=True)
        finally:
            await router.close()

    @asynccontextmanager
    async def _open_documents(self, evaluator: Evaluator, own: Own) -> AsyncIterator[Documents | None]:
        """Open the store of the documents that agents may see."""
        ledger, settings = evaluator.ledger, self.settings
        allowed, _ = select_documents(own.documents, evaluator.windows.search.last_day)
        if not allowed:
            yield None
            return
        models = ", ".join(sorted({model.model for model in settings.models.models.values()}))
        with open_store(settings.context, ledger.workspace / CONTEXT_FILE, os.environ) as store:
            yield Documents(
                store, allowed, lambda name: ledger.objects.get(name).decode(), screen_text, settings.context, models
            )

    def _close(self, builder: ResultsBuilder, accepted: Sequence[str], seal: SealAnswer) -> dict[str, Any]:
        """Combine the accepted factors, examine and backtest the combination, and ask the risk gate what may trade."""
        evaluator = builder.evaluator
        folder = evaluator.ledger.runs.folder(evaluator.run)
        closing = close(evaluator, accepted, seal.opens, seal.reason)
        traded = trade(closing, evaluator.panel, self.settings.risk, evaluator.ledger, evaluator.engine)
        if traded:
            decision = traded.decision
            evaluator.ledger.events.record(evaluator.run, "risk", decision.id, decision.record())
        book_curve = closing.curve.record() if closing.curve else None
        curves = write_json(folder / "curves.json", builder.curves() | {"book": book_curve})
        evaluator.ledger.artefacts.record(evaluator.run, "curves.json", evaluator.ledger.objects.put(curves))
        combination = write_closing(closing, evaluator, folder)
        return {
            "combination": combination.record() if combination else None,
            "baseline": close_baseline(evaluator, closing.score, open_sealed=closing.sealed is not None),
            "sealed": closing.sealed,
            "book": closing.book.record() if closing.book else None,
            "stress": closing.stress,
            **self._reveal_truth(evaluator, builder, accepted, open_sealed=bool(closing.sealed)),
            "signals": self._summarise(traded, closing, evaluator),
        }

    def _summarise(self, traded: Trade | None, closing: Closing, evaluator: Evaluator) -> dict[str, Any] | None:
        """Return what the risk gate said at the close, and what it would have said on the days before it."""
        said, settings = summary(traded, evaluator.panel.dates[-1]), self.settings
        if said is None or traded is None:
            return None
        days = rehearse(closing, evaluator.panel, settings.evidence, settings.risk, evaluator.ledger, traded.doubt_e8)
        return {**said, "days": days}

    def _reveal_truth(
        self, evaluator: Evaluator, builder: ResultsBuilder, accepted: Sequence[str], *, open_sealed: bool
    ) -> dict[str, list[dict[str, Any]]]:
        """Return what is true of accepted factors and members on a synthetic market; empty on prices of a file."""
        market = self.settings.market.reveal(self.settings.seed)
        if market is None:
            return {}
        names = [*accepted, *sorted(builder.accepted_homes)]
        truths = find_planted_truth(evaluator, market, names, open_sealed=open_sealed)
        return {"truth": [truth.record() for truth in truths]}

    def _finish(self, ledger: Ledger, run: str, record: dict[str, Any]) -> TradedResult:
        folder = ledger.runs.folder(run)
        ledger.artefacts.record(run, "results.json", ledger.objects.put(write_json(folder / "results.json", record)))
        render = type(self).render
        report = render(self.settings, ledger, run) if render else None
        ledger.runs.finish(run, "done")
        return TradedResult(run, folder, record, report)

    def _describe_researcher(self) -> str:
        """Return the names of the models that proposed factors; the heuristic is named as one."""
        names = sorted({model.model for model in self.settings.models.models.values()})
        return "; ".join(OFFLINE_DESCRIPTION if name == OFFLINE_MODEL_NAME else name for name in names)
