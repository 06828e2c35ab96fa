"""The command that sends the approved targets of a book to a venue, and the one that shows what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...errors import DeskError
from ...facts.books import MOST_NAMED
from ...facts.orders import describe_status, read_session, tell_session
from ...facts.standing import DEFAULT_WORKSPACE, workspace_option
from ...figures import count, currency, number, plural
from ..console import make_text, print_object, print_plain, stderr_console, stdout_console
from ..options import (
    AsJson,
    CampaignFile,
    DataOptions,
    PanelFile,
    SectorsFile,
    Workspace,
    check_file_exists,
    signer_name,
)
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....campaign import SessionPlan, SessionRun, SessionWatch
    from ....execution import OrderState
    from ....execution.schedule import Algorithm
    from ....ledger import Ledger

BookName = Annotated[str, typer.Argument(metavar="BOOK", help="The book's name.")]
Schedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        metavar="market|twap|vwap|pov|is",
        help="How each order is cut: one market order at the opening, even slices, the usual volume, the largest "
        "share of the volume, or least cost and risk (implementation shortfall).",
    ),
]
MOST_SHOWN = 30
"""Orders that the terminal shows; `--json` has all."""
VENUES = ("paper", "nautilus", "fix")
BENCHMARK_TEXTS = {
    "twap": "the market's mean price over time",
    "vwap": "the market's mean price by volume",
}


def execute(
    name: BookName,
    venue: Annotated[str, typer.Option("--venue", metavar="paper|nautilus|fix", help="Where the orders go.")] = "paper",
    schedule: Schedule = "market",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the orders; nothing is sent or recorded.")] = False,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    lot: Annotated[int, typer.Option("--lot", min=1, metavar="SHARES", help="Shares of a lot.")] = 1,
    locates: Annotated[
        Path | None,
        typer.Option(
            "--locates",
            metavar="FILE",
            callback=check_file_exists,
            help="Shares that a lender has promised, a table: symbol, shares. Other shorts may not grow.",
        ),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Send what the last step of a book approved to a venue, as whole-share orders for the book's next session.

    Each order meets the halt file and the order gate, is recorded, and is then sent. A command that was cut short goes
    on, and sends nothing twice. The venue paper fills at the session's opening prices, nautilus does so in
    NautilusTrader's simulated exchange once a second process has made the decision again; for both the panel must have
    the session's day. The venue fix is the FIX session of execution.yaml. The next alphaloom book step takes the fills
    in.

    A schedule cuts each order into slices by schedule in execution.yaml. On paper it trades a simulated session of each
    name, pinned to the day's open, high, low, close and volume, in which our own orders move the price.
    """
    from ....campaign import PlanRequest, execute_session, preview_session
    from ....execution.schedule import ALGORITHMS

    if venue not in VENUES:
        raise DeskError("There is no such venue.", field="--venue", got=venue, allowed=", ".join(VENUES))
    if schedule not in ALGORITHMS:
        raise DeskError("There is no such schedule.", field="--schedule", got=schedule, allowed=", ".join(ALGORITHMS))
    request = PlanRequest(venue, lot, _read_locates(locates), cast("Algorithm", schedule))
    now = datetime.now(UTC)
    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        data = _read_data(ledger, name, DataOptions(campaign, panel, sectors, None, workspace))
        if dry_run:
            _tell_preview(name, preview_session(ledger, name, data, request, now), as_json=as_json)
            return
        with _watch(name, as_json=as_json) as watch:
            run = execute_session(ledger, name, data, request, now, watch)
    facts = tell_session(name, run.plan.close.session.isoformat(), run.orders)
    if as_json:
        print_object(facts)
    else:
        _print_result(facts, workspace_option(workspace))
    if run.orders.done is None:
        raise typer.Exit(1)


def orders(
    name: BookName,
    session: Annotated[
        datetime | None,
        typer.Option("--session", formats=["%Y-%m-%d"], help="The day of the orders; the last one by default."),
    ] = None,
    cancel: Annotated[
        str, typer.Option("--cancel", metavar="ID|all", help="Ask for the end of one order, or of all.")
    ] = "",
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who asks for it; your login by default.")
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show the orders of a book: what is open, filled, refused with the rule, or cancelled, and what it cost.

    A request to cancel is recorded. The running alphaloom execute obeys it, or else the next one, also while trading
    is halted.
    """
    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        shown = read_session(ledger, name, session.date().isoformat() if session else "")
        facts = shown.facts
        if cancel:
            person = signer_name(by, ledger.workspace, "risk:approve")
            facts["cancel_is_new"] = shown.cancel(cancel, person, datetime.now(UTC).isoformat())
    if as_json:
        print_object(facts)
        return
    if cancel:
        print_plain(f"Recorded: {cancel} is to end. The running alphaloom execute obeys, or the next one.")
    print_plain(f"{name}, orders for {facts['session']} decided on {facts['decided_on']}: {_count_states(facts)}.")
    _print_orders(facts)
    _print_result(facts, workspace_option(workspace))


def _read_data(ledger: Ledger, name: str, place: DataOptions) -> Any:
    """Return the panel on which a book is executed."""
    from ....campaign import BookData, find_book
    from ..targets import find_settings

    settings = find_settings(ledger, find_book(ledger, name)[1].run, place)
    panel, dataset = settings.market.open(settings.seed)
    return BookData(panel, dataset)


def _read_locates(file: Path | None) -> dict[str, int] | None:
    if file is None:
        return None
    from ..book.positions import read_positions

    return {symbol: max(int(shares), 0) for symbol, shares in read_positions(file).items()}


@contextmanager
def _watch(name: str, *, as_json: bool) -> Iterator[SessionWatch]:
    """Yield what is called while orders are sent: on a terminal one line for each state of orders, kept up to date."""
    from ....campaign import SessionWatch

    def say(plan: SessionPlan) -> None:
        if not as_json:
            print_plain(_describe_plan(name, plan))

    console = stderr_console()
    if as_json or not console.is_terminal or console.is_dumb_terminal:
        yield SessionWatch(planned=say)
        return
    from rich.live import Live

    states: dict[str, str] = {}

    def tell(state: OrderState) -> None:
        states[state.order.id] = describe_status(state)
        counts = Counter(states.values())
        live.update(make_text("\n".join(f"{count(found):>7} {status}" for status, found in counts.items())))

    with Live(console=console, refresh_per_second=8, transient=True) as live:
        yield SessionWatch(planned=say, told=tell)


def _describe_plan(name: str, plan: SessionPlan) -> str:
    """Return the orders of a session in one line."""
    value = sum(abs(one.shares) * one.arrival_e4 for one in plan.parents) / 1e4
    buys = sum(one.shares > 0 for one in plan.parents)
    cost = plan.expected_cost_e4 / 1e4
    slices = f" in {count(len(plan.children))} slices ({plan.request.schedule})"
    return (
        f"{name}, session {plan.close.session}: {plural(len(plan.parents), 'order')} ({count(buys)} to buy)"
        f"{slices if plan.request.schedule != 'market' else ''}, "
        f"{currency(value)} at the last prices; the book's costs {currency(cost)} "
        f"({number(plan.close.settings.bps_per_side, 1)} bp) on {plan.request.venue}.{_describe_expected(plan)}"
    )


def _describe_expected(plan: SessionPlan) -> str:
    """Return what the cost model expects of spread and impact, with what it was asked with."""
    expected_e4, deviation_e4, value_e4 = plan.expected_slippage
    if not value_e4:
        return ""
    slices, at_e4 = plan.settings.slices, 1e-4
    risk = _describe_deviation(deviation_e4 * at_e4)
    volatilities = [one for cut in plan.cuts.values() if cut.expected and (one := cut.past.volatility_bp)]
    return (
        f"\nExpected spread and impact by the model of Almgren and others (2005): {currency(expected_e4 * at_e4)} "
        f"({number(expected_e4 / value_e4 * 1e4, 1)} bp){risk}. It takes half a spread of "
        f"{number(plan.settings.half_spread_bp, 1)} bp, daily volatilities of {number(min(volatilities), 0)} to "
        f"{number(max(volatilities), 0)} bp (60 days) and the usual volume (20 days) over {plural(slices, 'slice')} of "
        "the day. Their U shape is assumed: daily data do not show it."
    )


def _describe_deviation(deviation: float) -> str:
    """Return by how much the cost may differ because prices move while the slices wait; empty where none waits."""
    return f", standard deviation {currency(deviation)} from price moves" if round(deviation, 2) else ""


def _tell_preview(name: str, run: SessionRun, *, as_json: bool) -> None:
    """Show what would be sent."""
    from ....execution import OrderState, SessionOrders

    session = SessionOrders(run.plan.record())
    for order, ruling in zip(run.plan.children, run.preview, strict=True):
        if not ruling.passed:
            session.take_order(OrderState(order, ruling.record(), order.at_us))
    facts = tell_session(name, run.plan.close.session.isoformat(), session)
    facts["status"] = "dry run"
    if as_json:
        print_object(facts)
        return
    print_plain(_describe_plan(name, run.plan))
    _print_orders(facts)
    print_plain("A dry run: nothing was sent or recorded.")


def _count_states(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{count(found)} {status}" for status, found in facts["by_status"].items()) or "none"


def _print_orders(facts: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in (
        "id",
        "symbol",
        "side",
        "shares",
        "arrival",
        "status",
        "filled",
        "price",
        "slippage bp",
        "expected bp",
        "",
    ):
        left = head in ("id", "symbol", "side", "status", "")
        table.add_column(head, justify="left" if left else "right")
    for row in facts["orders"][:MOST_SHOWN]:
        price, slippage = row["price"], row["slippage_bp"]
        rules = ", ".join(_describe_rule(one) for one in row["refusals"])
        cells = [
            row["id"],
            row["asset"],
            row["side"],
            count(row["shares"]),
            number(row["arrival"], 4),
            row["status"],
            count(row["filled"]),
            "" if price is None else number(price, 4),
            "" if slippage is None else number(slippage, 1, sign=True),
            "" if row["expected_bp"] is None else number(row["expected_bp"], 1, sign=True),
            rules or row["reason"],
        ]
        table.add_row(*map(make_text, cells))
    if facts["orders"]:
        stdout_console().print(table)
    if len(facts["orders"]) > MOST_SHOWN:
        print_plain(f"And {plural(len(facts['orders']) - MOST_SHOWN, 'order')} more: --json has all.")
    for why in dict.fromkeys(row["why"] for row in facts["left_out"]):
        names = [
            f"{count(abs(row['shares']))} of {row['asset']}" if row["shares"] else row["asset"]
            for row in facts["left_out"]
            if row["why"] == why
        ]
        more = f" and {count(len(names) - MOST_NAMED)} more" if len(names) > MOST_NAMED else ""
        print_plain(f"Not ordered, since {why}: {', '.join(names[:MOST_NAMED])}{more}.")


def _describe_rule(refusal: Mapping[str, Any]) -> str:
    if refusal["limit"] is None:
        return f"{refusal['rule']} {count(refusal['times'])} times" if refusal["times"] > 1 else str(refusal["rule"])
    return f"{refusal['rule']} {refusal['actual']} (limit {refusal['limit']})"


def _print_benchmark(facts: Mapping[str, Any]) -> None:
    """Print the fills against what the schedule aims at, and what the shares cost that were not filled."""
    aim = BENCHMARK_TEXTS.get(facts["benchmark"] or "")
    if facts["expected_value"]:
        print_plain(
            f"Spread and impact were expected to cost {currency(facts['expected_slippage'])} for all orders"
            f"{_describe_deviation(facts['expected_slippage_sd'])}."
        )
    if aim and facts["against_benchmark"] is None:
        print_plain(f"Against {aim}: not known, the venue shows no trades of others.")
    elif aim:
        print_plain(
            f"Against {aim}: {currency(facts['against_benchmark'], sign=True)} "
            f"({number(facts['against_benchmark_bp'], 1, sign=True)} bp)."
        )
    if facts["unfilled"]:
        moved = facts["missed"]
        value = "" if moved is None else f"; from arrival to the close they lost {currency(moved, sign=True)}"
        print_plain(f"Not filled: {plural(facts['unfilled'], 'share')}{value}.")


def _print_result(facts: Mapping[str, Any], place: str) -> None:
    """Print what became of the orders, and what to do next; `place` is the option that names the workspace."""
    print_plain(f"{facts['session']}: {_count_states(facts)}.")
    if facts["filled_value"]:
        slippage_bp = number(facts["slippage_bp"], 1, sign=True)
        print_plain(
            f"Filled {currency(facts['filled_value'])} at arrival prices. Slippage against arrival "
            f"{currency(facts['slippage'], sign=True)} ({slippage_bp} bp; above 0 is a loss), "
            f"costs {currency(facts['costs'])} ({number(facts['costs_bp'], 1)} bp; expected "
            f"{currency(facts['expected_cost'])} for all orders)."
        )
        _print_benchmark(facts)
    refused = Counter[str]()
    for rule in (rule for row in facts["orders"] for rule in row["refusals"]):
        refused[rule["rule"]] += rule["times"]
    if refused:
        print_plain(f"Refused by: {', '.join(f'{rule} {found}' for rule, found in refused.items())}.")
    for one in facts["breaks"][:MOST_SHOWN]:
        print_plain(f"Drop copy: {one['kind']}: order {one['order']}, execution {one['exec_id']}.")
    name = facts["book"]
    if facts["status"] == "done":
        print_plain(f"All ended. The book takes the fills in at its next step: alphaloom book step {name}{place}")
    elif facts["status"] == "halted":
        halt = facts["halts"][-1]
        who = halt["by"] or "nobody known"
        print_plain(
            f"HALTED by {who}: {halt['reason']}. The same command goes on after: alphaloom kill --release{place}"
        )
    else:
        print_plain(f"Not all ended: alphaloom execute {name}{place} goes on with them.")
