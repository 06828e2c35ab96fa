"""The variety of a search: mechanisms by round and overall, niches, and the counts of mutation operators."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..evidence.scoring import round_significant
from ..factors.describe import natural_sort_key
from ..ledger import Ledger

ROUND_PATTERN = re.compile(r"^r(\d+)/")
HYPOTHESIS_EVENT = "agents.hypothesis"
REFUSED_IDEAS_EVENT = "agents.refused_ideas"
OWN_AGENT_EVENT = "agents.own_agent"
NICHE_EVENT = "agents.niche"
MAX_HYPOTHESES_PER_ROUND = 1_000

OPERATORS_EVENT = "agents.operators"


def effective_number(names: Iterable[str]) -> float:
    """Return the effective number of names: the exponential of the Shannon entropy of their shares.

    So many equally frequent names would be as varied: 1 if all are equal, their number if all differ, 0 for none.

    References
    ----------
    Hill (1973), "Diversity and evenness", the number of order 1.
    """
    counts = Counter(names)
    total = sum(counts.values())
    shares = [counts[name] / total for name in sorted(counts)]
    return math.exp(-sum(share * math.log(share) for share in shares)) if total else 0.0


def effective_number_of_round(ledger: Ledger, run: str, number: int) -> float | None:
    """Return the effective number of mechanisms of a round's hypotheses; None without hypotheses."""
    names = []
    for index in range(MAX_HYPOTHESES_PER_ROUND):
        event = ledger.events.get(run, HYPOTHESIS_EVENT, f"r{number:02d}/h{index:02d}")
        if event is None:
            break
        names.append(str(event.body["mechanism"]))
    return effective_number(names) if names else None


def count_niches(ledger: Ledger, run: str) -> int:
    """Return the number of niches (mechanism, horizon, turnover) with a scored formula, seeds included."""
    return len(ledger.events.of(run, NICHE_EVENT))


def summarise_variety(ledger: Ledger, run: str) -> dict[str, Any]:
    """Return the variety of a run's hypotheses, a person's own included, seeds left out.

    Returns
    -------
    dict
        `hypotheses`, `mechanisms` (different ones), `effective` (their effective number), `niches` (filled), `refused`
        (hypotheses that got no branch), and `rounds`, each with `round` and the first three.
    """
    rounds: dict[int, list[str]] = {}
    for event in ledger.events.of(run, HYPOTHESIS_EVENT):
        match = ROUND_PATTERN.match(event.key)
        if match and int(match[1]) > 0:
            rounds.setdefault(int(match[1]), []).append(str(event.body["mechanism"]))
    refused = sum(len(event.body["items"]) for event in ledger.events.of(run, REFUSED_IDEAS_EVENT))
    overall = _count_mechanisms([name for names in rounds.values() for name in names])
    filled = {"niches": count_niches(ledger, run), "refused": refused}
    return {**overall, **filled, "rounds": [{"round": n, **_count_mechanisms(rounds[n])} for n in sorted(rounds)]}


def list_own_troubles(ledger: Ledger, run: str) -> list[str]:
    """Return the problems of a person's own parts: refused hypotheses, and failures of their agent."""
    refused = [
        row for event in ledger.events.of(run, REFUSED_IDEAS_EVENT) for row in event.body["items"] if row.get("source")
    ]
    failed = sorted(
        (event.key, event.body["failed"]) for event in ledger.events.of(run, OWN_AGENT_EVENT) if "failed" in event.body
    )
    return [
        *(f"{row['source']}: {row['mechanism']!r} got no branch: {row['why']}" for row in refused),
        *(f"own agent, {key}: {why}" for key, why in failed),
    ]


def _count_mechanisms(names: list[str]) -> dict[str, Any]:
    return {
        "hypotheses": len(names),
        "mechanisms": len({*names}),
        "effective": round_significant(effective_number(names)),
    }


def read_operator_table(ledger: Ledger, run: str) -> list[dict[str, Any]]:
    """Return the last operator table of a run, rows `{operator, where, tried, better, gained}`; empty without one.

    `gained` sums |t| of a child less |t| of its parent on the search window.
    """
    last = max(ledger.events.of(run, OPERATORS_EVENT), key=lambda event: natural_sort_key(event.key), default=None)
    return [{**row, "gained": round_significant(row["gained"])} for row in last.body["rows"]] if last else []
