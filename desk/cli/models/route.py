"""The command that says which model would answer a prompt, and why."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..console import print_object, stderr_console, stdout_console
from ..options import AsJson
from .router_file import ROUTER_FILE, find_unknown_words, read_models

if TYPE_CHECKING:
    from ....router import RouterConfig
    from ....router.policy import Decider, RoutingDecision


MAX_PROMPT_CHARS = 1_000_000
TOO_LONG_MESSAGE = f"has more than {MAX_PROMPT_CHARS:,} characters"
LINE_KEYS, MAX_KEY_CHARS = frozenset({"prompt", "role"}), 40
LINE_EXAMPLE = '{"prompt": "...", "role": "factor"}; role may be left away'
MIN_SURE_SHARE = 0.8
"""Share of recognised examples from which there is no warning about a user's own intent."""

RouterFile = Annotated[
    Path | None,
    typer.Option(
        "--router",
        metavar="FILE",
        help="Models and policies: a router.yaml or a campaign file; "
        "router.yaml where it is there, else what is found here.",
    ),
]


class _PromptLine(NamedTuple):
    """One prompt to decide on, and the role that asks."""

    prompt: str
    role: str | None


def route(
    prompt: Annotated[str | None, typer.Argument(help="What a model would be asked; - reads standard input.")] = None,
    role: Annotated[
        str | None, typer.Option("--role", help="Who asks: idea, factor, repair, eval, critic, data, news ...")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="JSONL",
            help="Many: lines of {prompt, role?}; an answer a line, in order, always as JSON.",
        ),
    ] = None,
    router: RouterFile = None,
    confidential: Annotated[
        bool, typer.Option("--confidential", help="The text may go to models on your machines only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which model would answer a prompt: what it wants, how hard it is, which tier and model, what that costs, and why.

    The text is read on this machine, without a network and in under a millisecond; nothing is sent to any model. Who
    asks says more than the text: give --role where a program knows it. A prompt that may be hard goes to the frontier
    tier.
    """  # noqa: E501 - the summary of a command's help is one line
    if (prompt is None) == (file is None):
        raise typer.BadParameter("give one prompt, - to read standard input, or --file with many", param_hint="PROMPT")
    decider = _make_decider(router)
    if not decider.config.models:
        stderr_console().print(
            "No model is set up here: no router.yaml, no key, no server on this machine; the tier is told all the same."
        )
    lines = [_PromptLine(_read_prompt(str(prompt)), role)] if file is None else list(_read_lines(file, role))
    for doubt in find_unknown_words(decider.config, {line.role for line in lines}):
        stderr_console().print(doubt, soft_wrap=True, markup=False)
    if file is not None:
        for line in lines:
            print_object(_decide_route(decider, line, confidential).record())
        return
    (line,) = lines
    decision = _decide_route(decider, line, confidential)
    if as_json:
        print_object(decision.record())
    else:
        _print(decision, decider.config)
        _print_weak_intents(decider)


def _decide_route(decider: Decider, line: _PromptLine, confidential: bool) -> RoutingDecision:
    from ....router.policy import RoutingQuestion

    sensitivity: Any = "confidential" if confidential else "public"
    return decider.decide(RoutingQuestion(prompt=line.prompt, role=line.role, sensitivity=sensitivity))


def _print_weak_intents(decider: Decider) -> None:
    """Warn of the user's own intents that are hard to recognise by their examples."""
    from ....router.classifier import OwnClassifier

    if not isinstance(decider.classifier, OwnClassifier):
        return
    taught = decider.classifier.taught
    for name, share in zip(taught.names, taught.recalled, strict=True):
        if share < MIN_SURE_SHARE:
            stderr_console().print(
                f"{name}: {share:.0%} of its examples are recognised when each is left out. "
                "More of them, in other words, help; "
                "so does routing.embedding, or a role that says it (routing.roles)."
            )


def _make_decider(path: Path | None) -> Decider:
    import os

    from pydantic import Field

    from ....router import ModelSettings, RouterConfig
    from ....router.endpoints import find_models
    from ....router.policy import Decider

    class Found(RouterConfig):
        """The models found on this machine; there may be none."""

        models: dict[str, ModelSettings] = Field(default={})
        roles: dict[str, Any] = Field(default={})

    place = path or (ROUTER_FILE if ROUTER_FILE.is_file() else None)
    if place is not None:
        router_models = read_models(place)
        if router_models.of_campaign:
            stderr_console().print(f"{place} is a campaign file: its section models decides.", soft_wrap=True)
        return Decider(router_models.config)
    return Decider(Found(models=find_models(os.environ)))


def _read_prompt(prompt: str) -> str:
    if prompt == "-":
        prompt = _read_standard_input()
    if not prompt.strip():
        raise typer.BadParameter("is empty", param_hint="PROMPT")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise typer.BadParameter(TOO_LONG_MESSAGE, param_hint="PROMPT")
    return prompt


def _read_standard_input() -> str:
    try:
        text = sys.stdin.read(MAX_PROMPT_CHARS + 1)
        text.encode()  # fails if the locale has read invalid bytes as surrogates
    except UnicodeError:
        text = "\0"
    if "\0" in text:
        raise typer.BadParameter("standard input is no UTF-8 text", param_hint="PROMPT")
    return text


def _read_lines(path: Path, role: str | None) -> Iterator[_PromptLine]:
    """Yield the prompts of a file; an invalid line is refused with its number before any is answered."""
    from ....ledger.files import read_given_text
    from ...errors import DeskError

    try:
        text = read_given_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise DeskError(f"cannot read {path}: {reason}", field="--file", got=str(path), code="prompts") from None
    prompts = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            prompts.append(_parse_line(line, number, role))
    if not prompts:
        raise DeskError(f"{path} holds no prompt", field="--file", got=str(path), allowed=LINE_EXAMPLE, code="prompts")
    yield from prompts


def _parse_line(line: str, number: int, role: str | None) -> _PromptLine:
    from ...errors import DeskError

    try:
        record = json.loads(line)
        prompt, own = record["prompt"], record.get("role")
        if not isinstance(prompt, str) or not prompt.strip() or not isinstance(own, str | None):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DeskError(
            f"line {number} holds no prompt",
            field=f"line {number}",
            got=line[:100],
            allowed=LINE_EXAMPLE,
            hint="One JSON object a line.",
            code="prompts",
        ) from None
    if misspelt := _find_misspelt_key(record):
        raise DeskError(
            f"line {number} has the key {misspelt[0]!r}; did you mean {misspelt[1]}?",
            field=f"line {number}",
            got=misspelt[0],
            allowed=LINE_EXAMPLE,
            hint="Mend the key. Keys that are like neither are left alone.",
            code="prompts",
        )
    if len(prompt) > MAX_PROMPT_CHARS:
        raise DeskError(
            f"the prompt of line {number} {TOO_LONG_MESSAGE}",
            field=f"line {number}",
            got=f"{len(prompt):,} characters",
            code="prompts",
        )
    return _PromptLine(prompt, own or role)


def _find_misspelt_key(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a key close to one of ours, and that one; other keys are the user's own labels."""
    for key in record.keys() - LINE_KEYS:
        if close := difflib.get_close_matches(key[:MAX_KEY_CHARS].lower(), LINE_KEYS - record.keys(), n=1):
            return key[:MAX_KEY_CHARS], close[0]
    return None


def _print(decision: RoutingDecision, config: RouterConfig) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    shares = ", ".join(f"{name} {share:.0%}" for name, share in decision.signals["intents"].items())
    grid.add_row("intent", f"{decision.intent} ({shares})")
    fails = f"{decision.signals['hard']:.0%} that a small model fails; {config.routing.most_hard:.0%} is the limit"
    grid.add_row("difficulty", f"{decision.difficulty} ({fails})")
    grid.add_row("tier", decision.tier)
    grid.add_row(
        "model",
        f"{decision.model}{_describe_missing_key(config, decision.model)}" if decision.model else "none is set up",
    )
    grid.add_row("cost", _format_dollars(decision.cost_usd))
    grid.add_row("because", decision.reason)
    for alternative in decision.alternatives:
        text = (
            f"{alternative.model} ({alternative.tier}, {_format_dollars(alternative.cost_usd)}): {alternative.reason}"
        )
        grid.add_row("or", text + _describe_missing_key(config, alternative.model))
    stdout_console().print(grid)


def _describe_missing_key(config: RouterConfig, name: str) -> str:
    """Return a remark if a model lacks its key, by the environment alone: no call is made."""
    import os

    from ....router.endpoints import PROVIDER_KEYS

    model = config.models[name]
    provider = model.model.partition("/")[0]
    usual = next((key for key, (large, _) in PROVIDER_KEYS.items() if large.partition("/")[0] == provider), None)
    key = model.api_key_env or (None if model.api_base or model.api_key_keyring else usual)
    return f" (its key {key} is not set)" if key and not os.environ.get(key, "").strip() else ""


def _format_dollars(cost: float | None) -> str:
    return "price not known" if cost is None else f"{cost:.6f} USD"
