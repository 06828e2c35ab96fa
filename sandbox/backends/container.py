"""The wall of a container: docker, podman, or any command with their `run`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import secrets
import shlex
import subprocess
from dataclasses import dataclass
from typing import ClassVar

from ..backend import ENVIRONMENT
from ..errors import SandboxUnavailable
from .launch import OPTIONS, InterpreterLaunch, find_tool, read_program

_CONTAINER_OPTIONS = (
    "--rm", "--interactive", "--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL",
    "--security-opt", "no-new-privileges", "--user", "65534:65534", "--ipc", "none", "--pids-limit", "16",
    "--ulimit", "nofile=64:64", "--ulimit", "nproc=1024:1024", "--ulimit", "core=0:0", "--log-driver", "none",
    "--hostname", "none", "--workdir", "/", "--entrypoint", "/usr/bin/env",
)  # fmt: skip  # a table
_PATH_VARIABLE = "PATH=/usr/local/bin:/usr/bin:/bin"
_COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Container:
    """Start interpreters with a container command, also on macOS and Windows where one is installed.

    Attributes
    ----------
    tool : str
        The command, with options of its own where it needs some: "docker", "podman --runtime runc".
    image : str
        A local image with `python3` and the versions of numpy and pandas that are used here. Nothing is pulled.
    """

    tool: str = "docker"
    image: str = "alphaloom-sandbox"
    name: ClassVar[str] = "container"
    stamp: ClassVar[str] = ""

    @property
    def hint(self) -> str:
        """Return the command that builds the image."""
        numpy, pandas = (f"{name}=={importlib.metadata.version(name)}" for name in ("numpy", "pandas"))
        lines = f"FROM python:3.12-slim\\nRUN pip install {numpy} {pandas}\\n"
        return f"Make the image: printf '{lines}' | {self.tool} build -t {self.image} -"

    def check(self) -> None:
        """Raise SandboxUnavailable where the tool or the image is missing, or the tool does not work."""
        try:
            result = subprocess.run(
                [*self._find_command(), "image", "inspect", "--format", "{{.Id}}", self.image],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SandboxUnavailable(f"{self.tool} does not answer", field="container") from None
        if result.returncode:
            reason = result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise SandboxUnavailable(
                f"the image {self.image} cannot be used: {reason}", field="image", got=self.image, hint=self.hint
            )

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started, and how its container is removed."""
        name = f"alphaloom-{secrets.token_hex(8)}"
        return InterpreterLaunch(self.build_command(name), environment=None, end=lambda: self._remove(name))

    def build_command(self, name: str) -> tuple[str, ...]:
        """Return the whole command line of a container of this name."""
        variables = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        python = ("-i", _PATH_VARIABLE, *variables, "python3", *OPTIONS, read_program())
        return (*self._find_command(), "run", "--name", name, *_CONTAINER_OPTIONS, self.image, *python)

    def _find_command(self) -> list[str]:
        first, *options = shlex.split(self.tool)
        return [find_tool(first, "Install docker or podman, and name the one you have: sandbox.command."), *options]

    def _remove(self, name: str) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*self._find_command(), "rm", "--force", name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_TIMEOUT_S,
                check=False,
            )
