"""A model's remark on a run: asked once when the run closes, kept beside the results and never in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agents import Own
from ..ledger import write_json
from ..ledger.files import write_whole
from ..router.calls import find_strictest
from .report.baseline import worth_sentence
from .report.conclusion import conclude, verdict_sentence
from .report.report import REMARK_FILE, read_results

if TYPE_CHECKING:
    from ..campaign import Settings
    from ..evaluation.closing import Results
    from ..ledger import Ledger
    from ..router.calls import Sensitivity


def add_run_remark(settings: Settings, ledger: Ledger, run: str) -> None:
    """Write `remark.json` of a run whose results are recorded; none where its file names no model for it.

    A run that is closed again, after it was killed here, keeps the remark that it has.
    """
    folder = ledger.runs.folder(run)
    recorded = ledger.artefacts.read(run, REMARK_FILE)
    if recorded is not None:
        write_whole(folder / REMARK_FILE, recorded)
        return
    from .remarks import Commentator, RemarkQuestion

    agents = settings.agents
    label = _find_label(settings, ledger, run)
    commentator = Commentator(settings.models, label, agents.jurisdiction, agents.tenant)
    question = RemarkQuestion.about_run(list_sentences(read_results(folder)))
    if commentator.is_named(question):
        (remark,) = commentator.ask(ledger, run, [question])
        body = write_json(folder / REMARK_FILE, remark.record())
        ledger.artefacts.record(run, REMARK_FILE, ledger.objects.put(body))


def list_sentences(results: Results) -> list[str]:
    """Return the report's own words on a run, which a model is asked to say in plain ones."""
    return [line for line in (verdict_sentence(results), *conclude(results), worth_sentence(results)) if line]


def _find_label(settings: Settings, ledger: Ledger, run: str) -> Sensitivity:
    """Return the strictest label of what a run's agents may have been told."""
    own = Own.model_validate(ledger.runs.find(run).config.get("own", {}))
    return find_strictest([settings.agents.sensitivity, *(one.sensitivity for one in own.documents if not one.held)])
