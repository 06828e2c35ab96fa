"""Verifiers that are not ours agree with ours: `make foreign-log` installs them and runs this.

aics-tlog and tlog-scales (Apache-2.0) run on Python 3.12 in an environment of their own. golang.org/x/mod/sumdb
(BSD-3-Clause), the implementation of Go's checksum database, runs where Go and Debian's golang-golang-x-mod-dev are
installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.ledger.log import Checkpoint, KeyFolder, SignedLog, SignedNote, export_log, prove_row, read_signed_log
from alphaloom.ledger.log.note import KIND_LOG, KIND_ML_DSA, KIND_WITNESS, SigningKey, VerifierKey
from alphaloom.ledger.log.tree import compute_root, hash_leaf, prove_consistency, prove_inclusion

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
INSTALLED = Path(os.environ.get("FOREIGN_LOG") or Path(sys.prefix) / "foreign-log")
GO_SOURCES = Path("/usr/share/gocode")
"""Where Debian installs the sources of Go's packages."""
SIZES = range(100)
LARGE = 66_000
"""Leaves of the log that is read as tiles: three levels of them."""
AT = datetime(2026, 1, 9, 12, tzinfo=UTC)
LOG = SigningKey("alphaloom/foreign", KIND_LOG, b"l" * 32)
QUANTUM = SigningKey(LOG.name, KIND_ML_DSA, b"q" * 32)
WITNESS = SigningKey("alphaloom/witness", KIND_WITNESS, b"w" * 32)


def encode(hashes: list[bytes]) -> list[str]:
    return [b64encode(one).decode() for one in hashes]


def sign(entries: list[bytes]) -> SignedNote:
    """Return a checkpoint with both signatures of a log, and that of a witness."""
    text = str(Checkpoint(LOG.name, len(entries), compute_root(hash_leaf(entry) for entry in entries)))
    return SignedNote(text, (QUANTUM.sign(text), LOG.sign(text), WITNESS.sign(text, AT)))


@pytest.fixture
def folder(tmp_path: Path, workspace: Path, keys: KeyFolder) -> Path:
    """What the verifiers read: proofs for all sizes, notes, two logs as tiles, a proof of a workspace's row."""
    entries = [f"entry {number}".encode() for number in range(len(SIZES) - 1)]
    leaves = [hash_leaf(entry) for entry in entries]
    inclusion = [
        (index, size, encode(prove_inclusion(leaves[:size], index))) for size in SIZES for index in range(size)
    ]
    consistency = [
        (old, size, encode(prove_consistency(leaves[:size], old))) for size in SIZES for old in range(size + 1)
    ]
    log, witness = str(LOG.verifier), str(WITNESS.verifier)
    desk = read_signed_log(workspace, keys)
    _, proof = prove_row(desk, "f1")
    cosigned = desk.note.with_signatures([WITNESS.sign(desk.note.text, AT)])
    cases: dict[str, Any] = {
        "leaves": encode(entries),
        "roots": encode([compute_root(leaves[:size]) for size in SIZES]),
        "inclusion": inclusion,
        "consistency": consistency,
        "notes": [(str(sign(entries)), log, witness), (str(desk.note), str(desk.key), "")],
        "ml_dsa_notes": [(str(sign(entries)), str(QUANTUM.verifier), witness)],
        "log": str(desk.key),
        "witness": witness,
    }
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "row.tlog-proof").write_text(str(replace(proof, note=cosigned)))
    for name, body in (("small", entries), ("large", [f"entry {number}".encode() for number in range(LARGE)])):
        export_log(SignedLog(sign(body), LOG.verifier, tuple(body)), tmp_path / name, with_entries=True)
    return tmp_path


def run(words: list[str], **environment: str) -> dict[str, Any]:
    ran = subprocess.run(
        words, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def find_python() -> str:
    python = INSTALLED / "bin" / "python"
    if not python.exists():
        pytest.skip(
            f"no verifiers in {INSTALLED}: `make foreign-log` installs them, with Python 3.12 and a package index"
        )
    return str(python)


@pytest.mark.parametrize("name", ["aics", "scales"])
def test_a_verifier_of_others_agrees_on_every_proof_and_signature(name: str, folder: Path) -> None:
    answer = run([find_python(), str(HERE / "verify.py"), name, str(folder)], PYTHONPATH="")
    count, signed = answer["count"], answer["signed"]
    assert (count["roots"], count["inclusion"], count["consistency"]) == (100, 4950, 5050)
    assert count["notes"] >= 2
    assert count["files"] > 500
    note, keys = SignedNote.parse(signed["note"]), [VerifierKey.parse(signed[key]) for key in ("log", "witness")]
    assert set(note.signers(keys)) == set(keys)
    assert Checkpoint.parse(note.text).size == 7


def test_the_implementation_of_go_agrees_on_every_proof_and_signature(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not shutil.which("go") or not (GO_SOURCES / "src/golang.org/x/mod/sumdb/tlog").is_dir():
        pytest.skip("no Go here: apt install golang golang-golang-x-mod-dev")
    cache = str(tmp_path_factory.mktemp("go"))
    answer = run(
        ["go", "run", str(HERE / "verify.go"), str(folder)], GO111MODULE="off", GOPATH=str(GO_SOURCES), GOCACHE=cache
    )
    assert answer["count"] == {"roots": 100, "inclusion": 4950, "consistency": 5050, "notes": 2}
