"""One factor scored by hand, and the agents' servers for any other client: the campaign's parts without a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ..campaign import WORKSPACE, Settings
from ..evidence import Bench, Budget, Claim, Evaluator, Proposal
from ..factors import MarketSettings
from ..ledger import Ledger, Run, digest
from .errors import GateRefused

__all__ = ["score_factor", "serve"]

BY_HAND = "submitted by hand, with no hypothesis but its own direction on the search window"


@contextmanager
def opened(purpose: str, workspace: Path | None, *, recorded: bool, market: MarketSettings) -> Iterator[Evaluator]:
    """Open an evaluation service on a panel file, or on the default synthetic market.

    Only what records something becomes a run of the workspace; a plain score leaves no trace but its windows.
    """
    settings = Settings()
    panel, dataset = market.open(settings.seed)
    clock = datetime.now(UTC)
    with Ledger.open(workspace or WORKSPACE, clock=lambda: datetime.now(UTC)) as ledger:
        bench = Bench.set_up(panel, ledger, settings.evidence, dataset)
        name = f"{clock:%Y%m%d-%H%M%S}-{purpose}-{digest(clock.isoformat())[:4]}"
        evaluator = bench.evaluator(name, Budget(evaluations=100_000, trials=1_000))
        if not recorded:
            yield evaluator
            return
        ledger.start_run(Run(name, {"panel": panel.digest}, settings.seed, dataset, clock.isoformat()))
        with ledger.lock(name):
            yield evaluator
        ledger.finish_run(name, "done")


def score_factor(
    text: str,
    *,
    panel: Path | None,
    sectors: Path | None,
    workspace: Path | None,
    gate: bool,
    as_of: date | None = None,
) -> dict[str, Any]:
    """Return a factor's sheet on the search window; with `gate`, put it before the gate, which spends a trial.

    Raises
    ------
    ParseError
        What is wrong with the formula, and where.
    GateRefused
        A step before scoring refused it, so that no trial was spent.
    """
    with opened("score", workspace, recorded=gate, market=MarketSettings().given(panel, sectors, as_of)) as evaluator:
        sheet = evaluator.score(text)
        return {**sheet, "gate": _gated(evaluator, text, sheet)} if gate else sheet


def _gated(evaluator: Evaluator, text: str, sheet: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, with its numbers: a person who spends a trial by hand may see what it showed."""
    direction = -1 if (sheet["rank_ic"] or 0.0) < 0 else 1
    horizon = evaluator.settings.horizon_days
    fields = tuple(sorted(evaluator.read(text).fields))
    claim = Claim(f"by-hand-{sheet['id']}", "by hand", BY_HAND, direction, horizon, fields)
    answer = evaluator.propose(Proposal(text, claim, "by-hand"))
    if not answer["ok"]:
        said = "; ".join(error["message"] for error in answer["errors"])
        raise GateRefused(f"The gate refused it at {answer['stage']}: {said}", field="EXPR", got=text)
    verdict = evaluator.submit([answer["id"]])[0]
    reasons = [reason.record() for reason in verdict.reasons]
    return {"verdict": verdict.word, "trial": verdict.trial, "reasons": reasons, "selection": verdict.selection}


def serve(server: str, *, panel: Path | None, sectors: Path | None, workspace: Path | None) -> None:
    """Serve one of the agents' MCP servers over standard input and output until the client hangs up."""
    from ..mcp_servers import build_server

    market = MarketSettings().given(panel, sectors, None)
    with opened(f"serve-{server}", workspace, recorded=True, market=market) as evaluator:
        build_server(server, evaluator).run("stdio")
