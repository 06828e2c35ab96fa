"""The process between a trading process and NautilusTrader: it decides again, and lets approved orders alone pass.

`python -m alphaloom.execution.nautilus.gatekeeper PYTHON WORKER` runs in Alphaloom's own environment. It alone has a
pipe to the engine, which lacks Alphaloom and cannot judge. `admit` brings the inputs of a decision; what it approves
when it is made again, here, may be ordered. Everything else passes on to the engine.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from ..decision_inputs import DecisionInputs
from ..errors import ExecutionError
from ..orders import ChildOrder, ParentOrder
from .pipe import LinePipe, PipedProcess

PROTOCOL: Final = 1
INPUT: Final = 0
"""Standard input, whose end is the end of the process that trades."""


@dataclass
class AdmittedParent:
    """A parent order that a decision made here approves, and how many of its shares were not yet sent."""

    order: ParentOrder
    left: int


class Gatekeeper:
    """Knows what may be ordered; `engine` answers what passes."""

    def __init__(self, engine: PipedProcess) -> None:
        self._engine = engine
        self._parents: dict[str, AdmittedParent] = {}
        self._sent: set[str] = set()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; `ExecutionError` where it is refused."""
        if request["type"] == "admit":
            self._admit(request)
            return {"type": "done", "reports": []}
        if request["type"] == "send":
            self._count(tuple(ChildOrder(**row) for row in request["orders"]))
        return self._engine.ask(request)

    def _admit(self, request: Mapping[str, Any]) -> None:
        """Decide again, and note the parents that this decision approves."""
        decision = DecisionInputs.restore(request["inputs"]).decide_again(request["decision"])
        approved = {one.signal.asset: one for one in decision.approved}
        session = date.fromisoformat(request["session"])
        admitted: dict[str, AdmittedParent] = {}
        for asset, shares, arrival_e4 in request["parents"]:
            if asset not in approved:
                raise refuse("parent", asset, "an asset that the decision approves", "not_approved")
            parent = ParentOrder(approved[asset], shares, arrival_e4, session)
            if parent.id in self._parents or parent.id in admitted:
                raise refuse("parent", parent.id, "a parent order that was not admitted before", "duplicate")
            admitted[parent.id] = AdmittedParent(parent, abs(shares))
        self._parents.update(admitted)

    def _count(self, orders: Sequence[ChildOrder]) -> None:
        """Count the shares of a batch against its parents; a refusal of one order refuses the batch."""
        taken: Counter[str] = Counter()
        for order in orders:
            self._check(order, taken)
        if len({order.id for order in orders}) < len(orders):
            raise refuse("id", [order.id for order in orders], "each id once", "duplicate")
        self._sent.update(order.id for order in orders)
        for parent, shares in taken.items():
            self._parents[parent].left -= shares

    def _check(self, order: ChildOrder, taken: Counter[str]) -> None:
        """Refuse a child that its parent does not cover; `taken` counts the shares of a batch by parent."""
        known = self._parents.get(order.parent)
        if known is None:
            raise refuse("parent", order.parent, "a parent of a decision that was made again here", "not_approved")
        if (order.asset, order.side) != (known.order.asset, known.order.side):
            raise refuse("asset", f"{order.side} {order.asset}", f"{known.order.side} {known.order.asset}", "order")
        if order.id in self._sent or not order.id.startswith(f"{order.parent}-"):
            raise refuse("id", order.id, f"{order.parent}-N, once", "duplicate")
        taken[order.parent] += order.shares
        if taken[order.parent] > known.left:
            raise refuse("shares", taken[order.parent], f"at most {known.left} that are left of the parent", "order")


def refuse(field: str, got: object, allowed: str, code: str) -> ExecutionError:
    """Return the error for what may not be ordered."""
    return ExecutionError(
        "The process that decides again refuses this.", field=field, got=got, allowed=allowed, code=code, exit_code=1
    )


def serve(pipe: LinePipe, keeper: Gatekeeper) -> None:
    """Answer requests until the pipe is closed."""
    while (request := pipe.read()) is not None:
        try:
            answer = keeper.answer(request)
        except ExecutionError as error:
            answer = describe(error)
        pipe.write(answer)


def describe(error: ExecutionError) -> dict[str, Any]:
    """Return an error as an answer, from which it is raised again on the other side."""
    parts = {name: getattr(error, name) for name in ("message", "field", "hint", "code", "exit_code")}
    shown = {name: str(value) for name in ("got", "allowed") if (value := getattr(error, name)) is not None}
    return {"type": "error", "error": {**parts, **shown}}


def main(python: Path, worker: Path) -> None:
    """Start the engine, and stand between it and the process that started this one."""
    pipe = LinePipe(INPUT, os.dup(1))
    os.dup2(2, 1)  # what anything prints is no answer
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TZ") if name in os.environ}
    try:
        engine = PipedProcess("NautilusTrader", [str(python), "-I", str(worker)], kept, watched=INPUT)
    except ExecutionError as error:
        pipe.write(describe(error))
        return
    try:
        pipe.write({**engine.hello, "protocol": PROTOCOL})
        serve(pipe, Gatekeeper(engine))
    except (InterruptedError, BrokenPipeError):
        pass  # the process that trades is gone
    finally:
        engine.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
