"""The command that says what drifted, from the record alone."""

from __future__ import annotations

from typing import Annotated

import typer

from ...facts.drift import describe_drift, read_drift
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson, Workspace
from ..run_lookup import read_ledger

Name = Annotated[
    str, typer.Argument(metavar="[RUN|BOOK]", help="A run's id, latest, or a book's name; the whole record by default.")
]


def drift(name: Name = "", workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Say what drifted month by month: versions, models, refusals and repairs, cost, latency, factors, data.

    From the record alone: which versions of models, prompts, router, policy and software changed; the share of calls by
    model, the replies that were refused or had to be repaired, cost and latency; proposals and signals that were
    refused, by reason; RankIC of library factors on new days against their evidence, with e-values and decay tests; and
    data sets whose digest changed.
    """
    report = read_ledger(workspace or DEFAULT_WORKSPACE, lambda ledger: read_drift(ledger, name))
    if as_json:
        print_object(report.record())
        return
    for line in describe_drift(report):
        print_plain(line)
