"""A person's own parts of a search: seed formulas, hypotheses, prompt pages, and an agent."""

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
"""Characters of an error that are kept."""


class Seed(BaseModel):
    """A formula or Python factor to begin with, and its claim."""

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
    """A person's own parts as they were when the run began; stored with the run, so that a resumed one uses the same.

    `prompts` maps the name of a shipped page to the file that replaces it; `agent` is `module:function` or
    `file.py:function`; `documents` holds ids, under which the run stores the texts.
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
        """Return the parts that the settings name, each validated in full; `settings` and `seeds` read such files.

        Raises
        ------
        AlphaloomError
            A file cannot be used; the error lists every mistake in it. The agent is imported to check that it exists.
        """
        if steer.agent:
            find_agent(steer.agent)
        hypotheses = settings(steer.hypotheses, OwnHypotheses).hypotheses if steer.hypotheses else ()
        formulas = seeds(steer.seed_library) if steer.seed_library else []
        pages = read_folder(steer.prompts) if steer.prompts else {}
        return cls(
            seeds=tuple(Seed.model_validate(row) for row in formulas),
            hypotheses=hypotheses,
            prompts=pages,
            agent=steer.agent,
        )

    def pages(self) -> Mapping[str, Prompt]:
        """Return the person's own prompt pages by name."""
        return {name: read_prompt(name, body.encode()) for name, body in sorted(self.prompts.items())}

    def prompt(self, *names: str) -> Prompt:
        """Return the prompt of a role, with further pages; a person's own pages replace the shipped ones."""
        return load_prompts(*names, own=self.pages())

    def record(self) -> dict[str, Any]:
        """Return the parts as results record them: counts and digests, no path."""
        library = sha256("\n".join(seed.model_dump_json() for seed in self.seeds).encode()).hexdigest()
        counts = {
            "seed_library": {"factors": len(self.seeds), "digest": library} if self.seeds else None,
            "hypotheses": len(self.hypotheses),
            "agent": self.agent.replace("\\", "/").rpartition("/")[2],
            "documents": self._describe_documents(),
        }
        return {name: value for name, value in counts.items() if value} | {"prompts": self.describe_pages()}

    def _describe_documents(self) -> dict[str, Any]:
        """Return the number of documents, a digest of all, and the names of those held back."""
        if not self.documents:
            return {}
        ids = "\n".join(sorted(document.id for document in self.documents))
        held_back = [document.name for document in self.documents if document.held]
        return {"count": len(self.documents), "digest": sha256(ids.encode()).hexdigest(), "held": held_back}

    def describe_pages(self) -> dict[str, dict[str, str]]:
        """Return version, digest and origin of each role's page."""
        return {
            name: {
                "version": page.version,
                "digest": page.digest,
                "whose": "own" if name in self.prompts else "shipped",
            }
            for name in PROMPT_ROLES
            for page in [self.prompt(name)]
        }


@dataclass(frozen=True)
class View:
    """The input of a person's own agent: facts of the search window and the person's words, all frozen.

    Attributes
    ----------
    key, seed
        The name of this piece of work, such as `r03`, and its number; equal campaigns give equal ones. Random draws
        must use the seed, or a resumed run differs from an undisturbed one.
    round, count
        The round, from 1, and the largest number of hypotheses that is accepted.
    horizon_days
        Days over which factors are scored.
    goal, avoid, focus
        The person's words.
    fields, groups, operators
        The names that formulas may use; an operator is given as its signature with a sentence.
    record
        The record of past work that the Idea agent sees: `factors` with their search figures, `leaders`, `hypotheses`
        with their outcomes, `mechanisms`, `refusals`, `library`, and the other keys that `agents/prompts/idea.md`
        names.
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
    """Propose hypotheses beside the Idea agent, in each round.

    An async callable that takes a `View` and returns plain data, `{"hypotheses": [...]}`. Each hypothesis has the form
    of the Idea agent's reply (`agents/prompts/idea.md`). Known formulas go into its `candidates`, a list of objects
    with `text`, `rationale` and `intent`, of which only the text is required.

    A reply of another form, an exception or a timeout costs this round's hypotheses of this agent and nothing more.
    The agent is called once per round, and its answer is stored: a resumed run asks again only if the run stopped
    before that. It must not block the event loop for long.
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
    """Return the async callable that `module:function` or `file.py:function` names; its module is imported.

    Raises
    ------
    AgentError
        There is no such module, file or function, its import fails, or it is not an async callable.
    """
    where, _, attribute = name.rpartition(":")
    try:
        module = _import_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        agent = getattr(module, attribute)
    except Exception as error:  # a person's module may raise anything
        raise _make_error(name, f"cannot be imported: {type(error).__name__}: {error}") from error
    if not _is_async(agent):
        raise _make_error(name, "is no async function of one argument")
    return cast("OwnAgent", agent)


def _is_async(value: object) -> bool:
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None))  # noqa: B004 - the call itself may be a coroutine


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


def _make_error(name: str, why: str) -> AgentError:
    return AgentError(
        f"The agent {name.rpartition('/')[2]!r} {why}.",
        field="steer.agent",
        got=name.rpartition("/")[2],
        allowed="module:function or file.py:function, an async callable that takes a View",
        hint="See examples/own_agent.py.",
        code="own_part",
    )


def deep_freeze(value: Any) -> Any:
    """Return plain data made immutable: mappings read only, lists as tuples, at every depth."""
    if isinstance(value, dict):
        return MappingProxyType({key: deep_freeze(item) for key, item in value.items()})
    return tuple(deep_freeze(item) for item in value) if isinstance(value, (list, tuple)) else value


async def ask_own_agent(search: SearchContext, key: str, count: int, context: Json) -> list[Json]:
    """Return the hypotheses of the person's own agent, stored in the journal under the key; none if it failed.

    Parameters
    ----------
    context
        The Idea agent's context of the same round, in full: numbers with all their digits, operators with their
        signatures.
    """
    view = _build_view(search, key, count, context)

    async def produce() -> Json:
        try:
            answer = await asyncio.wait_for(search.guest(view), search.steer.agent_timeout_s)
            reply = OwnReply.model_validate(answer)
        except ValidationError as error:
            return {"failed": _describe_mistakes(error)}
        except TimeoutError:
            return {"failed": f"no answer within {search.steer.agent_timeout_s:g} seconds (steer.agent_timeout_s)"}
        except Exception as error:  # noqa: BLE001 - a person's code may raise anything; it costs this round's hypotheses
            return {"failed": f"{type(error).__name__}: {error}"[:MAX_FAILURE_CHARS]}
        return reply.model_dump(mode="json")

    reply_body = await search.record_once("own_agent", key, produce)
    if "failed" in reply_body:
        search.progress("own_agent", {"round": context["request"]["round"], "failed": reply_body["failed"]})
    return list(reply_body.get("hypotheses", []))[:count]


def _build_view(search: SearchContext, key: str, count: int, context: Json) -> View:
    steer, language = search.steer, context["language"]
    return View(
        key=key,
        seed=search.seed_for(f"{key}/own"),
        round=context["request"]["round"],
        count=count,
        horizon_days=search.horizon_days,
        goal=steer.goal,
        avoid=steer.avoid,
        focus=steer.focus,
        fields=tuple(language["fields"]),
        groups=tuple(language["groups"]),
        operators=tuple(str(operator) for operator in language["operators"]),
        record=deep_freeze(context["record"]),
    )


def _describe_mistakes(error: ValidationError) -> str:
    """Return pydantic's errors in one line."""
    messages = [
        f"{'.'.join(map(str, mistake['loc'])) or 'reply'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False)
    ]
    return "; ".join(messages)[:MAX_FAILURE_CHARS]
