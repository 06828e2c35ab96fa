"""The gateway's counts by tenant, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from .fair_scheduler import FairScheduler

OUTCOMES = ("answered", "refused", "failed", "left")


@dataclass
class TenantAccount:
    """The counts of one tenant: calls by outcome, tokens, and seconds of waiting for a place."""

    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    tokens_in: int = 0
    tokens_out: int = 0
    waited: float = 0.0
    placed: int = 0


def format_metrics(
    gate: FairScheduler, places: int, accounts: Mapping[str, TenantAccount], visible: Collection[str]
) -> bytes:
    """Return the gateway's own lines: of the visible tenants, or sums over all tenants where none is visible."""
    names = sorted(visible)
    families = [
        _format_gauge("places", "Calls that the endpoint is let answer at once.", {"": places}),
        _format_gauge("places_free", "Places that nobody holds.", {"": gate.free}),
        _format_gauge("waiting", "Calls that wait for a place.", _collect_values(names, gate.count_waiting, accounts)),
        _format_gauge("running", "Calls that hold a place.", _collect_values(names, gate.count_running, accounts)),
    ]
    if names:
        by_labels = {_format_labels(name): accounts[name] for name in names}
        families += [
            _format_counter(
                "served_tokens_total",
                "Weighted tokens that a tenant was served.",
                _collect_values(names, gate.served_tokens, {}),
            ),
            _format_counter(
                "tokens_in_total",
                "Tokens in.",
                {labels: account.tokens_in for labels, account in by_labels.items()},
            ),
            _format_counter(
                "tokens_out_total",
                "Tokens out.",
                {labels: account.tokens_out for labels, account in by_labels.items()},
            ),
            _format_counter(
                "waited_seconds_total",
                "Waiting.",
                {labels: account.waited for labels, account in by_labels.items()},
            ),
            _format_counter(
                "placed_total",
                "Calls that got a place.",
                {labels: account.placed for labels, account in by_labels.items()},
            ),
            _format_counter(
                "calls_total",
                "Calls that ended, by what became of them.",
                {
                    _format_labels(name, outcome): count
                    for name in names
                    for outcome, count in accounts[name].calls.items()
                },
            ),
        ]
    return "".join(families).encode()


def _collect_values(
    names: list[str], value: Callable[[str], float], accounts: Mapping[str, TenantAccount]
) -> dict[str, float]:
    """Return a value by tenant, or the sum over all tenants where no names are given."""
    return {_format_labels(name): value(name) for name in names} if names else {"": sum(map(value, accounts))}


def _format_labels(tenant: str, outcome: str = "") -> str:
    return f'{{tenant="{tenant}"' + (f',outcome="{outcome}"' if outcome else "") + "}"


def _format_gauge(name: str, description: str, values: Mapping[str, float]) -> str:
    return _format_family(name, description, "gauge", values)


def _format_counter(name: str, description: str, values: Mapping[str, float]) -> str:
    return _format_family(name, description, "counter", values)


def _format_family(name: str, description: str, kind: str, values: Mapping[str, float]) -> str:
    full_name = f"alphaloom_gateway_{name}"
    rows = "".join(f"{full_name}{labels} {value:.12g}\n" for labels, value in values.items())
    return f"# HELP {full_name} {description}\n# TYPE {full_name} {kind}\n{rows}"
