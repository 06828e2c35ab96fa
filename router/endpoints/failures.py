"""Errors of attempts, classified: is the server gone, does asking again help, may the attempt be charged for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import AccessRefused, ModelFailed, RequestRefused

FailureKind: TypeAlias = Literal["late", "lost", "broken", "refused"]
"""No answer in time; no connection, or it broke; the server's own failure, or it has too much to do; it will not take this."""

_LATE_ERRORS = {"TimeoutError", "TimeoutException", "Timeout"}
_UNCONNECTED_ERRORS = {"ConnectTimeout", "PoolTimeout"}
"""Too late before anything was sent."""
_UNSENT_ERRORS = {"ConnectionRefusedError", "ClientConnectorError", "gaierror"}
_LOST_ERRORS = {"ConnectionError", "TransportError", "ClientConnectionError", "ClientPayloadError"}


@dataclass(frozen=True)
class Failure:
    """One attempt without an answer.

    `charged` says that it may be on the bill: the request went out, and nothing says what became of it. `wait_s` is what
    the server asks to be left alone for.
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

    `charged` says that an answer came which is of no use, and is on the bill; `asked` that it was sent at all.
    """

    def __init__(self, said: str, *, charged: bool = False, asked: bool = True) -> None:
        super().__init__(said)
        self.charged, self.asked = charged, asked


def classify_failure(model: str, missed: AttemptFailed, seconds: float) -> Failure:
    """Return what an error means; LiteLLM gives a lost connection the status 500, so its causes are looked at first."""
    error, said = missed.__cause__, str(missed)
    names = {kind.__name__ for each in list_causes(error) for kind in type(each).__mro__}
    status = getattr(error, "status_code", None)
    if missed.charged:
        return Failure(model, "broken", said, charged=True, seconds=seconds)
    if names & _UNSENT_ERRORS:
        return Failure(model, "lost", said, seconds=seconds)
    if names & _LATE_ERRORS and not (
        status == 408 and _has_server_answer(error)
    ):  # LiteLLM gives its own time-outs that status, too
        charged = not names & _UNCONNECTED_ERRORS
        return Failure(model, "late", said or f"no answer within {seconds:.3g} s", charged=charged, seconds=seconds)
    if names & _LOST_ERRORS:
        return Failure(model, "lost", said, charged=True, seconds=seconds)
    if isinstance(status, int) and 300 <= status < 400:
        said = f"it points to another address (status {status}), and no text goes where the configuration does not say"
        return Failure(model, "refused", said, error=AccessRefused, seconds=seconds)
    kind = _refusal(status)
    if kind is not ModelFailed:
        return Failure(model, "refused", said, error=kind, seconds=seconds)
    charged = missed.asked and not _has_server_answer(error)
    return Failure(model, "broken", said, charged=charged, wait_s=_retry_after(error), seconds=seconds)


def combine_failures(failures: Sequence[Failure], resting: Mapping[str, str]) -> ModelFailed:
    """Return the error of a call that nobody answered: who was asked and what each said last, and who was not asked."""
    last = {each.model: each for each in failures}
    told = [f"{name}: {each.said}" for name, each in last.items()]
    told += [f"{name}: not asked, {why}" for name, why in resting.items() if name not in last]
    kinds = {each.error for each in last.values()} if not resting.keys() - last.keys() else {ModelFailed}
    kind = kinds.pop() if len(kinds) == 1 else ModelFailed
    first = next(iter([*last, *resting]))
    return kind(f"no reply from {'; nor from '.join(told)}", field=f"models.{first}", hint=_HINTS[kind])


_HINTS: Mapping[type[ModelFailed], str] = {
    ModelFailed: "`alphaloom doctor CAMPAIGN.yaml` shows which of its models answer. Resume the run to ask again.",
    AccessRefused: "The server does not know this key or this model: mend the campaign file or the key, then resume the run.",
    RequestRefused: "The server refuses this one request, such as one that is too long for the model.",
}


def _refusal(status: object) -> type[ModelFailed]:
    """Return what an HTTP status means: a later try may heal it, only a person can, or this request never passes."""
    if status in (401, 402, 403, 404):
        return AccessRefused
    return RequestRefused if status in (400, 413, 422) else ModelFailed


def is_silence(error: BaseException) -> bool:
    """Return whether nobody said anything: then the words of an error are the library's own."""
    names = {kind.__name__ for each in list_causes(error) for kind in type(each).__mro__}
    return bool(names & (_UNSENT_ERRORS | _LATE_ERRORS | _LOST_ERRORS))


def _has_server_answer(error: BaseException | None) -> bool:
    """Return whether the server answered with an error of its own: LiteLLM gives what it cannot read the status 500, too."""
    for each in list_causes(error):
        status = getattr(getattr(each, "response", None), "status_code", 0)
        library = type(each).__module__.partition(".")[0]
        if library in ("httpx", "openai") and isinstance(status, int) and status >= 400:
            return True
        if type(each).__name__ == "MaskedHTTPStatusError":
            return True
    return False


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException | None) -> float:
    """Return the seconds of a Retry-After, 0 where there is none."""
    headers = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    try:
        return max(0.0, float(dict(headers).get("retry-after", 0.0)))
    except (TypeError, ValueError):
        return 0.0
