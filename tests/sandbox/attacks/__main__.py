"""Send the hostile snippets into the sandbox, as root or as anybody, and tell what got through.

python -m tests.sandbox.attacks                          every class, as whoever runs it
python -m tests.sandbox.attacks --user 65534             as somebody without rights (needs root to begin with)
python -m tests.sandbox.attacks --classes tcp,eval       some classes
python -m tests.sandbox.attacks --only tcp/listen        one snippet

One line of JSON a snippet, then one for the end; exit code 1 if anything got through.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .ground import KEYS, token
from .snippet import Snippet, read

if TYPE_CHECKING:
    from .attack import Attack
    from .host import Host

__all__ = ["arguments", "main"]

ROOT = Path(__file__).resolve().parents[3]
POISONOUS = ("descriptor_bombs", "hangs", "output_bombs", "persistence", "pickle", "result_forging")
"""Classes after each of whose snippets an honest call is made; after the others, once."""
Rights = dict[str, int | list[int]]
GUARD_BYTES, GUARD_PROCESSES, GUARD_S = 6 << 30, 400, 900
"""An outer guard, should the jail fail: memory of each process, processes of the user, seconds of the whole."""


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sandbox.attacks", description=__doc__)
    parser.add_argument("--classes", default="", help="names of classes, separated by commas")
    parser.add_argument("--only", default="", help="class/name of one snippet")
    parser.add_argument("--user", type=int, help="become this user first")
    parser.add_argument("--seed", default="0", help="what the secrets are drawn from")
    parser.add_argument("--token", help=argparse.SUPPRESS)
    parser.add_argument("--top", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def chosen(options: argparse.Namespace) -> list[Snippet]:
    """Return the snippets that were asked for."""
    wanted = [each for each in options.classes.split(",") if each]
    found = [each for each in read() if (not wanted or each.group in wanted) and options.only in ("", each.title)]
    if not found:
        raise SystemExit("there is no such snippet")
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Lay out the host in a process of its own, attack it, and clean up."""
    options = arguments(given)
    chosen(options)
    if options.top is not None:
        return attack(options)
    top = Path(tempfile.mkdtemp(prefix="alphaloom-attacks-"))
    if options.user is not None:
        os.chown(top, options.user, options.user)
    try:
        return _started(options, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _started(options: argparse.Namespace, top: Path) -> int:
    """Start this module again, with secrets in its arguments and its environment, and perhaps as somebody else."""
    secret = token(options.seed, "env")
    paths = [str(ROOT), str(ROOT / ".root"), str(Path(np.__file__).parents[1])]
    rights: Rights = {}
    if options.user is not None:
        rights = {"user": options.user, "group": options.user, "extra_groups": []}
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": os.pathsep.join(paths),
        **dict.fromkeys(KEYS, secret),
    }
    command = [
        _interpreter(rights), "-B", "-m", "tests.sandbox.attacks", "--top", str(top), "--token", token(options.seed, "argv"),
        "--seed", options.seed, "--classes", options.classes, "--only", options.only,
    ]  # fmt: skip
    return subprocess.run(command, env=environment, cwd=ROOT, timeout=GUARD_S, check=False, **rights).returncode  # type: ignore[call-overload,no-any-return]


def _interpreter(rights: Rights) -> str:
    """Return an interpreter of this version that whoever attacks may run: one in a closed home serves its owner only."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            subprocess.run([path, "-c", ""], check=True, cwd="/", **rights)  # type: ignore[call-overload]
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    raise SystemExit(f"there is no Python {version} that user {rights.get('user')} may run")


def attack(options: argparse.Namespace) -> int:
    """Attack the sandbox from this process, the host."""
    from alphaloom.sandbox import SandboxUnavailable

    from .attack import Attack
    from .host import Host

    told = os.dup(1)
    resource.setrlimit(resource.RLIMIT_AS, (GUARD_BYTES, GUARD_BYTES))
    if os.getuid() != 0:
        resource.setrlimit(resource.RLIMIT_NPROC, (GUARD_PROCESSES, GUARD_PROCESSES))
    escaped = 0
    with os.fdopen(told, "w") as lines, Host(options.top, options.seed) as host:
        before, attacks = _descriptors(), Attack(host)
        try:
            attacks.sandbox()
        except SandboxUnavailable as error:
            print(json.dumps({"unavailable": error.field, "message": error.message}), file=lines)
            return error.exit_code
        for snippet, last in _with_last(chosen(options)):
            verdict = attacks.run(snippet, honest=last or snippet.group in POISONOUS)
            escaped += bool(verdict.escapes)
            print(json.dumps(verdict.record(), sort_keys=True), file=lines, flush=True)
        left = _after(attacks, host, before)
        print(json.dumps({"end": True, "escaped": escaped, "left": left}), file=lines)
    return 1 if escaped or left else 0


def _with_last(snippets: Sequence[Snippet]) -> Iterator[tuple[Snippet, bool]]:
    """Yield each snippet, and whether it is the last of its class."""
    following = [*snippets[1:], None]
    for snippet, after in zip(snippets, following, strict=True):
        yield snippet, after is None or after.group != snippet.group


def _after(attacks: Attack, host: Host, before: set[str]) -> list[str]:
    """Return what is left: descriptors, processes, changes."""
    from .neighbours import settled

    attacks.close()
    more = sorted(_descriptors() - before)
    panels = [each for each in more if "/memfd:panel" in each]  # those of the three panels, which are still here
    found = [f"descriptors {more}"] if len(panels) > 3 or len(panels) < len(more) else []
    found += [f"process {number} is left" for number in settled(frozenset(), host.sibling.number, 3.0)]
    return found + host.moved()


def _descriptors() -> set[str]:
    return {f"{name}: {os.readlink(f'/proc/self/fd/{name}')}" for name in os.listdir("/proc/self/fd") if _open(name)}


def _open(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")


if __name__ == "__main__":
    raise SystemExit(main())
