"""LiteLLM, and nothing else of this room: loaded late and quietly, asked through its router."""

from __future__ import annotations

import importlib
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from .config import ModelSettings, RouterConfig
from .errors import AccessRefused, ModelFailed, NoModel, RequestRefused
from .replies import Answer, constraint
from .route import Route, secret
from .task import Task

Providers = Mapping[str, Callable[[], Any]]
"""Makers of custom providers (`litellm.CustomLLM`) by the word before the slash in a model's name."""

UNHELD: dict[str, Any] = {"extra_body": None, "response_format": None}
"""What a fallback does not inherit from the model before it."""

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
    return litellm


class Backend:
    """Sends a task's messages to a route's models."""

    def __init__(self, config: RouterConfig, providers: Providers, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = environment
        self._litellm = load_litellm()
        self._aliases = {name: self._register(make()) for name, make in providers.items()}
        self._keys = {name: self._key(each) for name, each in config.models.items()}
        self._router = self._litellm.Router(
            model_list=[self._deployment(name, each) for name, each in config.models.items()],
            num_retries=config.retries,
            retry_after=0,
            timeout=config.timeout_seconds,
            cooldown_time=config.cooldown_seconds,
        )

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

    def _deployment(self, name: str, settings: ModelSettings) -> dict[str, Any]:
        """Return one entry of LiteLLM's list of models."""
        provider, slash, rest = settings.model.partition("/")
        parameters = {"model": f"{self._aliases.get(provider, provider)}{slash}{rest}", "api_base": settings.api_base}
        # A server without a key still wants the field; without one LiteLLM would look for a key of its own.
        parameters["api_key"] = self._keys[name] or ("none" if settings.api_base else None)
        given = {key: value for key, value in parameters.items() if value is not None}
        return {"model_name": name, "litellm_params": given, "model_info": {"id": name}}

    async def send(self, task: Task, messages: Sequence[dict[str, str]], route: Route, grammar: str = "") -> Answer:
        """Ask, with retries and fallback; each model is held to the schema in the way that its server knows.

        Raises
        ------
        NoModel
            If the first model's key is missing; a fallback without its key is left out.
        ModelFailed
            If no model of the route replies; of its own kind where asking again is of no use.
        """
        secret(self._config.models[route.name], self._environment)
        ready = [name for name in route.fallbacks if self._keys[name] or not self._config.models[name].api_key_env]
        held = {
            name: constraint(self._config.models[name].model, task.schema, grammar) for name in (route.name, *ready)
        }
        try:
            response = await self._router.acompletion(
                model=route.name,
                messages=list(messages),
                fallbacks=[{route.name: [{"model": name, **UNHELD, **held[name]} for name in ready]}] if ready else [],
                **held[route.name],
                **task.sampling(),
            )
        except Exception as error:
            raise self._failed(route, ready, error) from error
        return _answer(response, route.name)

    def _failed(self, route: Route, ready: list[str], error: Exception) -> ModelFailed:
        """Return the error that says who failed, without any key that a provider may repeat."""
        said = self.redact(str(error)).split("\n")[0]
        kind = _kind(getattr(error, "status_code", None))
        return kind(
            f"no reply from {', then '.join([route.name, *ready])}: {said}",
            field=f"models.{route.name}",
            hint=_HINTS[kind],
        )

    def redact(self, text: str) -> str:
        """Return a text without the keys."""
        for key in filter(None, self._keys.values()):
            text = text.replace(key, "***")
        return text

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
        """Close connections and forget the providers."""
        own = set(self._aliases.values())
        self._litellm.custom_provider_map = [
            each for each in self._litellm.custom_provider_map if each["provider"] not in own
        ]
        await self._litellm.close_litellm_async_clients()


_HINTS: Mapping[type[ModelFailed], str] = {
    ModelFailed: "`alphaloom doctor` shows which models answer. Resume the run to ask again.",
    AccessRefused: "The server does not know this key or this model: mend the campaign file or the key, then resume the run.",
    RequestRefused: "The server refuses this one request, such as one that is too long for the model.",
}


def _kind(status: object) -> type[ModelFailed]:
    """Return what an HTTP status means: a later try may heal it, only a person can, or this request never passes."""
    if status in (401, 402, 403, 404):
        return AccessRefused
    return RequestRefused if status in (400, 413, 422) else ModelFailed


def _answer(response: Any, asked: str) -> Answer:
    """Read what LiteLLM returns; some servers count no tokens, and some say nothing."""
    choice = response.choices[0]
    hidden = getattr(response, "_hidden_params", None) or {}
    headers = hidden.get("additional_headers") or {}
    usage = getattr(response, "usage", None)
    return Answer(
        text=choice.message.content or "",
        finish=str(choice.finish_reason or ""),
        tokens_in=int(getattr(usage, "prompt_tokens", 0) or 0),
        tokens_out=int(getattr(usage, "completion_tokens", 0) or 0),
        model=str(hidden.get("model_id") or asked),
        attempts=1 + int(headers.get("x-litellm-attempted-retries") or 0),
    )
