"""Commercial providers, asked through LiteLLM: one attempt at one model, over connections of ours.

LiteLLM belongs to the whole process, so nothing of it is changed: every setting is an argument of the call, and the
call gets a client of ours. LiteLLM alone would follow redirections with the prompt, and send a request whose
connection broke a second time. A failure of our client passes through LiteLLM as it is (`_PassedThrough`).

It is loaded late, since the load takes seconds and 180 MB, and without its warnings.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any

from ..config import SERVER_PROVIDERS, ModelSettings
from ..endpoints.failures import NotSent, ServerRefused
from ..errors import NoModel
from ..redaction import guard_loggers, hold_own_call
from .completions import Completion, Unreadable, read_message, read_version
from .connections import ACCEPTED_ENCODING, read_body, require_success
from .prices import find_listing

AZURE = "azure"
SDK_PROVIDERS = frozenset(
    ("openai", "ai21_chat", "cerebras", "dashscope", "deepinfra", "featherless_ai", "github", "hyperbolic", "lambda_ai",
     "litellm_proxy", "meta_llama", "moonshot", "nebius", "novita", "nscale", "nvidia_nim", "perplexity", "sambanova",
     "volcengine", "wandb", "zai")
)  # fmt: skip  # a table
"""Providers that LiteLLM reaches through OpenAI's library, which needs a client of its own class."""
HTTP_PROVIDERS = frozenset(
    ("anthropic", "azure_ai", "bedrock", "databricks", "deepseek", "fireworks_ai", "gemini", "groq", "minimax",
     "mistral", "openrouter", "together_ai", "vertex_ai")
)  # fmt: skip  # a table
"""Providers for which LiteLLM takes an HTTP client from the call. For others it connects by itself."""
MARKED_PROVIDERS = frozenset(("anthropic", "azure_ai", "bedrock", "databricks", "openrouter", "vertex_ai"))
"""Providers whose Claude models cache only what the request marks; others cache by themselves, or have no cache."""
DEFAULT_ADDRESSES = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
OPENAI_HEADERS = frozenset(("openai-organization", "openai-project"))
LOAD_SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
"""Environment variables during the load: no download of lists, and no reading of a `.env` file."""


@cache
def load_litellm() -> Any:
    """Return LiteLLM, loaded without downloads, a `.env` file, or its warnings.

    The load takes seconds and about 180 MB, so it happens when a model is first asked. Where another part of the
    process has loaded it, it is taken as it is.
    """
    with warnings.catch_warnings(), hold_own_call():
        warnings.simplefilter("ignore")
        if "litellm" in sys.modules:
            litellm: Any = importlib.import_module("litellm")
        else:
            with _set_environment(LOAD_SETTINGS):
                litellm = importlib.import_module("litellm")
                importlib.import_module("litellm.anthropic_beta_headers_manager").reload_beta_headers_config()
        litellm.ModelResponse()  # builds schemas, with more warnings
    guard_loggers()
    return litellm


@contextlib.contextmanager
def _set_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that nobody has set, and remove them at the end."""
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def require_connection(settings: ModelSettings) -> None:
    """Raise `NoModel` if LiteLLM would connect to a model's provider by itself."""
    provider = settings.provider
    if provider == "litellm_proxy" and not settings.api_base:  # OpenAI's library would take its own address
        raise NoModel(
            f"{settings.model} has no address",
            field="api_base",
            got=None,
            allowed="the address of your LiteLLM proxy",
            hint="Write api_base: ADDRESS beside model.",
        )
    if provider == AZURE or provider in SDK_PROVIDERS | HTTP_PROVIDERS:
        return
    if settings.api_base and provider in SERVER_PROVIDERS:
        return
    raise NoModel(
        f"{settings.model} cannot be asked: LiteLLM would connect to {provider} by itself, follow redirections and "
        "send a paid request twice",
        field="model",
        got=settings.model,
        allowed=", ".join(sorted({AZURE, *SDK_PROVIDERS, *HTTP_PROVIDERS, *SERVER_PROVIDERS})),
        hint="Most services have an address of the OpenAI protocol: write model: openai/NAME and api_base: ADDRESS.",
    )


class ProviderClients:
    """Asks commercial providers; one client for each model and event loop.

    Parameters
    ----------
    seconds : float
        Timeout between bytes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._plain: Any = None
        self._made: dict[str, Any] = {}

    async def ask(self, name: str, settings: ModelSettings, key: str | None, request: Mapping[str, Any]) -> Completion:
        """Ask a model once.

        Raises
        ------
        NotSent
            If LiteLLM refused the request before anything was sent; the cause is its error.
        ServerRefused, Unreadable
            As of `ServerClients.ask`. Errors of the connection and of LiteLLM are raised as they are.
        """
        litellm, sent = load_litellm(), _Sent()
        token = _SENT.set(sent)
        try:
            response = await litellm.acompletion(
                model=settings.model,
                **{
                    name: value
                    for name, value in {"api_base": _find_address(settings), "api_key": key}.items()
                    if value
                },
                **dict(request, messages=mark_stable_prefix(settings.model, request["messages"])),
                client=self._connect(name, settings, key),
                timeout=self._seconds,
                drop_params=True,
                max_retries=0,
                num_retries=0,
            )
        except _PassedThrough as passed:
            raise passed.error from None
        except Exception as error:
            if sent.answered:  # the provider has charged for an answer that LiteLLM cannot read
                raise Unreadable(str(error)) from error
            if sent.requests:
                raise
            raise NotSent(str(error)) from error
        finally:
            _SENT.reset(token)
        if not sent.requests:
            raise Unreadable(f"LiteLLM asked {settings.model} over a connection of its own")
        return _read_response(response)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        plain, self._plain, self._made = self._plain, None, {}
        if plain is not None and self._loop is asyncio.get_running_loop():
            await plain.aclose()

    def _connect(self, name: str, settings: ModelSettings, key: str | None) -> Any:
        loop = asyncio.get_running_loop()
        if self._plain is None or self._loop is not loop:  # connections of a closed loop ended with it
            self._loop, self._plain, self._made = loop, _make_plain_client(self._seconds), {}
        if name not in self._made:
            guard = _guard(self._plain, _list_foreign_headers(settings.provider))
            self._made[name] = _make_client(settings, key, guard, self._seconds)
        return self._made[name]


def _find_address(settings: ModelSettings) -> str | None:
    """Return the address of a provider that is otherwise taken from the environment; None where LiteLLM has it.

    Text and key go where the configuration says, never where a variable of another program points.
    """
    return settings.api_base or DEFAULT_ADDRESSES.get(settings.provider)


class _Sent:
    """Counts the requests of one call that went out; `answered`: one of them was answered with success."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered = False


_SENT: ContextVar[_Sent] = ContextVar("alphaloom_sent")


class _PassedThrough(BaseException):
    """Carries an error of our client past LiteLLM, which catches every `Exception`: it would send again, or print."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _make_plain_client(seconds: float) -> Any:
    """Return the client that connects: with the environment's proxies and LiteLLM's certificates."""
    httpx: Any = importlib.import_module("httpx")
    handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    return httpx.AsyncClient(verify=handlers.get_ssl_configuration(), timeout=seconds, follow_redirects=False)


def _list_foreign_headers(provider: str) -> frozenset[str]:
    """Return the headers that OpenAI's library takes from the environment, which are for OpenAI alone."""
    if provider == "openai":
        return frozenset()
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    return OPENAI_HEADERS | {line.partition(":")[0].strip().lower() for line in lines if ":" in line}


def _guard(plain: Any, removed: frozenset[str] = frozenset()) -> Any:
    """Return a transport that sends through `plain`, bounds the answer, and lets every failure pass LiteLLM.

    Headers named in `removed`, in small letters, are not sent.
    """
    httpx: Any = importlib.import_module("httpx")

    async def handle(_: Any, request: Any) -> Any:
        _SENT.get().requests += 1
        request.headers["accept-encoding"] = ACCEPTED_ENCODING
        for name in removed & {name.lower() for name in request.headers}:
            del request.headers[name]
        try:
            response = await plain.send(request, stream=True)
            try:
                body = await read_body(response)
            finally:
                await response.aclose()
            require_success(response, body)
        except (httpx.HTTPError, ServerRefused, Unreadable) as error:
            raise _PassedThrough(error) from None
        _SENT.get().answered = True
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _REPLACED_HEADERS]
        return httpx.Response(response.status_code, headers=headers, content=body, request=request)

    return type("Guarded", (httpx.AsyncBaseTransport,), {"handle_async_request": handle})()


_REPLACED_HEADERS = {b"content-encoding", b"content-length", b"transfer-encoding"}
"""Headers that no longer describe the body once it is unpacked."""


def _make_client(settings: ModelSettings, key: str | None, transport: Any, seconds: float) -> Any:
    """Return a client of the class that LiteLLM expects for a model's provider."""
    provider = settings.provider
    if provider in HTTP_PROVIDERS:
        handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
        return handlers.AsyncHTTPHandler(timeout=seconds, transport=transport, follow_redirects=False)
    litellm, httpx, sdk = load_litellm(), importlib.import_module("httpx"), importlib.import_module("openai")
    plain: Any = httpx.AsyncClient(transport=transport, timeout=seconds, follow_redirects=False, trust_env=False)
    if provider == AZURE:
        return sdk.AsyncAzureOpenAI(
            azure_endpoint=settings.api_base or os.environ.get("AZURE_API_BASE", ""),
            api_key=key or os.environ.get("AZURE_API_KEY"),
            api_version=os.environ.get("AZURE_API_VERSION") or litellm.AZURE_DEFAULT_API_VERSION,
            http_client=plain,
            max_retries=0,
        )
    _, _, found, address = litellm.get_llm_provider(settings.model, api_base=_find_address(settings), api_key=key)
    # Without any key the provider itself refuses, as with a wrong one.
    usable = key or found or (os.environ.get("OPENAI_API_KEY") if provider == "openai" else None) or "none"
    if not address:
        raise NotSent(f"LiteLLM knows no address of {settings.model}: write api_base: ADDRESS beside model")
    return sdk.AsyncOpenAI(api_key=usable, base_url=address, http_client=plain, max_retries=0)


def mark_stable_prefix(model: str, messages: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the messages with a mark after the system message, where the provider caches only what is marked.

    The system message comes from a prompt file and is equal in many calls. A model is marked only if the list knows the
    price of a write into its cache, which is higher than that of any other token in.
    """
    marked = [dict[str, Any](message) for message in messages]
    system = next((message for message in marked if message["role"] == "system"), None)
    if system is not None and needs_marks(model):
        system["content"] = [
            {"type": "text", "text": system["content"], "cache_control": {"type": "ephemeral"}},
        ]
    return marked


def needs_marks(model: str) -> bool:
    """Return whether a model's provider caches only what a request marks."""
    listing = find_listing(model) if "claude" in model and model.partition("/")[0] in MARKED_PROVIDERS else {}
    return "cache_creation_input_token_cost" in listing


def fit_parameters(model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a model of OpenAI takes them: some know other names, or refuse a temperature."""
    fitted = load_litellm().utils.get_optional_params(
        model=model, custom_llm_provider="openai", drop_params=True, **parameters
    )
    return {name: value for name, value in fitted.items() if name in parameters or name == "max_completion_tokens"}


def _read_response(response: Any) -> Completion:
    """Return the completion in LiteLLM's response."""
    choices = getattr(response, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise Unreadable("its answer holds no message")
    message = choices[0].message.model_dump(warnings=False)
    message |= {"refusal": (message.get("provider_specific_fields") or {}).get("refusal")}
    usage = getattr(response, "usage", None)
    counts = usage.model_dump(warnings=False) if usage else {}
    completion = read_message(message, choices[0].finish_reason, counts)
    served = read_version(getattr(response, "model", None), getattr(response, "system_fingerprint", None))
    return replace(completion, served=served)
