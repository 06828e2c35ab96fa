"""The same jobs on Ray: each worker of the cluster holds a sandbox of its own, or a function that answers batches.

Generated code never runs in a Ray worker: the worker hands it to the native sandbox of its node, which answers in raw
float64, and passes values and errors on as plain data. A panel is put into the object store once. The pool keeps the
order, bounds the queue and repeats the jobs of a dead worker; the bytes are those of one machine.

A crew needs no sandbox: its workers answer batches (of formulas) with a function of ours, which each worker builds
once from what lies in the object store. It keeps order and repeats in the same way.

A cluster that is started here listens on the loopback device only, requires a token, has no dashboard, sends no usage
statistics, sees only the listed variables of this process's environment, and ends when it is closed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import queue
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
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
_BATCH_TRIES = 4
"""Workers on which a batch is tried before the cluster counts as unable to answer it."""
_CLUSTER_PACKAGES = ("alphaloom", "numba", "numpy", "pandas")
"""Packages that must have the same version on every node, because the bytes depend on them."""
_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
"""Variables of the environment that Ray's processes see; API keys are left out."""
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
        """Return the nodes that run no code, each with the reason."""
        return self._nodes.refused

    def crew(self, build: Callable[[], AnswerBatch]) -> Crew:
        """Return workers that answer batches; it ends with the cluster.

        Parameters
        ----------
        build
            Called once in each worker, returns the function that answers batches there. It is pickled into the object
            store once, with all that it holds; workers of one node share its arrays.
        """
        return self._nodes.make_crew(build)


AnswerBatch = Callable[[Any], Any]


class Crew:
    """Workers of a cluster that answer batches, each with one function that it has built; see `Cluster.crew`.

    A worker is started with its first batch. The batch of a worker that died is answered by a new one. The workers ask
    the cluster for no core of their own: sandboxes of the same session, which have them, wait meanwhile.
    """

    def __init__(self, start: Callable[[], Any], workers: int) -> None:
        self._start, self._workers = start, workers
        self._threads = ThreadPoolExecutor(workers, "crew")
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stations: list[Any] = []
        self._lock, self._closed = threading.Lock(), False
        for _ in range(workers):
            self._idle.put(None)

    @property
    def workers(self) -> int:
        """Return the number of batches that are answered at the same time."""
        return self._workers

    def submit(self, batch: Any) -> Future[Any]:
        """Begin to answer a batch; an error of the function is raised by the result.

        Raises
        ------
        SandboxUnavailable
            In the result: every worker that tried the batch died.
        """
        return self._threads.submit(self._answer, batch)

    def answer_each(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the answers in the order of the batches; up to two for each worker are under way ahead of the next."""
        under_way: deque[Future[Any]] = deque()
        try:
            for batch in batches:
                under_way.append(self.submit(batch))
                if len(under_way) >= 2 * self._workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()

    def close(self) -> None:
        """End the workers and give up the batches under way."""
        with self._lock:
            self._closed = True
            stations = self._stations.copy()
        for station in stations:
            _kill_station(station)
        self._threads.shutdown(cancel_futures=True)

    def _answer(self, batch: Any) -> Any:
        ray, problem = _import_ray(), ""
        station = self._idle.get()
        try:
            for _ in range(_BATCH_TRIES):
                station = station or self._start_station()
                try:
                    return ray.get(station.answer.remote(batch))
                except ray.exceptions.RayTaskError:
                    raise
                except ray.exceptions.RayError as error:
                    problem = type(error).__name__
                    self._drop_station(station)
                    station = None
        finally:
            self._idle.put(station)
        raise SandboxUnavailable(
            f"{_BATCH_TRIES} workers of the cluster died of one batch ({problem})",
            field="workers",
            hint="Give its nodes more memory, or leave --executor ray away.",
        )

    def _start_station(self) -> Any:
        with self._lock:
            if self._closed:
                raise SandboxError("the cluster is closed", field="sandbox", hint="Make a new one.")
            self._stations.append(self._start())
            return self._stations[-1]

    def _drop_station(self, station: Any) -> None:
        with self._lock:
            if station in self._stations:
                self._stations.remove(station)
        _kill_station(station)


class BatchStation:
    """The actor in a Ray worker that answers batches."""

    def __init__(self, stored: list[Any]) -> None:
        self._stored = stored
        self._answer: AnswerBatch | None = None

    def answer(self, batch: Any) -> Any:
        """Return the function's answer to a batch; the function is built with the first, so that its errors arrive."""
        if self._answer is None:
            import ray

            self._answer = ray.get(self._stored[0])()
        return self._answer(batch)


class Station:
    """The actor in a Ray worker: a native sandbox, and the panels of its last jobs."""

    def __init__(self) -> None:
        self._native = Native()
        self._native.check()
        self._worker = self._native.start()
        self._panels: OrderedDict[str, Frames] = OrderedDict()

    def call(
        self, panel: tuple[str, list[Any]], code: str, rows: int | None, limits: Limits, apart: bool = False
    ) -> tuple[Any, ...]:
        """Run a job; the answer is plain data, for errors too."""
        try:
            return _pack_outcome(self._worker.call(Job(code, self._load_frames(*panel), rows, apart=apart), limits))
        except WorkerBroken:
            self._worker.close()
            self._worker = self._native.start()
            raise
        except SandboxError as error:
            return "raised", error.code, error.record()

    def _load_frames(self, digest: str, stored: list[Any]) -> Frames:
        if digest not in self._panels:
            import ray

            dates, symbols, fields = ray.get(stored[0])
            self._panels[digest] = Frames(fields, dates, symbols)
            while len(self._panels) > _MAX_PANELS_HELD:
                self._panels.popitem(last=False)
        self._panels.move_to_end(digest)
        return self._panels[digest]


class _Nodes:
    """The backend: a Ray cluster, its nodes that can contain code, and the panels in its store."""

    name, stamp = "ray", ""

    def __init__(self, workers: int, address: str | None) -> None:
        self._workers, self._address = workers, address
        self._turn, self._lock = count(), threading.Lock()
        self._panels: OrderedDict[str, Any] = OrderedDict()
        self._good: list[str] = []
        self._ours: _OwnCluster | None = None
        self._crews: list[Crew] = []
        self.refused: dict[str, str] = {}

    def check(self) -> None:
        """Start or join the cluster, and examine every node."""
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
            reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.refused.items()))
            raise SandboxUnavailable(
                f"no node of the cluster can contain code: {reasons}",
                field="nodes",
                got=sorted(self.refused),
                hint="Ask on each node: alphaloom sandbox status",
            )

    def start(self) -> _Actor:
        """Start a station on the next node in turn."""
        ray = _import_ray()
        node = self._good[next(self._turn) % len(self._good)]
        station = (
            ray.remote(Station).options(num_cpus=1, max_restarts=0, scheduling_strategy=_node_strategy(node)).remote()
        )
        return _Actor(station, self.store_panel)

    def make_crew(self, build: Callable[[], AnswerBatch]) -> Crew:
        """Return a crew whose workers share what `build` holds."""
        ray = _import_ray()
        stored = [ray.put(build)]

        def start() -> Any:
            node = self._good[next(self._turn) % len(self._good)]
            options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": _node_strategy(node)}
            return ray.remote(BatchStation).options(**options).remote(stored)

        self._crews.append(Crew(start, self._workers))
        return self._crews[-1]

    def store_panel(self, frames: Frames) -> tuple[str, list[Any]]:
        """Put a panel into the object store, once, and return its digest and its reference."""
        with self._lock:
            if frames.digest not in self._panels:
                content = (np.array(frames.dates), frames.symbols, dict(frames.fields))
                self._panels[frames.digest] = _import_ray().put(content)
                while len(self._panels) > _MAX_PANELS_HELD:
                    self._panels.popitem(last=False)
            self._panels.move_to_end(frames.digest)
            return frames.digest, [self._panels[frames.digest]]

    def close(self) -> None:
        """End the crews, drop the panels, and end the cluster if it was started here."""
        while self._crews:
            self._crews.pop().close()
        self._panels.clear()
        if self._ours is not None:
            self._ours.close()
            self._ours = None


class _Actor:
    """A station, as the pool sees it."""

    def __init__(self, station: Any, store_panel: Any) -> None:
        self._station, self._store_panel = station, store_panel

    def call(self, job: Job, limits: Limits) -> Outcome:
        """Run a job there; a station that died or does not answer is broken, and the pool runs the job again."""
        ray = _import_ray()
        reference = self._station.call.remote(self._store_panel(job.frames), job.code, job.rows, limits, job.apart)
        try:
            reply = ray.get(reference, timeout=limits.wall_s + _STATION_GRACE_S)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, WorkerBroken):
                raise WorkerBroken("the station's sandbox broke") from None
            raise
        except ray.exceptions.RayError as error:
            raise WorkerBroken(f"the station is gone: {type(error).__name__}") from None
        if reply[0] == "raised":
            raise _build_error(*reply[1:])
        return _unpack_outcome(reply)

    def stop(self) -> None:
        """End the station, and with it the call."""
        self.close()

    def close(self) -> None:
        """End the station."""
        _kill_station(self._station)


@dataclass
class _OwnCluster:
    """A cluster that was started here, and its folder."""

    folder: Path

    @classmethod
    def start(cls, workers: int) -> _OwnCluster:
        """Start it, and refuse one that other machines could reach."""
        with _narrow_environment():
            ray = _import_ray_first()
            ours = cls(Path(tempfile.mkdtemp(prefix="ray-")))
            try:
                ray.init(
                    num_cpus=workers,
                    num_gpus=0,
                    include_dashboard=False,
                    object_store_memory=_STORE_MB * 2**20,
                    log_to_driver=False,
                    configure_logging=False,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=str(ours.folder),
                )
                reachable = find_exposed_addresses(list_descendants(os.getpid())[1:])
            except Exception as error:
                ours.close()
                first_line = str(error).partition("\n")[0]
                hint = f"Install a current one: {install_hint('ray')}"
                raise SandboxUnavailable(f"Ray does not start: {first_line}", field="ray", hint=hint) from error
        if reachable:
            ours.close()
            raise SandboxUnavailable(
                "Ray would listen beyond this machine", field="ray", got=reachable, allowed="127.0.0.1"
            )
        return ours

    def close(self) -> None:
        """End all its processes and delete its folder."""
        _import_ray().shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill_station(station: Any) -> None:
    ray = _import_ray()
    if ray.is_initialized():
        ray.kill(station)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise SandboxUnavailable("Ray is not installed", field="ray", hint=install_hint("ray")) from None
    return ray


def _import_ray_first() -> Any:
    """Import Ray before anything else does: it reads its settings once, on import.

    A Ray that an earlier cluster of this process imported has the right settings already.
    """
    if sys.modules.get("ray") and not _IMPORTED:
        raise SandboxUnavailable(
            "Ray was imported by somebody else, and cannot be bound to this machine any more",
            field="ray",
            hint="Make the cluster before you import ray, or give it an address.",
        )
    ray = _import_ray()
    _IMPORTED.add("ray")
    if ray.is_initialized():
        raise SandboxUnavailable("a cluster runs in this process already", field="ray", hint="Close it first.")
    return ray


@contextlib.contextmanager
def _narrow_environment() -> Iterator[None]:
    """Reduce the environment to the variables that Ray needs while its processes are started."""
    before = dict(os.environ)
    paths = os.pathsep.join(path for path in sys.path if path)
    variables = {name: before[name] for name in _KEPT_VARIABLES if name in before}
    os.environ.clear()
    os.environ.update(variables | _SETTINGS | {"PYTHONPATH": paths, "RAY_AUTH_TOKEN": _make_token()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@cache
def _make_token() -> str:
    """Return the token of Ray's processes, one for this process: Ray keeps the first that it has read."""
    return secrets.token_hex(32)


def _node_strategy(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _read_versions() -> dict[str, str]:
    return {"machine": platform.machine()} | {name: metadata.version(name) for name in _CLUSTER_PACKAGES}


def _examine() -> tuple[str, dict[str, str]]:
    """Return why this node cannot contain code (empty if it can) and its versions; five escapes are tried."""
    status = probe_sandbox()
    return ("", _read_versions()) if status.available else (status.problem or "it cannot contain code", {})


def _examine_node(ray: Any, node: str, mine: dict[str, str]) -> str:
    """Return why a node may run nothing; empty when it may."""
    try:
        reference = (
            ray.remote(_examine).options(num_cpus=0, scheduling_strategy=_node_strategy(node), max_retries=1).remote()
        )
        lacking, theirs = ray.get(reference, timeout=_NODE_TIMEOUT_S)
    except ray.exceptions.RayError as error:
        return f"it does not answer ({type(error).__name__})"
    if lacking:
        return str(lacking)
    other = [f"{name} {theirs.get(name)}, here {value}" for name, value in mine.items() if theirs.get(name) != value]
    return "other versions: " + ", ".join(other) if other else ""


def _pack_outcome(outcome: Outcome) -> tuple[Any, ...]:
    error = outcome.error
    packed = (error.code, error.record()) if error else None
    return "done", outcome.values, packed, outcome.wall_ms, outcome.cpu_ms, outcome.peak_mb, outcome.tried


def _unpack_outcome(reply: tuple[Any, ...]) -> Outcome:
    _, values, error, wall_ms, cpu_ms, peak_mb, tried = reply
    values = None if values is None else np.array(values, dtype=np.float64)
    return Outcome(values, _build_error(*error) if error else None, wall_ms, cpu_ms, peak_mb, tuple(tried))


_BY_CODE: dict[str, type[SandboxError]] = {
    kind.code: kind
    for kind in (getattr(errors, name) for name in errors.__all__)
    if kind not in (errors.NotCausal, errors.NotDeterministic)  # errors of a proof, not of a call
}


def _build_error(code: str, record: Mapping[str, Any]) -> SandboxError:
    kind = _BY_CODE.get(code, SandboxError)
    return kind(
        record["message"], field=record["field"], got=record["got"], allowed=record["allowed"], hint=record["hint"]
    )


def find_exposed_addresses(processes: Iterable[int]) -> list[str]:
    """Return the addresses, `host:port`, sorted, at which these processes can be reached from other machines."""
    owned = {inode for process in processes for inode in _list_sockets(process)}
    addresses = {address for inode, address in _iterate_listeners() if inode in owned}
    return sorted(address for address in addresses if not _is_loopback(address.rpartition(":")[0]))


def list_descendants(process: int) -> list[int]:
    """Return a process and all its descendants whose ancestors in between are still alive."""
    children: dict[int, list[int]] = {}
    for place in _PROC.glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(place.name))
    descendants = [process]
    for one in descendants:
        descendants.extend(children.get(one, []))
    return descendants


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
    """Return an address from /proc as text; /proc writes words of 32 bits in the machine's byte order."""
    raw = b"".join(int(text[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(text), 8))
    return socket.inet_ntop(family, raw)


def _is_loopback(host: str) -> bool:
    plain = host.removeprefix("::ffff:")
    return plain == "::1" or plain.startswith("127.")
