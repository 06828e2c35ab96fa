"""Signatures that a quantum computer does not forge: ML-DSA-44 over a checkpoint (C2SP tlog-cosignature, type 0x06).

Such a signature covers the name of its key, a time, and the name, size and root of the log. A log signs with time zero:
it says nothing of when a checkpoint was the newest, as its Ed25519 signature does not either.
"""

from __future__ import annotations

from base64 import b64decode
from types import ModuleType

from ..errors import LedgerError

ML_DSA_PUBLIC_SIZE = 1312
_LABEL = b"subtree/v1\n\0"
_MAX_NAME_BYTES = 255


class SignatureUnavailable(LedgerError):
    """The installed cryptography has no ML-DSA."""

    code = "signature_unavailable"
    exit_code = 1


def spell_checkpoint(signer: str, text: str, seconds: int) -> bytes:
    """Return the bytes that are signed of a checkpoint; `ValueError` if the text is none, or a name is too long."""
    origin, size, root = text.split("\n")[:3]
    names = [signer.encode(), origin.encode()]
    if any(len(name) > _MAX_NAME_BYTES for name in names):
        raise ValueError("a name has more than 255 bytes")
    spelled = [bytes([len(name)]) + name for name in names]
    first, end = (0).to_bytes(8, "big"), int(size).to_bytes(8, "big")
    return b"".join([_LABEL, spelled[0], seconds.to_bytes(8, "big"), spelled[1], first, end, b64decode(root)])


def derive_public(seed: bytes) -> bytes:
    """Return the public key of a seed of 32 bytes."""
    return bytes(_load().MLDSA44PrivateKey.from_seed_bytes(seed).public_key().public_bytes_raw())


def sign_message(seed: bytes, message: bytes) -> bytes:
    """Return a signature of 2,420 bytes; it is another one each time."""
    return bytes(_load().MLDSA44PrivateKey.from_seed_bytes(seed).sign(message))


def check_signature(public: bytes, message: bytes, signature: bytes) -> None:
    """Raise cryptography's `InvalidSignature` unless the signature holds."""
    _load().MLDSA44PublicKey.from_public_bytes(public).verify(signature, message)


def _load() -> ModuleType:
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
