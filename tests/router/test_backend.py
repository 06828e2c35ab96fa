import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / ".root"


def run(code: str, folder: Path) -> str:
    body = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_room_loads_without_a_model_library(tmp_path: Path) -> None:
    loaded = run("import alphaloom.router; print(*sys.modules)", tmp_path).split()
    assert not {"litellm", "openai", "numpy", "pandas"} & set(loaded)


@pytest.mark.integration
def test_the_model_library_loads_quietly_without_a_network_and_without_reading_dotenv(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n")
    code = """
import os, socket
def refuse(*_): raise SystemExit("reached for the network")
socket.socket.connect = refuse
from alphaloom.router.calls.providers import load_litellm
assert load_litellm() is load_litellm()
print(os.environ.get("FROM_DOTENV"))
"""
    assert run(code, tmp_path) == "None\n"


def test_a_model_of_this_process_is_asked_without_a_model_library(tmp_path: Path) -> None:
    code = """
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from pydantic import BaseModel
from alphaloom.ledger import Ledger, Run
from alphaloom.router import Completion, Message, Router, RouterConfig, Task
class Double:
    async def complete(self, model, messages, parameters):
        return Completion('{"text": "a"}')
class Idea(BaseModel):
    text: str
async def ask(ledger):
    config = RouterConfig.model_validate({"models": {"m": {"model": "double/x", "place": "local"}}})
    router = Router(config, ledger, providers={"double": Double})
    says = (Message("user", "propose"),)
    await router.ask(Task(role="factor", intent="new", messages=says, schema=Idea, prompt="p", run="one", seed=1))
    await router.close()
with Ledger.open(Path("w"), clock=lambda: datetime.now(UTC)) as ledger:
    ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
    asyncio.run(ask(ledger))
print(*sys.modules)
"""
    assert not {"litellm", "openai", "httpx2"} & set(run(code, tmp_path).split())


def test_every_error_is_in_the_tree_at_the_top_of_its_module() -> None:
    from alphaloom.router import errors

    names = [name for name, each in vars(errors).items() if isinstance(each, type) and name != "AlphaloomError"]
    assert all(name in (errors.__doc__ or "") for name in names)


@pytest.mark.parametrize("name", ["ask", "spend", "close"])
def test_the_door_has_a_handle_for_each_need(name: str) -> None:
    from alphaloom.router import Router

    assert getattr(Router, name).__doc__
