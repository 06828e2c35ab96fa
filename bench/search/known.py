"""Formulas known without a search: all draws of the desk's skeletons, the textbook, the published factors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

from alphaloom.agents.offline.mechanisms import OPERATOR_SLOTS, SLOT, SLOT_WINDOWS, list_slot_values, load_mechanisms
from alphaloom.evidence.originality.published import published_expressions
from alphaloom.factors import Expression, FactorError, bucket_windows, parse, render
from alphaloom.factors.language.canonical import BUCKET_ROWS
from alphaloom.factors.space.planted import GRAMMAR, TEXTBOOK
from alphaloom.ledger import compute_digest

from .rooms import state_of
from .textbook import TEN

__all__ = ["draws", "form", "known_forms"]


def form(expression: Expression) -> str:
    """Return the canonical core with bucketed windows: equal for formulas that differ only in their windows."""
    return render(bucket_windows(expression.core))


def known_forms(folder: Path) -> frozenset[str]:
    """Return the form of everything that is known; made once for a library and kept in a folder."""
    skeletons = sorted({skeleton for mechanism in load_mechanisms() for skeleton in mechanism.skeletons})
    lists = [*TEXTBOOK, *TEN, *(each.text for _, each, _ in published_expressions())]
    slots = {kind: _filled(kind) for kind in (*SLOT_WINDOWS, *OPERATOR_SLOTS, "price", "activity")}
    kept = folder / f"known-{compute_digest([skeletons, lists, slots, state_of('factors')])[:12]}.json"
    if not kept.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        own = {form(each) for _, each, _ in published_expressions()}
        drawn = (text for skeleton in skeletons for text in draws(skeleton))
        unfinished = kept.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(sorted(own | _forms((*TEXTBOOK, *TEN)) | _forms(drawn))))
        unfinished.replace(kept)
    return frozenset(json.loads(kept.read_text()))


def draws(skeleton: str) -> Iterator[str]:
    """Yield every formula that a skeleton can become, of windows only one for each bucket."""
    slots = list(dict.fromkeys(match.group(0) for match in SLOT.finditer(skeleton)))
    kinds = [match.group(1) for slot in slots if (match := SLOT.match(slot))]
    for values in product(*(_filled(kind) for kind in kinds)):
        text = skeleton
        for slot, value in zip(slots, values, strict=True):
            text = text.replace(slot, value)
        yield text


def _forms(texts: Iterable[str]) -> set[str]:
    """Return the forms of the texts that can be read."""
    found = set()
    for text in texts:
        try:
            found.add(form(parse(text)))
        except FactorError:
            continue
    return found


@cache
def _filled(kind: str) -> tuple[str, ...]:
    """Return what a slot may become; windows are moved to their buckets."""
    known = list_slot_values(kind, GRAMMAR.fields)
    return tuple(sorted({_bucket(int(window)) for window in known})) if kind in SLOT_WINDOWS else tuple(known)


def _bucket(days: int) -> str:
    return str(min(BUCKET_ROWS, key=lambda each: max(each / days, days / each)))
