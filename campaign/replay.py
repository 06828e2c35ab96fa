"""Compute the steps of a paper book again from what they had read, and compare the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..ledger import Ledger, canonical_json, compute_digest
from .book import CARRIED, begin
from .book_log import compare_with_log, read_logged_steps
from .book_record import STEP_EVENT, find_book, list_flows, list_orders, list_steps
from .session.fills import find_executed
from .session.step import take_step

GONE: Final = "the whole step: the log of calls has it, and the record does not"
PAID, ORDERED, EXECUTED = "money paid in", "people's orders", "orders and fills"


def replay_book(ledger: Ledger, name: str) -> Iterator[tuple[str, list[str]]]:
    """Compute every step of a book again from its stored inputs.

    Yields
    ------
    tuple
        The day, and the parts of its record that differ; empty where every byte is the same. A step that the log of
        calls has and the record does not is named by its day, too, and so is one that is not in the log.
    """
    book, settings = find_book(ledger, name)
    given = {
        "flows": {flow.key: [flow.key, flow.amount, flow.digest] for flow in list_flows(ledger, book)},
        "orders": {
            order.key: [order.key, order.mode, order.is_signed_twice, order.digest]
            for order in list_orders(ledger, book)
        },
    }
    read_fills = find_executed(ledger, book)
    logged = read_logged_steps(ledger.workspace, book)
    before: Mapping[str, Any] | None = None
    for body in list_steps(ledger, book):
        inputs = json.loads(ledger.objects.get(body["inputs"]))
        again = take_step(inputs)
        differing = [
            part
            for part in dict.fromkeys((*again, "unpaid", "executed"))  # most steps do not have these
            if canonical_json(again.get(part)) != canonical_json(body.get(part))
        ]
        start = before or begin(settings)
        differing += ["the step before it"] if body["after"] != compute_digest(start) else []
        differing += [
            part
            for part, kind in ((PAID, "flows"), (ORDERED, "orders"))
            if any(given[kind].get(row[0]) != row for row in body[kind])
        ]
        there = read_fills(body["day"])
        differing += [EXECUTED] if canonical_json(there) != canonical_json(inputs.get("executed")) else []
        differing += compare_with_log(logged, body)
        differing += ["settings"] if inputs["settings"] != settings.model_dump(mode="json") else []
        differing += [
            f"{part} at its beginning"
            for part in CARRIED
            if canonical_json(inputs[part]) != canonical_json(start[part])
        ]
        yield body["day"], differing
        before = body
    present = {event.key for event in ledger.events.of(book, STEP_EVENT)}
    yield from ((day, [GONE]) for day in sorted(logged.keys() - present))
