"""The command by which a person reads the cases of a run that wait for approval, and decides on them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...blind import FIRST_JUDGEMENTS, BlindJudgement, must_judge, parse_judgement, record_judgement
from ...decisions import CaseLine, CaseRequest, decide_case, find_case, list_cases, tell_decision
from ...facts.standing import RunStanding, workspace_option
from ...figures import number, plural
from ..console import print_object, print_plain, stdout_console
from ..options import AsJson, By, RunName, Workspace, signer_name
from .status import open_run

if TYPE_CHECKING:
    from pathlib import Path

    from ....evaluation import ReviewChoice, Reviews
    from ....ledger import Ledger, Run


REVIEW_FOLDER = "review"


def review(
    run: RunName,
    factor: Annotated[str | None, typer.Argument(metavar="ID", help="A case's id, or the start of one.")] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Accept it.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Do not accept it.")] = False,
    ask: Annotated[
        str | None, typer.Option("--ask", metavar="TEXT", help="Send its hypothesis back to the agents, with this.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take your decision back, until the run is resumed.")] = False,
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="WORD", help="approve, reject or unsure, before the verdict is shown."),
    ] = None,
    probability: Annotated[
        int | None, typer.Option("--probability", metavar="PERCENT", help="That it holds on days nobody has seen.")
    ] = None,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXT", help="Why; the agents read it word for word.")
    ] = "",
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """List what passed the gate and waits for a person, show one case, or decide on it; then go on with resume.

    With judge_blind in policy.yaml a case is shown without the gate's verdict until you have given --judge and
    --probability.
    """
    choice, words = _parse_choice({"approve": approve, "reject": reject, "undo": undo}, ask=ask, comment=comment)
    if probability is not None and judge is None:
        raise _make_usage_error("a probability needs a judgement", field="--probability", allowed="with --judge")
    with open_run(run, workspace) as (ledger, row):
        from ....evaluation import Reviews

        reviews = Reviews.of(ledger, row)
        if factor is None:
            if choice or judge is not None:
                raise _make_usage_error("a decision needs the ID of a case", field="ID", allowed=reviews.waiting())
            _print_cases(list_cases(reviews), row, workspace, as_json=as_json)
            return
        name = find_case(reviews, factor)
        person = _find_person(reviews, by, acts=bool(choice or judge is not None))
        if judge is not None:
            _judge(reviews, name, (judge, probability), person)
        if choice is not None:
            record = _decide(ledger, row, name, choice, (words, person))
            _print_decision(record, workspace, as_json=as_json)
        elif person and must_judge(reviews, name, person):
            _print_blind_page(reviews, name, workspace, as_json=as_json)
        else:
            _print_case_page(ledger, row, reviews, name, workspace, as_json=as_json)


def _find_person(reviews: Reviews, by: str | None, *, acts: bool) -> str:
    """Return who acts, or who looks where a look depends on the person; else nobody."""
    from ....risk import read_policy

    workspace = reviews.ledger.workspace
    return signer_name(by, workspace, "review:decide") if acts or read_policy(workspace).judge_blind else ""


def _judge(reviews: Reviews, case: str, judged: tuple[str, int | None], person: str) -> None:
    """Record a first judgement, after which the verdict is shown."""
    choice = parse_judgement(judged[0], "" if judged[1] is None else judged[1])
    at = datetime.now(UTC).isoformat(timespec="seconds")
    record_judgement(reviews, BlindJudgement(case, *choice, person, at))


def _print_blind_page(reviews: Reviews, name: str, workspace: Path | None, *, as_json: bool) -> None:
    """Write the page of a case without its verdict, and print it with the page's path."""
    from ....ledger.files import make_folder, write_whole
    from ...report.case_page import load_blind_page, print_blind, render_blind

    page = load_blind_page(reviews, name)
    path = reviews.ledger.runs.folder(reviews.run) / REVIEW_FOLDER / f"{name}.blind.html"
    make_folder(path.parent)
    write_whole(path, render_blind(page).encode())
    place = str(path.resolve())
    if as_json:
        print_object({**asdict(page), "judge": FIRST_JUDGEMENTS, "page": place})
        return
    print_blind(page)
    print_plain("The page, with curves of search days:")
    print_plain(place)
    words = f"alphaloom review {reviews.run} {name}{workspace_option(workspace)}"
    print_plain(f"Your first judgement: {words} --judge {'|'.join(FIRST_JUDGEMENTS)} --probability PERCENT")


def _parse_choice(flags: dict[ReviewChoice, bool], *, ask: str | None, comment: str) -> tuple[ReviewChoice | None, str]:
    """Return the decision, if any, and the comment."""
    options = {**flags, "ask": ask is not None}
    choices = [choice for choice, is_given in options.items() if is_given]
    if len(choices) > 1:
        raise _make_usage_error(
            "one decision at a time", field="--" + choices[-1], allowed="--approve, --reject, --ask or --undo"
        )
    words = [text.strip() for text in (ask or "", comment) if text.strip()]
    if words and not choices:
        raise _make_usage_error(
            "a comment needs a decision", field="--comment", allowed="with --approve, --reject or --ask"
        )
    return (choices[0] if choices else None), "\n".join(words)


def _make_usage_error(message: str, *, field: str, allowed: object) -> Exception:
    from ...errors import DeskError

    return DeskError(message, field=field, allowed=allowed, code="decision")


def _print_cases(rows: list[CaseLine], run: Run, workspace: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_object({"run": run.id, "cases": [asdict(case) for case in rows]})
        return
    from rich.text import Text

    from ...formula_views import summarise_formula
    from .log import flatten_lines

    waiting = sum(case.waits for case in rows)
    console = stdout_console()
    print_plain(f"{run.id}: {plural(waiting, 'case')} to decide, {len(rows) - waiting} decided")
    for case in rows:
        decision = case.decision
        word = f"{decision['by']}: {decision['decision']}" if decision else "awaiting approval"
        word += f" (approved by {', '.join(case.approved_by)})" if case.approved_by else ""
        head = f"  {case.id}  {word}  t {number(case.t, 1, sign=True)} on search  "
        console.print(Text(head + summarise_formula(case.text)), soft_wrap=True)
        if decision and decision["comment"]:
            console.print(Text(f"    {flatten_lines(decision['comment'])}", style="dim"), soft_wrap=True)
    if waiting:
        command = f"alphaloom review {run.id} ID{workspace_option(workspace)}"
        print_plain(f"Read one: {command}; then --approve, --reject or --ask TEXT, and resume.")


def _print_case_page(
    ledger: Ledger, run: Run, reviews: Reviews, name: str, workspace: Path | None, *, as_json: bool
) -> None:
    """Write the page of a case, and print the case and the page's path."""
    from ....ledger.files import make_folder, write_whole
    from ...report.case_page import load_case_page, render_case

    record, page = load_case_page(reviews, name, workspace_option(workspace))
    decision = reviews.decision(name)
    path = ledger.runs.folder(run.id) / REVIEW_FOLDER / f"{name}.html"
    make_folder(path.parent)
    write_whole(path, render_case(page).encode())
    place = str(path.resolve())
    if as_json:
        facts = {"run": run.id, **record, "decision": decision.record() | {"at": decision.at} if decision else None}
        print_object({**facts, "page": place})
        return
    from ...report.case_page import print_case

    print_case(page)
    print_plain("The page, with curves:")
    print_plain(place)


def _decide(ledger: Ledger, run: Run, case: str, choice: ReviewChoice, words: tuple[str, str]) -> dict[str, Any]:
    """Record a decision, and return it as JSON."""
    from ....evaluation import Reviews

    comment, name = words
    at = datetime.now(UTC).isoformat(timespec="seconds")
    decision = decide_case(ledger, run, CaseRequest(case, choice, comment, name, at))
    facts = tell_decision(Reviews.of(ledger, run), decision)
    return facts | ({"goes_back": _has_budget_left(ledger, run)} if choice == "ask" else {})


def _has_budget_left(ledger: Ledger, run: Run) -> bool:
    """Return whether the budget still allows scoring a changed factor and testing it."""
    standing = RunStanding.of(ledger, run)
    budget = standing.budget
    return bool(standing.counts.scored < budget["evaluations"] and standing.trials < budget["trials"])


def _print_decision(facts: dict[str, Any], workspace: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_object(facts)
        return
    waiting = len(facts["waiting"])
    go_on = f"all is decided; next: alphaloom resume {facts['run']}{workspace_option(workspace)}"
    after = f"{plural(waiting, 'case')} still to decide" if waiting else go_on
    after = f"{facts['approvals']}, another person is needed; {after}" if facts["approvals"] else after
    print_plain(f"{facts['id']}: {facts['decision']} by {facts['by']}; {after}")
    if not facts.get("goes_back", True):
        print_plain("No evaluations or trials are left, so no round will take the change up; the comment is kept.")
