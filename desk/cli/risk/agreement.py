"""The commands by which people agree on the policies under which a machine trades: keys, signatures, who signed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson, By, Workspace, signer_name
from ..run_lookup import require_folder
from .policy_facts import read_today

if TYPE_CHECKING:
    from ....execution import AgreementRules, SignedPolicy
    from ....ledger.log import KeyFolder, SignedNote, SigningKey, VerifierKey

    SignedParts = tuple[SignedNote | None, SignedPolicy | None, list[VerifierKey]]


def key(by: By = None, as_json: AsJson = False) -> None:
    """Print the public key with which you sign policies; the key is made if it is not there.

    The private half stays in the folder of your keys. The public one goes into agreement.yaml, which stands in the
    folder of the keys of each machine that trades.
    """
    from ....execution import AGREEMENT_FILE, POLICY_KEY, make_signer, read_agreement
    from ....ledger import find_account
    from ....ledger.log import KeyFolder

    keys = KeyFolder.of_user()
    listed = _find_listed(keys, read_agreement(keys))
    signer = make_signer(keys, by if by is not None else listed or find_account())
    if as_json:
        print_object({"name": signer.name, "key": str(signer.verifier), "file": str(keys.folder / POLICY_KEY)})
        return
    print_plain(str(signer.verifier))
    print_plain(f"Machines that ask for it name it under keys in {AGREEMENT_FILE} in the folder of their keys, such as")
    print_plain(f"{keys.folder / AGREEMENT_FILE}. The private key is {keys.folder / POLICY_KEY}.")


def sign(
    until: Annotated[
        datetime | None,
        typer.Option("--until", formats=["%Y-%m-%d"], help="The last day on which it holds; the first signer says it."),
    ] = None,
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Sign the limits of a workspace: policy.yaml and execution.yaml as they are now.

    The first signature begins policy.signed in the workspace, with the next number; those of others are added to it
    while neither file changes. Pass that file on to the other signers, and then with both policies to every machine
    that trades.
    """
    from ....execution import SIGNED_POLICY_FILE, make_signer, read_agreement, sign_policy
    from ....ledger.files import write_whole
    from ....ledger.log import KeyFolder

    place, keys = require_folder(workspace or DEFAULT_WORKSPACE), KeyFolder.of_user()
    rules = read_agreement(keys)
    listed = _find_listed(keys, rules)
    name = signer_name(by if by is not None else listed or None, place, "risk:approve")
    if listed and name != listed:
        raise DeskError("This key is listed under another name.", field="--by", got=name, allowed=listed)
    note, signed = _find_text(place, rules, until.date() if until else None)
    signer = make_signer(keys, name)
    write_whole(place / SIGNED_POLICY_FILE, str(sign_policy(signed, signer, note)).encode())
    facts = describe_agreement(place, keys, read_today())
    if as_json:
        print_object({**facts, "signed_by": name})
        return
    print_plain(f"Signed by {name}: policy {signed.number}, until {signed.until}, in {place / SIGNED_POLICY_FILE}.")
    _warn_unlisted(rules, signer)
    _print_agreement(facts)


def signed(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Say who signed the limits of a workspace, whose signature is missing, and whether this machine may trade.

    Whose signatures count stands in agreement.yaml in the folder of this machine's keys. Exit code 1: alphaloom execute
    would refuse.
    """
    from ....ledger.log import KeyFolder

    facts = describe_agreement(require_folder(workspace or DEFAULT_WORKSPACE), KeyFolder.of_user(), read_today())
    if as_json:
        print_object(facts)
    else:
        _print_agreement(facts)
    if facts["refused"]:
        raise typer.Exit(1)


def describe_agreement(workspace: Path, keys: KeyFolder, today: date) -> dict[str, Any]:
    """Return who signed the policies of a workspace, who has not, and why a machine with these keys would not trade."""
    from ....execution import ExecutionError, agree, read_agreement
    from ....ledger.log import VerifierKey

    rules = read_agreement(keys)
    note, text, signers, refused = None, None, list[VerifierKey](), ""
    try:
        note, text, signers = _read_signed(workspace, rules)
        agree(workspace, keys, today)
    except ExecutionError as error:
        refused = f"{error.message} {error.field}: {error.got}; allowed: {error.allowed}."
    return {
        "asked": bool(rules.keys),
        "refused": refused,
        "needed": rules.needed,
        "keys": [{"name": one.name, "key": str(one), "signed": one in signers} for one in rules.verifiers],
        "others": sorted({one.name for one in note.signatures} - {one.name for one in signers}) if note else [],
        "signed": {
            "number": text.number,
            "until": text.until.isoformat(),
            "risk": text.risk,
            "execution": text.execution,
        }
        if text
        else None,
        "own": _digest_own(workspace),
    }


def _digest_own(workspace: Path) -> dict[str, str]:
    """Return the digests of the policies of a workspace."""
    from ....execution import read_execution_policy
    from ....risk import digest_policy, read_policy

    return {"risk": digest_policy(read_policy(workspace)), "execution": read_execution_policy(workspace).digest}


def _read_signed(workspace: Path, rules: AgreementRules) -> SignedParts:
    """Return the signed note of a workspace, its text, and which configured keys signed it; or nothing."""
    from ....execution import SIGNED_POLICY_FILE, SignedPolicy, read_signers

    file = workspace / SIGNED_POLICY_FILE
    if not os.path.lexists(file):
        return None, None, []
    note, signers = read_signers(file, rules)
    return note, SignedPolicy.parse(note.text), signers


def _find_text(workspace: Path, rules: AgreementRules, until: date | None) -> tuple[SignedNote | None, SignedPolicy]:
    """Return what is signed: the text that others signed, where it is of these policies, or a new one."""
    from ....execution import SignedPolicy

    own = _digest_own(workspace)
    note, known, _ = _read_signed(workspace, rules)
    if known and until in (None, known.until) and own == {"risk": known.risk, "execution": known.execution}:
        return note, known
    if until is None:
        raise DeskError(
            "Nobody signed these policies yet, and the first signer says how long they hold.",
            field="--until",
            allowed="a day, such as 2027-06-30",
            code="policy_until",
        )
    return None, SignedPolicy(max(known.number + 1 if known else 1, rules.number), until, own["risk"], own["execution"])


def _find_listed(keys: KeyFolder, rules: AgreementRules) -> str:
    """Return the name under which this desk's own key is configured; empty where it is not."""
    from ....execution import POLICY_KEY, make_signer

    if keys.find_seed(POLICY_KEY) is None:
        return ""
    public = make_signer(keys, "own").verifier.public
    return next((one.name for one in rules.verifiers if one.public == public), "")


def _warn_unlisted(rules: AgreementRules, signer: SigningKey) -> None:
    if rules.keys and signer.verifier not in rules.verifiers:
        print_plain(f"It does not count on this machine: {signer.verifier} is not among the keys of agreement.yaml.")


def _print_agreement(facts: Mapping[str, Any]) -> None:
    found = facts["signed"]
    if found:
        print_plain(f"policy.signed: number {found['number']}, until {found['until']}.")
        for name in ("risk", "execution"):
            own = facts["own"][name]
            same = "this machine's" if found[name] == own else f"NOT this machine's, {own[:16]}"
            print_plain(f"{name} policy {found[name][:16]}: {same}.")
    else:
        print_plain("Nobody has signed: there is no policy.signed.")
    for one in facts["keys"]:
        print_plain(f"{'signed' if one['signed'] else 'MISSING'}: {one['name']}")
    if facts["others"]:
        print_plain(f"Signed by keys that are not in agreement.yaml, and not verified: {', '.join(facts['others'])}.")
    if not facts["asked"]:
        print_plain("This machine asks for no signatures: the folder of its keys has no agreement.yaml.")
    elif facts["refused"]:
        print_plain(f"alphaloom execute refuses: {facts['refused']} Needed: {facts['needed']} of {len(facts['keys'])}.")
    else:
        print_plain(f"Agreed: {facts['needed']} of {len(facts['keys'])} are needed. This machine may trade under it.")
