"""One attempt at one model: in this process, at a configured address, or at a commercial provider through LiteLLM."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..config import SERVER_PROVIDERS, ModelSettings, RouterConfig
from ..endpoints.failover import MAX_RETRY_PAUSE_S, CallCosts, FailoverRun, ModelRequest
from ..endpoints.failures import AttemptFailed, NotSent, is_silence, list_causes
from ..endpoints.pool import Endpoints
from ..errors import NoModel
from ..keys import find_key, needs_key
from ..policy.eligibility import Route, is_bound
from ..redaction import Redactor, guard_loggers, hold_own_call
from ..timing import Timing
from .completions import Completion, InProcessModel, Unreadable, read_version
from .connections import ServerClients
from .prices import Charges, read_usage
from .providers import ProviderClients, fit_parameters, require_connection
from .replies import HedgedAttempt, ModelAnswer, build_constraint, fits_schema
from .task import Task

Providers = Mapping[str, Callable[[], InProcessModel]]
"""Factories of models of this process, by the word before the slash in a model's name."""

MAX_ERROR_CHARS = 300
"""Maximum characters of a server's or a library's error text in our messages."""
TRACE = "Traceback (most recent call last)"
TOTAL_TIMEOUT_FACTOR = 2.0
"""Maximum duration of a call, as a multiple of `timeout_seconds`."""


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
        self._in_process = {name: make() for name, make in providers.items()}
        self._keys = {name: self._find_key(settings) for name, settings in config.models.items()}
        self.redact = Redactor(filter(None, self._keys.values()))
        guard_loggers(filter(None, self._keys.values()))
        self._pinned: dict[str, str] = {}
        self._inside = {name for name, settings in config.models.items() if settings.provider in self._in_process}
        self.charges = Charges(config.models)
        self._servers = ServerClients(config.timeout_seconds)
        self._clients = ProviderClients(config.timeout_seconds)
        self._endpoints = Endpoints(config, self._keys, self._inside, self._timing)

    def _find_key(self, settings: ModelSettings) -> str | None:
        try:
            return find_key(settings, self._environment)
        except NoModel:
            return None

    def pin(self, name: str, certificate: str) -> None:
        """Accept only one certificate (PEM) on connections to a model: the one whose key its proof names."""
        if certificate:
            self._pinned[name] = certificate

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
            If the first model's key is missing, or no connection of ours leads to it. Such a fallback is left out.
        ModelFailed
            If no model of the route replies; a subclass where asking again is of no use.
        """
        self._require_ready(route.name)
        ready = [name for name in route.fallbacks if self._is_ready(name)]

        async def once(name: str) -> ModelAnswer:
            if not still(name):
                raise AttemptFailed("not asked: its proof has ended", asked=False)
            constraint = build_constraint(self._config.models[name].model, task.schema, grammar)
            request = {"messages": list(messages), **constraint, **task.sampling()}
            completion = await self._attempt(name, request, quiet=is_bound(task))
            served = read_version(completion.served, self._endpoints[name].version)
            completion = replace(completion, served=served)
            return _read_answer(completion, task, messages, self.charges.bound_cost(name, task, messages))

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

    def _require_ready(self, name: str) -> None:
        """Raise `NoModel` if a model's key is missing, or it cannot be asked over a connection of ours."""
        settings = self._config.models[name]
        if self._keys[name] is None and needs_key(settings):
            find_key(settings, self._environment)
        if name not in self._inside:
            require_connection(settings)

    def _is_ready(self, name: str) -> bool:
        try:
            self._require_ready(name)
        except NoModel:
            return False
        return True

    async def _attempt(self, name: str, request: dict[str, Any], *, quiet: bool) -> Completion:
        """Send a request to one model, once. `quiet` hides a server's error text, since it may repeat the prompt.

        The clients' timeout is between bytes, so a slow server could hold a call for ever; a second timeout limits the
        whole call. A model of this process has no such limit: its work would be lost.
        """
        seconds = None if name in self._inside else TOTAL_TIMEOUT_FACTOR * self._config.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                with hold_own_call():
                    return await self._complete(name, request)
        except NotSent as unsent:
            error: BaseException = unsent.__cause__ or unsent
            raise AttemptFailed(self._describe_error(error, quiet=quiet), asked=False) from error
        except Exception as error:
            unread = next((cause for cause in list_causes(error) if isinstance(cause, Unreadable)), None)
            description = self._describe_error(unread or error, quiet=quiet)
            raise AttemptFailed(description, charged=unread is not None, asked=name not in self._inside) from error

    async def _complete(self, name: str, request: Mapping[str, Any]) -> Completion:
        """Return a model's completion."""
        settings, key = self._config.models[name], self._keys[name]
        provider, _, model = settings.model.partition("/")
        parameters = {member: value for member, value in request.items() if member != "messages"}
        if name in self._inside:
            return await self._in_process[provider].complete(model, request["messages"], parameters)
        if settings.api_base is None or provider not in SERVER_PROVIDERS:
            return await self._clients.ask(name, settings, key, request)
        if provider == "openai" and settings.place in ("region", "remote"):  # it may be OpenAI's own
            try:
                parameters = fit_parameters(model, parameters)
            except Exception as error:
                raise NotSent(str(error)) from error
        extra = parameters.pop("extra_body", {})
        body = {"messages": request["messages"], **parameters, **extra}
        return await self._servers.ask(name, settings, key, self._pinned.get(name), body)

    def _describe_error(self, error: BaseException, *, quiet: bool) -> str:
        """Return the first line of an error's text, cut and without keys: libraries and servers add whole pages."""
        status = getattr(error, "status_code", None)
        if quiet and not is_silence(error):
            return f"{type(error).__name__}, status {status or 'none'}"
        first = self.redact(str(error).partition(TRACE)[0]).strip().split("\n")[0]
        if not first and status is not None:
            return f"status {status}"
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
        """Close connections, and end background tasks."""
        await self._endpoints.close()
        await self._servers.close()
        await self._clients.close()


def _read_answer(
    completion: Completion, task: Task, messages: Sequence[dict[str, str]], worst: HedgedAttempt
) -> ModelAnswer:
    """Return the answer of a completion: the content, or the model's thoughts where only these fit the schema."""
    content, thoughts = completion.content, completion.thoughts
    if re.search("[\ud800-\udfff]", content + thoughts):
        raise AttemptFailed("its answer holds half a character", charged=True)
    sent = "".join(message["content"] for message in messages)
    usage = read_usage(completion.usage, sent, content + thoughts, worst)
    answers = [
        ModelAnswer(
            text,
            completion.finish,
            usage.tokens_in,
            usage.tokens_out,
            worst.model,
            usage.cached,
            usage.written,
            served=completion.served,
        )
        for text in (content, thoughts)
    ]
    fits = [fits_schema(answer, task.schema) for answer in answers]
    return answers[1] if fits[1] and not fits[0] else answers[0]
