"""Send the hostile snippets into the sandbox, as root or as anybody, and tell what got through.

python -m tests.sandbox.attacks                          every class, as whoever runs it
python -m tests.sandbox.attacks --user 65534             as somebody without rights (needs root to begin with)
python -m tests.sandbox.attacks --classes tcp,eval       some classes
python -m tests.sandbox.attacks --only tcp/listen        one snippet
python -m tests.sandbox.attacks --fuzz 60 --user 65534   a minute of new ones, made out of these
python -m tests.sandbox.attacks --without seccomp --user 65534   with a wall left out, those that may be run so

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
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .fuzzer import fuzzed
from .ground import KEYS, token
from .snippet import BARE, LAYERED, Snippet, read
from .users import NOBODY, OutOfReach, as_user, within_reach

if TYPE_CHECKING:
    from .attack import Attack
    from .host import Host

__all__ = ["arguments", "main"]

POISONOUS = ("descriptor_bombs", "hangs", "output_bombs", "persistence", "pickle", "result_forging")
"""Classes after each of whose snippets an honest call is made; after the others, once."""
BEARING = {"landlock", "namespaces", "seccomp"}
"""Without all of these only what reads, connects and looks around is run."""
GUARD_BYTES, GUARD_PROCESSES, GUARD_S = 6 << 30, 400, 900
"""An outer guard, should the jail fail: memory of each process, processes of the user, seconds of the whole."""


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sandbox.attacks", description=__doc__)
    parser.add_argument("--classes", default="", help="names of classes, separated by commas")
    parser.add_argument("--only", default="", help="class/name of one snippet")
    parser.add_argument("--user", type=int, help="become this user first")
    parser.add_argument("--seed", default="0", help="what the secrets are drawn from")
    parser.add_argument("--fuzz", type=float, default=0.0, help="seconds of mutated snippets instead of the known ones")
    parser.add_argument("--without", default="", help="walls to leave out, separated by commas; never as root")
    parser.add_argument("--token", help=argparse.SUPPRESS)
    parser.add_argument("--top", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def chosen(options: argparse.Namespace) -> list[Snippet]:
    """Return the snippets that were asked for and may be run behind the walls that are left."""
    wanted = [name for name in options.classes.split(",") if name]
    found = [
        snippet for snippet in read() if (not wanted or snippet.group in wanted) and options.only in ("", snippet.title)
    ]
    missing = walls(options)
    if missing:
        allowed = (BARE,) if missing >= BEARING else (BARE, LAYERED)
        found = [snippet for snippet in found if snippet.ablation in allowed]
    if not found:
        raise SystemExit("there is no such snippet, or none that may be run so")
    return found


def walls(options: argparse.Namespace) -> set[str]:
    """Return the walls to leave out.

    Raises
    ------
    SystemExit
        Something is left out and whoever attacks is root: the least that is left then is to be nobody.
    """
    missing = {layer for layer in options.without.split(",") if layer}
    if (missing or options.fuzz) and os.getuid() == 0 and options.user is None:
        raise SystemExit(f"this is never run as root: add --user {NOBODY}")
    return missing


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
    except OutOfReach as error:
        print(json.dumps({"unavailable": "user", "message": str(error)}))
        return 3
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _started(options: argparse.Namespace, top: Path) -> int:
    """Start this module again, with secrets in its arguments and its environment, and perhaps as somebody else."""
    keys = dict.fromkeys(KEYS, token(options.seed, "env"))
    limit = GUARD_S + options.fuzz
    with within_reach(options.user, top) as place:
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": place.paths, **keys}
        command = [
            place.python, "-B", "-m", "tests.sandbox.attacks", "--top", str(top), "--token",
            token(options.seed, "argv"), "--seed", options.seed, "--classes", options.classes, "--only", options.only,
            "--fuzz", str(options.fuzz), "--without", options.without,
        ]  # fmt: skip  # a table
        run = subprocess.run(  # type: ignore[call-overload]
            command, env=environment, cwd=place.root, timeout=limit, check=False, **as_user(options.user)
        )
    return int(run.returncode)


def attack(options: argparse.Namespace) -> int:
    """Attack the sandbox from this process, the host."""
    from alphaloom.sandbox import SandboxUnavailable

    from .attack import Attack
    from .host import Host

    told, errors = os.dup(1), os.dup(2)  # the streams themselves will be watched
    sys.excepthook = lambda *error: os.write(errors, "".join(traceback.format_exception(*error)).encode()) and None
    resource.setrlimit(resource.RLIMIT_AS, (GUARD_BYTES, GUARD_BYTES))
    if os.getuid() != 0:
        resource.setrlimit(resource.RLIMIT_NPROC, (GUARD_PROCESSES, GUARD_PROCESSES))
    escaped = 0
    with os.fdopen(told, "w") as lines, Host(options.top, options.seed) as host:
        before, attacks = _descriptors(), Attack(host, without=frozenset(walls(options)), strict=not options.fuzz)
        try:
            attacks.sandbox()
        except SandboxUnavailable as error:
            print(json.dumps({"unavailable": error.field, "message": error.message}), file=lines)
            return error.exit_code
        for snippet, last in _mutated(options) if options.fuzz else _with_last(chosen(options)):
            verdict = attacks.run(snippet, honest=last or snippet.group in POISONOUS)
            escaped += bool(verdict.escapes)
            code = {"code": snippet.code} if options.fuzz and verdict.escapes else {}
            print(json.dumps({**verdict.record(), **code}, sort_keys=True), file=lines, flush=True)
        left = _after(attacks, host, before)
        print(json.dumps({"end": True, "escaped": escaped, "left": left}), file=lines)
    return 1 if escaped or left else 0


def _with_last(snippets: Sequence[Snippet]) -> Iterator[tuple[Snippet, bool]]:
    """Yield each snippet, and whether it is the last of its class."""
    following = [*snippets[1:], None]
    for snippet, after in zip(snippets, following, strict=True):
        yield snippet, after is None or after.group != snippet.group


def _mutated(options: argparse.Namespace) -> Iterator[tuple[Snippet, bool]]:
    """Yield new snippets until the time is over; every tenth is followed by an honest call."""
    end = time.monotonic() + options.fuzz
    for number, snippet in enumerate(fuzzed(read(), int(options.seed))):
        if time.monotonic() > end:
            return
        yield snippet, number % 10 == 0


def _after(attacks: Attack, host: Host, before: set[str]) -> list[str]:
    """Return what is left: descriptors, processes, changes."""
    from .neighbours import settled

    attacks.close()
    more = sorted(_descriptors() - before)
    panels = [line for line in more if "/memfd:panel" in line]  # those of the three panels, which are still here
    found = [f"descriptors {more}"] if len(panels) > 3 or len(panels) < len(more) else []
    found += [f"process {number} is left" for number in settled(frozenset(), host.sibling.number, 3.0)]
    return found + host.moved()


def _descriptors() -> set[str]:
    return {f"{name}: {os.readlink(f'/proc/self/fd/{name}')}" for name in os.listdir("/proc/self/fd") if _open(name)}


def _open(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")


if __name__ == "__main__":
    raise SystemExit(main())
