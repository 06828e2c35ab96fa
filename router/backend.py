"""LiteLLM, and nothing else of this room: loaded late and quietly, asked for one attempt at one model at a time."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..ledger import canonical_json
from .budget import Amount
from .config import ModelSettings, RouterConfig
from .endpoints import Endpoints
from .errors import NoModel
from .failover import LONGEST_PAUSE_S, Call, Course
from .failures import Missed
from .redaction import Redactor, guard
from .replies import Answer, Beside, constraint, fits
from .route import Route, secret, wants_key
from .task import Task
from .timing import Timing

Providers = Mapping[str, Callable[[], Any]]
"""Makers of custom providers (`litellm.CustomLLM`) by the word before the slash in a model's name."""

DRIPPING = 2.0
"""Times its time that a call may take in all."""

_aliases = itertools.count(1)


@cache
def load_litellm() -> Any:
    """Return LiteLLM, loaded without a price-list download, a `.env` file, telemetry, or its warnings.

    The load takes seconds and about 180 MB, hence it happens when a model is first asked. LiteLLM builds some of its
    schemas at its first call, with more warnings: one mock call has them over with.
    """
    if "litellm" not in sys.modules:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm: Any = importlib.import_module("litellm")
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        if "LITELLM_LOG" not in os.environ:  # what matters reaches us as an exception
            for name in ("LiteLLM", "LiteLLM Router"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        hello = [{"role": "user", "content": "hello"}]
        litellm.completion(model="openai/none", messages=hello, mock_response="hello", api_key="none")
        handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        handlers.AsyncHTTPHandler.single_connection_post_request = _not_again
    return litellm


async def _not_again(*_: Any, **__: Any) -> Any:
    """Stand in for LiteLLM's second sending of a request whose connection broke.

    Its servers would see such a call twice, whatever its retries say, and a paid one might be paid twice unseen.
    """
    raise ConnectionError("the connection broke before an answer came")


class Backend:
    """Sends a task's messages to a route's models."""

    def __init__(
        self,
        config: RouterConfig,
        providers: Providers,
        environment: Mapping[str, str],
        timing: Timing | None = None,
    ) -> None:
        self._config = config
        self._environment = environment
        self._timing = timing or Timing()
        self._litellm = load_litellm()
        self._aliases = {name: self._register(make()) for name, make in providers.items()}
        self._keys = {name: self._key(each) for name, each in config.models.items()}
        self.redact = Redactor(filter(None, self._keys.values()))
        guard(filter(None, self._keys.values()))
        self._pinned: dict[str, str] = {}
        self._pins: tempfile.TemporaryDirectory[str] | None = None
        self._inside = {name for name, each in config.models.items() if each.model.partition("/")[0] in self._aliases}
        self._endpoints = Endpoints(config, self._keys, self._inside, self._timing)

    def _register(self, handler: Any) -> str:
        """Make a provider known under a name of its own: LiteLLM's list of providers is shared by the process."""
        alias = f"alphaloom_{next(_aliases)}"
        self._litellm.custom_provider_map = [
            *self._litellm.custom_provider_map,
            {"provider": alias, "custom_handler": handler},
        ]
        self._litellm.utils.custom_llm_setup()
        return alias

    def _key(self, settings: ModelSettings) -> str | None:
        """Return a model's key if it has one."""
        try:
            return secret(settings, self._environment)
        except NoModel:
            return None

    def _address(self, name: str) -> dict[str, Any]:
        """Return what tells LiteLLM which model to ask where."""
        settings = self._config.models[name]
        provider, slash, rest = settings.model.partition("/")
        parameters = {"model": f"{self._aliases.get(provider, provider)}{slash}{rest}", "api_base": settings.api_base}
        # A server without a key still wants the field; without one LiteLLM would look for a key of its own.
        parameters["api_key"] = self._keys[name] or ("none" if settings.api_base else None)
        parameters["ssl_verify"] = self._pinned.get(name)
        return {key: value for key, value in parameters.items() if value is not None}

    def pin(self, name: str, channel: str, certificate: str) -> None:
        """Let connections to a model show one certificate (PEM) only, the one whose key its proof names."""
        if not certificate:
            return
        if self._pins is None:
            self._pins = tempfile.TemporaryDirectory(prefix="alphaloom-")
        path = Path(self._pins.name, f"{channel}.pem")  # LiteLLM keeps a connection pool for each path
        if self._pinned.get(name) != str(path):
            path.write_text(certificate)
            self._pinned[name] = str(path)

    async def send(
        self,
        task: Task,
        messages: Sequence[dict[str, str]],
        route: Route,
        grammar: str = "",
        still: Callable[[str], bool] = bool,
    ) -> Answer:
        """Ask the models of a route, with retries and failover; each is held to the schema in the way that its server knows.

        `still` says, right before each attempt, whether a model may see the task: a call may wait longer than a proof holds.

        Raises
        ------
        NoModel
            If the first model's key is missing; a fallback without its key is left out.
        ModelFailed
            If no model of the route replies; of its own kind where asking again is of no use.
        """
        if self._keys[route.name] is None:
            secret(self._config.models[route.name], self._environment)
        ready = [name for name in route.fallbacks if self._keys[name] or not wants_key(self._config.models[name])]

        async def once(name: str) -> Answer:
            if not still(name):
                raise Missed("not asked: its proof has ended")
            held = constraint(self._config.models[name].model, task.schema, grammar)
            return await self._attempt(name, {"messages": list(messages), **held, **task.sampling()})

        call = Call(
            names=(route.name, *ready),
            send=once,
            fits=lambda answer: fits(answer, task.schema),
            worst=lambda name: self._worst(name, task, messages),
            charge=self._charge,
            retries=self._config.retries,
            hedged=self._hedged(task),
        )
        return await Course(call, self._endpoints, self._timing).run()

    async def _attempt(self, name: str, request: dict[str, Any]) -> Answer:
        """Send a request to one model, once.

        LiteLLM's time is for silence: a server that sends a byte now and then could hold a call for ever, hence a second
        one. A provider of this process is not timed: what it has computed would be thrown away.
        """
        seconds = None if name in self._inside else DRIPPING * self._config.timeout_seconds
        once = {"timeout": self._config.timeout_seconds, "max_retries": 0, "num_retries": 0}
        try:
            async with asyncio.timeout(seconds):
                response = await self._litellm.acompletion(**self._address(name), **request, **once)
            return _answer(response, name)
        except Exception as error:
            raise Missed(self.redact(str(error)).split("\n")[0]) from error

    def worst(self, task: Task, messages: Sequence[dict[str, str]], route: Route) -> Amount:
        """Return the most that a call can take: the dearest model answers; two of them do, where a second may be asked."""
        each = [self._worst(name, task, messages) for name in (route.name, *route.fallbacks)]
        dearest = max(each, key=lambda one: one.cost_usd)
        times = 2 if self._hedged(task) and len(each) > 1 else 1
        return Amount(1, times * (dearest.tokens_in + dearest.tokens_out), times * dearest.cost_usd)

    def longest(self, route: Route) -> float:
        """Return the most seconds that a call can take: all attempts, the pauses between them, and the waits for servers that went away."""
        tries, models = 1 + self._config.retries, 1 + len(route.fallbacks)
        attempt = DRIPPING * self._config.timeout_seconds + LONGEST_PAUSE_S
        return (models + tries) * tries * attempt + tries * self._config.health.patience_seconds

    def _hedged(self, task: Task) -> bool:
        """Return whether a second model may be asked beside the first."""
        health = self._config.health
        return health.hedge and task.idempotent and task.max_tokens <= health.hedge_tokens

    def _worst(self, name: str, task: Task, messages: Sequence[dict[str, str]]) -> Beside:
        """Return the most that an attempt can take: a token is seldom less than two bytes."""
        tokens_in, tokens_out = len(canonical_json(list(messages)).encode()) // 2, task.max_tokens
        return Beside(name, "", tokens_in, tokens_out, self.cost(name, tokens_in, tokens_out))

    def _charge(self, answer: Answer) -> Beside:
        """Return what an answer took."""
        cost = self.cost(answer.model, answer.tokens_in, answer.tokens_out)
        return Beside(answer.model, "", answer.tokens_in, answer.tokens_out, cost)

    def took(self, answer: Answer) -> tuple[int, int, float]:
        """Return tokens in and out, and US dollars, of an answer and of all attempts beside it."""
        all_of_it = (self._charge(answer), *answer.beside)
        tokens_in, tokens_out = (
            sum(each) for each in zip(*((a.tokens_in, a.tokens_out) for a in all_of_it), strict=True)
        )
        return tokens_in, tokens_out, sum(each.cost_usd for each in all_of_it)

    def cost(self, name: str, tokens_in: int, tokens_out: int) -> float:
        """Return the US dollars of some tokens."""
        price_in, price_out = self.price(name)
        return tokens_in * price_in + tokens_out * price_out

    def holds_key(self, texts: Sequence[str]) -> bool:
        """Return whether any of the texts holds a key."""
        return any(key in text for key in filter(None, self._keys.values()) for text in texts)

    def price(self, name: str) -> tuple[float, float]:
        """Return US dollars per token in and per token out.

        Raises
        ------
        NoModel
            If a remote model's price is neither configured nor listed.
        """
        settings = self._config.models[name]
        if settings.input_cost_per_mtok is not None and settings.output_cost_per_mtok is not None:
            return settings.input_cost_per_mtok / 1e6, settings.output_cost_per_mtok / 1e6
        if settings.place == "local":
            return 0.0, 0.0
        listed = self._litellm.model_cost.get(settings.model) or self._litellm.model_cost.get(
            settings.model.partition("/")[2]
        )
        if listed is None or "input_cost_per_token" not in listed:
            raise NoModel(
                f"the price of {settings.model} is not known, so no cap on money could hold",
                field=f"models.{name}.input_cost_per_mtok",
                hint="Set input_cost_per_mtok and output_cost_per_mtok (0 if it is free), or place: local.",
            )
        return float(listed["input_cost_per_token"]), float(listed.get("output_cost_per_token", 0.0))

    async def close(self) -> None:
        """Close connections, end what runs in the background, and forget the providers."""
        await self._endpoints.close()
        own = set(self._aliases.values())
        self._litellm.custom_provider_map = [
            each for each in self._litellm.custom_provider_map if each["provider"] not in own
        ]
        await self._litellm.close_litellm_async_clients()
        if self._pins is not None:
            self._pins.cleanup()


def _answer(response: Any, asked: str) -> Answer:
    """Read what LiteLLM returns; some servers count no tokens, and some say nothing."""
    choice = response.choices[0]
    usage = getattr(response, "usage", None)
    return Answer(
        text=choice.message.content or "",
        finish=str(choice.finish_reason or ""),
        tokens_in=int(getattr(usage, "prompt_tokens", 0) or 0),
        tokens_out=int(getattr(usage, "completion_tokens", 0) or 0),
        model=asked,
    )
