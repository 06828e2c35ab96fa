"""What the machine can contain, and that a wall that is missing is named and nothing runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.sandbox import Job, Limits, Outcome, SandboxError, SandboxUnavailable, TimedOut, probe_sandbox
from alphaloom.sandbox.native.capability import examine_primitives
from alphaloom.sandbox.native.escapes import require_contained
from alphaloom.sandbox.native.syscalls import find_machine

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
MISSING = [one.name for one in examine_primitives() if one.required and not one.works]
needs_walls = pytest.mark.skipif(bool(MISSING), reason=f"missing here: {', '.join(MISSING)}")

WITHOUT = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers, answer = [int(n) for n in sys.argv[1].split(",")], int(sys.argv[2])
lines = [(0x20, 0, 0, 0)]
for n in numbers:
    lines += [(0x15, 0, 1, n), (6, 0, 0, 0x50000 | answer)]
lines.append((6, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
head = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(code)), 16)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(head)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""
"""Takes system calls away from this process and its children, then starts another program."""


def without(names: tuple[str, ...], answer: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter on a kernel that answers these system calls with an error."""
    machine = find_machine()
    assert machine is not None
    numbers = ",".join(str(machine.numbers[name]) for name in names)
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, numbers, str(answer), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / ".root"), *sys.path])},
        timeout=100,
    )


@needs_walls
def test_a_machine_with_all_walls_holds_five_ways_out() -> None:
    found = probe_sandbox()
    assert found.available, found.problem
    assert len(found.escapes) == 5
    assert all(escape.contained for escape in found.escapes)
    json.dumps(found.record())


@needs_walls
@pytest.mark.parametrize(
    ("calls", "answer", "named"),
    [
        (("landlock_create_ruleset",), 38, "landlock"),
        (("unshare",), 1, "user namespace"),
        (("mount", "pivot_root"), 1, "mount namespace"),
        (("memfd_create",), 38, "memory files"),
    ],
)
def test_a_missing_primitive_is_named_and_nothing_runs(calls: tuple[str, ...], answer: int, named: str) -> None:
    told = without(calls, answer, "-m", "alphaloom", "sandbox", "status", "--json")
    assert told.returncode == 3, told.stderr
    record = json.loads(told.stdout)
    assert not record["available"]
    assert named in record["problem"]
    assert record["escapes"] == []
    assert next(one["hint"] for one in record["primitives"] if one["name"] == named)


@needs_walls
def test_a_sandbox_refuses_to_open_without_a_wall() -> None:
    code = "from alphaloom.sandbox import Sandbox, SandboxUnavailable\ntry:\n    Sandbox()\n"
    code += "except SandboxUnavailable as error:\n    print(error.field, error.exit_code)"
    assert without(("landlock_restrict_self",), 38, "-c", code).stdout.split() == ["landlock", "3"]


@needs_walls
def test_the_command_says_it_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sandbox", "status"]) == 0
    output = capsys.readouterr().out
    assert "landlock" in output
    assert output.count("held") == 5
    assert output.rstrip().endswith("generated Python can be run here")


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (None, TimedOut("the call took too long"), "could not be tested: whether code could read a file is unclear"),
        (np.ones((2, 2)), None, "does not hold: code could read a file"),
    ],
)
def test_a_jail_that_answers_oddly_is_not_trusted_and_not_accused(
    value: np.ndarray | None, error: SandboxError | None, told: str
) -> None:
    class Odd:
        def call(self, job: Job, limits: Limits) -> Outcome:
            return Outcome(value, error, 1.0, 1.0, 1.0)

        def stop(self) -> None:
            pass

        def close(self) -> None:
            pass

    with pytest.raises(SandboxUnavailable, match=told):
        require_contained(Odd())
