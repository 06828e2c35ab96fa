"""The command by which a person acknowledges a leak alarm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from ...errors import DeskError
from ...figures import number
from ..campaign.status import open_run
from ..console import print_object, print_plain
from ..options import AsJson, By, RunName, Workspace, signer_name


def acknowledge(
    run: RunName,
    factor: Annotated[str, typer.Argument(metavar="ID", help="The factor's id, or the start of one.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What you looked at, and why it is no leak.")],
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Acknowledge that a RankIC on selection days is too good to be true: the risk gate refuses its signals until then.

    Look for a field that knows the future first. Who acknowledged it, when and why is kept, and stands for good.
    """
    from ....risk import acknowledge_alarm, list_alarms

    with open_run(run, workspace) as (ledger, row):
        alarms = [one for one in list_alarms(ledger) if one.run == row.id]
        found = [one for one in alarms if factor and one.factor_id.startswith(factor)]
        if len(found) != 1:
            raise DeskError(
                "No leak alarm of this run waits under this id." if not found else "Several alarms begin so.",
                field="ID",
                got=factor,
                allowed=[one.factor_id for one in found or alarms] or "no alarm waits",
                code="unknown_alarm",
            )
        name = signer_name(by, ledger.workspace, "risk:approve")
        acknowledge_alarm(ledger, found[0], reason, name, datetime.now(UTC))
    if as_json:
        print_object({"run": row.id, "id": found[0].factor_id, "by": name, "rank_ic": found[0].rank_ic})
        return
    size = number(found[0].rank_ic, 4, sign=True)
    print_plain(f"{found[0].factor_id}: its alarm (RankIC {size} on selection days) is acknowledged by {name}")
