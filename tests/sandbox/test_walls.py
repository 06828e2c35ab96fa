"""What code that owns its process, down to raw system calls, can and cannot do."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from alphaloom.sandbox import Crashed, Frames, Job, Limits, Outcome, Refused, Sandbox, SandboxUnavailable, TimedOut
from alphaloom.sandbox.jail.text import build_path_pattern, clean
from alphaloom.sandbox.native.syscalls import MACHINES, find_machine

CLOSE = np.arange(24.0).reshape(8, 3)
FRAMES = Frames({"close": CLOSE}, np.datetime64("2020-01-01") + np.arange(8), ("A", "B", "C"))
ANSWER = "\ndef factor(panel):\n    return panel['close'] * 0 + {}"
RAW = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.syscall.restype = ctypes.c_long\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(Limits(wall_s=20, memory_mb=256))
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field}: {error.message}")
    with made:
        yield made


def outcome(sandbox: Sandbox, code: str, rows: int | None = None) -> Outcome:
    (found,) = sandbox.run_each([Job(code, FRAMES, rows)])
    return found


def number(sandbox: Sandbox, code: str) -> float:
    """Return the number that the code leaves in `out`."""
    return float(outcome(sandbox, code + ANSWER.format("out")).unwrap()[0, 0])


def test_the_tables_agree_with_the_kernel_s_headers() -> None:
    x86, arm = (MACHINES[name].numbers for name in ("x86_64", "aarch64"))
    assert [x86[name] for name in ("read", "mmap", "execve", "seccomp", "clone3")] == [0, 9, 59, 317, 435]
    assert [arm[name] for name in ("read", "mmap", "execve", "seccomp", "clone3")] == [63, 222, 221, 277, 435]
    assert x86["landlock_restrict_self"] == arm["landlock_restrict_self"] == 446
    assert MACHINES["x86_64"].name(9999) == "system call 9999"


@pytest.mark.parametrize(
    "call", ["socket", "execve", "ptrace", "io_uring_setup", "bpf", "mount", "keyctl", "memfd_create", "userfaultfd"]
)
def test_a_raw_call_that_no_factor_makes_ends_it_and_is_named(sandbox: Sandbox, call: str) -> None:
    machine = find_machine()
    assert machine is not None
    found = outcome(sandbox, f"{RAW}libc.syscall({machine.numbers[call]}, 0, 0, 0, 0, 0)")
    assert isinstance(found.error, Refused)
    assert call in found.error.message
    assert found.tried[-1] == call


def test_a_call_of_another_convention_ends_it(sandbox: Sandbox) -> None:
    machine = find_machine()
    if machine is None or machine.foreign is None:
        pytest.skip("this machine has one calling convention")
    found = outcome(sandbox, f"{RAW}libc.syscall({machine.foreign + 39})")
    assert isinstance(found.error, Refused)
    assert "another architecture" in found.error.message


def test_no_memory_can_be_executed(sandbox: Sandbox) -> None:
    machine = find_machine()
    assert machine is not None
    mmap, mprotect = machine.numbers["mmap"], machine.numbers["mprotect"]
    assert number(sandbox, f"{RAW}out = libc.syscall({mmap}, 0, 4096, 7, 0x22, -1, 0)") == -1
    plain = f"{RAW}place = libc.syscall({mmap}, 0, 4096, 3, 0x22, -1, 0)\n"
    assert number(sandbox, f"{plain}out = libc.syscall({mprotect}, ctypes.c_long(place), 4096, 5)") == -1
    assert number(sandbox, f"{plain}out = libc.syscall({mprotect}, ctypes.c_long(place), 4096, 1)") == 0


def test_a_panel_written_to_from_below_is_the_call_s_own_copy(sandbox: Sandbox) -> None:
    machine = find_machine()
    assert machine is not None
    code = f"""
{RAW}
def factor(panel):
    place = panel["close"].to_numpy().ctypes.data
    libc.syscall({machine.numbers["mprotect"]}, ctypes.c_long(place & ~4095), 4096, 3)
    ctypes.memset(place, 1, 8)
    return panel["close"]
"""
    assert outcome(sandbox, code).unwrap()[0, 0] != CLOSE[0, 0]
    kept = outcome(sandbox, "def factor(panel):\n    return panel['close']").unwrap()
    assert np.array_equal(kept, CLOSE)


def test_there_is_no_clock_and_no_chance(sandbox: Sandbox) -> None:
    assert isinstance(outcome(sandbox, "import time\ntime.time()").error, Refused)
    assert number(sandbox, RAW + "out = libc.time(0)") == 0
    unseeded = outcome(sandbox, "np.random.default_rng()")
    assert isinstance(unseeded.error, Crashed)
    assert "seed" in unseeded.error.hint
    rolled = "import random\nout = random.random() + np.random.rand()"
    assert number(sandbox, rolled) == number(sandbox, rolled)


def test_nothing_of_one_call_is_found_by_the_next(sandbox: Sandbox) -> None:
    outcome(sandbox, "import os\nos.write(3, b'WORD-OF-THE-FIRST-CALL' * 8)\nnp.random.seed(5)\npd.left = 1\n1 / 0")
    code = """
def factor(panel):
    import ctypes, gc
    word = bytes(reversed(b"LLAC-TSRIF-EHT-FO-DROW"))
    found = hasattr(pd, "left")
    for one in gc.get_objects():
        found = found or (isinstance(one, (bytes, str)) and word in (one if isinstance(one, bytes) else one.encode()))
    return panel["close"] * 0 + found
"""
    assert not outcome(sandbox, code).unwrap().any()


def test_a_forged_status_is_worth_nothing(sandbox: Sandbox) -> None:
    said = "import os\nos.write(3, b'{}')\nos._exit(0)"
    assert isinstance(outcome(sandbox, said.format("X.landlock: gone")).error, Crashed)
    assert isinstance(outcome(sandbox, said.format("zz")).error, Crashed)
    assert not outcome(sandbox, said.format("G.")).unwrap().any()


def test_an_infinity_written_past_the_check_is_found_outside(sandbox: Sandbox) -> None:
    code = """
def factor(panel):
    out = panel["close"] * 0
    pd.DataFrame.to_numpy = lambda self, dtype=None: np.full(self.shape, np.inf)
    return out
"""
    found = outcome(sandbox, code)
    assert found.error is not None
    assert found.error.code == "bad_result"


def test_an_endless_knocking_ends(sandbox: Sandbox) -> None:
    found = outcome(sandbox, "import os\nwhile True:\n    try:\n        open('x')\n    except OSError:\n        pass")
    assert isinstance(found.error, Refused | TimedOut)


def test_words_are_cut_and_cleaned() -> None:
    assert clean(b"a\x1b[31mb\r\nc\xe2\x80\xae\xff\x00rest") == "a [31mb c \N{REPLACEMENT CHARACTER}"
    assert clean(b"in /home/someone/secret/file.py line 3") == "in <path> line 3"
    assert clean(b"close/open/high, 2024/01/05, '/etc/passwd'") == "close/open/high, 2024/01/05, '<path>'"
    assert len(clean(b"x" * 10_000)) == 2048
    assert clean(b"<object object at 0x7fffef5aabb0>, 0x10") == "<object object at <address>>, 0x10"
    own = build_path_pattern(["/srv/a  folder (2)/main", "/srv/a  folder (2)/main/.venv", "/usr/lib", ""])
    assert own.sub("<path>", "'/srv/a folder (2)/main/.venv/lib/x.py' in /usr/lib/y") == "'<path>' in <path>"


def test_an_interrupted_call_does_not_answer_for_the_next(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from alphaloom.sandbox.native.backend import NativeWorker

    def interrupted(self: NativeWorker, seconds: float) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(NativeWorker, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("1 / 0" + ANSWER.format(1), FRAMES)
    assert (sandbox.run(ANSWER.format(7), FRAMES) == 7).all()


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may look into the memory of a process that is closed to others"
)
@pytest.mark.parametrize(("rows", "later"), [(None, True), (5, False)])
def test_later_days_lie_nowhere_in_the_memory_of_a_shortened_call(
    sandbox: Sandbox, rows: int | None, later: bool
) -> None:
    marks = np.random.default_rng(3).normal(size=(8, 3))
    frames = Frames({"close": marks, "volume": 1 / marks}, FRAMES.dates, FRAMES.symbols)
    running = threading.Thread(
        target=lambda: list(sandbox.run_each([Job("for _ in range(6 * 10**7): pass", frames, rows)]))
    )
    running.start()
    known = struct.pack("d", marks[0, 1])
    memory = memory_of(youngest(), known)
    running.join()
    assert known in memory
    assert (struct.pack("d", marks[7, 1]) in memory) is later
    assert (struct.pack("d", 1 / marks[5, 0]) in memory) is later


def youngest() -> int:
    """Return the last process of this one's descendants, when it has run for a moment."""
    found: list[int] = []
    for _ in range(500):
        found = [os.getpid()]
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            while below := Path(f"/proc/{found[-1]}/task/{found[-1]}/children").read_text().split():
                found.append(int(below[-1]))
        if len(found) == 5:  # this process, server, worker, watch, the call
            time.sleep(0.2)
            return found[-1]
        time.sleep(0.01)
    raise AssertionError(f"there is no call: {found}")


def memory_of(process: int, known: bytes) -> bytes:
    """Return all that a process can read, once it has read what is known: on a loaded machine it takes a while."""
    for _ in range(20):
        memory = _read(process)
        if known in memory:
            break
        time.sleep(0.05)
    return memory


def _read(process: int) -> bytes:
    parts = []
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            place, rights = line.split()[:2]
            first, last = (int(part, 16) for part in place.split("-"))
            if "r" in rights and not line.endswith(("[vsyscall]", "[vvar]", "[vvar_vclock]")):
                memory.seek(first)
                parts.append(memory.read(last - first) or b"")
    return b"".join(parts)


def test_a_seed_gives_the_numbers_that_it_gives_outside(sandbox: Sandbox) -> None:
    outside = np.random.RandomState(7).normal()
    assert number(sandbox, "np.random.seed(7)\nout = np.random.normal()") == outside
    assert number(sandbox, "out = np.random.RandomState(7).normal()") == outside
    fresh = np.random.default_rng(7).normal()
    assert number(sandbox, "out = np.random.default_rng(7).normal()") == fresh
