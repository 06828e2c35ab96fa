"""Find an environment that was made for vLLM, by the mark that is written into it when it is complete."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

COMPLETE_MARK = "alphaloom-vllm.json"
ENVIRONMENT_FOLDER = "vllm"
"""Name of the environment's folder in a workspace."""
SERVER_MODULE = "vllm.entrypoints.openai.api_server"


@dataclass(frozen=True)
class VllmEnvironment:
    """A complete environment: its folder, the kind of build, and the version that was installed."""

    folder: Path
    build: str
    version: str

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return find_python(self.folder)

    @property
    def starter(self) -> list[str]:
        """Return the command that starts its server."""
        return [str(self.python), "-m", SERVER_MODULE]


def find_python(folder: Path) -> Path:
    """Return the path of an environment's interpreter, absolute, whether it is there or not."""
    return folder.absolute() / "bin" / "python"


def find_environment(folder: Path) -> VllmEnvironment | None:
    """Return the environment in a folder; None where there is none, or an incomplete one."""
    try:
        mark = json.loads((folder / COMPLETE_MARK).read_text(encoding="utf-8"))
        found = VllmEnvironment(folder.absolute(), str(mark["build"]), str(mark["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.python.exists() else None


def mark_complete(found: VllmEnvironment) -> None:
    """Write the mark of a complete environment."""
    content = {name: str(value) for name, value in asdict(found).items() if name != "folder"}
    (found.folder / COMPLETE_MARK).write_text(json.dumps(content) + "\n", encoding="utf-8")
