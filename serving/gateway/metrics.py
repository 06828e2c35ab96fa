"""The gateway's counts by tenant, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from .fair_scheduler import FairScheduler

OUTCOMES = ("answered", "refused", "failed", "left")


@dataclass
class TenantAccount:
    """What one tenant asked and got: calls by what became of them, tokens, and seconds of waiting for a place."""

    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    tokens_in: int = 0
    tokens_out: int = 0
    waited: float = 0.0
    placed: int = 0


def format_metrics(
    gate: FairScheduler, places: int, accounts: Mapping[str, TenantAccount], told: Collection[str]
) -> bytes:
    """Return the gateway's own lines: of the tenants that are told, and sums over everybody where none is."""
    names = sorted(told)
    found = [
        _gauge("places", "Calls that the endpoint is let answer at once.", {"": places}),
        _gauge("places_free", "Places that nobody holds.", {"": gate.free}),
        _gauge("waiting", "Calls that wait for a place.", _values_by_tenant(names, gate.count_waiting, accounts)),
        _gauge("running", "Calls that hold a place.", _values_by_tenant(names, gate.count_running, accounts)),
    ]
    if names:
        found += [
            _counter("served_tokens_total", "Weighted tokens that a tenant was served.", _values_by_tenant(names, gate.served_tokens, {})),
            _counter("tokens_in_total", "Tokens in.", {_metric_labels(name): accounts[name].tokens_in for name in names}),
            _counter("tokens_out_total", "Tokens out.", {_metric_labels(name): accounts[name].tokens_out for name in names}),
            _counter("waited_seconds_total", "Waiting.", {_metric_labels(name): accounts[name].waited for name in names}),
            _counter("placed_total", "Calls that got a place.", {_metric_labels(name): accounts[name].placed for name in names}),
            _counter("calls_total", "Calls that ended, by what became of them.",
                     {_metric_labels(name, outcome): many for name in names for outcome, many in accounts[name].calls.items()}),
        ]  # fmt: skip
    return "".join(found).encode()


def _values_by_tenant(
    names: list[str], value: Callable[[str], float], everybody: Mapping[str, TenantAccount]
) -> dict[str, float]:
    """Return a value by tenant, or the sum over everybody where no names are told."""
    return {_metric_labels(name): value(name) for name in names} if names else {"": sum(map(value, everybody))}


def _metric_labels(tenant: str, outcome: str = "") -> str:
    return f'{{tenant="{tenant}"' + (f',outcome="{outcome}"' if outcome else "") + "}"


def _gauge(name: str, says: str, values: Mapping[str, float]) -> str:
    return _family(name, says, "gauge", values)


def _counter(name: str, says: str, values: Mapping[str, float]) -> str:
    return _family(name, says, "counter", values)


def _family(name: str, says: str, kind: str, values: Mapping[str, float]) -> str:
    whole = f"alphaloom_gateway_{name}"
    rows = "".join(f"{whole}{labels} {value:.12g}\n" for labels, value in values.items())
    return f"# HELP {whole} {says}\n# TYPE {whole} {kind}\n{rows}"
