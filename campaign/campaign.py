"""The wiring: the rooms in the order a factor meets them."""

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

from pydantic import BaseModel, ConfigDict, Field, field_validator

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
from ..agents.offline import OFFLINE_DESCRIPTION, make_researcher
from ..evaluation import (
    Budget,
    CampaignResult,
    Evaluator,
    PanelContext,
    ResultsBuilder,
    begin_run,
    close,
    find_campaign,
    refuse_other_stream,
    write_closing,
)
from ..evaluation.checks import record_first_power
from ..evidence import RECORDED_CONTEXT, EvidenceSettings, complete_settings
from ..evidence.values import LazySandbox, SandboxSettings
from ..factors import MarketSettings, warm_up
from ..ledger import AlphaloomError, Journal, Ledger, count_stops, read_json, read_settings, write_json
from ..market import ALL_FIELDS, Panel, drop_fields, find_withheld_fields
from ..news import screen_text
from ..risk import Policy
from ..router import Confidential, ModelSettings, Router
from ..router.calls import Sensitivity, find_strictest
from ..router.context import ContextSettings, open_store, read_documents
from ..router.endpoints import find_silent_models, refuse_keyless
from ..router.policy import bar_reason
from ..sandbox import draw_seed
from ..search import SearchConstraints, read_seeds
from .progress import Progress
from .progress_reporter import STATUS_RUNNING, ProgressReporter, refuse_undecided
from .trade import summary, trade

WORKSPACE = Path(".alphaloom")
CONTEXT_FILE = "context.db"
"""File of a workspace: what was worked out of documents; made again where it is missing."""
Clock = Callable[[], datetime]
Show = Callable[[Progress], None]


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
    risk: Policy = Policy()

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
            raise ValueError("should be of small letters a to z, digits and hyphens, no hyphen first, 41 at most")
        return name

    @classmethod
    def recorded(cls, kept: Mapping[str, Any]) -> Self:
        """Read the settings that a run wrote down, also those of an older version."""
        return cls.model_validate(
            {**kept, "evidence": complete_settings(kept["evidence"])}, context={RECORDED_CONTEXT: True}
        )

    def on(self, market: MarketSettings) -> Settings:
        """Return the settings with another market."""
        return self.model_copy(update={"market": market})

    def beside(self, folder: Path) -> Settings:
        """Return the settings with paths that start from a folder made absolute."""
        named = {name: getattr(self, name).beside(folder) for name in ("market", "steer", "context", "models")}
        return self.model_copy(update=named)


@dataclass(frozen=True)
class Campaign:
    """One search: its settings, its workspace, its clocks; `run_id` names a run to go on with.

    `draw` gives the seed of the screens of Python code, which no author may know. `ledger` is the address of the PostgreSQL
    database that keeps the record of a new workspace; without one it is a file there.
    """

    settings: Settings
    workspace: Path = WORKSPACE
    run_id: str = ""
    clock: Clock = lambda: datetime.now(UTC)
    draw: Callable[[], int] = draw_seed
    ledger: str = ""
    render: ClassVar[Callable[[Path], Path] | None] = None

    @classmethod
    def from_yaml(  # noqa: PLR0913  the options of `alphaloom run`
        cls, path: str | Path, *, panel: str | Path | None = None, sectors: str | Path | None = None,
        as_of: date | None = None, seed: int | None = None, workspace: str | Path | None = None,
        overrides: Sequence[str] = (), ledger: str = "",
    ) -> Self:  # fmt: skip
        """Read a campaign file; what is given here goes before it, and `overrides` are `"budget.trials=4"` and the like.

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
        """Return the same campaign with its Python factors run elsewhere; None leaves what its settings say."""
        sandbox = self.settings.sandbox.given(executor, backend)
        return replace(self, settings=self.settings.model_copy(update={"sandbox": sandbox}))

    @classmethod
    def resume(
        cls, run: str, *, workspace: Path | None = None, progress: Show | None = None,
        where: tuple[str | None, str | None] = (None, None),
    ) -> CampaignResult:  # fmt: skip
        """Go on with a run that was interrupted; a finished one is read again. `where` is as for `contained`."""
        place = workspace or WORKSPACE
        with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
            row = find_campaign(ledger, run)
            folder = ledger.files(row.id) if row.status == "done" else ledger.run_folder(row.id)
            refuse_undecided(ledger, row)
            if row.status == "done":
                ledger.check_files(row.id)
        if row.status == "done":
            return CampaignResult(row.id, folder, read_json(folder / "results.json"), folder / "report.html")
        settings = Settings.recorded(row.config["settings"])
        return cls(settings, place, row.id).contained(*where).run(progress)

    def run(self, progress: Show | None = None) -> CampaignResult:
        """Run the campaign to its end and write results.json, curves.json and the report."""
        show = progress or (lambda _: None)
        if not self.run_id:  # what a run still needs may be on record already
            refuse_keyless(self._asked(self.settings.agents.sensitivity), os.environ)
        own, texts = (Own(), {}) if self.run_id else self._read_own_inputs(show)
        show(Progress("reading the market"))
        panel, dataset = self.settings.market.open(self.settings.seed)
        panel = self._told(panel)
        with (
            Ledger.open(self.workspace, clock=self.clock, address=self.ledger) as ledger,
            LazySandbox(self.settings.sandbox) as jail,
        ):
            jail.ready(needed=self.settings.agents.python)
            self.recognise(ledger, panel)
            python, steer = self.settings.agents.python, self.settings.steer
            SearchConstraints(steer.fields).fit(panel)
            bench = PanelContext.set_up(panel, ledger, self.settings.evidence, dataset, runner=jail)
            if not self.run_id:
                refuse_other_stream(ledger, bench.windows, self.settings.evidence)
            for text in texts.values():
                ledger.put(text.encode())
            run = self.run_id or begin_run(
                self.settings, ledger, panel, (dataset, self.clock(), self.draw()), own.model_dump(mode="json")
            )
            heard = count_stops(ledger, run)
            own = Own.model_validate(ledger.run(run).config.get("own", {}))
            mandate = SearchConstraints(steer.fields, steer.avoid, frozenset(seed.text for seed in own.seeds))
            with ledger.lock(run):
                ledger.finish_run(run, STATUS_RUNNING)
                warm_up(lambda line: show(Progress("compiling the kernels", message=line)))
                settings = self.settings
                evaluator = bench.evaluator(
                    run, settings.budget, python=python, mandate=mandate, approve=settings.approve
                )
                attention = ProgressReporter(evaluator, settings.agents.rounds, show, self.clock, heard)
                result = self._finish(ledger, run, self._search(evaluator, own, attention))
                attention.note("done")
                return result

    def _read_own_inputs(self, show: Show) -> tuple[Own, dict[str, str]]:
        """Return what the person brings along, and the texts of the documents in it by their ids."""
        own, context = Own.gather(self.settings.steer, read_settings, read_seeds), self.settings.context
        if context.documents:
            show(Progress("reading the documents"))
        given, texts = read_documents(context, self.settings.agents.sensitivity, screen_text)
        if given:
            self._asked(find_strictest(each.sensitivity for each in given if not each.held))
        return own.model_copy(update={"documents": tuple(given)}), texts

    def _asked(self, label: Sensitivity) -> dict[str, ModelSettings]:
        """Return the models that may be told what bears a label."""
        models, agents = self.settings.models.models, self.settings.agents
        bound = find_strictest([agents.sensitivity, label]), agents.jurisdiction
        asked = {
            name: model for name, model in models.items() if not bar_reason(model, *bound, bool(model.attestation))
        }
        if not asked:
            raise Confidential(
                "no model of this campaign may be told what its agents ask", field="models.models",
                got=[f"{name} ({model.place})" for name, model in models.items()], allowed="a model with place: local, "
                "or place: attested with an attestation",
                hint="Add one, or change agents.sensitivity, agents.jurisdiction or the labels of context.documents.",
            )  # fmt: skip
        return asked

    def _told(self, panel: Panel) -> Panel:
        """Return the panel as agents may be told of it: marked fields go to no model that may not see them.

        What agents ask goes only where its label lets it (`eligibility.barred`), so the models that it reaches bear that label.
        """
        agents = self.settings.agents
        asked = self._asked(agents.sensitivity)
        away = sorted(name for name, model in asked.items() if model.place != "local")
        borne = ["confidential"] if agents.sensitivity == "confidential" else []
        borne += [f"jurisdiction:{agents.jurisdiction}"] if agents.jurisdiction else []
        found = find_withheld_fields(panel, self.settings.market.labels, borne) if away else frozenset()
        if ALL_FIELDS in found:
            raise AlphaloomError(
                "This data is marked, and a model that is not local would be told of it.", field="market.labels",
                got=away, allowed="models with place: local",
                hint="Leave the others out of models.models, or let agents.sensitivity be confidential.",
            )  # fmt: skip
        return drop_fields(panel, found)

    def recognise(self, ledger: Ledger, panel: Panel) -> None:
        """Check that a resumed run still sees the same data, before anything is fixed for other data."""
        known = ledger.run(self.run_id).config["panel"] if self.run_id else panel.digest
        if known != panel.digest:
            raise AlphaloomError(
                "The panel is not the one that this run began with.", field="panel", got=panel.digest[:12],
                allowed=known[:12], hint="Restore the file, or start a new run.",
            )  # fmt: skip

    def _search(self, evaluator: Evaluator, own: Own, attention: ProgressReporter) -> dict[str, Any]:
        """Let the agents search, then close: combination, seal, book, risk gate; write what came of it.

        Raises
        ------
        RunHalted
            The search rests; it is gone on with by `resume`.
        """
        evaluator.begin()
        unheard = self.settings.models.find_unmatched(self.settings.steer)
        _, doubts = select_documents(own.documents, evaluator.windows.search.last_day)
        for said in [*record_first_power(evaluator), *unheard, *doubts]:
            attention.show(Progress("searching", message=said))
        self._look(attention)
        router = Router(
            self.settings.models, evaluator.ledger, providers={"offline": make_researcher}, clock=self.clock
        )
        with evaluator.ledger.explained(evaluator.run), silence_interruption():
            state = asyncio.run(self._research(evaluator, own, router, attention))
        if state["waiting"] or not state["finished"]:
            raise attention.rest()
        attention.say("closing", "combination, book, risk gate, report")
        dossier = ResultsBuilder(evaluator)
        record = dossier.record() | {"format": 1, "seed": self.settings.seed, "researcher": self._researcher()}
        record |= {"steer": self.settings.steer.record(), "own": own.record()}
        record["warnings"] += [{"code": "steer", "message": said} for said in unheard]
        record["warnings"] += [{"code": "documents", "message": said} for said in doubts]
        written = (each for kind in QUESTION_WORDS for each in evaluator.ledger.events(evaluator.run, kind))
        useless = describe_unusable_replies((each.kind, each.key, each.body) for each in written)
        record["warnings"] += [{"code": "replies", "message": said} for said in useless]
        spend = router.spend(evaluator.run).record()
        record |= {"ended": state["ended"] or None, "spend": spend, "report": "report.html"}
        return record | self._close(evaluator, dossier, [entry["id"] for entry in record["accepted"]])

    def _look(self, attention: ProgressReporter) -> None:
        """Say which models cannot be asked now: else a person sees agents think, and nothing come of it."""
        hindered = asyncio.run(
            find_silent_models(self._asked(self.settings.agents.sensitivity), {"offline"}, os.environ)
        )
        if hindered:
            said = "; ".join(hindered)
            attention.show(Progress("looking for the models", message=said))
            attention.event(said, {})

    async def _research(self, evaluator: Evaluator, own: Own, router: Router, attention: ProgressReporter) -> State:
        """Run the agents' graph over sessions on our own servers; return the state in which it ended, or rests."""
        from ..mcp_servers import open_own_sessions  # the protocol's library is slow to start

        ledger, run, settings = evaluator.ledger, evaluator.run, self.settings
        seen = Attendance(lambda: attention.seen(seen.doing))
        try:
            async with (
                open_own_sessions(evaluator, self.clock) as sessions,
                self._documents(evaluator, own) as documents,
            ):
                desk = SearchContext(
                    seen.asker(router), seen.tools(Toolset(sessions)), Journal(ledger, run), run, settings.seed,
                    settings.agents, settings.evidence.horizon_days, attention.event, attention.halted, attention.ended,
                    settings.budget.hypotheses, steer=settings.steer, own=own,
                    documents=documents,
                )  # fmt: skip
                return await run_graph(desk, ledger.checkpoints(run), run, resume=True)
        finally:
            await router.close()

    @asynccontextmanager
    async def _documents(self, evaluator: Evaluator, own: Own) -> AsyncIterator[Documents | None]:
        """Open what was worked out of the documents that agents may be told of."""
        ledger, settings = evaluator.ledger, self.settings
        told, _ = select_documents(own.documents, evaluator.windows.search.last_day)
        if not told:
            yield None
            return
        models = ", ".join(sorted({model.model for model in settings.models.models.values()}))
        with open_store(settings.context, ledger.workspace / CONTEXT_FILE, os.environ) as store:
            yield Documents(store, told, lambda name: ledger.get(name).decode(), screen_text, settings.context, models)

    def _close(self, evaluator: Evaluator, dossier: ResultsBuilder, accepted: Sequence[str]) -> dict[str, Any]:
        """Combine what was accepted, examine and trade it on paper, and ask the risk gate what may be traded."""
        folder = evaluator.ledger.run_folder(evaluator.run)
        closing = close(evaluator, accepted, self.settings.evidence.open_sealed)
        decision = trade(closing, evaluator.panel, self.settings.risk)
        if decision:
            evaluator.ledger.record_event(evaluator.run, "risk", decision.id, decision.record())
        alarms = sorted({*accepted} & {*dossier.alarms()} - {*self.settings.evidence.acknowledged})
        book_curve = closing.curve.record() if closing.curve else None
        curves = write_json(folder / "curves.json", dossier.curves() | {"book": book_curve})
        evaluator.ledger.record_artefact(evaluator.run, "curves.json", evaluator.ledger.put(curves))
        combination = write_closing(closing, evaluator, folder)
        return {
            "combination": combination.record() if combination else None,
            "sealed": closing.sealed,
            "book": closing.book.record() if closing.book else None,
            "stress": closing.stress,
            "signals": summary(decision, alarms, evaluator.panel.dates[-1]),
        }

    def _finish(self, ledger: Ledger, run: str, record: dict[str, Any]) -> CampaignResult:
        folder = ledger.run_folder(run)
        ledger.record_artefact(run, "results.json", ledger.put(write_json(folder / "results.json", record)))
        render = type(self).render
        report = render(folder) if render else None
        ledger.finish_run(run, "done")
        return CampaignResult(run, folder, record, report)

    def _researcher(self) -> str:
        """Say what proposed the factors: a heuristic is named as one."""
        names = sorted({model.model for model in self.settings.models.models.values()})
        return "; ".join(OFFLINE_DESCRIPTION if name == OFFLINE_MODEL_NAME else name for name in names)
