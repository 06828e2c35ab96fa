"""Other walls: what they are asked to build, what passes through them, and what is said where a tool is missing."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.sandbox import (
    BadResult,
    Crashed,
    Frames,
    Job,
    Limits,
    OutOfMemory,
    Refused,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    TimedOut,
)
from alphaloom.sandbox.backends import (
    BACKENDS,
    UNSAFE,
    Bubblewrap,
    Container,
    Guests,
    GVisor,
    NoIsolation,
    Wall,
    find_backend as named,
)
from alphaloom.sandbox.backends.bubblewrap import REFUSED_CALLS, build_filter
from alphaloom.sandbox.backends.guest import pack_job, read_answer
from alphaloom.sandbox.backends.gvisor import build_bundle
from alphaloom.sandbox.backends.launch import collect_modules
from alphaloom.sandbox.cluster import list_descendants
from alphaloom.sandbox.jail.text import clean
from alphaloom.sandbox.native.syscalls import MACHINES

pytestmark = pytest.mark.integration

MEAN = "def factor(panel):\n    print('noise' * 1000)\n    return panel['close'].rolling(5).mean() / panel['volume']"
CLOSE = "\n    return panel['close']"
LIMITS = Limits(wall_s=2, memory_mb=200)
CONTAINER = os.environ.get("ALPHALOOM_TEST_CONTAINER", "docker")
IMAGE = os.environ.get("ALPHALOOM_TEST_IMAGE", "alphaloom-sandbox")
PLATFORM = os.environ.get("ALPHALOOM_TEST_GVISOR_PLATFORM", "")
WALLS: dict[str, Callable[[], Wall]] = {
    "bubblewrap": Bubblewrap,
    "container": lambda: Container(CONTAINER, IMAGE),
    "gvisor": lambda: GVisor(platform=PLATFORM),
}


@pytest.fixture(scope="module")
def frames() -> Frames:
    close = np.exp(np.random.default_rng(7).normal(size=(60, 7)))
    return Frames(
        {"close": close, "volume": 1e6 * close}, np.datetime64("2020-01-01") + np.arange(60), tuple("ABCDEFG")
    )


@pytest.fixture(
    scope="module", params=["bubblewrap", *(pytest.param(n, marks=pytest.mark.slow) for n in ("container", "gvisor"))]
)
def walled(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        made = Sandbox(LIMITS, backend=Guests(WALLS[request.param]()))
    except SandboxUnavailable as error:
        pytest.skip(f"{error.message}. {error.hint}")
    with made:
        yield made


@pytest.fixture
def native() -> Iterator[Sandbox]:
    try:
        made = Sandbox(LIMITS)
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field}: {error.message}")
    with made:
        yield made


def test_values_are_those_of_the_native_sandbox_to_the_byte(walled: Sandbox, native: Sandbox, frames: Frames) -> None:
    assert walled.run(MEAN, frames).tobytes() == native.run(MEAN, frames).tobytes()
    assert walled.run(MEAN, frames, rows=9).tobytes() == native.run(MEAN, frames, rows=9).tobytes()


WAYS_OUT = {
    "a file of this machine": "    assert 'secret' in open('CANARY').read()",
    "a new file": "    open('/tmp/new', 'w').write('x')\n    assert open('/tmp/new').read() == 'x'",
    "the network": "    import ctypes\n    c = ctypes.CDLL(None)\n    s = c.socket(2, 1, 0)\n    assert s >= 0\n"
    "    assert c.connect(s, bytes([2, 0]) + (PORT).to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8), 16) == 0",
    "a process": "    import os\n    os.fork()",
    "the environment": "    import os\n    assert os.environ",
    "another process": (
        "    import os\n    assert [p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]"
    ),
}


def test_ways_out_are_shut(walled: Sandbox, frames: Frames, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        bodies = [body.replace("CANARY", str(canary)).replace("PORT", port) for body in WAYS_OUT.values()]
        outcomes = walled.run_each(Job(f"def factor(panel):\n{body}{CLOSE}", frames) for body in bodies)
        assert {way: type(one.error) for way, one in zip(WAYS_OUT, outcomes, strict=True)} == dict.fromkeys(
            WAYS_OUT, Crashed
        )


BAD: dict[str, tuple[str, type[SandboxError]]] = {
    "endless": ("    while True: pass", TimedOut),
    "large": ("    np.ones((50_000, 50_000))", OutOfMemory),
    "gone": ("    import os\n    os._exit(0)", Crashed),
    "infinite": ("    return panel['close'] / 0", BadResult),
    "forged": ("    import os\n    [os.write(i, b'x' * 99) for i in range(3, 9)]", SandboxError),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_those_of_the_native_sandbox(walled: Sandbox, frames: Frames, case: str) -> None:
    body, kind = BAD[case]
    with pytest.raises(kind):
        walled.run(f"def factor(panel):\n{body}{CLOSE}", frames)


def test_nothing_is_left_running(walled: Sandbox, frames: Frames) -> None:
    before = set(list_descendants(os.getpid()))
    walled.run(MEAN, frames)
    assert set(list_descendants(os.getpid())) <= before


@pytest.mark.filterwarnings("ignore::alphaloom.sandbox.backends.NoIsolation")
def test_without_isolation_every_value_carries_a_stamp(native: Sandbox, frames: Frames) -> None:
    with Sandbox(LIMITS, backend=UNSAFE) as unsafe:
        (outcome,) = unsafe.run_each([Job(MEAN, frames)])
        assert outcome.stamp == unsafe.stamp == "computed by generated code that ran without isolation"
        assert native.stamp == ""
        assert outcome.unwrap().tobytes() == native.run(MEAN, frames).tobytes()


def test_without_isolation_there_is_a_warning() -> None:
    with pytest.warns(NoIsolation, match="every right of this account"):
        Sandbox(LIMITS, backend=UNSAFE).close()


def test_code_that_is_too_long_is_refused_before_anything_starts(frames: Frames) -> None:
    with pytest.raises(Refused, match="too long"):
        Guests(Bubblewrap("no-such-tool")).call(Job("#" * 10**6, frames), LIMITS).unwrap()


@pytest.mark.parametrize("name", ["bubblewrap", "container", "gvisor"])
def test_a_missing_tool_is_named_with_what_to_install(name: str) -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-tool is not installed") as caught:
        Sandbox(backend=named(name, command="no-such-tool"))
    assert caught.value.exit_code == 3
    assert "nstall" in caught.value.hint


@pytest.mark.skipif(os.name != "posix", reason="the tool of this test is a shell script")
def test_a_tool_that_does_not_work_says_why(tmp_path: Path) -> None:
    tool = tmp_path / "bwrap"
    tool.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    tool.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match="starts no interpreter: setting up uid map: Permission denied"):
        Sandbox(backend=named("bubblewrap", command=str(tool)))


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(SandboxError, match="no such sandbox") as caught:
        Sandbox(backend="docker")
    assert all(name in str(caught.value.allowed) for name in BACKENDS if name != UNSAFE)


@pytest.mark.parametrize("system", ["darwin", "win32"])
@pytest.mark.parametrize("name", ["native", "bubblewrap", "gvisor"])
def test_other_systems_are_told_what_they_can_have(monkeypatch: pytest.MonkeyPatch, system: str, name: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(SandboxUnavailable, match=f"this is {system}") as caught:
        named(name)
    assert caught.value.allowed == "container"


def test_the_command_line_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    line = " ".join(Container("podman --runtime runc", "some-image").build_command("name-1")[:-1])
    assert line == (
        "/usr/bin/podman --runtime runc run --name name-1 --rm --interactive --pull never --network none --read-only "
        "--cap-drop ALL --security-opt no-new-privileges --user 65534:65534 --ipc none --pids-limit 16 "
        "--ulimit nofile=64:64 --ulimit nproc=1024:1024 --ulimit core=0:0 --log-driver none --hostname none "
        "--workdir / --entrypoint /usr/bin/env some-image -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 "
        "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0 TZ=UTC python3 -s -P -B -X utf8 -c"
    )


def test_the_command_line_of_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    words = Bubblewrap().build_command(7)
    assert words[:2] == ("/usr/bin/bwrap", "--unshare-all")
    for needed in (
        "--disable-userns --cap-drop ALL --die-with-parent",
        "--clearenv --uid 65534",
        "--remount-ro / --seccomp 7",
    ):
        assert needed in " ".join(words)
    shown = {words[i + 1] for i, word in enumerate(words) if word == "--ro-bind"}
    assert not shown & {"/", "/etc", "/home", "/root", "/tmp", "/usr", str(Path.home())}
    assert not {"--bind", "--dev-bind", "--share-net", "--proc", "--dev"} & set(words)


def test_the_container_of_gvisor_is_read_only_and_has_no_rights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = build_bundle()
    assert made["root"]["readonly"]
    assert all("ro" in mount["options"] for mount in made["mounts"])
    assert set(map(len, made["process"]["capabilities"].values())) == {0}
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    assert "--network=none" in GVisor(platform="ptrace").build_command(tmp_path)
    json.dumps(made)


def test_every_refused_call_is_one_that_linux_has() -> None:
    known = set.union(*(set(machine.numbers) for machine in MACHINES.values()))
    assert set(REFUSED_CALLS) <= known
    assert list(REFUSED_CALLS) == sorted(set(REFUSED_CALLS))
    assert len(build_filter()) % 8 == 0
    assert len(build_filter()) // 8 < 4096


def test_what_is_sent_holds_all_that_it_imports() -> None:
    """The modules import nothing of ours that was not sent: tried in an interpreter that has only them."""
    program = (
        "import json, sys; sys.path += json.loads(sys.argv[1]); sources = json.loads(sys.stdin.read())\n"
        "from importlib import import_module; sys.argv = ['-']\n"
        "spec = {'__name__': 'program'}; exec(open(sys.path.pop()).read(), spec)\n"
        "sys.meta_path.insert(0, spec['SentModules'](sources))\n"
        "[import_module(name) for name in sources]; print('whole')"
    )
    packages = [str(Path(np.__file__).parents[1])]
    text = str(Path(sys.modules[Guests.__module__].__file__ or "").with_name("program.py"))
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", program, json.dumps([*packages, text])],
        input=json.dumps(collect_modules()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "whole", done.stderr


def test_a_container_can_be_asked_for_where_linux_is_missing() -> None:
    """Windows has neither these modules nor `ctypes.CDLL(None)`; `shutil` asks the system when imported."""
    code = (
        "import ctypes, shutil, sys; sys.modules.update(dict.fromkeys(['fcntl', 'resource'])); ctypes.CDLL = None\n"
        "sys.platform = 'win32'; from alphaloom.sandbox.backends import find_backend as named\n"
        "print(named('container').name)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / ".root")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.strip() == "container", done.stderr


def reader(raw: bytes) -> Callable[[int], bytes]:
    left = [raw]

    def read(count: int) -> bytes:
        if len(left[0]) < count:
            raise EOFError
        got, left[0] = left[0][:count], left[0][count:]
        return got

    return read


@given(
    raw=st.binary(max_size=300),
    status=st.sampled_from([b"G.", b"C.", b"W.", b"M.", b"X.", b"??"]),
    size=st.integers(0, 3000),
)
def test_whatever_comes_back_is_values_of_the_shape_or_an_error(
    frames: Frames, raw: bytes, status: bytes, size: int
) -> None:
    job = Job(MEAN, frames, rows=4)
    for text in (raw, struct.pack("<4s2xHdd", b"al" + status, size, float("nan"), -1.0) + raw):
        try:
            outcome = read_answer(reader(text), job, LIMITS, clean)
        except EOFError:
            continue
        assert (outcome.values is None) != (outcome.error is None)
        assert outcome.values is None or (outcome.values.shape == (4, 7) and not np.isinf(outcome.values).any())
        assert outcome.cpu_ms == outcome.peak_mb == 0.0 or raw == text


def test_later_days_are_never_sent(frames: Frames) -> None:
    pieces = [bytes(piece) for piece in pack_job(Job(MEAN, frames, rows=9), LIMITS)]
    assert [len(piece) for piece in pieces[1:]] == [8 * 9, 8 * 9 * 7, 8 * 9 * 7]
    assert pieces[2] == frames.fields["close"][:9].tobytes()
