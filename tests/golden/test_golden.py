"""Shapes, grammar and exit codes are those that were frozen."""

from __future__ import annotations

import asyncio
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import Budget
from alphaloom.factors.decoding import decoding_grammar
from alphaloom.ledger import Ledger

from ..evidence.lab import SMALL, Lab, market, read
from ..mcp_servers.opened import opened_to
from .frozen import agrees, digest

pytestmark = pytest.mark.integration

TOLD = {"title", "description", "examples"}
"""Keys of a schema whose values are words."""
COMMANDS = [
    "--version", "--help", "rnu", "run nothing.yaml", "run --sede 3", "run --set budget=3", "resume", "resume latest",
    "status", "log latest", "report latest", "stop latest", "review latest", "factor check rank(close)",
    "factor check rank(clsoe)", "factor check close+volume", "factor check --file nothing.txt",
    "factor similar rank(close)", "factor score rank(close) --panel nothing.parquet",
    "evidence power --panel nothing.csv", "evidence verify latest", "library list", "library retire f0 --reason x",
    "audit verify", "audit tail", "token list --file nothing.yaml", "route --file nothing.jsonl",
    "models plan --gpu nothing", "sandbox check nothing.py", "news list", "doctor nothing.yaml", "init",
    "serve mcp nothing",
]  # fmt: skip  # a table


def without_words(value: Any, *, named: bool = False) -> Any:
    """Return a schema without titles, descriptions and examples; `named`: its keys are names of arguments."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if named or key not in TOLD}
        return {key: without_words(each, named=key in {"properties", "$defs"}) for key, each in kept.items()}
    return [without_words(part) for part in value] if isinstance(value, list) else value


def words(value: Any, at: str = "") -> dict[str, Any]:
    """Return the words of a schema by their place."""
    found: dict[str, Any] = {}
    if isinstance(value, dict):
        for key, each in value.items():
            found |= {f"{at}/{key}": each} if key in TOLD and isinstance(each, str) else words(each, f"{at}/{key}")
    return found


def test_tools(tmp_path: Path) -> None:
    async def listed(ledger: Ledger) -> dict[str, Any]:
        evaluator = Lab.open(ledger, "run", market(), SMALL, Budget(evaluations=8, trials=2)).evaluator
        async with opened_to(evaluator) as sessions:
            return {
                f"{name}.{tool.name}": tool.model_dump(mode="json")
                for name, session in sessions.items()
                for tool in (await session.client.list_tools()).tools
            }

    with read(tmp_path / "workspace") as ledger:
        tools = asyncio.run(listed(ledger))
    agrees("facts", "tools", {name: without_words(tool["input_schema"]) for name, tool in tools.items()})
    agrees(
        "words",
        "tools",
        {name: {"": cleandoc(tool["description"]), **words(tool["input_schema"])} for name, tool in tools.items()},
    )


@pytest.mark.parametrize("form", ["ebnf", "lark"])
def test_decoding_grammar(form: Any) -> None:
    fields = ["amount", "close", "high", "low", "open", "returns", "volume", "vwap"]
    agrees("facts", f"grammar {form}", digest(decoding_grammar(fields, ["sector"], [5, 20, 60], form=form)))


def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    agrees("facts", "exit codes", {line: run_command(line.split()) for line in COMMANDS})
