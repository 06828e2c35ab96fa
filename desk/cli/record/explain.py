"""The command that explains a decision from the record alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ..console import print_object, print_plain
from ..models.router_file import ConfidentialOption, RemarkFile, RemarkSource
from ..options import AsJson, Workspace

if TYPE_CHECKING:
    from ....ledger.account import DecisionAccount
    from ...remarks import ModelRemark

JURISDICTION = "jurisdiction:"


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A factor or decision, or its start; DECISION/SYMBOL; BOOK/DAY; the number of an opening of sealed "
            "days; FACTOR/NUMBER of a review; TABLE/NUMBER, as `record prove` prints.",
        ),
    ],
    rephrase: Annotated[
        bool, typer.Option("--rephrase", help="Also let the local model of a router.yaml say it in its own words.")
    ] = False,
    router: RemarkFile = None,
    confidential: ConfidentialOption = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say why something was decided: a verdict, a refused or approved signal, an opening of sealed days, a status.

    The account is made by rule from the record, and each sentence names its leaves in the log. It says who answers for
    the decision, and where the record does not. Without --rephrase nothing is written. With it, a model's words stand
    below the account and are marked as a model's; they are withheld where a figure, name, day or verdict is not that of
    the account, a refusal is missing, or a cause was added. The account decides, never the model's words.
    """
    from ....ledger.account import explain_record

    account = explain_record(workspace or DEFAULT_WORKSPACE, name)
    remark = _retell(account, router, workspace, confidential=confidential) if rephrase else None
    if as_json:
        print_object(account.record() | ({"retelling": remark.record()} if remark else {}))
    else:
        _print_account(account, remark)


def _retell(
    account: DecisionAccount, router: Path | None, workspace: Path | None, *, confidential: bool
) -> ModelRemark:
    """Return a model's words for an account; what its runs may not tell others, no other model is told."""
    from ...remarks import MAX_RETOLD_CHARS, ModelRemark, RemarkQuestion

    places = sorted(label.removeprefix(JURISDICTION) for label in account.labels if label.startswith(JURISDICTION))
    own = confidential or "confidential" in account.labels or len(places) > 1
    source = RemarkSource(router, workspace, own, places[0] if places else "")
    if len(account.text) > MAX_RETOLD_CHARS:
        why = f"the account has {len(account.text):,} characters, and at most {MAX_RETOLD_CHARS:,} are retold"
        return ModelRemark(text="", model="", withheld=why)
    (remark,) = source.require("retell", [RemarkQuestion.about_account(account)])
    return remark


def _print_account(account: DecisionAccount, remark: ModelRemark | None) -> None:
    print_plain(f"{account.kind} {account.subject}, by rule from {plural(account.size, 'leaf', 'leaves')}")
    for sentence in account.sentences:
        based = ", ".join(map(str, sentence.leaves))
        print_plain(f"  [{based or 'no leaf'}] {sentence.text}")
    if remark is not None:
        print_plain("")
        print_plain(f"in the words of a model, checked against the account: {remark.line()}")
