"""Signed notes and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature): Ed25519, and ML-DSA-44 beside it.

A note is a text, an empty line, and signature lines `— NAME BASE64`, where the base64 holds a key id of 4 bytes and the
signature. A signature of a log covers the text; one of a witness covers the time at which it saw the text, too. One by
ML-DSA-44, which a quantum computer does not forge, covers the names of key and log, the size, the root and a time,
which is zero for a log.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Self

from ..errors import LedgerError
from ..files.given_file import read_given

KIND_LOG, KIND_WITNESS, KIND_ML_DSA = 0x01, 0x04, 0x06
"""Types of signature: Ed25519 of a log, Ed25519 of a witness with a time, and ML-DSA-44 of either."""
SEED_SIZE, PUBLIC_SIZE, ML_DSA_PUBLIC_SIZE, TIME_SIZE = 32, 32, 1312, 8
PUBLIC_SIZES = {KIND_LOG: PUBLIC_SIZE, KIND_WITNESS: PUBLIC_SIZE, KIND_ML_DSA: ML_DSA_PUBLIC_SIZE}
MAX_TEXT_BYTES = 1 << 20
_DASH = "— "
_SUBTREE_LABEL = b"subtree/v1\n\0"
_MAX_NAME_BYTES = 255


class NoteError(LedgerError):
    """A note, a key or a proof is not in the format of its specification, or its signature does not hold."""

    code = "signed_note"
    exit_code = 1


class SignatureUnavailable(LedgerError):
    """The installed cryptography has no ML-DSA."""

    code = "signature_unavailable"
    exit_code = 1


@dataclass(frozen=True)
class VerifierKey:
    """A public key under a name, spelled `NAME+ID+BASE64`."""

    name: str
    kind: int
    public: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the spelling of a key.

        Raises
        ------
        NoteError
            If it is none, its id is wrong, or it is neither a log's nor a witness's key.
        """
        name, _, rest = text.strip().partition("+")
        _id, _, encoded = rest.partition("+")
        raw = decode_base64(encoded) or b"\x00"
        key = cls(name, raw[0], raw[1:])
        is_known = PUBLIC_SIZES.get(key.kind) == len(key.public)
        if not is_known or not is_key_name(name) or str(key) != text.strip():
            raise NoteError(
                "this is no public key of a log or a witness",
                got=text.strip(),
                allowed="NAME+ID+BASE64, Ed25519 or ML-DSA-44, as `alphaloom record export` writes into the file vkey",
            )
        return key

    @property
    def id(self) -> bytes:
        """The first 4 bytes of the hash of name, kind and key."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.kind]) + self.public).digest()[:4]

    def __str__(self) -> str:
        """Return the spelling."""
        return f"{self.name}+{self.id.hex()}+{b64encode(bytes([self.kind]) + self.public).decode()}"

    def seen_at(self, text: str, signature: bytes) -> datetime | None:
        """Check a signature of a text; return the time that a witness signed, None for a log's.

        An ML-DSA signature with time zero is one of a log.

        Raises
        ------
        NoteError
            If the signature does not hold.
        """
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        seconds, at = 0, None
        if self.kind != KIND_LOG:
            seconds, signature = int.from_bytes(signature[:TIME_SIZE], "big"), signature[TIME_SIZE:]
        try:
            at = datetime.fromtimestamp(seconds, UTC) if seconds or self.kind == KIND_WITNESS else None
            if self.kind == KIND_ML_DSA:
                _check_ml_dsa(self.public, _spell_subtree(self.name, text, seconds), signature)
            else:
                message = _spell_cosigned(text, seconds) if self.kind == KIND_WITNESS else text
                Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message.encode())
        except (InvalidSignature, ValueError, OverflowError, OSError) as error:
            raise NoteError(f"the signature of {self.name} does not hold", field="checkpoint") from error
        return at


@dataclass(frozen=True)
class SigningKey:
    """A private key of 32 bytes under a name; it never appears in a message."""

    name: str
    kind: int
    seed: bytes

    def __repr__(self) -> str:
        """Return the name alone."""
        return f"SigningKey({self.name})"

    @property
    def verifier(self) -> VerifierKey:
        """The public key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if self.kind == KIND_ML_DSA:
            return VerifierKey(self.name, self.kind, derive_public(self.seed))
        return VerifierKey(
            self.name, self.kind, Ed25519PrivateKey.from_private_bytes(self.seed).public_key().public_bytes_raw()
        )

    def sign(self, text: str, at: datetime | None = None) -> Signature:
        """Sign a text; a witness signs the time `at` too, in whole seconds."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key, seconds = self.verifier, int(at.timestamp()) if at else 0
        if self.kind == KIND_ML_DSA:
            signed = _sign_ml_dsa(self.seed, _spell_subtree(self.name, text, seconds))
            return Signature(self.name, key.id, seconds.to_bytes(TIME_SIZE, "big") + signed)
        private = Ed25519PrivateKey.from_private_bytes(self.seed)
        if at is None:
            return Signature(self.name, key.id, private.sign(text.encode()))
        signed = private.sign(_spell_cosigned(text, seconds).encode())
        return Signature(self.name, key.id, seconds.to_bytes(TIME_SIZE, "big") + signed)


@dataclass(frozen=True)
class Signature:
    """One signature line."""

    name: str
    key_id: bytes
    body: bytes

    def __str__(self) -> str:
        """Return the line, without its newline."""
        return f"{_DASH}{self.name} {b64encode(self.key_id + self.body).decode()}"


@dataclass(frozen=True)
class SignedNote:
    """A text that ends with a newline, and its signatures."""

    text: str
    signatures: tuple[Signature, ...] = ()

    @classmethod
    def parse(cls, note: str) -> Self:
        """Read a note; `NoteError` if it is none."""
        text, blank, lines = note.rpartition("\n\n")
        signatures = [_read_signature(line) for line in lines.removesuffix("\n").split("\n")]
        parsed = cls(f"{text}\n", tuple(signature for signature in signatures if signature))
        if not blank or not signatures or str(parsed) != note or has_control_characters(text):
            raise NoteError("this is no signed note", field="checkpoint", hint="It may have been cut or edited.")
        return parsed

    def __str__(self) -> str:
        """Return the note as it is written to a file."""
        return f"{self.text}\n" + "".join(f"{signature}\n" for signature in self.signatures)

    def with_signatures(self, more: Sequence[Signature]) -> SignedNote:
        """Return the note with further signatures; of one key, the last one stays."""
        kept = {(signature.name, signature.key_id): signature for signature in (*self.signatures, *more)}
        return replace(self, signatures=tuple(kept.values()))

    def signers(self, keys: Sequence[VerifierKey]) -> dict[VerifierKey, datetime | None]:
        """Return which of these keys signed, each with the time that a witness signed; unknown keys are ignored.

        Raises
        ------
        NoteError
            If a signature under the name and id of one of these keys does not hold.
        """
        known = {(key.name, key.id): key for key in keys}
        found: dict[VerifierKey, datetime | None] = {}
        for signature in self.signatures:
            if key := known.get((signature.name, signature.key_id)):
                found[key] = key.seen_at(self.text, signature.body)
        return found


def read_log_text(file: Path) -> str:
    """Return the text of a note, a key, a policy or a proof.

    Raises
    ------
    NoteError
        If it is not UTF-8; `OSError` if the file cannot be read.
    """
    try:
        return read_given(file, MAX_TEXT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise NoteError(f"{file} is no text", field=str(file)) from error


def is_key_name(name: str) -> bool:
    """Return whether a text may name a key: it is not empty, and has neither white space nor a plus."""
    return bool(name) and "+" not in name and not any(character.isspace() for character in name)


def has_control_characters(text: str) -> bool:
    """Return whether a text has ASCII control characters besides newlines."""
    return any(character < " " and character != "\n" for character in text)


def decode_base64(text: str) -> bytes | None:
    """Return the bytes of a base64 text; None unless it is their only spelling."""
    try:
        raw = b64decode(text, validate=True)
    except ValueError:
        return None
    return raw if b64encode(raw).decode() == text else None


def _read_signature(line: str) -> Signature | None:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    raw = decode_base64(encoded)
    if not line.startswith(_DASH) or not is_key_name(name) or raw is None or len(raw) <= 4:
        return None
    return Signature(name, raw[:4], raw[4:])


def _spell_cosigned(text: str, seconds: int) -> str:
    return f"cosignature/v1\ntime {seconds}\n{text}"


def _spell_subtree(signer: str, text: str, seconds: int) -> bytes:
    """Return the bytes that are signed of a checkpoint; `ValueError` if the text is none, or a name is too long."""
    origin, size, root = text.split("\n")[:3]
    names = [signer.encode(), origin.encode()]
    if any(len(name) > _MAX_NAME_BYTES for name in names):
        raise ValueError("a name has more than 255 bytes")
    spelled = [bytes([len(name)]) + name for name in names]
    first, end = (0).to_bytes(8, "big"), int(size).to_bytes(8, "big")
    return b"".join([_SUBTREE_LABEL, spelled[0], seconds.to_bytes(8, "big"), spelled[1], first, end, b64decode(root)])


def derive_public(seed: bytes) -> bytes:
    """Return the public key of a seed of 32 bytes."""
    return bytes(_load_ml_dsa().MLDSA44PrivateKey.from_seed_bytes(seed).public_key().public_bytes_raw())


def _sign_ml_dsa(seed: bytes, message: bytes) -> bytes:
    """Return a signature of 2,420 bytes; it is another one each time."""
    return bytes(_load_ml_dsa().MLDSA44PrivateKey.from_seed_bytes(seed).sign(message))


def _check_ml_dsa(public: bytes, message: bytes, signature: bytes) -> None:
    """Raise cryptography's `InvalidSignature` unless the signature holds."""
    _load_ml_dsa().MLDSA44PublicKey.from_public_bytes(public).verify(signature, message)


def _load_ml_dsa() -> ModuleType:
    """Return the module with ML-DSA.

    Raises
    ------
    SignatureUnavailable
        If cryptography is too old, or was built without it.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import mldsa
    except ImportError as error:
        raise SignatureUnavailable(
            "the installed cryptography has no ML-DSA", hint="pip install --upgrade cryptography"
        ) from error
    return mldsa
