"""One attack, and whether it got through: by what came back, and by what the witnesses saw."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.sandbox import Frames, Job, Limits, Outcome, Sandbox, SandboxError
from alphaloom.sandbox.causality.comparison import round_values
from alphaloom.sandbox.native.backend import LAYERS, Native

from . import panels
from .host import Host
from .snippet import Snippet

__all__ = ["HONEST", "Attack", "Verdict"]

WALL_S, MEMORY_MB, GRACE_S = 6.0, 256, 4.0
MOST_MB, MOST_TASKS = 700.0, 3
"""Above the sandbox's own processes (some 100 MiB each) and what a call adds; and its tasks during a call."""
LONGEST_TEXT = 2400
HONEST = (
    "def factor(panel):\n"
    "    close = panel['close']\n"
    "    return close.rolling(5).mean() / close + 256 - close.sum(axis=1).mean()\n"
)
INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
FOLDERS = re.compile(r"/(?:root|home|usr|tmp|opt|work|proc|etc|var|lib)/[\w.]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one snippet.

    Attributes
    ----------
    title, group : str
        The snippet, and its class.
    ended : str
        The error's class, or `values`.
    text : str
        The error's words.
    escapes : tuple of str
        What moved or came back that must not; empty if it was contained.
    seconds : float
        By the wall clock.
    """

    title: str
    group: str
    ended: str
    text: str
    escapes: tuple[str, ...]
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)


@dataclass
class Attack:
    """Sandboxes of a host, and snippets sent into them.

    Attributes
    ----------
    host : Host
        Whom to ask what moved.
    without : frozenset of str
        Walls that are left out.
    strict : bool
        True: what a snippet claims counts. False for mutated code, whose claims have no meaning.
    """

    host: Host
    without: frozenset[str] = frozenset()
    strict: bool = True
    frames: Frames = field(default_factory=panels.own)
    tenant: Frames = field(default_factory=panels.tenant)
    proving: Frames = field(default_factory=panels.small)
    _open: dict[float, Sandbox] = field(default_factory=dict)
    _honest: NDArray[np.float64] | None = None
    _last: tuple[NDArray[np.float64], bytes] | None = None

    def sandbox(self, wall_s: float = WALL_S) -> Sandbox:
        """Return the sandbox whose clock is this; a new one has served another tenant first."""
        if wall_s not in self._open:
            self._open[wall_s] = made = self._made(Limits(wall_s=wall_s, memory_mb=MEMORY_MB))
            made.run(HONEST, self.tenant)
            self._honest = made.run(HONEST, self.frames)
            list(made.run_each([Job(HONEST, self.frames, apart=True)]))  # starts its second server, which proofs use
            self.host.calm()
        return self._open[wall_s]

    def _made(self, limits: Limits) -> Sandbox:
        if not self.without:
            return Sandbox(limits)
        omit = [name for name in LAYERS if name in self.without]
        if len(omit) < len(self.without):
            raise ValueError(f"the walls are {', '.join(LAYERS)}; got {', '.join(sorted(self.without))}")
        return Sandbox(limits, backend=Native(omit))

    def close(self) -> None:
        """End the sandboxes."""
        for each in self._open.values():
            each.close()
        self._open.clear()

    def run(self, snippet: Snippet, *, honest: bool = True) -> Verdict:
        """Send a snippet in, and ask every witness; then see that an honest call still gives its values."""
        wall = float(snippet.options.get("wall", WALL_S))
        sandbox = self.sandbox(wall)
        self.host.sampler.restart()
        started = time.monotonic()
        ended, text, escapes = "values", "", []
        for _ in range(2 if "twice" in snippet.options else 1):
            try:
                ended, text, found = self._once(sandbox, snippet)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the host
                ended, text, found = type(error).__name__, str(error), [f"the host broke: {error!r}"]
            escapes += found
        seconds = time.monotonic() - started
        if seconds > (wall + GRACE_S) * (20 if "prove" in snippet.options else 2):
            escapes.append(f"it took {seconds:.1f} s")
        escapes += (
            self._crowded(4 if "prove" in snippet.options else 0)
            + self.host.moved()
            + (self._poisoned(sandbox) if honest else [])
        )
        return Verdict(snippet.title, snippet.group, ended, text, tuple(dict.fromkeys(escapes)), round(seconds, 4))

    def _once(self, sandbox: Sandbox, snippet: Snippet) -> tuple[str, str, list[str]]:
        code = self.host.prelude() + snippet.code
        if "prove" in snippet.options:
            return self._proved(sandbox, code, sweep="sweep" in snippet.options)
        rows = int(snippet.options["rows"]) if "rows" in snippet.options else None
        job = Job(code, self.frames, rows)
        (outcome,) = sandbox.run_each([job])
        if outcome.values is None:
            return type(outcome.error).__name__, str(outcome.error), self._told(outcome.error)
        found = self._taken(outcome, job.shape)
        if snippet.options.get("expect") == "error":
            found.append("it was taken for an answer")
        return "values", "", found

    def _proved(self, sandbox: Sandbox, code: str, *, sweep: bool) -> tuple[str, str, list[str]]:
        try:
            proof = sandbox.prove(code, self.proving, sweep=sweep)
        except SandboxError as error:
            return type(error).__name__, str(error), []
        with Sandbox(sandbox.limits) as other:
            again = round_values(other.run(code, self.proving))  # as a proof hands them on
        same = np.array_equal(proof.values, again, equal_nan=True)
        return "values", "", [] if same else ["the proof was given, and another sandbox gives other values"]

    def _told(self, error: SandboxError | None) -> list[str]:
        """Say what is wrong with an error's text."""
        if error is None or not isinstance(error, SandboxError):
            return [f"neither values nor an error of the sandbox: {error!r}"]
        record: Mapping[str, Any] = error.record()
        text = " ".join(str(part) for part in (error, *record.values()))
        found = [
            f"the error tells the secret: {name}"
            for name, word in self.host.ground.secrets.items()
            if word.decode() in text
        ]
        found += ["the error is long"] if len(str(error)) > LONGEST_TEXT else []
        odd = {c for c in text if unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")} | set(
            INVISIBLE.findall(text)
        )
        found += [f"the error holds {sorted(hex(ord(c)) for c in odd)[:5]}"] if odd else []
        found += ["the error claims what should not be"] if "CLAIMED" in text and self.strict else []
        return found + [f"the error names {match[0]}" for match in FOLDERS.finditer(text)]

    def _taken(self, outcome: Outcome, shape: tuple[int, int]) -> list[str]:
        """Say what is wrong with an answer."""
        values = outcome.values
        if type(values) is not np.ndarray or values.dtype != np.float64 or values.shape != shape:
            return [f"the answer is {type(values).__name__} {getattr(values, 'shape', None)}"]
        found = ["the answer holds an infinity"] if np.isinf(values).any() else []
        figures = outcome.wall_ms, outcome.cpu_ms, outcome.peak_mb
        found += [] if all(0 <= figure < 1e6 for figure in figures) else [f"the call's figures are {figures}"]
        text = _unhidden(values)
        claimed = text.find(b"CLAIMED ")
        if claimed >= 0 and self.strict:
            found.append(f"it claims {text[claimed + 8 : claimed + 200].rstrip(bytes(1))!r}")
        found += [f"it tells the secret: {name}" for name, word in self.host.ground.secrets.items() if word in text]
        found += ["it tells a value of somebody else"] if foreign_in(text, values) else []
        if self._last is not None and self._last[0].tobytes() != self._last[1]:
            found.append("an earlier answer changed")
        self._last = values, values.tobytes()
        return found

    def _crowded(self, more: int) -> list[str]:
        """Say whether there were too many; a proof is held against another sandbox, which has `more` tasks."""
        sampler = self.host.sampler
        found = (
            [f"{sampler.threads} tasks were seen"] if sampler.threads > MOST_TASKS + more + 4 * len(self._open) else []
        )
        return found + (
            [f"{sampler.memory_mb:.0f} MiB were held"] if sampler.memory_mb > MOST_MB + 300 * len(self._open) else []
        )

    def _poisoned(self, sandbox: Sandbox) -> list[str]:
        try:
            again = sandbox.run(HONEST, self.frames)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the host
            return [f"the next honest call failed: {error!r}"]
        return (
            []
            if np.array_equal(again, np.asarray(self._honest), equal_nan=True)
            else ["the next honest call gave other values"]
        )


def foreign_in(text: bytes, values: NDArray[np.float64]) -> bool:
    """Tell whether an answer holds foreign values, hidden or plain; the own later days of a whole call are its own."""
    cut_off = len(values) == panels.SHOWN
    return panels.foreign(text, cut_off=cut_off) or panels.foreign(values.tobytes(), cut_off=cut_off)


def _unhidden(values: NDArray[np.float64]) -> bytes:
    cells = np.nan_to_num(values).ravel()
    whole = np.where((cells >= 0) & (cells < 2**32), cells, 0)
    return whole.astype("<u4").tobytes()
