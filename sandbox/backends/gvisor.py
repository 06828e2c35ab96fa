"""The wall of gVisor: a kernel in user space between the interpreter and the machine's own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..backend import ENVIRONMENT
from .launch import OPTIONS, InterpreterLaunch, find_interpreter, find_tool, read_program

_REMOVE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class GVisor:
    """Start interpreters with `runsc`: Linux.

    Attributes
    ----------
    platform : str
        How gVisor intercepts system calls: "systrap", "ptrace" or "kvm"; empty for its default.
    """

    tool: str = "runsc"
    platform: str = ""
    name: ClassVar[str] = "gvisor"
    stamp: ClassVar[str] = ""
    hint: ClassVar[str] = "Install runsc (gvisor.dev, or apt install runsc); older ones need sandbox.platform: ptrace."

    def check(self) -> None:
        """Raise SandboxUnavailable where runsc is missing."""
        find_tool(self.tool, self.hint)

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started, from a bundle in a temporary folder."""
        folder = Path(tempfile.mkdtemp(prefix="runsc-"))
        (folder / "rootfs").mkdir()
        (folder / "config.json").write_text(json.dumps(build_bundle()), encoding="utf-8")
        return InterpreterLaunch(
            (*self.build_command(folder), "run", "--bundle", str(folder), folder.name),
            find_interpreter().paths,
            end=lambda: self._remove(folder),
        )

    def build_command(self, folder: Path) -> tuple[str, ...]:
        """Return the command and its options, before the verb."""
        options = ["--root", str(folder / "state"), "--network=none", "--ignore-cgroups"]
        options += [f"--platform={self.platform}"] if self.platform else []
        options += [] if os.geteuid() == 0 else ["--rootless"]
        return (find_tool(self.tool, self.hint), *options)

    def _remove(self, folder: Path) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*self.build_command(folder), "delete", "--force", folder.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_REMOVE_TIMEOUT_S,
                check=False,
            )
        shutil.rmtree(folder, ignore_errors=True)


def build_bundle() -> dict[str, Any]:
    """Return the container of the OCI runtime specification: read-only, without network or rights."""
    python = find_interpreter()
    sources = {place: place for place in python.readable}
    sources |= {place: os.path.realpath(place) for place, _ in python.links}
    nothing: dict[str, list[str]] = {
        kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
    }
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 65534, "gid": 65534},
            "cwd": "/",
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "args": [python.program, "-S", *OPTIONS, read_program()],
            "capabilities": nothing,
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "none",
        "mounts": [
            *(
                {"destination": there, "source": here, "type": "bind", "options": ["ro", "rbind", "nosuid", "nodev"]}
                for there, here in sorted(sources.items())
            ),
            {"destination": "/tmp", "source": "none", "type": "tmpfs", "options": ["ro"]},
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }
