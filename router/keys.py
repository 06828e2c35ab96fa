"""Keys: where the key of a model is stored, and the shapes of keys, which no log or document may contain."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from ..extras import install_hint
from .config import ModelSettings
from .errors import NoModel

KEY_SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]{0,8000}-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
    "AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "OpenAI, Anthropic and others": r"\bsk-[A-Za-z0-9_-]{16,}",
    "Groq, xAI, Perplexity, NVIDIA, Replicate, Fireworks": r"\b(?:gsk_|xai-|pplx-|nvapi-|r8_|fw_)[A-Za-z0-9_-]{20,}",
    "Google": r"\bAIza[0-9A-Za-z_-]{30,}",
    "Hugging Face": r"\bhf_[A-Za-z0-9]{20,}",
    "GitHub": r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    "GitHub, fine-grained": r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    "Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a signed token": r"\beyJ(?:(?!-eyJ)[A-Za-z0-9_-]){10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
}
"""Regular expressions of keys, by the service that issues them."""
KEY_PATTERN = re.compile("|".join(KEY_SHAPES.values()))
ADDRESS_WITH_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/:@]{0,100}:[^\s/@]{1,100}@(?=[A-Za-z0-9\[])")
"""A password in an address; the text before it is the first group."""
VALUE_GROUP = "value"
NAMED_KEY = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|(?:\b|_)(?:api[-_ ]?key|x-api-key|password|passwd|secret|token)"
    r"[\"'\\]{0,4}\s?[:=]\s?[\"'\\]{0,4})"
    rf"(?P<{VALUE_GROUP}>[A-Za-z0-9._~+/=-]{{6,}})"
)
"""A value after the name of a key or a password, as the group `VALUE_GROUP`; the text before it is the first group."""
MIN_SURE_KEY_CHARS = 20
"""Minimum length, in characters, of a named value that counts as a key; it must also have letters and digits.

A lower limit would match prose such as "basic materials".
"""


def find_key(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    """Return a model's key; None if it needs none.

    Raises
    ------
    NoModel
        If the configured variable or keyring entry is missing or empty, or its value cannot be a key.
    """
    if settings.api_key_keyring is not None:
        return _read_keyring(settings.model, settings.api_key_keyring)
    if settings.api_key_env is None:
        return None
    value = environment.get(settings.api_key_env, "").strip()  # files of secrets often end with a newline
    if not value:
        raise NoModel(
            f"{settings.model} needs a key, and the environment variable {settings.api_key_env} is not set",
            field="api_key_env",
            got=settings.api_key_env,
            hint=f"export {settings.api_key_env}=... and try again; the key itself is never written down.",
        )
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise NoModel(
            f"what the environment variable {settings.api_key_env} holds cannot be a key: there are blanks or signs "
            "in it that no header may have",
            field="api_key_env",
            got=f"{len(value)} characters",
            hint="Set it again, without quotes or line ends; the key itself is never written down.",
        )
    return value


def needs_key(settings: ModelSettings) -> bool:
    """Return whether a model is configured with a key."""
    return settings.api_key_env is not None or settings.api_key_keyring is not None


def _read_keyring(model: str, entry: str) -> str:
    """Return the key of an entry (service/name) of the system's keyring."""
    service, _, name = entry.partition("/")
    try:
        keyring: Any = importlib.import_module("keyring")
    except ImportError:
        raise NoModel(
            f"{model} needs a key from the system's keyring, and the package keyring is not installed",
            field="api_key_keyring",
            got=entry,
            hint=f"{install_hint('keyring')}, or use api_key_env.",
        ) from None
    try:
        value = keyring.get_password(service, name)
        problem = "" if value else f"holds no {name} of {service}"
    except keyring.errors.KeyringError as error:  # locked, or no keyring on this machine
        value, problem = None, f"cannot be read: {type(error).__name__}"
    if not value:
        raise NoModel(
            f"{model} needs a key, and the system's keyring {problem}",
            field="api_key_keyring",
            got=entry,
            hint=f"`keyring set {service} {name}` asks for it and keeps it; the key itself is never written down.",
        )
    return str(value)


def holds_key(text: str) -> bool:
    """Return whether a text contains a key: by its shape, in an address, or as a named value too long for a word."""
    values = (match[VALUE_GROUP] for match in NAMED_KEY.finditer(text))
    return bool(KEY_PATTERN.search(text) or ADDRESS_WITH_PASSWORD.search(text)) or any(
        len(value) >= MIN_SURE_KEY_CHARS and re.search("[0-9]", value) and re.search("[A-Za-z]", value)
        for value in values
    )
