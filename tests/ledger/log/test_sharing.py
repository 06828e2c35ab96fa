"""What is handed out of the log: static files, proofs, and the signatures of witnesses."""

from __future__ import annotations

import random
import shutil
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alphaloom.ledger.log import (
    Checkpoint,
    CheckpointPolicy,
    InclusionProof,
    KeyFolder,
    LogWitness,
    NoteError,
    SignedNote,
    WitnessRefusal,
    export_log,
    keep_cosigned,
    prove_row,
    read_signed_log,
    trust_log,
    verify_export,
    verify_workspace,
)
from alphaloom.ledger.log.note import KIND_LOG, KIND_WITNESS, SigningKey, VerifierKey
from alphaloom.ledger.log.tiles import build_tiles, name_tile
from alphaloom.ledger.log.tree import hash_leaf
from alphaloom.ledger.log.witness import build_request

from .conftest import DAY, begin, go_on

NOON = datetime(2026, 1, 9, 12, tzinfo=UTC)
NOTE = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
"""
"""The example of Go's package for signed notes, with its key."""
NOTE_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"


@pytest.fixture
def folder(workspace: Path, keys: KeyFolder, tmp_path: Path) -> Path:
    export_log(read_signed_log(workspace, keys), tmp_path / "public", with_entries=True)
    return tmp_path / "public"


@pytest.fixture
def other(tmp_path: Path) -> LogWitness:
    return LogWitness(KeyFolder(tmp_path / "other desk"), lambda: NOON)


def test_the_note_of_another_program_verifies_and_any_change_is_seen() -> None:
    key = VerifierKey.parse(NOTE_KEY)
    assert SignedNote.parse(NOTE).signers([key]) == {key: None}
    for place in random.Random(1).sample(range(len(NOTE)), 40):
        changed = NOTE[:place] + chr(ord(NOTE[place]) ^ 1) + NOTE[place + 1 :]
        try:
            assert SignedNote.parse(changed).signers([key]) == {}
        except NoteError:
            continue
    with pytest.raises(NoteError, match="no public key"):
        VerifierKey.parse(NOTE_KEY.replace("c74f20a3", "c74f20a4"))


def test_tiles_have_the_names_and_widths_of_the_specification() -> None:
    """Its example: 70,000 leaves give 273 full tiles and one of 112, one full and one of 17, and one of 1."""
    assert name_tile(0, 1234067, 256) == "tile/0/x001/x234/067"
    names = [name for name, _ in build_tiles([hash_leaf(b"")] * 70_000)]
    assert [name for name in names if ".p/" in name] == ["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]
    assert len(names) == 273 + 1 + 1 + 1 + 1
    assert [name for name, _ in build_tiles([hash_leaf(b"")] * 256)] == ["tile/0/000", "tile/1/000.p/1"]


def test_an_exported_folder_verifies_and_grows(workspace: Path, keys: KeyFolder, folder: Path) -> None:
    before = verify_export(folder)
    assert (before.findings, before.with_entries) == ((), True)
    go_on(workspace, keys, DAY + timedelta(hours=1), "more")
    export_log(read_signed_log(workspace, keys), folder, with_entries=True)
    after = verify_export(folder)
    assert after.findings == ()
    assert after.checkpoint.size == before.checkpoint.size + 3


def tamper(folder: Path, chance: random.Random) -> str:
    """Change, cut, lengthen or remove one file of a folder; return its name."""
    path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    body = bytearray(path.read_bytes())
    place = chance.randrange(len(body))
    match chance.randrange(5):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(body[:place])
        case 2:
            path.write_bytes(body + bytes([chance.randrange(256)]))
        case 3:
            path.write_bytes(body[:place] + body[place + 1 :])
        case _:
            body[place] ^= chance.randrange(1, 256)
            path.write_bytes(body)
    return path.relative_to(folder).as_posix()


def check_tamperings(folder: Path, trusted: CheckpointPolicy, count: int) -> None:
    chance = random.Random(count)
    for number in range(count):
        copy = Path(shutil.copytree(folder, folder.parent / f"copy {number}"))
        name = tamper(copy, chance)
        try:
            found = bool(verify_export(copy, trusted).findings)
        except (NoteError, OSError):
            found = True
        assert found or name == "vkey", name
        shutil.rmtree(copy)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_tamperings_of_tiles_entries_and_checkpoints_are_found(
    folder: Path, workspace: Path, keys: KeyFolder, count: int
) -> None:
    """`pytest -m slow tests/ledger/log` makes a thousand. The key in the folder is not what a policy goes by."""
    log = read_signed_log(workspace, keys)
    check_tamperings(folder, CheckpointPolicy.parse(f"log {log.key}\nquorum none\n"), count)


def test_a_factor_is_proven_in_one_file(workspace: Path, keys: KeyFolder) -> None:
    log = read_signed_log(workspace, keys)
    row, proof = prove_row(log, "f1")
    assert (row.table, row.columns["factor_id"]) == ("verdicts", "f1")
    assert prove_row(log, "trials/1")[0].table == "trials"
    assert prove_row(log, "later1 2")[0].columns["key"] == "later1 2"
    trusted = CheckpointPolicy.parse(f"log {log.key}\nquorum none\n")
    again = InclusionProof.parse(str(proof))
    assert again == proof
    assert list(again.verify(trusted)) == [log.key]
    text = str(proof)
    for change in (
        text.replace(f"index {proof.index}", f"index {proof.index + 1}"),
        text.replace(b64encode(proof.path[0]).decode(), b64encode(proof.path[1]).decode()),
        text.replace(b64encode(proof.entry).decode(), b64encode(proof.entry.replace(b"f1", b"f2")).decode()),
    ):
        with pytest.raises(NoteError, match="not in the tree"):
            InclusionProof.parse(change).verify(trusted)
    stranger = SigningKey(log.key.name, KIND_LOG, b"x" * 32).verifier
    with pytest.raises(NoteError, match="signatures that the policy asks for"):
        proof.verify(CheckpointPolicy.parse(f"log {stranger}\nquorum none\n"))
    with pytest.raises(NoteError, match="no signed record is named"):
        prove_row(log, "f99")


def test_two_desks_witness_a_log_and_its_proofs_carry_the_signature(
    workspace: Path, keys: KeyFolder, folder: Path, other: LogWitness, tmp_path: Path
) -> None:
    log = read_signed_log(workspace, keys)
    trust_log(KeyFolder(tmp_path / "other desk"), str(log.key))
    signed = other.sign_folder(folder)
    witness = other.find_key().verifier
    with pytest.raises(NoteError, match="no witness that this desk trusts"):
        keep_cosigned(keys, signed, None)
    (part,) = keep_cosigned(keys, signed, str(witness))
    assert (part.size, part.at) == (Checkpoint.parse(log.note.text).size, NOON)
    policy = CheckpointPolicy.parse(f"log {log.key}\nwitness b {witness}\nquorum b\n")
    with pytest.raises(NoteError, match="signatures"):
        prove_row(log, "f1")[1].verify(policy)
    cosigned = prove_row(log, "f1", [signed])[1].verify(policy)
    assert cosigned == {log.key: None, witness: NOON}
    go_on(workspace, keys, NOON + timedelta(hours=1), "after")
    reading = verify_workspace(workspace, keys, policy=policy)
    assert (reading.findings, reading.witnessed[0].size) == ((), part.size)
    go_on(workspace, keys, NOON - timedelta(days=2), "set back")
    assert "back-dated" in {finding.kind for finding in verify_workspace(workspace, keys).findings}


def test_a_witness_refuses_six_kinds_of_bad_history(
    workspace: Path, keys: KeyFolder, folder: Path, other: LogWitness, tmp_path: Path
) -> None:
    log, desk = read_signed_log(workspace, keys), KeyFolder(tmp_path / "other desk")
    own = SigningKey(log.key.name, KIND_LOG, keys.find_seed("log.key") or b"")
    size, hashes = len(log.entries), log.hashes

    def refuse(request: str) -> int:
        with pytest.raises(WitnessRefusal) as refusal:
            other.add_checkpoint(request)
        return refusal.value.status

    def sign(leaves: list[bytes], key: SigningKey = own) -> SignedNote:
        text = str(Checkpoint(key.name, len(leaves), root(leaves)))
        return SignedNote(text, (key.sign(text),))

    assert refuse(build_request(log.note, hashes, 0)) == 404
    trust_log(desk, str(log.key))
    impostor = SigningKey(own.name, KIND_LOG, b"x" * 32)
    assert refuse(build_request(sign(hashes, impostor), hashes, 0)) == 403
    other.sign_folder(folder)
    longer = [*hashes, hash_leaf(b"new")]
    edited = [hash_leaf(b"edited"), *longer[1:]]
    assert refuse(build_request(sign(longer), longer, 0)) == 409
    assert refuse(build_request(sign(hashes[:-1]), hashes[:-1], size)) == 400
    assert refuse(build_request(sign(edited), edited, size)) == 422
    assert refuse(build_request(sign(edited[:-1]), edited[:-1], size)) == 409
    assert refuse("old 1\n") == 400
    assert other.find_last(own.name).size == size
    assert other.add_checkpoint(build_request(sign(longer), longer, size)).name == other.find_key().name
    assert other.find_last(own.name).size == size + 1


def root(leaves: list[bytes]) -> bytes:
    from alphaloom.ledger.log.tree import compute_root

    return compute_root(leaves)


def test_a_policy_counts_witnesses_in_groups_and_names_the_line_it_cannot_read() -> None:
    made = [SigningKey(name, KIND_WITNESS, name.encode() * 32).verifier for name in "abc"]
    log = SigningKey("l", KIND_LOG, b"l" * 32).verifier
    lines = [f"log {log}", *(f"witness {key.name.upper()} {key}" for key in made)]
    text = "\n".join([*lines, "group two 2 A B", "group first all C", "group both 1 two first", "quorum both"])
    policy = CheckpointPolicy.parse(f"# a comment\n\n{text}\n")
    assert policy.accepts({log: None, made[0]: NOON, made[1]: NOON}, "l")
    assert policy.accepts({log: None, made[2]: NOON}, "l")
    assert not policy.accepts({log: None, made[2]: NOON}, "of another log")
    assert not policy.accepts({log: None, made[1]: NOON}, "l")
    assert not policy.accepts({made[2]: NOON}, "l")
    for line in ("group x 3 A B", "group x any D", "quorum D", f"log {made[0]}", f"witness A {made[0]}", "what"):
        with pytest.raises(NoteError, match="line 5"):
            CheckpointPolicy.parse("\n".join([*lines, line, "quorum none"]))
    with pytest.raises(NoteError, match="line"):
        CheckpointPolicy.parse("\n".join(lines))


def test_the_commands_go_from_one_desk_to_another_and_to_a_stranger(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    keys: KeyFolder,
) -> None:
    import json

    from alphaloom.desk.cli.main import run_command

    monkeypatch.chdir(tmp_path)

    def run(desk: Path, *words: str) -> dict[str, object]:
        monkeypatch.setenv("ALPHALOOM_KEYS", str(desk))
        code = run_command(["record", *words, "--json"])
        said: dict[str, object] = json.loads(capsys.readouterr().out)
        return said | {"code?": code}

    ours, theirs = keys.folder, tmp_path / "their keys"
    log = str(run(ours, "export", "public", "--workspace", str(workspace))["key"])
    assert run(theirs, "witness", "public")["code?"] == 1
    witness = str(run(theirs, "witness", "public", "--log", log, "--out", "seen")["witness"])
    assert run(ours, "keep", "seen", "--witness", witness)["code?"] == 0
    assert run(ours, "prove", "f1", "--workspace", str(workspace))["table"] == "verdicts"
    (tmp_path / "policy.txt").write_text(f"log {log}\nwitness them {witness}\nquorum them\n")
    stranger = tmp_path / "nobody"
    assert run(stranger, "verify", "f1.tlog-proof", "--policy", "policy.txt")["ok"] is True
    assert run(stranger, "verify", "f1.tlog-proof")["code"] == "policy_missing"
    assert run(stranger, "verify", "public")["ok"] is True
    reading = run(ours, "verify", str(workspace), "--policy", "policy.txt", "--checkpoint", "seen")
    assert (reading["ok"], reading["findings"]) == (True, [])
    monkeypatch.setenv("ALPHALOOM_KEYS", str(ours))
    assert run_command(["record", "verify", str(workspace)]) == 0
    page = capsys.readouterr().out
    assert "every row is as it was written" in page
    assert "witness: alphaloom/witness-" in page
    monkeypatch.setenv("ALPHALOOM_KEYS", str(stranger))
    assert run_command(["record", "verify", str(workspace)]) == 0
    page = capsys.readouterr().out
    assert "witness: none has seen this history" in page
    assert page.count("cannot be told") == 4


def test_a_log_that_nobody_signed_yet_is_not_handed_out(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    (tmp_path / "keys").write_text("a file in the way")
    begin_unsigned = tmp_path / "w"
    with pytest.raises(NoteError, match="no key can be kept"):
        begin(begin_unsigned, keys)
    reading = verify_workspace(begin_unsigned, KeyFolder(tmp_path / "none"))
    assert (reading.findings, reading.checkpoints) == ((), 0)
    assert "wait for a checkpoint" in reading.notes[-1]
    with pytest.raises(NoteError, match="no checkpoint yet"):
        read_signed_log(begin_unsigned, keys)


A, B, AGAIN = (
    SigningKey(name, KIND_WITNESS, seed * 32).verifier for name, seed in (("a", b"a"), ("b", b"b"), ("c", b"a"))
)
LOG = SigningKey("l", KIND_LOG, b"l" * 32)
ROOT = b64encode(b"0" * 32).decode()


@pytest.mark.parametrize(
    "lines",
    [
        f"witness x {A}\nwitness y {A}\nquorum x",
        f"witness x {A}\nwitness y {AGAIN}\nquorum x",
        f"witness x {A}\nwitness y {B}\ngroup g any x\ngroup h any x y\nquorum g",
        f"witness\u00a0x {A}\nquorum none",
        f"witness x {A}\ngroup g {'9' * 5_000} x\nquorum g",
    ],
)
def test_a_policy_by_which_one_witness_counts_twice_is_refused(lines: str) -> None:
    with pytest.raises(NoteError, match="cannot be read at line"):
        CheckpointPolicy.parse(f"log {LOG.verifier}\n{lines}\n")


def test_the_key_of_one_log_does_not_speak_for_another(folder: Path, workspace: Path, keys: KeyFolder) -> None:
    own = read_signed_log(workspace, keys).key
    text = read_signed_log(workspace, keys).note.text
    policy = CheckpointPolicy.parse(f"log {own}\nlog {LOG.verifier}\nquorum none\n")
    assert verify_export(folder, policy).findings == ()
    (folder / "checkpoint").write_text(str(SignedNote(text, (LOG.sign(text),))))
    with pytest.raises(NoteError, match="lacks the signatures"):
        verify_export(folder, policy)


def test_a_checkpoint_may_have_extensions() -> None:
    assert Checkpoint.parse(f"l\n1\n{ROOT}\nmore\nand more\n") == Checkpoint.parse(f"l\n1\n{ROOT}\n")
    for text in (f"l\n1\n{ROOT}\n\nmore\n", f"l\n1\n{ROOT}\nmore", f"l\0\n1\n{ROOT}\n", f"l\n{'9' * 5_000}\n{ROOT}\n"):
        with pytest.raises(NoteError, match="no checkpoint"):
            Checkpoint.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a\u00a0b", "a\tb"])
def test_a_key_has_a_name_without_spaces(name: str) -> None:
    with pytest.raises(NoteError, match="no public key"):
        VerifierKey.parse(str(SigningKey(name, KIND_LOG, b"l" * 32).verifier))
    with pytest.raises(NoteError, match="no signed note"):
        SignedNote.parse(str(SignedNote("text\n", (SigningKey(name, KIND_LOG, b"l" * 32).sign("text\n"),))))


def test_a_note_has_no_control_characters() -> None:
    with pytest.raises(NoteError, match="no signed note"):
        SignedNote.parse(str(SignedNote("te\rxt\n", (LOG.sign("te\rxt\n"),))))


def test_a_witness_signs_no_empty_log_with_a_root(other: LogWitness, tmp_path: Path) -> None:
    trust_log(KeyFolder(tmp_path / "other desk"), str(LOG.verifier))
    for root_text, refused in ((ROOT, True), (b64encode(root([])).decode(), False)):
        text = f"l\n0\n{root_text}\n"
        request = f"old 0\n\n{SignedNote(text, (LOG.sign(text),))}"
        if refused:
            with pytest.raises(WitnessRefusal, match="no leaves"):
                other.add_checkpoint(request)
        else:
            assert other.add_checkpoint(request).name == other.find_key().name


def test_files_of_older_exports_are_checked_and_junk_is_named(workspace: Path, keys: KeyFolder, folder: Path) -> None:
    go_on(workspace, keys, DAY + timedelta(hours=1), "more")
    older = next(folder.glob("tile/entries/000.p/*"))
    export_log(read_signed_log(workspace, keys), folder, with_entries=True)
    assert verify_export(folder).findings == ()
    older.write_bytes(older.read_bytes()[:-1] + b"x")
    for name in ("000", "999", "junk"):
        (folder / "tile" / "entries" / name).write_bytes(b"\0\1x")
    named = {one.what for one in verify_export(folder).findings}
    assert named == {f"tile/entries/{name}" for name in ("000", "999", "junk", f"000.p/{older.name}")}
