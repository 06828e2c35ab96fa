"""What the bench found on record, and the rule that a campaign may not use a version before the bench passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ...ledger import AlphaloomError, Ledger
from .versions import BENCHED_KINDS, UsedVersion

BENCH_EVENT: Final = "bench"
MAX_BENCH_RESULTS: Final = 10_000
"""Results of the bench that are read, the newest ones."""


@dataclass(frozen=True)
class BenchCheck:
    """One part of the bench: what had to be, what was measured, and whether it passed."""

    name: str
    passed: bool
    needed: str
    found: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchResult:
    """One bench.

    Attributes
    ----------
    at, run
        When it was recorded (ISO, UTC), and its run, whose folder holds the workspaces of its campaigns.
    campaign
        The name of the campaign whose models, prompts and router were used.
    versions
        The digest of each benched version by kind and name.
    checks
        Its parts.
    calls, usd
        Model calls, and US dollars.
    """

    at: str
    run: str
    campaign: str
    versions: Mapping[str, str]
    checks: tuple[BenchCheck, ...]
    calls: int
    usd: float
    passed: bool

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    def body(self) -> dict[str, Any]:
        """Return what the event of the result holds: all but its time and run."""
        return {name: value for name, value in self.record().items() if name not in ("at", "run")}


def list_benches(ledger: Ledger) -> list[BenchResult]:
    """Return the results on record, the newest first."""
    rows = ledger.events.latest([BENCH_EVENT], MAX_BENCH_RESULTS)
    return [
        BenchResult(
            row.at,
            row.record.run,
            **{**row.record.body, "checks": tuple(BenchCheck(**one) for one in row.record.body["checks"])},
        )
        for row in rows
    ]


def list_benched(versions: Sequence[UsedVersion]) -> dict[str, str]:
    """Return the digests of the versions that the bench is about, by kind and name."""
    return {one.label: one.digest for one in versions if one.kind in BENCHED_KINDS}


def refuse_unbenched(ledger: Ledger, versions: Sequence[UsedVersion]) -> None:
    """Refuse versions that have not passed the bench together.

    The newest bench with exactly these models, pages and router counts; it may have had further ones.

    Raises
    ------
    AlphaloomError
        No such bench, or it failed; the error names each version that differs from the last ones that passed.
    """
    needed, benches = list_benched(versions), list_benches(ledger)
    same = next((one for one in benches if needed.items() <= one.versions.items()), None)
    if same is not None and same.passed:
        return
    passed = next((one for one in benches if one.passed), None)
    differing = [label for label, digest in needed.items() if passed is None or passed.versions.get(label) != digest]
    raise AlphaloomError(
        _explain(same, passed),
        field="bench_changes",
        got=differing if passed else f"{len(differing)} versions, none of which was benched",
        allowed="models, prompt pages and a router that passed the bench together",
        hint="Run the bench: alphaloom record bench CAMPAIGN.yaml. bench_changes is set in policy.yaml.",
        code="not_benched",
        exit_code=1,
    )


def _explain(same: BenchResult | None, passed: BenchResult | None) -> str:
    if same is not None:
        failed = ", ".join(check.name for check in same.checks if not check.passed)
        return f"These versions failed the bench on {same.at[:10]} ({failed})."
    if passed is None:
        return "The policy asks for a bench before models, prompts and a router are used, and none has passed here."
    return f"What this campaign would use differs from what passed the bench on {passed.at[:10]}."
