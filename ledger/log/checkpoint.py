"""Checkpoints: what a log says of itself at one moment, and the rules by which a reader believes it.

The text of a checkpoint is the log's name, its number of leaves and its root, each on a line (C2SP tlog-checkpoint);
further lines are extensions, which are signed and not read here. A policy lists the logs and witnesses that a reader
trusts, and how many witnesses must have signed (C2SP tlog-policy).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from .note import KIND_LOG, KIND_ML_DSA, KIND_WITNESS, NoteError, VerifierKey, decode_base64, has_control_characters
from .tree import HASH_SIZE

NO_QUORUM = "none"


@dataclass(frozen=True)
class Checkpoint:
    """The name of a log, its number of leaves and its root."""

    origin: str
    size: int
    root: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of a checkpoint; `NoteError` if it is none."""
        *lines, end = text.split("\n")
        root = decode_base64(lines[2]) if len(lines) >= 3 else None
        is_whole = not end and all(lines) and not has_control_characters(text)
        if root is None or len(root) != HASH_SIZE or not is_whole or not is_decimal(lines[1]):
            raise NoteError("this is no checkpoint: it must be a name, a number of leaves and a root, each on a line")
        return cls(lines[0], int(lines[1]), root)

    def __str__(self) -> str:
        """Return the text that is signed, without extensions."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"


def is_decimal(text: str) -> bool:
    """Return whether a text is a whole number from 0 on of at most 20 digits, without leading zeros."""
    return re.fullmatch(r"0|[1-9][0-9]{0,19}", text) is not None


@dataclass(frozen=True)
class CheckpointPolicy:
    """Which logs and witnesses a reader trusts, and how many witnesses must have signed a checkpoint.

    Attributes
    ----------
    logs : tuple of VerifierKey
        Keys of logs; one of them must have signed a checkpoint of its own name. Of a log with an Ed25519 and an
        ML-DSA-44 key, both must have.
    witnesses : mapping of str to VerifierKey
        Keys of witnesses, under the names that the policy gives them.
    groups : mapping of str to (int, tuple of str)
        How many of which witnesses or groups must have signed.
    quorum : str
        The witness or group that decides; "none" asks for no witness.
    """

    logs: tuple[VerifierKey, ...]
    witnesses: Mapping[str, VerifierKey]
    groups: Mapping[str, tuple[int, tuple[str, ...]]]
    quorum: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a policy.

        Raises
        ------
        NoteError
            With the number of the first line that cannot be read.
        """
        logs: list[VerifierKey] = []
        witnesses: dict[str, VerifierKey] = {}
        groups: dict[str, tuple[int, tuple[str, ...]]] = {}
        quorum = ""
        grouped: set[str] = set()
        for number, line in enumerate(text.split("\n"), start=1):
            match [word for word in re.split("[ \t]+", line) if word]:
                case []:
                    continue
                case [comment, *_] if comment.startswith("#"):
                    continue
                case ["log", vkey] | ["log", vkey, _] if (key := _read_key(vkey, KIND_LOG)) and key not in logs:
                    logs.append(key)
                case ["witness", name, vkey] | ["witness", name, vkey, _] if name not in {
                    NO_QUORUM,
                    *witnesses,
                    *groups,
                } and (key := _read_witness(vkey, witnesses)):
                    witnesses[name] = key
                case ["group", name, least, *members] if (
                    name not in {NO_QUORUM, *witnesses, *groups}
                    and (count := _read_threshold(least, members))
                    and {*members} <= {*witnesses, *groups}
                    and not grouped & {*members}
                ):
                    grouped |= {*members}
                    groups[name] = count, tuple(members)
                case ["quorum", name] if not quorum and name in {NO_QUORUM, *witnesses, *groups}:
                    quorum = name
                case _:
                    raise _make_policy_error(number, line)
        if not quorum:
            raise _make_policy_error(text.count("\n") + 1, "there is no line `quorum NAME`")
        return cls(tuple(logs), witnesses, groups, quorum)

    def accepts(self, signed: Mapping[VerifierKey, datetime | None], origin: str) -> bool:
        """Return whether these signatures are those of the log with this name and of enough witnesses.

        The log must have signed by one key of each kind that the policy lists of it.
        """
        own = [key for key in self.logs if key.name == origin]
        asked, given = ({key.kind for key in keys} for keys in (own, [key for key in own if key in signed]))
        return bool(asked) and asked == given and self._has_seen(self.quorum, signed)

    def _has_seen(self, name: str, signed: Mapping[VerifierKey, datetime | None]) -> bool:
        if name in self.witnesses:
            return self.witnesses[name] in signed
        if name == NO_QUORUM:
            return True
        least, members = self.groups[name]
        return sum(self._has_seen(member, signed) for member in members) >= least


def _read_key(vkey: str, kind: int) -> VerifierKey | None:
    try:
        key = VerifierKey.parse(vkey)
    except NoteError:
        return None
    return key if key.kind in (kind, KIND_ML_DSA) else None


def _read_witness(vkey: str, known: Mapping[str, VerifierKey]) -> VerifierKey | None:
    """Return the key of a witness; None if another name has it: it would count twice."""
    key = _read_key(vkey, KIND_WITNESS)
    return key if key and all(key.public != other.public for other in known.values()) else None


def _read_threshold(least: str, members: list[str]) -> int:
    """Return how many members must sign; 0 if it cannot be."""
    count = {"any": 1, "all": len(members)}.get(least) or (int(least) if is_decimal(least) else 0)
    return count if count <= len(members) == len(set(members)) else 0


def _make_policy_error(number: int, line: str) -> NoteError:
    return NoteError(
        f"the policy cannot be read at line {number}",
        field="--policy",
        got=line.strip(),
        allowed="log VKEY, witness NAME VKEY, group NAME all|any|K NAME..., and one line quorum NAME (or none); "
        "each key under one name, each name in one group",
    )
