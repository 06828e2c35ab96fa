"""What comes out of the jail, and what cannot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from alphaloom.sandbox import (
    BadResult,
    Crashed,
    Frames,
    Job,
    Limits,
    NotDeterministic,
    OutOfMemory,
    Refused,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    TimedOut,
)
from alphaloom.sandbox.jail import entry, worker

DAYS, NAMES = 40, 6


@pytest.fixture(scope="module")
def frames() -> Frames:
    close = np.exp(np.random.default_rng(7).normal(size=(DAYS, NAMES)))
    days = np.datetime64("2020-01-01") + np.arange(DAYS)
    return Frames({"close": close, "volume": 1e6 * close}, days, tuple("ABCDEF"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(Limits(wall_s=5, memory_mb=256))
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field}: {error.message}")
    with made:
        yield made


def test_values_are_those_of_the_same_code_outside(sandbox: Sandbox, frames: Frames) -> None:
    values = sandbox.run("def factor(panel):\n    return panel['close'] * 2", frames)
    assert values.dtype == np.float64
    assert np.array_equal(values, frames.fields["close"] * 2)


def test_a_shortened_call_sees_the_first_days_only(sandbox: Sandbox, frames: Frames) -> None:
    code = "def factor(panel):\n    return panel['close'] * 0 + len(panel['close'])"
    assert np.array_equal(sandbox.run(code, frames, rows=9), np.full((9, NAMES), 9.0))


def test_a_frame_may_be_written_to_and_the_next_call_sees_nothing_of_it(sandbox: Sandbox, frames: Frames) -> None:
    code = "def factor(panel):\n    panel['close'].iloc[:] = 0\n    return panel['close']"
    assert not sandbox.run(code, frames).any()
    kept = sandbox.run("def factor(panel):\n    return panel['close']", frames)
    assert np.array_equal(kept, frames.fields["close"])


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        ("import socket\nsocket.socket()", Refused, "socket"),
        ("import os\nos.fork()", Refused, "clone"),
        ("open('/etc/hostname')", Crashed, "line 1: PermissionError"),
        ("def factor(panel):\n    return panel['vwap']", Crashed, "it has: close, volume"),
        ("raise SystemExit(0)", Crashed, "line 1: SystemExit"),
        ("def factor(panel", Crashed, "line 1: SyntaxError"),
        ("x = 1", Crashed, "the code defines no function named factor; define: def factor"),
        ("factor = 3", Crashed, "no function named factor"),
        ("x = " + "-" * 100_000 + "1", Crashed, "SyntaxError: the code is nested too deeply"),
        ("import os\nos._exit(0)", Crashed, "^the code ended its process without an answer$"),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", Crashed, "^line 3: E, whose own words"),
        ("class E(Exception): lineno = '1; rm'\neval('1 / 0')", Crashed, "^line 2: ZeroDivisionError"),
        ("raise ValueError('close/open/high on 2024/01/05')", Crashed, "close/open/high on 2024/01/05"),
        ("np.random.default_rng()", Crashed, "no randomness without a seed; give one: np.random.default_rng"),
        (
            "import datetime\ndef factor(panel):\n    return panel['close'] * datetime.datetime.now().day",
            Refused,
            "there is no clock",
        ),
        ("def factor(panel):\n    return panel['close'] * pd.Timestamp.now().day", Refused, "there is no clock"),
        ("x = np.ones(10**9)", OutOfMemory, "memory"),
        ("def factor(panel):\n    return panel['close'].to_numpy()", BadResult, "ndarray"),
        ("def factor(panel):\n    return panel['close'].iloc[1:]", BadResult, "39"),
        ("def factor(panel):\n    return panel['close'].iloc[::-1]", BadResult, "order"),
        ("def factor(panel):\n    return panel['close'].astype(object)", BadResult, "object"),
        ("def factor(panel):\n    return panel['close'] / 0", BadResult, "240 infinite"),
    ],
)
def test_what_goes_wrong_has_a_type_and_says_what(
    sandbox: Sandbox, frames: Frames, code: str, kind: type[SandboxError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        sandbox.run(code, frames)


def test_code_means_the_same_in_the_jail_as_to_whoever_reads_it(sandbox: Sandbox, frames: Frames) -> None:
    code = "# coding: latin-1\ndef factor(panel):\n    return panel['close'] * 0 + len('é')\n"
    assert (sandbox.run(code, frames) == 1.0).all()


@pytest.mark.parametrize(
    ("code", "told"),
    [("x = '\ud800'", "line 1, column 6"), ("\nx\0", "line 2, column 2"), (None, "text"), (b"x", "text")],
)
def test_code_that_cannot_be_kept_to_the_letter_is_refused(
    sandbox: Sandbox, frames: Frames, code: str, told: str
) -> None:
    with pytest.raises(Refused, match=told):
        sandbox.run(code, frames)


def test_a_line_that_is_not_python_is_told_so(sandbox: Sandbox, frames: Frames) -> None:
    with pytest.raises(Crashed) as caught:
        sandbox.run("def factor(panel", frames)
    assert caught.value.hint == "Mend that line: it is not Python."


def test_code_that_looks_above_itself_finds_neither_a_clock_nor_the_length_of_its_call(
    sandbox: Sandbox, frames: Frames
) -> None:
    hidden = {
        one.__name__ for one in (worker.CallWatch, entry.JailTask, worker.WorkerPost, worker._serve, worker._watch_job)
    }
    code = f"""
import gc, sys
def factor(panel):
    frame, seen = sys._getframe().f_back, list(gc.get_objects())
    while frame is not None:
        seen += [frame, *frame.f_locals.values()]
        frame = frame.f_back
    names = {{type(one).__name__ for one in seen}} | {{one.f_code.co_name for one in seen if hasattr(one, "f_code")}}
    times = [one for one in seen if type(one) is float]
    return panel["close"] * 0 + len(names & {hidden!r}) + len(times)
"""
    assert not sandbox.run(code, frames).any()
    assert not sandbox.run(code, frames, rows=9).any()


def test_no_call_reads_behind_the_last_day(sandbox: Sandbox, frames: Frames) -> None:
    job = Job("def factor(panel):\n    return panel['close']", frames)
    object.__setattr__(job, "rows", DAYS + 1)  # past the first check
    with pytest.raises(SandboxUnavailable, match="the panel has 40 days, not 41"):
        list(sandbox.run_each([job]))


@pytest.mark.usefixtures("sandbox")  # there may be none here
def test_chance_comes_from_nowhere(frames: Frames) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
def factor(panel):
    return panel["close"] * 0 + int.from_bytes(ctypes.string_at(libc.getauxval(25), 6), "little")
"""
    with Sandbox() as first, Sandbox() as second:
        assert np.array_equal(first.run(code, frames), second.run(code, frames))


@pytest.mark.parametrize(
    "number", ["ctypes.c_ulong.from_address(find() + 0x28).value", "find()", "id(panel)", "id(object())"]
)
def test_what_a_start_drew_by_chance_is_not_called_deterministic(sandbox: Sandbox, frames: Frames, number: str) -> None:
    """The canary of the stack and the addresses are the same in all calls of one server, and others in another."""
    code = f"""
import ctypes
find = ctypes.CDLL(None).pthread_self
find.restype = ctypes.c_ulong
def factor(panel):
    return panel["close"] * 0 + {number} % 1000003
"""
    with pytest.raises(NotDeterministic):
        sandbox.prove(code, frames, sweep=True)


def test_every_nan_has_the_same_bits(sandbox: Sandbox, frames: Frames) -> None:
    code = "def factor(panel):\n    return panel['close'] * 0 + np.array([0x7FF8000000000123], 'u8').view('f8')[0]"
    assert set(sandbox.run(code, frames).view(np.uint64).ravel()) == {np.array(np.nan).view(np.uint64).item()}


@pytest.mark.usefixtures("sandbox")  # there may be none here
def test_the_wall_clock_ends_a_loop(frames: Frames) -> None:
    with Sandbox(Limits(wall_s=0.2)) as sandbox, pytest.raises(TimedOut):
        sandbox.run("while True: pass", frames)


@pytest.mark.usefixtures("sandbox")  # there may be none here
def test_answers_come_in_the_order_of_the_jobs(frames: Frames) -> None:
    jobs = [Job(f"def factor(panel):\n    return panel['close'] * 0 + {i}", frames) for i in range(6)]
    jobs[3] = Job("1/0", frames)
    with Sandbox(workers=2) as sandbox:
        outcomes = list(sandbox.run_each(jobs))
    assert [None if one.values is None else int(one.values[0, 0]) for one in outcomes] == [0, 1, 2, None, 4, 5]
    assert isinstance(outcomes[3].error, Crashed)
