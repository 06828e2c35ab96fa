"""Errors of attempts, classified: is the server gone, does a retry help, may the attempt be charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import AccessRefused, ModelFailed, RequestRefused

FailureKind: TypeAlias = Literal["late", "lost", "broken", "refused"]
"""late: no answer in time; lost: connection failed or broke; broken: server error or overload; refused: bad request."""

_LATE_ERRORS = {"TimeoutError", "TimeoutException", "Timeout"}
_UNCONNECTED_ERRORS = {"ConnectTimeout", "PoolTimeout"}
"""Timeouts before anything was sent."""
_UNSENT_ERRORS = {"ConnectionRefusedError", "ConnectError", "gaierror"}
_LOST_ERRORS = {"ConnectionError", "TransportError"}


@dataclass(frozen=True)
class Failure:
    """One attempt without an answer.

    `charged`: it may be charged, because the request was sent and its outcome is unknown. `wait_s` is the Retry-After
    of the server, in seconds.
    """

    model: str
    kind: FailureKind
    said: str
    error: type[ModelFailed] = ModelFailed
    charged: bool = False
    wait_s: float = 0.0
    seconds: float = 0.0


class AttemptFailed(Exception):
    """An attempt ended without an answer; the message says why, without any key, and the cause is the library's error.

    `charged`: an unusable answer came, and is charged. `asked`: the request was sent.
    """

    def __init__(self, message: str, *, charged: bool = False, asked: bool = True) -> None:
        super().__init__(message)
        self.charged, self.asked = charged, asked


class ServerRefused(Exception):
    """A server answered with an error; the message is what it says."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status_code, self.headers = status, headers


class NotSent(Exception):
    """A library refused a request before anything was sent; the cause is its error."""


def classify_failure(model: str, attempt: AttemptFailed, seconds: float) -> Failure:
    """Classify an error, by its causes first: LiteLLM gives errors of its own a status too."""
    error, message = attempt.__cause__, str(attempt)
    names = {kind.__name__ for cause in list_causes(error) for kind in type(cause).__mro__}
    status = getattr(error, "status_code", None)
    if attempt.charged:
        return Failure(model, "broken", message, charged=True, seconds=seconds)
    if names & _UNSENT_ERRORS:
        return Failure(model, "lost", message, seconds=seconds)
    if names & _LATE_ERRORS:
        charged = not names & _UNCONNECTED_ERRORS
        return Failure(model, "late", message or f"no answer within {seconds:.3g} s", charged=charged, seconds=seconds)
    if names & _LOST_ERRORS:
        return Failure(model, "lost", message, charged=True, seconds=seconds)
    if isinstance(status, int) and 300 <= status < 400:
        message = (
            f"it points to another address (status {status}), and no text goes where the configuration does not say"
        )
        return Failure(model, "refused", message, error=AccessRefused, seconds=seconds)
    kind = _classify_status(status)
    if kind is not ModelFailed:
        return Failure(model, "refused", message, error=kind, seconds=seconds)
    charged = attempt.asked and not isinstance(error, ServerRefused)
    return Failure(model, "broken", message, charged=charged, wait_s=_read_retry_after(error), seconds=seconds)


def combine_failures(failures: Sequence[Failure], resting: Mapping[str, str]) -> ModelFailed:
    """Return the error of a call without an answer: the last failure of each model, and why others were not asked."""
    last = {failure.model: failure for failure in failures}
    lines = [f"{name}: {failure.said}" for name, failure in last.items()]
    lines += [f"{name}: not asked, {why}" for name, why in resting.items() if name not in last]
    kinds = {failure.error for failure in last.values()} if not resting.keys() - last.keys() else {ModelFailed}
    kind = kinds.pop() if len(kinds) == 1 else ModelFailed
    first = next(iter([*last, *resting]))
    return kind(f"no reply from {'; nor from '.join(lines)}", field=f"models.{first}", hint=_HINTS[kind])


_HINTS: Mapping[type[ModelFailed], str] = {
    ModelFailed: "`alphaloom doctor CAMPAIGN.yaml` shows which of its models answer. Resume the run to ask again.",
    AccessRefused: "The server does not know this key or this model: mend the campaign file or the key, then resume "
    "the run.",
    RequestRefused: "The server refuses this one request, such as one that is too long for the model.",
}


def _classify_status(status: object) -> type[ModelFailed]:
    """Return the error of an HTTP status: a person must act, the request never passes, or a retry may help."""
    if status in (401, 402, 403, 404):
        return AccessRefused
    return RequestRefused if status in (400, 413, 422) else ModelFailed


def is_silence(error: BaseException) -> bool:
    """Return whether no server answered, so that the error's text is the library's own."""
    names = {kind.__name__ for cause in list_causes(error) for kind in type(cause).__mro__}
    return bool(names & (_UNSENT_ERRORS | _LATE_ERRORS | _LOST_ERRORS))


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the chain of its causes."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _read_retry_after(error: BaseException | None) -> float:
    """Return the seconds of a Retry-After header; 0 without one."""
    headers = error.headers if isinstance(error, ServerRefused) else {}
    try:
        return max(0.0, float(headers.get("retry-after", 0.0)))
    except (TypeError, ValueError):
        return 0.0
