"""The command that examines the machine: what is installed, what works, and how to close each gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ...extras import install_hint
from ..facts.standing import DEFAULT_WORKSPACE
from . import machine
from .console import print_object, stdout_console
from .models.router_file import ROUTER_FILE, find_unknown_words, read_models
from .options import AsJson, Workspace

if TYPE_CHECKING:
    from ...router import RouterConfig
    from ...router.endpoints import Health


REQUIRED_PACKAGES = {
    "anyio": "servers over HTTP",
    "arch": "tests beside the gate",
    "cryptography": "signatures of the record",
    "httpx2": "tokens of OAuth servers",
    "jinja2": "report",
    "langchain-core": "agents",
    "langgraph": "agents",
    "langgraph-checkpoint-sqlite": "agents",
    "lark": "factor language",
    "litellm": "models",
    "mcp": "tools",
    "numba": "engine",
    "numpy": "engine",
    "online-fdr": "tests beside the gate",
    "pandas": "market data",
    "platformdirs": "kernel cache",
    "pyarrow": "market data",
    "pydantic": "settings",
    "pyjwt": "tokens of OAuth servers",
    "pyyaml": "settings",
    "rich": "command line",
    "scipy": "statistics",
    "starlette": "servers over HTTP",
    "typer": "command line",
    "uvicorn": "servers over HTTP",
}
OPTIONAL_PACKAGES = {
    "langgraph-checkpoint-postgres": ("a ledger in PostgreSQL", "postgres"),
    "psycopg": ("a ledger in PostgreSQL", "postgres"),
    "vectorbt": ("the book's backtest", "vectorbt"),
}
"""The purpose of each, and the extra that installs it."""
RESEARCH_ABILITY = "research with a language model"
MODELS_PREFIX = "models of "
ABILITIES = {
    "run the demo, and campaigns with the offline researcher": "close what is missing above",
    RESEARCH_ABILITY: "name one under models in a campaign file (alphaloom init shows how), then ask "
    "again with: alphaloom doctor CAMPAIGN.yaml",
    "backtest the book": "",
    "keep a ledger in PostgreSQL": "",
}
"""What the machine can do, and the remedy where it cannot; an ability in `EXTRAS` needs that extra."""
EXTRAS = {"backtest the book": "vectorbt", "keep a ledger in PostgreSQL": "postgres"}
STATUS_SIGNS = {"ok": ("ok", "green"), "limited": ("limited", "yellow"), "missing": ("missing", "bold red")}
MIN_MEMORY_GB, MIN_DISK_GB = 2.0, 1.0
Status = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Diagnosis:
    """One finding; `missing` means that campaigns cannot run, `limited` that something else cannot."""

    group: str
    name: str
    status: Status
    found: str
    hint: str = ""


def doctor(
    campaign: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A campaign file or a router.yaml, whose models to ask; "
            "by default the offline researcher, and router.yaml where it is there.",
        ),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which models answer, what this machine can do, and how to close each gap."""
    findings = diagnose_machine(workspace or DEFAULT_WORKSPACE, campaign)
    if as_json:
        print_object(_build_json(findings))
    else:
        _print(findings)
    if any(finding.status == "missing" for finding in findings):
        raise typer.Exit(3)


def diagnose_machine(workspace: Path, campaign: Path | None = None) -> list[Diagnosis]:
    """Return every finding; the examination changes nothing on the machine."""
    return [
        *_check_packages(),
        *_check_hardware(),
        *_check_places(workspace),
        *_check_ledger(workspace),
        *_check_vllm(workspace),
        *_check_models(campaign),
    ]


def _check_packages() -> list[Diagnosis]:
    findings = [Diagnosis("packages", "python", "ok", machine.python())]
    for name, use in REQUIRED_PACKAGES.items():
        findings.append(_check_package(name, use, f"pip install {name}", "missing"))
    for name, (use, extra) in OPTIONAL_PACKAGES.items():
        findings.append(_check_package(name, use, install_hint(extra), "limited"))
    return findings


def _check_package(name: str, use: str, remedy: str, without: Status) -> Diagnosis:
    version = machine.version(name)
    if version:
        return Diagnosis("packages", name, "ok", version)
    return Diagnosis("packages", name, without, f"not installed ({use})", remedy)


def _check_hardware() -> list[Diagnosis]:
    memory, cores = machine.memory_gb(), machine.cores()
    short = memory is not None and memory < MIN_MEMORY_GB
    hint = f"campaigns need up to {MIN_MEMORY_GB:.0f} GB; use a smaller panel" if short else ""
    folder, kernels = machine.kernels()
    compiled = f"{kernels} compiled in {folder}" if kernels else f"none yet in {folder}"
    note = "" if kernels else "the first run compiles them, once"
    return [
        Diagnosis("machine", "cores", "ok", str(cores)),
        Diagnosis("machine", "memory", "limited" if short else "ok", _format_gigabytes(memory), hint),
        Diagnosis("machine", "kernels", "ok", compiled, note),
    ]


def _check_places(workspace: Path) -> list[Diagnosis]:
    free, refusal = machine.disk_free_gb(workspace), machine.write_obstacle(workspace)
    full = free is not None and free < MIN_DISK_GB
    return [
        Diagnosis(
            "workspace",
            "folder",
            "missing" if refusal else "ok",
            f"{workspace}: {refusal or 'writable'}",
            "choose another with --workspace DIR" if refusal else "",
        ),
        Diagnosis(
            "workspace",
            "disk",
            "limited" if full else "ok",
            f"{_format_gigabytes(free)} free",
            f"free some space: a campaign needs up to {MIN_DISK_GB:.0f} GB" if full else "",
        ),
    ]


def _check_ledger(workspace: Path) -> list[Diagnosis]:
    """Check the database that holds a workspace's record, if there is one."""
    from ...ledger import LedgerError
    from ...ledger.database import Home

    try:
        home = Home.of(workspace)
        if not home.address:
            return []
        return [Diagnosis("workspace", "ledger", "ok", f"{home.address}: {home.server_version()}")]
    except LedgerError as error:
        return [Diagnosis("workspace", "ledger", "missing", error.message, error.hint)]


def _check_vllm(workspace: Path) -> list[Diagnosis]:
    """Report the environment of vLLM in the workspace, if there is one, complete or not."""
    from ...serving import ENVIRONMENT_FOLDER, find_environment

    folder = workspace / ENVIRONMENT_FOLDER
    if not folder.is_dir():
        return []
    if found := find_environment(folder):
        text = f"{found.version} ({found.build}) in {folder}, for alphaloom models serve"
        return [Diagnosis("workspace", "vllm", "ok", text)]
    return [Diagnosis("workspace", "vllm", "limited", f"incomplete in {folder}", "alphaloom models serve --install")]


def _format_gigabytes(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.1f} GB"


def _check_models(file: Path | None) -> list[Diagnosis]:
    """Probe each configured model's address; no token is spent."""
    try:
        if file is None:
            findings = [_diagnose_model(health) for health in _probe(None)]
            return [*findings, *(_check_router_file() if ROUTER_FILE.is_file() else _check_discovered())]
        models = read_models(file)
        if models.of_campaign:
            return _diagnose_campaign_models(_probe(models.config))
        doubts = [
            Diagnosis(_name_group(file), "words", "limited", doubt) for doubt in find_unknown_words(models.config)
        ]
        return [*(_diagnose_router_model(file, health) for health in _probe(models.config)), *doubts]
    except ImportError as error:
        return [Diagnosis("models", "router", "missing", f"cannot be loaded: {error}", "install what is missing above")]


def _check_router_file() -> list[Diagnosis]:
    """Probe the models of the router.yaml in this folder; a mistake in it limits only `alphaloom route`."""
    from ...ledger import AlphaloomError

    try:
        return _check_models(ROUTER_FILE)
    except AlphaloomError as error:
        return [
            Diagnosis(_name_group(ROUTER_FILE), "file", "limited", error.message, error.hint or f"mend {ROUTER_FILE}")
        ]


def _check_discovered() -> list[Diagnosis]:
    """List the models that `alphaloom route` uses without a file: providers with a key, and servers on this machine."""
    import os

    from ...router.endpoints import find_models

    models = find_models(os.environ)
    if not models:
        hint = "set a provider's key, serve a model here, or write router.yaml"
        return [
            Diagnosis(
                "found without a file", "models", "limited", "no key of a provider, no server on this machine", hint
            )
        ]
    return [
        Diagnosis(
            "found without a file",
            f"{name} ({model.model})",
            "ok",
            f"{model.tier} tier, {model.api_base or 'by its key'}",
        )
        for name, model in models.items()
    ]


def _probe(config: RouterConfig | None) -> list[Health]:
    import asyncio
    import os

    from ...router.endpoints import probe_model

    models = (config or _load_default_models()).models

    async def ask() -> list[Health]:
        probes = [probe_model(name, model, {"offline"}, os.environ) for name, model in models.items()]
        return list(await asyncio.gather(*probes))

    return asyncio.run(ask())


def _load_default_models() -> RouterConfig:
    """Return the models of a campaign whose file names none."""
    from ...campaign import Settings

    return Settings.model_validate({}).models


def _diagnose_router_model(file: Path, health: Health) -> Diagnosis:
    """Diagnose a model of a router.yaml: `alphaloom route` and programs use it; campaigns use their own file's."""
    diagnosis = _diagnose_model(health)
    hint = f"check {health.name} in {file}, its api_base and api_key_env" if diagnosis.hint else ""
    return replace(diagnosis, group=_name_group(file), hint=hint)


def _name_group(file: Path) -> str:
    return f"{MODELS_PREFIX}{file}"


def _diagnose_model(health: Health) -> Diagnosis:
    status: Status = "ok" if health.answers else "limited"
    word = {True: "answers", False: "does not answer", None: "not known"}[health.answers]
    hint = "" if health.answers else "check models in the campaign file, its api_base and api_key_env"
    return Diagnosis("models", f"{health.name} ({health.model})", status, f"{word}: {health.detail}", hint)


def _diagnose_campaign_models(health: Sequence[Health]) -> list[Diagnosis]:
    """Diagnose the models of a campaign file; where all are known not to answer, the campaign cannot run."""
    findings = [_diagnose_model(one) for one in health]
    dead = bool(findings) and all(one.answers is False for one in health)
    return [replace(finding, status="missing") for finding in findings] if dead else findings


def _build_json(findings: Sequence[Diagnosis]) -> dict[str, Any]:
    return {
        "ok": all(finding.status != "missing" for finding in findings),
        "findings": [asdict(finding) for finding in findings],
        "can": _list_abilities(findings),
    }


def _list_abilities(findings: Sequence[Diagnosis]) -> dict[str, bool]:
    """Return what can be done here, in the words of a user's wishes."""
    ready = all(finding.status != "missing" for finding in findings)
    status = {finding.name: finding.status for finding in findings}
    models = [f for f in findings if f.group == "models" and f.status == "ok"]
    served = status.get("psycopg") == status.get("langgraph-checkpoint-postgres") == "ok"
    able = (
        ready,
        ready and any("offline" not in f.name for f in models),
        ready and status.get("vectorbt") == "ok",
        ready and served,
    )
    return dict(zip(ABILITIES, able, strict=True))


def _find_remedy(ability: str, findings: Sequence[Diagnosis]) -> str:
    """Return what to do for a missing ability; models that are named but do not answer are to be mended."""
    if ability in EXTRAS:
        return install_hint(EXTRAS[ability])
    named = [f for f in findings if f.group == "models" and "offline" not in f.name]
    if ability != RESEARCH_ABILITY:
        return ABILITIES[ability]
    if not named:
        elsewhere = next(
            (f.group.removeprefix(MODELS_PREFIX) for f in findings if f.group.startswith(MODELS_PREFIX)), ""
        )
        remark = (
            f"the models of {elsewhere} answer `alphaloom route` and programs; a campaign asks those of its own file; "
        )
        return (remark if elsewhere else "") + ABILITIES[ability]
    if any(f.found.startswith("not known") for f in named):
        return "no model that is named is known to answer; a paid one is asked by a run alone"
    names, verb = ", ".join(f.name for f in named), "does" if len(named) == 1 else "do"
    return f"{names} {verb} not answer: start the server, or mend its api_base and key"


def _print(findings: Sequence[Diagnosis]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    for group in dict.fromkeys(finding.group for finding in findings):
        table = Table.grid(padding=(0, 2))
        for finding in (f for f in findings if f.group == group):
            word, style = STATUS_SIGNS[finding.status]
            text = (
                f"{finding.found}. To do: {finding.hint}" if finding.status != "ok" and finding.hint else finding.found
            )
            note = f" ({finding.hint})" if finding.status == "ok" and finding.hint else ""
            table.add_row(Text(f"  {finding.name}"), Text(word, style), Text(text + note))
        console.print(Text(group, style="bold"))
        console.print(table)
    console.print(Text("this machine can", style="bold"))
    for ability, able in _list_abilities(findings).items():
        text = f"  yes  {ability}" if able else f"  no   {ability}: {_find_remedy(ability, findings)}"
        console.print(Text(text, style="" if able else "yellow"), soft_wrap=True)
