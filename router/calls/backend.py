"""LiteLLM, which makes one attempt at one model at a time.

It is loaded late, since the load takes seconds and 180 MB, and without its warnings.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ..config import ModelSettings, RouterConfig
from ..endpoints.failover import MAX_RETRY_PAUSE_S, CallCosts, FailoverRun, ModelRequest
from ..endpoints.failures import AttemptFailed, is_silence, list_causes
from ..endpoints.pool import Endpoints
from ..errors import NoModel
from ..keys import find_key, needs_key
from ..policy.eligibility import Route, is_bound
from ..redaction import Redactor, guard_loggers
from ..timing import Timing
from .connections import Clients, Unreadable, read_message_texts
from .prices import Charges, read_usage
from .replies import HedgedAttempt, ModelAnswer, build_constraint, fits_schema
from .task import Task

Providers = Mapping[str, Callable[[], Any]]
"""Factories of custom providers (`litellm.CustomLLM`) by the word before the slash in a model's name."""

MAX_ERROR_CHARS = 300
"""Maximum characters of a server's or a library's error text in our messages."""
TRACE = "Traceback (most recent call last)"
TOTAL_TIMEOUT_FACTOR = 2.0
"""Maximum duration of a call, as a multiple of `timeout_seconds`."""

_aliases = itertools.count(1)
_backends: WeakSet[ModelBackend] = WeakSet()


@cache
def load_litellm() -> Any:
    """Return LiteLLM, loaded without a price-list download, a `.env` file, telemetry, or its warnings.

    The load takes seconds and about 180 MB, so it happens when a model is first asked. LiteLLM builds some of its
    schemas at its first call, with more warnings; the mock call here makes it build them while warnings are off.
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
        if "LITELLM_LOG" not in os.environ:  # important failures arrive as exceptions
            for name in ("LiteLLM", "LiteLLM Router"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        hello = [{"role": "user", "content": "hello"}]
        litellm.completion(model="openai/none", messages=hello, mock_response="hello", api_key="none")
        handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        handlers.AsyncHTTPHandler.single_connection_post_request = _refuse_resend
        handlers.AsyncHTTPHandler.create_client = _refuse_redirects(handlers.AsyncHTTPHandler.create_client)
        shared: Any = importlib.import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
        shared._get_async_http_client = staticmethod(_refuse_redirects(shared._get_async_http_client))
    return litellm


def _refuse_redirects(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a factory of HTTP clients so that they follow no redirection: only the configured address gets a text."""

    @wraps(make)
    def make_client(*args: Any, **options: Any) -> Any:
        client = make(*args, **options)
        if client is not None:
            client.follow_redirects = False
        return client

    return make_client


async def _refuse_resend(*_: Any, **__: Any) -> Any:
    """Replace LiteLLM's second sending of a request whose connection broke.

    LiteLLM sends it again whatever its retry settings say, so a paid call could be charged twice without a record.
    """
    broke = sys.exc_info()[1]
    raise ConnectionError(f"the connection broke before an answer came{f': {broke}' if str(broke or '') else ''}")


class ModelBackend:
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
        self._keys = {name: self._find_key(settings) for name, settings in config.models.items()}
        self.redact = Redactor(filter(None, self._keys.values()))
        guard_loggers(filter(None, self._keys.values()))
        self._pinned: dict[str, str] = {}
        self._pins: tempfile.TemporaryDirectory[str] | None = None
        self._inside = {
            name for name, settings in config.models.items() if settings.model.partition("/")[0] in self._aliases
        }
        self.charges = Charges(config.models)
        self._clients = Clients(config.timeout_seconds)
        _backends.add(self)
        self._endpoints = Endpoints(config, self._keys, self._inside, self._timing)

    def _register(self, handler: Any) -> str:
        """Register a provider under a unique name: all backends of the process share LiteLLM's list of providers."""
        alias = f"alphaloom_{next(_aliases)}"
        self._litellm.custom_provider_map = [
            *self._litellm.custom_provider_map,
            {"provider": alias, "custom_handler": handler},
        ]
        self._litellm.utils.custom_llm_setup()
        return alias

    def _find_key(self, settings: ModelSettings) -> str | None:
        try:
            return find_key(settings, self._environment)
        except NoModel:
            return None

    def _build_parameters(self, name: str) -> dict[str, Any]:
        """Return LiteLLM's parameters for a model: name, address, key and client."""
        settings = self._config.models[name]
        provider, slash, rest = settings.model.partition("/")
        parameters = {"model": f"{self._aliases.get(provider, provider)}{slash}{rest}", "api_base": settings.api_base}
        # A server without a key still needs the field, or LiteLLM looks for a key in the environment.
        parameters["api_key"] = self._keys[name] or ("none" if settings.api_base else None)
        parameters["client"] = self._clients.connect(name, settings, self._keys[name], self._pinned.get(name))
        return {key: value for key, value in parameters.items() if value is not None}

    def pin(self, name: str, channel: str, certificate: str) -> None:
        """Accept only one certificate (PEM) on connections to a model: the one whose key its proof names."""
        if not certificate:
            return
        if self._pins is None:
            self._pins = tempfile.TemporaryDirectory(prefix="alphaloom-")
        path = Path(self._pins.name, f"{channel}.pem")
        if self._pinned.get(name) != str(path):
            path.write_text(certificate)
            self._pinned[name] = str(path)

    async def send(
        self,
        task: Task,
        messages: Sequence[dict[str, str]],
        route: Route,
        tab: CallCosts,
        grammar: str = "",
        still: Callable[[str], bool] = bool,
    ) -> ModelAnswer:
        """Ask the models of a route, with retries and failover; each reply is constrained as the server supports.

        `tab` limits the cost of the call, and collects the charges beside the answer. `still` is called right before
        each attempt and returns whether the model may see the task: a call may wait longer than a proof holds.

        Raises
        ------
        NoModel
            If the first model's key is missing. A fallback without its key is left out.
        ModelFailed
            If no model of the route replies; a subclass where asking again is of no use.
        """
        if self._keys[route.name] is None:
            find_key(self._config.models[route.name], self._environment)
        ready = [name for name in route.fallbacks if self._keys[name] or not needs_key(self._config.models[name])]

        async def once(name: str) -> ModelAnswer:
            if not still(name):
                raise AttemptFailed("not asked: its proof has ended", asked=False)
            constraint = build_constraint(self._config.models[name].model, task.schema, grammar)
            request = {"messages": list(messages), **constraint, **task.sampling()}
            response = await self._attempt(name, request, quiet=is_bound(task))
            return _read_answer(response, task, messages, self.charges.bound_cost(name, task, messages))

        call = ModelRequest(
            names=(route.name, *ready),
            send=once,
            fits=lambda answer: fits_schema(answer, task.schema),
            worst=lambda name: self.charges.bound_cost(name, task, messages),
            charge=self.charges.charge,
            tab=tab,
            retries=self._config.retries,
            hedged=self._may_hedge(task),
        )
        return await FailoverRun(call, self._endpoints, self._timing).run()

    async def _attempt(self, name: str, request: dict[str, Any], *, quiet: bool) -> Any:
        """Send a request to one model, once. `quiet` hides a server's error text, since it may repeat the prompt.

        LiteLLM's timeout is between bytes, so a slow server could hold a call for ever; a second timeout limits the
        whole call. A provider of this process has no such limit: its work would be lost.
        """
        seconds = None if name in self._inside else TOTAL_TIMEOUT_FACTOR * self._config.timeout_seconds
        once = {"timeout": self._config.timeout_seconds, "max_retries": 0, "num_retries": 0}
        try:
            async with asyncio.timeout(seconds):
                return await self._litellm.acompletion(**self._build_parameters(name), **request, **once)
        except Exception as error:
            unread = next((cause for cause in list_causes(error) if isinstance(cause, Unreadable)), None)
            description = self._describe_error(unread or error)
            if quiet and (unread or not is_silence(error)):
                description = f"{type(unread or error).__name__}, status {getattr(error, 'status_code', 'none')}"
            raise AttemptFailed(description, charged=unread is not None, asked=name not in self._inside) from error

    def _describe_error(self, error: BaseException) -> str:
        """Return the first line of an error's text, cut and without keys: libraries and servers add whole pages."""
        first = self.redact(str(error).partition(TRACE)[0]).strip().split("\n")[0]
        return first if len(first) <= MAX_ERROR_CHARS else f"{first[:MAX_ERROR_CHARS]}..."

    def max_call_seconds(self, route: Route) -> float:
        """Return the maximum seconds of a call: all attempts, the pauses between, and the waits for lost servers."""
        tries, models = 1 + self._config.retries, 1 + len(route.fallbacks)
        attempt = TOTAL_TIMEOUT_FACTOR * self._config.timeout_seconds + MAX_RETRY_PAUSE_S
        return (models + tries) * tries * attempt + tries * self._config.health.patience_seconds

    def _may_hedge(self, task: Task) -> bool:
        """Return whether a second model may be asked beside the first."""
        health = self._config.health
        return health.hedge and task.idempotent and task.max_tokens <= health.hedge_tokens

    def holds_key(self, texts: Sequence[str]) -> bool:
        """Return whether any of the texts contains a configured key."""
        return any(key in text for key in filter(None, self._keys.values()) for text in texts)

    async def close(self) -> None:
        """Close connections, end background tasks, and unregister the providers."""
        if self._pins is not None:
            self._pins.cleanup()
        await self._endpoints.close()
        own = set(self._aliases.values())
        self._litellm.custom_provider_map = [
            entry for entry in self._litellm.custom_provider_map if entry["provider"] not in own
        ]
        await self._clients.close()
        _backends.discard(self)
        if not _backends:  # LiteLLM's own clients are shared by all backends of the process
            await self._litellm.close_litellm_async_clients()


def _read_answer(response: Any, task: Task, messages: Sequence[dict[str, str]], worst: HedgedAttempt) -> ModelAnswer:
    """Read LiteLLM's response: the content, or the model's thoughts where only these fit the schema."""
    choices = getattr(response, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise AttemptFailed("its answer holds no message", charged=True)
    content, thoughts = read_message_texts(choices[0].message.model_dump(warnings=False))
    if re.search("[\ud800-\udfff]", content + thoughts):
        raise AttemptFailed("its answer holds half a character", charged=True)
    sent = "".join(message["content"] for message in messages)
    usage = read_usage(getattr(response, "usage", None), sent, content + thoughts, worst)
    answers = [
        ModelAnswer(
            text,
            str(choices[0].finish_reason or ""),
            usage.tokens_in,
            usage.tokens_out,
            worst.model,
            usage.cached,
            usage.written,
        )
        for text in (content, thoughts)
    ]
    return (
        answers[1] if fits_schema(answers[1], task.schema) and not fits_schema(answers[0], task.schema) else answers[0]
    )
