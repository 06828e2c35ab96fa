"""The file that names models: router.yaml, or a campaign file with a section `models`; and who remarks by it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ....ledger import SettingsError
from ...errors import DeskError
from ...facts.model_spend import REMARK_MODELS
from ...facts.standing import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from ....agents import AgentsConfig
    from ....router import RouterConfig
    from ....router.calls import Sensitivity
    from ...remarks import Commentator, ModelRemark, RemarkQuestion


ROUTER_FILE = Path("router.yaml")
ROUTER_FILE_HINT = (
    "It holds `models: {NAME: {model: PROVIDER/MODEL}}` (docs/how-to/choose-models.md has one); a campaign file, which "
    "`alphaloom init` writes, does too."
)
RemarkFile = Annotated[
    Path | None,
    typer.Option(
        "--router",
        metavar="FILE",
        help="The router.yaml or campaign file whose local model is asked; router.yaml where it is there, else none.",
    ),
]
ConfidentialOption = Annotated[
    bool, typer.Option("--confidential", help="The text may go to models on your machines only.")
]


class NamedModels(NamedTuple):
    """The models of a file; of a campaign's file, its agents' settings too, which say where texts may go."""

    config: RouterConfig
    agents: AgentsConfig | None = None

    @property
    def of_campaign(self) -> bool:
        """Whether the file is a campaign's."""
        return self.agents is not None


def read_models(path: Path) -> NamedModels:
    """Read a router.yaml, or the section `models` of a campaign file; relative paths start from its folder."""
    if not path.exists():
        raise SettingsError(f"no file {path}", field=str(path), hint=ROUTER_FILE_HINT)
    from ....ledger import read_settings
    from ....ledger.files import read_text
    from ....router import RouterConfig

    if _is_campaign(read_text(path).value):
        from ....campaign import Settings

        settings = read_settings(path, Settings).beside(path.parent)
        return NamedModels(settings.models, settings.agents)
    return NamedModels(read_settings(path, RouterConfig).beside(path.parent))


def _is_campaign(content: Any) -> bool:
    """Return whether a file is a campaign file, even one with mistakes.

    The signs are the place of its models, or sections that no router.yaml has.
    """
    if not isinstance(content, Mapping):
        return False
    models = content.get("models")
    entries = models if isinstance(models, Mapping) else {}
    if any(isinstance(entry, Mapping) and isinstance(entry.get("model"), str) for entry in entries.values()):
        return False
    if isinstance(entries.get("models"), Mapping):
        return True
    from ....campaign import Settings
    from ....router import RouterConfig

    return bool(content.keys() & (Settings.model_fields.keys() - RouterConfig.model_fields.keys()))


def find_unknown_words(config: RouterConfig, roles: Collection[str | None] = ()) -> Iterator[str]:
    """Yield a sentence for each unknown intent or role: programs may declare their own, a person may have mistyped."""
    from ....router.classifier import INTENTS
    from ....router.policy import CALL_INTENTS, ROLE_INTENTS

    intents = [*config.routing.own_intents, *INTENTS]
    for name in config.routing.intents:
        if name not in {*intents, *CALL_INTENTS}:
            sentence = _describe_unknown(f"routing.intents: no such intent is known: {name}", name, intents)
            yield f"{sentence}. It counts only where a program declares it."
    names = list(dict.fromkeys((*config.routing.roles, *config.roles, *ROLE_INTENTS)))
    for role in sorted({role for role in roles if role}):
        if role not in {*names, *intents}:
            yield f"{_describe_unknown(f'no such role is known: {role}', role, names)}. The text alone decides."


def _describe_unknown(sentence: str, name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"{sentence}{f' (did you mean {near[0]}?)' if near else ''}; known: {', '.join(names)}"


@dataclass(frozen=True)
class RemarkSource:
    """Whose models remark in a command: those of a file, or of the current folder's router.yaml if there is one.

    `jurisdiction` is that of the text, "" for none.
    """

    file: Path | None
    workspace: Path | None
    confidential: bool
    jurisdiction: str = ""

    @property
    def place(self) -> Path | None:
        """The file; None where there is none."""
        return self.file or (ROUTER_FILE if ROUTER_FILE.is_file() else None)

    def ask(self, purpose: str, questions: Sequence[RemarkQuestion]) -> list[ModelRemark] | None:
        """Return the remarks in order, as a run of the workspace that pays; None where no model is named for them."""
        if self.place is None or not questions:
            return None if self.place is None else []
        from ....ledger import Ledger, Run, compute_digest

        named, now = read_models(self.place), datetime.now(UTC)
        commentator = self._build_commentator(named)
        if not all(map(commentator.is_named, questions)):
            return None
        run = f"{now:%Y%m%d-%H%M%S}-{purpose}-{compute_digest(now.isoformat())[:4]}"
        with Ledger.open(self.workspace or DEFAULT_WORKSPACE, clock=lambda: datetime.now(UTC)) as ledger:
            models = named.config.model_dump(mode="json")
            ledger.runs.start(Run(run, {REMARK_MODELS: models}, 0, "", now.isoformat()))
            remarks = commentator.ask(ledger, run, questions)
            ledger.runs.finish(run, "done")
        return remarks

    def require(self, purpose: str, questions: Sequence[RemarkQuestion]) -> list[ModelRemark]:
        """Return the remarks as `ask` does; refuse where no model is named for them.

        Raises
        ------
        DeskError
            With the role whose tier has no model.
        """
        remarks = self.ask(purpose, questions)
        if remarks is not None:
            return remarks
        role = questions[0].role if questions else "report"
        raise DeskError(
            "no model is named that may answer",
            field="--router",
            got=str(self.place) if self.place else "no router.yaml",
            allowed=f"a file with a model of tier local, or with roles: {{{role}: frontier}}",
            hint=ROUTER_FILE_HINT,
            code="no_model",
            exit_code=3,
        )

    def _build_commentator(self, named: NamedModels) -> Commentator:
        """Return the commentator, with the terms of a campaign's agents."""
        from ....router.calls import find_strictest
        from ...remarks import Commentator

        own: Sensitivity = "confidential" if self.confidential else "public"
        if named.agents is None:
            return Commentator(named.config, own, self.jurisdiction)
        agents = named.agents
        label = find_strictest([own, agents.sensitivity])
        return Commentator(named.config, label, self.jurisdiction or agents.jurisdiction, agents.tenant)
