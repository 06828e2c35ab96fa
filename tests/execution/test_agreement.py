"""A node trades under the policy that the configured keys signed, and refuses under any other."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from alphaloom.execution import (
    AgreementRules,
    ExecutionError,
    ExecutionPolicy,
    SignedPolicy,
    make_signer,
    read_agreement,
    read_execution_policy,
    read_signed_policy,
    require_agreement,
    sign_policy,
)
from alphaloom.ledger import SettingsError
from alphaloom.ledger.log import KIND_LOG, KeyFolder, SigningKey
from alphaloom.risk import Policy

TODAY = date(2026, 1, 5)
KEYS = [SigningKey(name, KIND_LOG, bytes([place]) * 32) for place, name in enumerate(("ada", "grace", "mary", "eve"))]
TRUSTED = tuple(str(key.verifier) for key in KEYS[:3])
RULES = AgreementRules(keys=TRUSTED, needed=2, number=3)
SIGNED = SignedPolicy.of(Policy(), ExecutionPolicy(), 3, date(2026, 6, 30))


def write(folder: Path, signed: SignedPolicy, *keys: SigningKey) -> Path:
    note = None
    for key in keys:
        note = sign_policy(signed, key, note)
    file = folder / "policy.signed"
    file.write_text(str(note))
    return file


def refusal(file: Path, today: date = TODAY, rules: AgreementRules = RULES) -> str | None:
    with pytest.raises(ExecutionError, check=lambda error: error.code == "policy_agreement") as raised:
        read_signed_policy(file, rules, today)
    return raised.value.field


def test_two_of_three_keys_are_enough(tmp_path: Path) -> None:
    signed = read_signed_policy(write(tmp_path, SIGNED, KEYS[2], KEYS[0]), RULES, date(2026, 6, 30))
    assert signed == SIGNED
    require_agreement(signed, Policy(), ExecutionPolicy())


@pytest.mark.parametrize(
    "signers", [KEYS[:1], [KEYS[0], KEYS[3]], [KEYS[0], KEYS[0]]], ids=["one", "stranger", "twice"]
)
def test_too_few_keys_are_refused(tmp_path: Path, signers: list[SigningKey]) -> None:
    assert refusal(write(tmp_path, SIGNED, *signers)) == "signatures"


def test_an_edited_an_old_and_an_ended_policy_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, SIGNED, *KEYS[:2])
    assert refusal(file, date(2026, 7, 1)) == "until"
    assert refusal(write(tmp_path, replace(SIGNED, number=2), *KEYS[:2])) == "number"
    text = write(tmp_path, SIGNED, *KEYS[:2]).read_text()
    file.write_text(text.replace("number 3", "number 4"))
    assert refusal(file) == "file"
    file.write_text(text.replace("\n\n", "\n"))
    assert refusal(file) == "file"
    assert refusal(tmp_path / "missing") == "file"


def test_a_note_of_something_else_is_no_policy(tmp_path: Path) -> None:
    """A key that also signs a log must not make a policy of a checkpoint."""
    from alphaloom.ledger.log import SignedNote

    note = SignedNote("a.log/x\n3\nAAAA\n")
    file = tmp_path / "note"
    file.write_text(str(note.with_signatures([key.sign(note.text) for key in KEYS[:2]])))
    assert refusal(file) == "text"


@pytest.mark.parametrize(
    ("policy", "execution", "field"),
    [
        (Policy(net_cap_bp=1), ExecutionPolicy(), "risk"),
        (Policy(), ExecutionPolicy.model_validate({"orders": {"collar_bp": 501}}), "execution"),
        (Policy(), ExecutionPolicy.model_validate({"breakers": {"loss_bp": 301}}), "execution"),
        (Policy(), ExecutionPolicy.model_validate({"orders": {"profile": "mission_5x5"}}), "execution"),
    ],
)
def test_a_node_with_other_limits_refuses(policy: Policy, execution: ExecutionPolicy, field: str) -> None:
    with pytest.raises(ExecutionError, check=lambda error: error.field == field):
        require_agreement(SIGNED, policy, execution)


def test_nobody_adds_a_signature_to_another_policy() -> None:
    note = sign_policy(SIGNED, KEYS[0])
    with pytest.raises(ExecutionError, match="another policy"):
        sign_policy(replace(SIGNED, number=4), KEYS[1], note)


@pytest.mark.parametrize(
    "changed",
    [
        {"needed": 4},
        {"keys": [*TRUSTED, str(replace(KEYS[0], name="ada2").verifier)]},
        {"keys": ["no key"]},
        {"keys": [str(SigningKey("w", 4, bytes(32)).verifier)]},
    ],
    ids=["too many", "one key twice", "no key", "a witness"],
)
def test_impossible_rules_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        AgreementRules.model_validate({"keys": TRUSTED, "needed": 2, **changed})


def test_keys_and_files_of_a_node(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    assert read_agreement(keys) == AgreementRules()
    signer = make_signer(keys, "ada")
    assert make_signer(keys, "ada") == signer
    (keys.folder / "agreement.yaml").write_text(f"needed: 1\nkeys: [{signer.verifier}]\n")
    assert read_agreement(keys).verifiers == [signer.verifier]
    assert read_execution_policy(tmp_path) == ExecutionPolicy()
    (tmp_path / "execution.yaml").write_text("orders: {colar_bp: 3}\n")
    with pytest.raises(SettingsError, match="did you mean collar_bp"):
        read_execution_policy(tmp_path)
