"""The same jobs on Ray: each worker of the cluster holds a sandbox of its own.

Generated code never runs in a Ray worker: the worker only hands it to the native sandbox of its node, which answers in
raw float64, and passes values and errors on as plain data. A panel is put into the object store once. Order, bounded
queue and redoing of what a dead worker held are those of the pool; bytes are those of one machine.

A cluster that is started here listens on the loopback device alone, asks for a token, has no dashboard, reports nothing
to anybody, sees none of this process's environment but what is listed, and is gone when it is closed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import install_hint
from . import errors
from .backend import WorkerBroken
from .errors import SandboxError, SandboxUnavailable
from .jail.frames import Frames
from .job import Job, Limits, Outcome
from .native.backend import Native
from .native.capability import probe_sandbox
from .sandbox import Sandbox

_MAX_PANELS_HELD, _STORE_MB, _STATION_GRACE_S, _NODE_TIMEOUT_S = 4, 256, 60.0, 120.0
_CLUSTER_PACKAGES = ("alphaloom", "numpy", "pandas")
"""What must have the same version on every node, since the bytes hang on it."""
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
"""What Ray's processes see of the environment; keys do not belong there."""
_SILENT = "RAY_DEDUP_LOGS_SKIP_REGEX"
_SETTINGS = {
    "RAY_AUTH_MODE": "token",
    _SILENT: "(?s).*",  # else it prints to standard output when a worker dies
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # a cluster of this machine alone: Ray then binds to loopback
    "RAY_USAGE_STATS_ENABLED": "0",
}
_IMPORTED: set[str] = set()
_LISTENING = "0A"
_PROC = Path("/proc")


class Cluster(Sandbox):
    """A sandbox whose workers are Ray's.

    Parameters
    ----------
    limits : Limits
        What each call may use.
    workers : int
        Calls that run at the same time, spread over the nodes in turn.
    address : str or None
        A cluster that runs already, whose nodes have Alphaloom installed; None starts one on this machine.

    Raises
    ------
    SandboxUnavailable
        Ray is not installed or does not start, or no node can contain code; `field` names what is missing.
    """

    def __init__(self, limits: Limits | None = None, *, workers: int = 2, address: str | None = None) -> None:
        self._nodes = _Nodes(workers, address)
        try:
            super().__init__(limits, workers=workers, backend=self._nodes)
        except BaseException:
            self._nodes.close()
            raise

    @property
    def refused(self) -> Mapping[str, str]:
        """Return the nodes that run nothing, each with the reason."""
        return self._nodes.refused


class Station:
    """What stands in a Ray worker: a native sandbox, and the panels that it was last asked about."""

    def __init__(self) -> None:
        self._native = Native()
        self._native.check()
        self._worker = self._native.start()
        self._panels: OrderedDict[str, Frames] = OrderedDict()

    def call(
        self, panel: tuple[str, list[Any]], code: str, rows: int | None, limits: Limits, apart: bool = False
    ) -> tuple[Any, ...]:
        """Run a job; the answer is plain data, whatever happened."""
        try:
            return _pack_outcome(self._worker.call(Job(code, self._frames(*panel), rows, apart=apart), limits))
        except WorkerBroken:
            self._worker.close()
            self._worker = self._native.start()
            raise
        except SandboxError as error:
            return "raised", error.code, error.record()

    def _frames(self, digest: str, stored: list[Any]) -> Frames:
        if digest not in self._panels:
            import ray

            dates, symbols, fields = ray.get(stored[0])
            self._panels[digest] = Frames(fields, dates, symbols)
            while len(self._panels) > _MAX_PANELS_HELD:
                self._panels.popitem(last=False)
        self._panels.move_to_end(digest)
        return self._panels[digest]


class _Nodes:
    """The backend: a Ray cluster, those of its nodes that can contain code, and the panels in its store."""

    name, stamp = "ray", ""

    def __init__(self, workers: int, address: str | None) -> None:
        self._workers, self._address = workers, address
        self._turn, self._lock = count(), threading.Lock()
        self._panels: OrderedDict[str, Any] = OrderedDict()
        self._good: list[str] = []
        self._ours: _OwnCluster | None = None
        self.refused: dict[str, str] = {}

    def check(self) -> None:
        """Start or find the cluster, and ask every node what it can contain."""
        if self._address is None:
            self._ours = _OwnCluster.start(self._workers)
        os.environ.setdefault(_SILENT, _SETTINGS[_SILENT])
        ray = _import_ray()
        if self._address is not None and not ray.is_initialized():
            ray.init(address=self._address, log_to_driver=False, configure_logging=False)
        mine = _read_versions()
        for node in sorted((one for one in ray.nodes() if one["Alive"]), key=lambda one: str(one["NodeID"])):
            reason = _examine_node(ray, node["NodeID"], mine)
            if reason:
                self.refused[str(node["NodeName"])] = reason
            else:
                self._good.append(node["NodeID"])
        if not self._good:
            told = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.refused.items()))
            raise SandboxUnavailable(
                f"no node of the cluster can contain code: {told}", field="nodes", got=sorted(self.refused),
                hint="Ask on each node: alphaloom sandbox status",
            )  # fmt: skip

    def start(self) -> _Actor:
        """Start a station on the next node in turn."""
        ray = _import_ray()
        node = self._good[next(self._turn) % len(self._good)]
        made = (
            ray.remote(Station).options(num_cpus=1, max_restarts=0, scheduling_strategy=_node_strategy(node)).remote()
        )
        return _Actor(made, self.stored)

    def stored(self, frames: Frames) -> tuple[str, list[Any]]:
        """Return a panel's digest and its place in the object store, where it is put once."""
        with self._lock:
            if frames.digest not in self._panels:
                content = (np.array(frames.dates), frames.symbols, dict(frames.fields))
                self._panels[frames.digest] = _import_ray().put(content)
                while len(self._panels) > _MAX_PANELS_HELD:
                    self._panels.popitem(last=False)
            self._panels.move_to_end(frames.digest)
            return frames.digest, [self._panels[frames.digest]]

    def close(self) -> None:
        """Give the panels back, and end the cluster if it was started here."""
        self._panels.clear()
        if self._ours is not None:
            self._ours.close()
            self._ours = None


class _Actor:
    """A station, as the pool sees it."""

    def __init__(self, station: Any, stored: Any) -> None:
        self._station, self._stored = station, stored

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job there; a station that died or does not answer is broken, and the pool has the job redone."""
        ray = _import_ray()
        reference = self._station.call.remote(self._stored(job.frames), job.code, job.rows, limits, job.apart)
        try:
            told = ray.get(reference, timeout=limits.wall_s + _STATION_GRACE_S)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, WorkerBroken):
                raise WorkerBroken("the station's sandbox broke") from None
            raise
        except ray.exceptions.RayError as error:
            raise WorkerBroken(f"the station is gone: {type(error).__name__}") from None
        if told[0] == "raised":
            raise _build_error(*told[1:])
        return _unpack_outcome(told)

    def stop(self) -> None:
        """End the station, and with it the call."""
        self.close()

    def close(self) -> None:
        """End the station."""
        ray = _import_ray()
        if ray.is_initialized():
            ray.kill(self._station)


@dataclass
class _OwnCluster:
    """A cluster that was started here, and its folder."""

    folder: Path

    @classmethod
    def start(cls, workers: int) -> _OwnCluster:
        """Start it, and see that nobody else can reach it."""
        with _narrow_environment():
            ray = _import_ray_first()
            ours = cls(Path(tempfile.mkdtemp(prefix="ray-")))
            try:
                ray.init(
                    num_cpus=workers, num_gpus=0, include_dashboard=False, object_store_memory=_STORE_MB * 2**20,
                    log_to_driver=False, configure_logging=False, _node_ip_address="127.0.0.1",
                    _temp_dir=str(ours.folder),
                )  # fmt: skip
                reachable = find_exposed_addresses(list_descendants(os.getpid())[1:])
            except Exception as error:
                ours.close()
                told = str(error).partition("\n")[0]
                hint = f"Install a current one: {install_hint('ray')}"
                raise SandboxUnavailable(f"Ray does not start: {told}", field="ray", hint=hint) from error
        if reachable:
            ours.close()
            raise SandboxUnavailable(
                "Ray would listen beyond this machine", field="ray", got=reachable, allowed="127.0.0.1"
            )
        return ours

    def close(self) -> None:
        """End all its processes and take its folder away."""
        _import_ray().shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise SandboxUnavailable("Ray is not installed", field="ray", hint=install_hint("ray")) from None
    return ray


def _import_ray_first() -> Any:
    """Import Ray where it has not been, since it reads its settings once, on import, or find it as it was left."""
    if sys.modules.get("ray") and not _IMPORTED:
        raise SandboxUnavailable(
            "Ray was imported by somebody else, and cannot be bound to this machine any more", field="ray",
            hint="Make the cluster before you import ray, or give it an address.",
        )  # fmt: skip
    ray = _import_ray()
    _IMPORTED.add("ray")
    if ray.is_initialized():
        raise SandboxUnavailable("a cluster runs in this process already", field="ray", hint="Close it first.")
    return ray


@contextlib.contextmanager
def _narrow_environment() -> Iterator[None]:
    """Show only what Ray needs of the environment to the processes that are started meanwhile."""
    before = dict(os.environ)
    paths = os.pathsep.join(path for path in sys.path if path)
    shown = {name: before[name] for name in _KEPT_VARIABLES if name in before}
    os.environ.clear()
    os.environ.update(shown | _SETTINGS | {"PYTHONPATH": paths, "RAY_AUTH_TOKEN": _make_token()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@cache
def _make_token() -> str:
    """Return what Ray's processes show each other; Ray keeps the first one that a process has seen."""
    return secrets.token_hex(32)


def _node_strategy(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _read_versions() -> dict[str, str]:
    return {"machine": platform.machine()} | {name: metadata.version(name) for name in _CLUSTER_PACKAGES}


def _examine() -> tuple[str, dict[str, str]]:
    """Say, on a node, what it lacks (empty: nothing) and what is installed there; five ways out are tried."""
    found = probe_sandbox()
    return ("", _read_versions()) if found.available else (found.problem or "it cannot contain code", {})


def _examine_node(ray: Any, node: str, mine: dict[str, str]) -> str:
    """Return why a node may run nothing; empty when it may."""
    try:
        asked = (
            ray.remote(_examine).options(num_cpus=0, scheduling_strategy=_node_strategy(node), max_retries=1).remote()
        )
        lacking, theirs = ray.get(asked, timeout=_NODE_TIMEOUT_S)
    except ray.exceptions.RayError as error:
        return f"it does not answer ({type(error).__name__})"
    if lacking:
        return str(lacking)
    other = [f"{name} {theirs.get(name)}, here {value}" for name, value in mine.items() if theirs.get(name) != value]
    return "other versions: " + ", ".join(other) if other else ""


def _pack_outcome(outcome: Outcome) -> tuple[Any, ...]:
    error = outcome.error
    told = (error.code, error.record()) if error else None
    return "done", outcome.values, told, outcome.wall_ms, outcome.cpu_ms, outcome.peak_mb, outcome.tried


def _unpack_outcome(told: tuple[Any, ...]) -> Outcome:
    _, values, error, wall_ms, cpu_ms, peak_mb, tried = told
    values = None if values is None else np.array(values, dtype=np.float64)
    return Outcome(values, _build_error(*error) if error else None, wall_ms, cpu_ms, peak_mb, tuple(tried))


_BY_CODE: dict[str, type[SandboxError]] = {
    kind.code: kind for kind in (getattr(errors, name) for name in errors.__all__)
    if kind not in (errors.NotCausal, errors.NotDeterministic)  # what a proof says, not a call
}  # fmt: skip


def _build_error(code: str, record: Mapping[str, Any]) -> SandboxError:
    kind = _BY_CODE.get(code, SandboxError)
    return kind(
        record["message"], field=record["field"], got=record["got"], allowed=record["allowed"], hint=record["hint"]
    )


def find_exposed_addresses(processes: Iterable[int]) -> list[str]:
    """Return the addresses, `host:port`, sorted, at which these processes can be reached from other machines."""
    owned = {inode for process in processes for inode in _list_sockets(process)}
    found = {address for inode, address in _iterate_listeners() if inode in owned}
    return sorted(address for address in found if not _is_loopback(address.rpartition(":")[0]))


def list_descendants(process: int) -> list[int]:
    """Return a process and all that it started, and they, as long as each one's parent lives."""
    children: dict[int, list[int]] = {}
    for place in _PROC.glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(place.name))
    found = [process]
    for one in found:
        found.extend(children.get(one, []))
    return found


def _list_sockets(process: int) -> Iterator[str]:
    try:
        places = list((_PROC / str(process) / "fd").iterdir())
    except OSError:
        return
    for place in places:
        try:
            target = os.readlink(place)
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _iterate_listeners() -> Iterator[tuple[str, str]]:
    """Yield the inode and the address of every listening TCP socket."""
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            lines = (_PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] == _LISTENING:
                host, port = words[1].split(":")
                yield words[9], f"{_format_host(family, host)}:{int(port, 16)}"


def _format_host(family: socket.AddressFamily, text: str) -> str:
    """Read an address as /proc writes it: words of 32 bits in the machine's own order."""
    raw = b"".join(int(text[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(text), 8))
    return socket.inet_ntop(family, raw)


def _is_loopback(host: str) -> bool:
    plain = host.removeprefix("::ffff:")
    return plain == "::1" or plain.startswith("127.")
