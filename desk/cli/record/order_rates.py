"""The command that says how fast books sent orders, from the record alone."""

from __future__ import annotations

from typing import Annotated

import typer

from ...facts.order_rates import describe_order_rates, read_order_rates
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson, Workspace
from ..run_lookup import read_ledger

Book = Annotated[str, typer.Argument(metavar="[BOOK]", help="A book's name; all books by default.")]
Profile = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="One profile of a venue, such as mission_5x5; all by default.")
]


def order_rates(book: Book = "", profile: Profile = "", workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Say how many orders and cancels books sent in a second and in a day, against the limits of venues' profiles.

    Seconds are counted both ways: any second, and the seconds of the clock. Per profile: the busiest second and where
    it was, the share of the limit, and the days at 60 % of it or more. The profiles are those of the order gate.
    """
    rates = read_ledger(workspace or DEFAULT_WORKSPACE, lambda ledger: read_order_rates(ledger, book, profile))
    if as_json:
        print_object(rates.record())
        return
    for line in describe_order_rates(rates):
        print_plain(line)
