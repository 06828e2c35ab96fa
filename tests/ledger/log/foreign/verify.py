"""A verifier that is not ours, run in an environment of its own: `python verify.py aics|scales FOLDER`.

It reads what Alphaloom wrote into the folder (`cases.json`, a log as static files, a proof), verifies all of it, makes
the same proofs itself, and prints what it counted and a checkpoint that it signed.
"""

from __future__ import annotations

import base64
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

SEED = b"f" * 32
ORIGIN, TIME = "foreign.example/log", 1_790_000_000


class Verifier(Protocol):
    """What both packages can do, under one set of names."""

    def root(self, size: int) -> bytes: ...
    def inclusion(self, index: int, size: int) -> list[bytes]: ...
    def consistency(self, old: int, size: int) -> list[bytes]: ...
    def includes(self, leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool: ...
    def continues(self, old: int, size: int, old_root: bytes, root: bytes, proof: list[bytes]) -> bool: ...
    def signed_by(self, note: str, key: str, witness: str) -> bool: ...
    def read(self, folder: Path, note: str) -> int: ...
    def sign(self, size: int, root: bytes) -> dict[str, str]: ...


class Aics:
    """The package aics-tlog: Ed25519 alone."""

    def __init__(self, folder: Path, leaves: list[bytes]) -> None:
        self.tlog = import_module("aics_tlog")
        self.tree = self.tlog.MerkleTree()
        self.tree.extend(leaves)

    def root(self, size: int) -> bytes:
        return bytes(self.tree.root(size))

    def inclusion(self, index: int, size: int) -> list[bytes]:
        return list(self.tree.inclusion_proof(index, size))

    def consistency(self, old: int, size: int) -> list[bytes]:
        return list(self.tree.consistency_proof(old, size))

    def includes(self, leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
        return bool(self.tlog.verify_leaf_inclusion(leaf, index, size, proof, root))

    def continues(self, old: int, size: int, old_root: bytes, root: bytes, proof: list[bytes]) -> bool:
        return bool(self.tlog.verify_consistency(old, size, old_root, root, proof))

    def signed_by(self, note: str, key: str, witness: str) -> bool:
        known = [self.tlog.parse_vkey(witness)] if witness else []
        try:
            parsed, log = self.tlog.parse_note(note), self.tlog.parse_vkey(key)
            return bool(self.tlog.verify_checkpoint(parsed, log, known, len(known)).ok)
        except ValueError:
            return False

    def read(self, folder: Path, note: str) -> int:
        checkpoint = self.tlog.parse_checkpoint(self.tlog.parse_note(note).text)
        reader = self.tlog.FileSystemTileReader(folder)
        report = self.tlog.audit_tiles(reader, checkpoint.size, checkpoint.root)
        return int(report.tiles + report.bundles)

    def sign(self, size: int, root: bytes) -> dict[str, str]:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.from_private_bytes(SEED)
        public = private.public_key().public_bytes_raw()
        note = self.tlog.sign_checkpoint(self.tlog.Checkpoint(ORIGIN, size, root), private, ORIGIN)
        _, line = self.tlog.sign_cosignature(private, "foreign.example/w", TIME, ORIGIN, size, root)
        spell = self.tlog.format_vkey
        both = self.tlog.Note(note.text, (*note.signatures, line))
        keys = self.tlog.vkey_from_ed25519(ORIGIN, public), self.tlog.cosignature_vkey("foreign.example/w", public)
        return {"note": both.serialise(), "log": spell(keys[0]), "witness": spell(keys[1])}


class Scales:
    """The package tlog-scales: Ed25519 and ML-DSA-44."""

    def __init__(self, folder: Path, leaves: list[bytes]) -> None:
        self.signing, self.tiles, self.tlog, self.backend, self.reader = (
            import_module(f"tlog_scales.{name}") for name in ("signing", "tiles", "tlog", "backend", "reader")
        )
        self.tree = self.reader.TilesReader(self.backend.LocalBackend(folder / "small"))
        self.tree.set_size(len(leaves))

    def root(self, size: int) -> bytes:
        return bytes(self.tree.mth(0, size))

    def inclusion(self, index: int, size: int) -> list[bytes]:
        return list(self.tree.get_inclusion_proof(index, size).node_hashes)

    def consistency(self, old: int, size: int) -> list[bytes]:
        return list(self.tree.get_consistency_proof(old, size).node_hashes) if old else []

    def includes(self, leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
        try:
            self.tlog.InclusionProof(index, size, proof).check(self.tiles.leaf_hash(leaf), root)
        except self.tlog.InclusionProofInvalid:
            return False
        return True

    def continues(self, old: int, size: int, old_root: bytes, root: bytes, proof: list[bytes]) -> bool:
        try:
            self.tlog.ConsistencyProof(old, size, proof).check(old_root, root)
        except self.tlog.ConsistencyProofInvalid:
            return False
        return True

    def signed_by(self, note: str, key: str, witness: str) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            checkpoint = self.tlog.Checkpoint.from_text(note)
            for one in filter(None, (key, witness)):
                checkpoint.verify(self.signing.Vkey.from_string(one))
        except (InvalidSignature, RuntimeError, ValueError):
            return False
        return True

    def read(self, folder: Path, note: str) -> int:
        tree = self.reader.TilesReader(self.backend.LocalBackend(folder))
        checkpoint = tree.get_checkpoint()
        assert checkpoint.serialize() == note
        assert tree.calculate_root_hash() == checkpoint.root_hash
        for index in range(0, checkpoint.size, 97):
            proof = tree.get_inclusion_proof(index, checkpoint.size)
            proof.check(self.tiles.leaf_hash(tree.get_entry(index)), checkpoint.root_hash)
        return int(checkpoint.size)

    def sign(self, size: int, root: bytes) -> dict[str, str]:
        signers = [
            self.signing.PlainEd25519Signer(ORIGIN, SEED),
            self.signing.MLDSA44CosignatureSigner("foreign.example/w", SEED),
        ]
        note = self.tlog.Checkpoint.make_signed(ORIGIN, size, root, signers)
        return {
            "note": note.serialize(),
            "log": signers[0].vkey.serialize(),
            "witness": signers[1].vkey.serialize(),
        }


def decode(texts: list[str]) -> list[bytes]:
    return [base64.b64decode(text) for text in texts]


def flip(proof: list[bytes]) -> list[bytes]:
    """Return a proof with one bit changed, and with a hash too many where it has none."""
    return [bytes([proof[0][0] ^ 1]) + proof[0][1:], *proof[1:]] if proof else [b"x" * 32]


def check_trees(verifier: Verifier, cases: dict[str, Any], count: dict[str, int]) -> None:
    leaves, roots = decode(cases["leaves"]), decode(cases["roots"])
    for size, root in enumerate(roots):
        assert size == 0 or verifier.root(size) == root, f"root of {size}"
        count["roots"] += 1
    for index, size, encoded in cases["inclusion"]:
        proof = decode(encoded)
        assert verifier.inclusion(index, size) == proof, f"inclusion {index} in {size}"
        assert verifier.includes(leaves[index], index, size, proof, roots[size]), f"inclusion {index} in {size}"
        assert not verifier.includes(leaves[index], index, size, flip(proof), roots[size])
        count["inclusion"] += 1
    for old, size, encoded in cases["consistency"]:
        proof = decode(encoded)
        assert verifier.consistency(old, size) == proof, f"consistency {old} to {size}"
        assert verifier.continues(old, size, roots[old], roots[size], proof), f"consistency {old} to {size}"
        assert not verifier.continues(old, size, roots[old], roots[size], flip(proof))
        count["consistency"] += 1


def check_notes(verifier: Verifier, cases: dict[str, Any], count: dict[str, int]) -> None:
    for note, key, witness in cases["notes"]:
        assert verifier.signed_by(note, key, witness)
        size = note.split("\n")[1]
        assert not verifier.signed_by(note.replace(f"\n{size}\n", f"\n{int(size) + 1}\n"), key, witness)
        count["notes"] += 1


def check_proof(verifier: Verifier, text: str, key: str, witness: str) -> None:
    """Check a `.tlog-proof` file, whose entry lies in its extra data."""
    head, _, note = text.partition("\n\n")
    header, extra, index, *path = head.split("\n")
    assert header == "c2sp.org/tlog-proof@v1"
    _, size, root = note.split("\n")[:3]
    entry = base64.b64decode(extra.removeprefix("extra "))
    number = int(index.removeprefix("index "))
    assert verifier.includes(entry, number, int(size), decode(path), base64.b64decode(root))
    assert not verifier.includes(entry + b" ", number, int(size), decode(path), base64.b64decode(root))
    assert verifier.signed_by(note, key, witness)


def main(name: str, folder: Path) -> None:
    cases = json.loads((folder / "cases.json").read_text())
    leaves = decode(cases["leaves"])
    verifier: Verifier = Aics(folder, leaves) if name == "aics" else Scales(folder, leaves)
    count = dict.fromkeys(("roots", "inclusion", "consistency", "notes"), 0)
    check_trees(verifier, cases, count)
    if name == "scales":
        cases["notes"] += cases["ml_dsa_notes"]
    check_notes(verifier, cases, count)
    check_proof(verifier, (folder / "row.tlog-proof").read_text(), cases["log"], cases["witness"])
    count["files"] = verifier.read(folder / "large", (folder / "large" / "checkpoint").read_text())
    print(json.dumps({"count": count, "signed": verifier.sign(7, decode(cases["roots"])[7])}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
