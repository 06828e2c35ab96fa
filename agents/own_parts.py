"""What a person brings along: formulas to begin with, hypotheses, prompt pages, and an agent of their own."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..router.context import CampaignDocument
from .errors import AgentError
from .prompt import Prompt, load_prompts, read_folder, read_prompt
from .schemas import FormulaSource, Hypothesis, Record, ReplyWords

if TYPE_CHECKING:
    from .search_context import Json, SearchContext

Seeds = Callable[[Path], Sequence[Mapping[str, Any]]]
"""Reads a file of formulas."""

PROMPT_ROLES = ("idea", "factor", "eval")

MAX_FAILURE_CHARS = 500
"""Characters that are kept of an error."""


class Seed(BaseModel):
    """A formula or Python factor to begin with, and what it is said to show."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=8_000)
    direction: Literal[1, -1] = 1
    mechanism: str = Field(default="seed_library", min_length=1, max_length=80)
    statement: str = Field(default="A factor of the person who runs this desk, as it was given.", max_length=2_000)


class OwnHypotheses(BaseModel):
    """A person's file of hypotheses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hypotheses: tuple[Hypothesis, ...] = Field(max_length=1_000)


class OwnPartSettings(Protocol):
    """The settings that name a person's own parts."""

    seed_library: Path | None
    hypotheses: Path | None
    prompts: Path | None
    agent: str


class Own(BaseModel):
    """All that a person brings along, as it stood when the run began; kept with the run, so that a resumed one has the same.

    `prompts` are whole files by the name of the page that they replace; `agent` is `module:function` or `file.py:function`; of
    `documents` the ids, under which the run keeps their texts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seeds: tuple[Seed, ...] = Field(default=(), max_length=2_000)
    hypotheses: tuple[Hypothesis, ...] = ()
    prompts: dict[str, str] = {}
    agent: str = ""
    documents: tuple[CampaignDocument, ...] = ()

    @classmethod
    def gather(
        cls, steer: OwnPartSettings, settings: Callable[[Path, type[OwnHypotheses]], OwnHypotheses], seeds: Seeds
    ) -> Own:
        """Return the parts that the settings name, each checked whole; `settings` and `seeds` read such files.

        Raises
        ------
        AlphaloomError
            A file cannot be used: every mistake in it at once. The agent is imported to see that it is there.
        """
        if steer.agent:
            find_agent(steer.agent)
        said = settings(steer.hypotheses, OwnHypotheses).hypotheses if steer.hypotheses else ()
        formulas = seeds(steer.seed_library) if steer.seed_library else []
        pages = read_folder(steer.prompts) if steer.prompts else {}
        return cls(
            seeds=tuple(Seed.model_validate(row) for row in formulas), hypotheses=said, prompts=pages, agent=steer.agent
        )

    def pages(self) -> Mapping[str, Prompt]:
        """Return the person's own prompt pages by name."""
        return {name: read_prompt(name, body.encode()) for name, body in sorted(self.prompts.items())}

    def prompt(self, *names: str) -> Prompt:
        """Return the prompt of a role, with further pages, in the person's own words where there are any."""
        return load_prompts(*names, own=self.pages())

    def record(self) -> dict[str, Any]:
        """Return what results say of it: how much there is, and digests; no path."""
        library = sha256("\n".join(seed.model_dump_json() for seed in self.seeds).encode()).hexdigest()
        told = {
            "seed_library": {"factors": len(self.seeds), "digest": library} if self.seeds else None,
            "hypotheses": len(self.hypotheses),
            "agent": self.agent.replace("\\", "/").rpartition("/")[2],
            "documents": self._documents(),
        }
        return {name: value for name, value in told.items() if value} | {"prompts": self.describe_pages()}

    def _documents(self) -> dict[str, Any]:
        """Return how many documents there are, a digest of all, and the names of those held back."""
        if not self.documents:
            return {}
        ids = "\n".join(sorted(each.id for each in self.documents))
        held = [each.name for each in self.documents if each.held]
        return {"count": len(self.documents), "digest": sha256(ids.encode()).hexdigest(), "held": held}

    def describe_pages(self) -> dict[str, dict[str, str]]:
        """Return version and digest of each role's page, and whose it is."""
        return {
            name: {
                "version": page.version, "digest": page.digest, "whose": "own" if name in self.prompts else "shipped"
            }
            for name in PROMPT_ROLES
            for page in [self.prompt(name)]
        }  # fmt: skip


# An agent of one's own.


@dataclass(frozen=True)
class View:
    """What an agent of one's own may see: facts of the search window and the person's words, all of it frozen.

    Attributes
    ----------
    key, seed
        The name of this piece of work, such as `r03`, and its number: equal campaigns give equal ones. Whatever is drawn
        must be drawn from the seed, or a resumed run differs from an undisturbed one.
    round, count
        The round, from 1, and how many hypotheses are taken at most.
    horizon_days
        Days over which factors are scored.
    goal, avoid, focus
        The person's words.
    fields, groups, operators
        What formulas may be made of; an operator is given as its signature with a sentence.
    record
        What the Idea agent is told of the past: `factors` with their search figures, `leaders`, `hypotheses` with what
        became of them, `mechanisms`, `refusals`, `library`, and what else `agents/prompts/idea.md` names.
    """

    key: str
    seed: int
    round: int
    count: int
    horizon_days: int
    goal: str
    avoid: tuple[str, ...]
    focus: tuple[str, ...]
    fields: tuple[str, ...]
    groups: tuple[str, ...]
    operators: tuple[str, ...]
    record: Mapping[str, Any]


class OwnAgent(Protocol):
    """Proposes hypotheses beside the Idea agent, in each round.

    An async callable that takes a `View` and returns plain data, `{"hypotheses": [...]}`, each as the Idea agent's reply
    has it (`agents/prompts/idea.md`), with `candidates` where the formulas are known already: a list of
    `{"text": ..., "rationale": ..., "intent": ...}`, of which only the text is needed. What else is returned, raised, or
    not returned in time costs this round's hypotheses of this agent and nothing more. It is called once per round, and its
    answer is kept: a resumed run asks again only where the run stopped before the answer was kept. It must not block the
    event loop for long.
    """

    async def __call__(self, view: View, /) -> Mapping[str, Any]:
        """Return hypotheses."""


class GivenCandidate(Record):
    """A formula that an agent of one's own gives with its hypothesis."""

    text: FormulaSource = Field(min_length=1, max_length=8_000)
    rationale: ReplyWords = Field(default="", max_length=1_000)
    intent: ReplyWords = Field(default="explore", max_length=80)


class GivenHypothesis(Hypothesis):
    """A hypothesis, with formulas where they are known already."""

    candidates: list[GivenCandidate] = Field(default=[], max_length=64)


class OwnReply(Record):
    """The reply of an agent of one's own."""

    hypotheses: list[GivenHypothesis] = Field(max_length=64)


def find_agent(name: str) -> OwnAgent:
    """Return the async callable that `module:function` or `file.py:function` names; importing it runs its module.

    Raises
    ------
    AgentError
        There is no such module, file or function, its import fails, or it is no async callable.
    """
    where, _, attribute = name.rpartition(":")
    try:
        module = _import_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        found = getattr(module, attribute)
    except Exception as error:  # a person's module may raise anything
        raise _unusable(name, f"cannot be imported: {type(error).__name__}: {error}") from error
    if not _is_async(found):
        raise _unusable(name, "is no async function of one argument")
    return cast("OwnAgent", found)


def _is_async(found: object) -> bool:
    return inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None))  # noqa: B004 - the call itself may be a coroutine


def _import_file(path: Path) -> object:
    name = f"alphaloom_own_{sha256(str(path).encode()).hexdigest()[:12]}"
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise ImportError(f"{path.name} is not a regular file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python file {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles of the module look for it there
    spec.loader.exec_module(module)
    return module


def _unusable(name: str, why: str) -> AgentError:
    return AgentError(
        f"The agent {name.rpartition('/')[2]!r} {why}.", field="steer.agent", got=name.rpartition("/")[2],
        allowed="module:function or file.py:function, an async callable that takes a View",
        hint="See examples/own_agent.py.", code="own_part",
    )  # fmt: skip


def deep_freeze(value: Any) -> Any:
    """Return plain data that nobody can change: mappings read only, lists as tuples, all the way down."""
    if isinstance(value, dict):
        return MappingProxyType({key: deep_freeze(each) for key, each in value.items()})
    return tuple(deep_freeze(each) for each in value) if isinstance(value, (list, tuple)) else value


async def ask_own_agent(desk: SearchContext, key: str, count: int, context: Json) -> list[Json]:
    """Return the hypotheses of the person's own agent, kept in the journal under the key; none where it failed.

    Parameters
    ----------
    context
        What the Idea agent is told in the same round; a program is told it whole, numbers with all their digits and operators
        with their signatures.
    """
    view = _view(desk, key, count, context)

    async def produce() -> Json:
        try:
            said = await asyncio.wait_for(desk.guest(view), desk.steer.agent_timeout_s)
            reply = OwnReply.model_validate(said)
        except ValidationError as error:
            return {"failed": _describe_mistakes(error)}
        except TimeoutError:
            return {"failed": f"no answer within {desk.steer.agent_timeout_s:g} seconds (steer.agent_timeout_s)"}
        except Exception as error:  # noqa: BLE001 - a person's code may raise anything; it costs this round's hypotheses
            return {"failed": f"{type(error).__name__}: {error}"[:MAX_FAILURE_CHARS]}
        return reply.model_dump(mode="json")

    kept = await desk.record_once("own_agent", key, produce)
    if "failed" in kept:
        desk.progress("own_agent", {"round": context["request"]["round"], "failed": kept["failed"]})
    return list(kept.get("hypotheses", []))[:count]


def _view(desk: SearchContext, key: str, count: int, context: Json) -> View:
    steer, spoken = desk.steer, context["language"]
    return View(
        key=key,
        seed=desk.seed_for(f"{key}/own"),
        round=context["request"]["round"],
        count=count,
        horizon_days=desk.horizon_days,
        goal=steer.goal,
        avoid=steer.avoid,
        focus=steer.focus,
        fields=tuple(spoken["fields"]),
        groups=tuple(spoken["groups"]),
        operators=tuple(str(each) for each in spoken["operators"]),
        record=deep_freeze(context["record"]),
    )


def _describe_mistakes(error: ValidationError) -> str:
    """Return pydantic's mistakes in a line."""
    told = [f"{'.'.join(map(str, each['loc'])) or 'reply'}: {each['msg']}" for each in error.errors(include_url=False)]
    return "; ".join(told)[:MAX_FAILURE_CHARS]
