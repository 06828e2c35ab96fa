"""Policy agreement: a node trades only under the policy that the configured keys signed.

People sign one text, which names the digests of the risk policy and of the execution policy, a number and a last day.
Each node compares it with its own files before it trades, and refuses where they differ: so all nodes trade under the
same limits, and none under limits that somebody changed on it alone.

The keys that count, and how many of them, stand in `agreement.yaml` in the folder of the node's keys: outside the
workspace, because whoever may edit the limits must not choose who signs them. The signed text is a C2SP signed note
with Ed25519 signatures, as a checkpoint of the record's log is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator

from ..ledger import read_settings
from ..ledger.log import KIND_LOG, KeyFolder, NoteError, SignedNote, SigningKey, VerifierKey, is_key_name, read_log_text
from ..risk import PEOPLE_RULES, POLICY_FILE, Policy, compare_policies, digest_policy, read_policy
from .errors import ExecutionError
from .halt import Halt
from .policy import EXECUTION_FILE, ExecutionPolicy, read_execution_policy

AGREEMENT_FILE: Final = "agreement.yaml"
SIGNED_POLICY_FILE: Final = "policy.signed"
POLICY_KEY: Final = "policy.key"
AGREER: Final = "policy agreement"
SIGN_HINT: Final = "No order is sent. alphaloom risk policy signed says who signed; alphaloom risk policy sign signs."
LOOSER_LIMITS: Final = frozenset({"looser", "both", "gone"})
LOOSER_EXCEPTIONS: Final = frozenset({"looser", "added"})
"""What a change of a limit is called that lets more pass, and one of an exception; see `compare_policies`."""
_HEAD: Final = "alphaloom/policy/v1"
_TEXT: Final = re.compile(
    rf"{re.escape(_HEAD)}\nnumber (0|[1-9][0-9]{{0,17}})\nuntil ([0-9-]{{10}})\n"
    r"risk ([0-9a-f]{64})\nexecution ([0-9a-f]{64})\n"
)


class AgreementRules(BaseModel):
    """Whose signatures a node asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[str, ...] = Field(default=(), description="public keys that count, as NAME+ID+BASE64; none: not asked")
    needed: StrictInt = Field(default=1, ge=1, description="how many different keys must sign")
    number: StrictInt = Field(default=0, ge=0, description="smallest number of a policy: an older one is refused")

    @field_validator("keys")
    @classmethod
    def _read_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is no key, and one key under two names, which would sign twice."""
        try:
            parsed = [VerifierKey.parse(key) for key in keys]
        except NoteError as error:
            raise ValueError(error.message) from None
        if any(key.kind != KIND_LOG for key in parsed):
            raise ValueError("only Ed25519 keys of the kind that signs a log count")
        if len({key.public for key in parsed}) < len(parsed):
            raise ValueError("a key is named twice")
        return keys

    @model_validator(mode="after")
    def _refuse_impossible(self) -> Self:
        """Refuse to ask for more signatures than there are keys."""
        if self.keys and self.needed > len(self.keys):
            raise ValueError(f"needed: {self.needed} of {len(self.keys)} keys cannot sign")
        return self

    @property
    def verifiers(self) -> list[VerifierKey]:
        """Return the keys."""
        return [VerifierKey.parse(key) for key in self.keys]


@dataclass(frozen=True, slots=True)
class SignedPolicy:
    """What is signed: which limits hold, until when.

    Attributes
    ----------
    number
        Greater for each policy that follows another.
    until
        The last day on which it holds: a withdrawn policy ends by itself.
    risk, execution
        SHA-256 of the risk policy and of the execution policy.
    """

    number: int
    until: date
    risk: str
    execution: str

    @classmethod
    def of(cls, policy: Policy, execution: ExecutionPolicy, number: int, until: date) -> Self:
        """Return what is to be signed of two policies."""
        return cls(number, until, digest_policy(policy), execution.digest)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text.

        Raises
        ------
        ExecutionError
            It is none.
        """
        found = _TEXT.fullmatch(text)
        try:
            if found is None:
                raise ValueError(text)
            return cls(int(found[1]), date.fromisoformat(found[2]), found[3], found[4])
        except ValueError:
            raise _refusal("This is no signed policy.", "text", text.partition("\n")[0], _HEAD) from None

    @property
    def text(self) -> str:
        """Return the text that is signed."""
        return (
            f"{_HEAD}\nnumber {self.number}\nuntil {self.until.isoformat()}\nrisk {self.risk}\n"
            f"execution {self.execution}\n"
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """The signed policy under which a node trades now.

    Attributes
    ----------
    signed, signers
        What was signed, and the names of the keys that did.
    policy
        The risk policy of the node, which is the signed one.
    files
        What this rests on: each file's bytes when it was read; None where there was none.
    """

    signed: SignedPolicy
    signers: tuple[str, ...]
    policy: Policy
    files: Mapping[Path, bytes | None]

    def find_change(self) -> Halt | None:
        """Return the halt of a node whose files are no longer those that were agreed on, or None.

        It reads four small files, in 24 us of CPU: little beside the record of an order.
        """
        for file, content in self.files.items():
            if _read_file(file) != content:
                return Halt(f"{file.name} is no longer the file under which trading was agreed on", AGREER)
        return None

    def require_limits(self, limits: Policy) -> None:
        """Refuse what was approved under limits that let more pass than the signed policy does.

        Raises
        ------
        ExecutionError
            With the first such limit.
        """
        for one in compare_policies(limits, self.policy):
            worse = LOOSER_EXCEPTIONS if one.name.startswith("exception ") else LOOSER_LIMITS
            if one.name not in PEOPLE_RULES and one.change in worse:
                raise _refusal(
                    "The targets were approved under laxer limits than the signed ones.",
                    one.name,
                    one.own,
                    "none" if one.other is None else str(one.other),
                    "No order is sent. The next alphaloom book step decides under the signed policy.",
                )


def agree(workspace: Path, keys: KeyFolder, today: date) -> Agreement | None:
    """Return the agreement under which a node may trade; None where its keys' folder asks for none.

    Raises
    ------
    ExecutionError
        There is no agreement: see `read_signed_policy` and `require_agreement`.
    SettingsError
        A policy or `agreement.yaml` has mistakes.
    """
    names = (SIGNED_POLICY_FILE, POLICY_FILE, EXECUTION_FILE)
    files = {file: _read_file(file) for file in (keys.folder / AGREEMENT_FILE, *(workspace / name for name in names))}
    rules = read_agreement(keys)
    if not rules.keys:
        return None
    signed = read_signed_policy(workspace / SIGNED_POLICY_FILE, rules, today)
    policy = read_policy(workspace)
    require_agreement(signed, policy, read_execution_policy(workspace))
    signers = read_signers(workspace / SIGNED_POLICY_FILE, rules)[1]
    return Agreement(signed, tuple(sorted(key.name for key in signers)), policy, files)


def _read_file(file: Path) -> bytes | None:
    """Return the bytes of a file; None where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def read_agreement(keys: KeyFolder) -> AgreementRules:
    """Return whose signatures this node asks for; none where its keys' folder has no `agreement.yaml`.

    Raises
    ------
    SettingsError
        With all mistakes of the file.
    """
    file = keys.folder / AGREEMENT_FILE
    return read_settings(file, AgreementRules) if os.path.lexists(file) else AgreementRules()


def make_signer(keys: KeyFolder, name: str) -> SigningKey:
    """Return the key with which a person signs policies, which is made if it is not there.

    Raises
    ------
    NoteError
        The key cannot be read or made.
    ExecutionError
        The name cannot be that of a key.
    """
    if not is_key_name(name):
        raise ExecutionError(
            "A key needs another name.", field="--by", got=name, allowed="a text without space or plus"
        )
    return SigningKey(name, KIND_LOG, keys.make_seed(POLICY_KEY))


def sign_policy(signed: SignedPolicy, key: SigningKey, note: SignedNote | None = None) -> SignedNote:
    """Return the note with one more signature; `note` is what others signed before.

    Raises
    ------
    ExecutionError
        The others signed another text.
    """
    if note is not None and note.text != signed.text:
        raise _refusal(
            "The others signed another policy.", "note", note.text, "the text of these policies, number and day"
        )
    return (note or SignedNote(signed.text)).with_signatures([key.sign(signed.text)])


def read_signed_policy(file: Path, rules: AgreementRules, today: date) -> SignedPolicy:
    """Return the signed policy of a file, if enough of the configured keys signed it and it still holds.

    Raises
    ------
    ExecutionError
        It is missing or no signed policy, too few keys signed it, its number is too small, or its last day is over.
    """
    note, signers = read_signers(file, rules)
    signed = SignedPolicy.parse(note.text)
    if len(signers) < rules.needed:
        names = ", ".join(sorted(key.name for key in signers)) or "nobody"
        allowed = f"{rules.needed} of {len(rules.keys)} configured keys"
        raise _refusal("Too few of the configured keys signed the policy.", "signatures", names, allowed)
    if signed.number < rules.number:
        raise _refusal("The signed policy is an older one.", "number", signed.number, f"{rules.number} or more")
    if today > signed.until:
        raise _refusal("The signed policy has ended.", "until", signed.until.isoformat(), f"{today} or later")
    return signed


def read_signers(file: Path, rules: AgreementRules) -> tuple[SignedNote, list[VerifierKey]]:
    """Return a signed note, and which of the configured keys signed it.

    Raises
    ------
    ExecutionError
        It cannot be read, is no note, or a signature of a configured key does not hold.
    """
    try:
        note = SignedNote.parse(read_log_text(file))
        return note, [*note.signers(rules.verifiers)]
    except (NoteError, OSError) as error:
        why = error.message if isinstance(error, NoteError) else error.strerror
        raise _refusal(f"The signed policy cannot be used: {why}.", "file", str(file), "a signed policy") from None


def require_agreement(signed: SignedPolicy, policy: Policy, execution: ExecutionPolicy) -> None:
    """Refuse to trade where this node's policies differ from the signed ones.

    Raises
    ------
    ExecutionError
        The first of the two digests that differs.
    """
    own: Sequence[tuple[str, str, str]] = (
        ("risk", digest_policy(policy), signed.risk),
        ("execution", execution.digest, signed.execution),
    )
    for field, found, allowed in own:
        if found != allowed:
            raise _refusal(f"The {field} policy of this machine is not the signed one.", field, found, allowed)


def _refusal(message: str, field: str, got: object, allowed: str, hint: str = SIGN_HINT) -> ExecutionError:
    return ExecutionError(
        message,
        field=field,
        got=got,
        allowed=allowed,
        hint=hint,
        code="policy_agreement",
        exit_code=1,
    )
