"""Retention, erasure of personal data, loss of a key: each leaves a log that verifies, and says what was done."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from alphaloom.ledger import AlphaloomError, Event, Ledger, Run
from alphaloom.ledger.log import (
    CheckpointPolicy,
    KeyFolder,
    NoteError,
    SignedNote,
    add_second_key,
    choose_lost,
    read_signed_log,
    replace_keys,
    verify_workspace,
)
from alphaloom.ledger.log.keys import LOG_KEY, LOG_LIST
from alphaloom.ledger.log.note import KIND_LOG, KIND_ML_DSA, SigningKey
from alphaloom.ledger.log.upkeep.retirement import ML_DSA_KEY

from ..test_store import CALL
from .conftest import DAY, go_on, shell

NOON = DAY + timedelta(hours=12)
COMMENT = {"by": "Ada Lovelace", "comment": "Ada Lovelace saw 2 leaks; ADA LOVELACE agrees", "needs": 2}


def reopen(workspace: Path, keys: KeyFolder) -> Ledger:
    return Ledger.open(workspace, clock=lambda: NOON, keys=keys)


@pytest.fixture
def decided(workspace: Path, keys: KeyFolder) -> Path:
    """A workspace with two decisions of people, and an audit that names one of them."""
    with reopen(workspace, keys) as ledger:
        ledger.events.add(Event("one", "review", "f1/1", COMMENT))
        ledger.events.add(Event("one", "review", "f1/2", {"by": "Bo", "comment": "as Ada Lovelace said"}))
        ledger.events.add(Event("one", "book.flow", "1", {"by": "Ada Lovelace", "amount": 5.0}))
        ledger.events.add(Event("one", "blind-judgement", "f1/Ada Lovelace", {"by": "Adam"}))
    return workspace


def erase(workspace: Path, keys: KeyFolder, name: str = "Ada Lovelace") -> None:
    with reopen(workspace, keys) as ledger:
        assert ledger.erasures.erase_person(name, "Eve", f"{name} asked for it")


def test_a_name_is_erased_where_people_write_and_the_log_still_verifies(decided: Path, keys: KeyFolder) -> None:
    with reopen(decided, keys) as ledger:
        found, stays = ledger.erasures.find_person("ada lovelace")
    assert [table for table, _ in found] == ["events", "events"]
    assert {one.reason for one in stays} == {"verdicts or accounts rest on it", "the leaf itself holds key"}
    erase(decided, keys)
    with reopen(decided, keys) as ledger:
        review = ledger.events.get("one", "review", "f1/1")
        assert review
        assert review.body == {"by": "[erased 2]", "comment": "[erased 2] saw 2 leaks; [erased 2] agrees", "needs": 2}
        assert ledger.events.of("one", "blind-judgement")[0].body == {"by": "Adam"}
        assert ledger.erasures.erase_person("Ada Lovelace", "Eve", "again") is None
    reading = verify_workspace(decided, keys)
    assert reading.findings == ()
    said = "erased, by Eve on 2026-01-02: Ada Lovelace asked for it (2 rows; erasure 2)"
    assert said in reading.notes
    assert any(name.endswith("_no_update") for name in list_triggers(decided))


def list_triggers(workspace: Path) -> list[str]:
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE tbl_name = 'events'")]


def test_two_people_are_erased_from_one_row_and_stay_two(decided: Path, keys: KeyFolder) -> None:
    erase(decided, keys)
    erase(decided, keys, "Bo")
    with reopen(decided, keys) as ledger:
        assert [event.body["by"] for event in ledger.events.of("one", "review")] == ["[erased 2]", "[erased 3]"]
    assert verify_workspace(decided, keys).findings == ()


def test_no_byte_of_an_erased_comment_stays_in_the_file(decided: Path, keys: KeyFolder) -> None:
    assert b"saw 2 leaks; ADA" in read_bytes(decided)
    erase(decided, keys)
    assert b"Lovelace saw 2 leaks" not in read_bytes(decided)
    assert b"ADA LOVELACE" not in read_bytes(decided)


def read_bytes(workspace: Path) -> bytes:
    return b"".join(path.read_bytes() for path in workspace.glob("ledger.sqlite*"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}' WHERE kind = 'review'",
        "UPDATE events SET body = replace(body, '[erased 2]', '[erased 9]') WHERE key = 'f1/1'",
        "UPDATE events SET body = replace(body, '2 leaks', '0 leaks') WHERE key = 'f1/1'",
        "UPDATE events SET body = replace(body, '[erased 2]', 'Ada Lovelace') WHERE key = 'f1/2'",
        "UPDATE erasures SET body = replace(body, 'Eve', 'Bob') WHERE id = 2",
        "DELETE FROM erasures WHERE id = 2",
    ],
)
def test_what_nobody_recorded_as_erased_is_still_named(decided: Path, keys: KeyFolder, statement: str) -> None:
    erase(decided, keys)
    guards = ("events_no_update", "erasures_no_update", "erasures_no_delete")
    shell(decided, *(f"DROP TRIGGER IF EXISTS {name}" for name in guards), statement)
    assert {one.kind for one in verify_workspace(decided, keys).findings} <= {"edited", "dropped", "log"}
    assert verify_workspace(decided, keys).findings


def test_an_edit_is_not_excused_by_an_erasure_that_this_desk_did_not_sign(
    decided: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    """Who can write to the database could else change a row, and add an erasure with the digests of the change."""
    other = KeyFolder(tmp_path / "other")
    erase(decided, other)
    reading = verify_workspace(decided, keys)
    assert {(one.kind, one.what.split()[0]) for one in reading.findings} == {("log", "erasure"), ("edited", "events")}
    stranger = verify_workspace(decided, KeyFolder(tmp_path / "none"))
    assert stranger.findings == ()
    assert any("cannot tell who made" in note for note in stranger.notes)
    keys.trust(LOG_LIST, SigningKey("b", KIND_LOG, other.make_seed(LOG_KEY)).verifier)
    assert verify_workspace(decided, keys).findings == ()


def test_a_retired_key_erases_nothing_more(decided: Path, keys: KeyFolder, tmp_path: Path) -> None:
    stolen = KeyFolder(Path(shutil.copytree(keys.folder, tmp_path / "stolen")))
    erase(decided, keys, "Bo")
    rekey(decided, keys, "stolen")
    assert verify_workspace(decided, keys).findings == ()
    erase(decided, stolen)
    assert "erasure" in {one.what.split()[0] for one in verify_workspace(decided, keys).findings}


def test_rows_from_before_the_log_are_erased_too(decided: Path, keys: KeyFolder, tmp_path: Path) -> None:
    tables = ("leaves", "log_checkpoints", "log_keys", "erasures", "retirements")
    shell(decided, *(f"DROP TABLE {table}" for table in tables), "PRAGMA user_version = 5")
    old = KeyFolder(tmp_path / "old")
    erase(decided, old)
    assert verify_workspace(decided, old).findings == ()
    shell(decided, "DROP TRIGGER IF EXISTS events_no_update", "UPDATE events SET body = '{}' WHERE key = 'f1/1'")
    assert [one.kind for one in verify_workspace(decided, old).findings] == ["edited"]


def make_calls(workspace: Path, keys: KeyFolder) -> dict[str, str]:
    """Record three calls of a run that is done and one of another; return the digests of their texts."""
    texts: dict[str, str] = {}
    with Ledger.open(workspace, clock=lambda: DAY, keys=keys) as ledger:
        for run in ("old", "open"):
            ledger.runs.start(Run(run, {}, 1, "data", "2026-01-02"))
            for name in (f"{run} prompt", f"{run} reply", "shared"):
                texts[name] = ledger.objects.put(name.encode())
            call = replace(CALL, run=run, key=run, request=texts[f"{run} prompt"], reply=texts[f"{run} reply"])
            ledger.calls.add(call)
            ledger.calls.add(replace(call, key=f"{run} 2", request=texts["shared"]))
        ledger.runs.finish("old", "done")
        texts["proof"] = ledger.objects.put(b"results")
        ledger.artefacts.record("old", "evidence", texts["proof"])
    return texts


def test_old_prompts_and_replies_are_erased_and_those_that_are_needed_stay(workspace: Path, keys: KeyFolder) -> None:
    texts = make_calls(workspace, keys)
    with reopen(workspace, keys) as ledger:
        assert ledger.erasures.find_bodies("2026-01-02")[0] == []
        digests, kept = ledger.erasures.find_bodies("2026-01-03")
        assert digests == sorted(texts[name] for name in ("old prompt", "old reply"))
        assert kept == ["one", "open"]
        assert ledger.erasures.erase_objects(digests, "Eve", "30 days")
        with pytest.raises(AlphaloomError, match="is not in"):
            ledger.objects.get(texts["old reply"])
        assert ledger.objects.get(texts["shared"]) == b"shared"
        assert [ledger.erasures.is_erased(texts[name]) for name in ("old reply", "shared")] == [True, False]
        assert ledger.objects.put(b"old reply") == texts["old reply"]
        assert not ledger.erasures.is_erased(texts["old reply"])
    reading = verify_workspace(workspace, keys)
    assert reading.findings == ()
    assert "erased, by Eve on 2026-01-02: 30 days (2 stored texts; erasure 2)" in reading.notes
    (workspace / "objects" / texts["open reply"][:2] / texts["open reply"][2:]).unlink()
    assert {one.kind for one in verify_workspace(workspace, keys).findings} == {"dropped"}


def test_a_text_that_is_evidence_is_not_erased(workspace: Path, keys: KeyFolder) -> None:
    texts = make_calls(workspace, keys)
    with reopen(workspace, keys) as ledger:
        assert ledger.erasures.find_text(texts["open prompt"][:12]) == texts["open prompt"]
        with pytest.raises(AlphaloomError, match="is evidence"):
            ledger.erasures.find_text(texts["proof"])
        for wrong in ("", "0123"):
            with pytest.raises(AlphaloomError, match=r"begin so|no stored text"):
                ledger.erasures.find_text(wrong)
        with pytest.raises(AlphaloomError, match="too short"):
            ledger.erasures.find_person(" A ")


def rekey(workspace: Path, keys: KeyFolder, why: str, key_id: str = "") -> str:
    """Replace the desk's key, as the command does; return the id of the key that was retired."""
    with reopen(workspace, keys) as ledger:
        lost = choose_lost(ledger.signer.run_query, keys, key_id)
        replace_keys(keys, lost, why, lambda size: (why.encode() * size)[:size])
        ledger.signer.sign(anew=True)
    return lost[0].id.hex()


def test_a_stolen_key_is_retired_and_what_it_signs_later_is_named(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    thief = KeyFolder(Path(shutil.copytree(keys.folder, tmp_path / "thief")))
    old = read_signed_log(workspace, keys).key
    assert rekey(workspace, keys, "a laptop was stolen") == old.id.hex()
    log, reading = read_signed_log(workspace, keys), verify_workspace(workspace, keys)
    assert (reading.findings, log.key.name, reading.signed) == ((), old.name, reading.size)
    assert log.key != old
    assert any(f"the key {old.id.hex()} of {old.name} was retired" in note for note in reading.notes)
    assert reading.keys[-1][2] == "it replaces a retired key: a laptop was stolen"
    go_on(workspace, keys, NOON + timedelta(hours=1), "after")
    assert verify_workspace(workspace, keys).findings == ()
    go_on(workspace, thief, NOON + timedelta(hours=2), "stolen")
    (one,) = verify_workspace(workspace, keys).findings
    assert f"the key {old.id.hex()} signed it after it was retired" in one.message


def test_a_retired_key_that_is_put_back_signs_nothing(workspace: Path, keys: KeyFolder) -> None:
    old = (keys.folder / "log.key").read_bytes()
    rekey(workspace, keys, "stolen")
    (keys.folder / "log.key").write_bytes(old)
    with reopen(workspace, keys) as ledger, pytest.raises(AlphaloomError, match="was retired: stolen"):
        ledger.signer.sign()
    go_on(workspace, keys, NOON + timedelta(hours=1), "waits")
    assert any("wait for a checkpoint" in note for note in verify_workspace(workspace, keys).notes)
    rekey(workspace, keys, "again")
    reading = verify_workspace(workspace, keys)
    assert (reading.findings, reading.signed) == ((), reading.size)


def test_a_lost_key_is_told_by_what_the_desk_remembers_and_another_workspace_learns_of_it(
    workspace: Path, keys: KeyFolder, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(workspace, tmp_path / "other"))
    old = read_signed_log(workspace, keys).key
    (keys.folder / "log.key").unlink()
    assert rekey(workspace, keys, "the disk died") == old.id.hex()
    assert verify_workspace(workspace, keys).findings == ()
    go_on(other, keys, NOON + timedelta(hours=1), "other")
    reading = verify_workspace(other, keys)
    assert any("was retired" in note and "the disk died" in note for note in reading.notes)
    go_on(workspace, KeyFolder(tmp_path / "second"), NOON + timedelta(hours=1), "second desk")
    with reopen(workspace, keys) as ledger, pytest.raises(AlphaloomError, match="cannot be told which key"):
        choose_lost(ledger.signer.run_query, KeyFolder(tmp_path / "nothing"), "")


def test_a_second_signature_against_quantum_computers_is_asked_for_by_a_policy(
    workspace: Path, keys: KeyFolder
) -> None:
    assert add_second_key(keys)
    assert not add_second_key(keys)
    with reopen(workspace, keys) as ledger:
        ledger.signer.sign(anew=True)
    log, reading = read_signed_log(workspace, keys), verify_workspace(workspace, keys)
    second = next(key for key, _, _ in reading.keys if key.kind == KIND_ML_DSA)
    assert (reading.findings, log.key.kind, set(log.note.signers([second, log.key]))) == (
        (),
        KIND_LOG,
        {second, log.key},
    )
    both = CheckpointPolicy.parse(f"log {log.key}\nlog {second}\nquorum none\n")
    assert verify_workspace(workspace, keys, policy=both).findings == ()
    (first,) = [line for line in log.note.signatures if line.key_id == log.key.id]
    assert not both.accepts(SignedNote(log.note.text, (first,)).signers([log.key, second]), log.key.name)
    assert CheckpointPolicy.parse(f"log {second}\nquorum none\n").accepts({second: None}, second.name)
    (other,) = [line for line in log.note.signatures if line.key_id == second.id]
    broken = str(log.note).replace(str(other)[400:432], "A" * 32)  # the end of some signatures is nothing but zeros
    with pytest.raises(NoteError, match="does not hold"):
        SignedNote.parse(broken).signers([second])
    assert rekey(workspace, keys, "stolen") == log.key.id.hex()
    assert verify_workspace(workspace, keys).findings == ()
    assert [key.kind for key, _, _ in verify_workspace(workspace, keys).keys] == [1, 6, 1, 6]
    seed = keys.find_seed(ML_DSA_KEY)
    assert seed
    assert SigningKey(log.key.name, KIND_ML_DSA, seed).verifier != second


def test_the_commands_erase_retain_and_replace_a_key(
    decided: Path, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from alphaloom.desk.cli.main import run_command

    monkeypatch.setenv("ALPHALOOM_KEYS", str(keys.folder))
    make_calls(decided, keys)
    folder = decided / "runs" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text("approved by Ada Lovelace")

    def run(*words: str) -> dict[str, Any]:
        code = run_command(["record", *words, "--json"])
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said | {"code?": code}

    place = ("--workspace", str(decided))
    person = ("erase", "--person", "Ada Lovelace", "--reason", "she asked", "--by", "Eve", *place)
    dry = run(*person, "--dry-run")
    assert (dry["rows"], dry["erasure"], dry["files"]) == (2, None, ["runs/one/report.html"])
    done = run(*person)
    assert (len(done["erasure"]["rows"]), len(done["stays"])) == (2, 2)
    assert run("erase", "--reason", "none", "--by", "Eve", *place)["code"] == "nothing_named"
    counted = run("retain", "--before", "2030-01-01", *place)
    assert (counted["objects"], counted["erasure"]) == (2, None)
    assert run("retain", "--before", "2030-01-01", "--apply", "--by", "Eve", *place)["erasure"]["by"] == "Eve"
    replaced = run("rekey", "--reason", "a drill", "--ml-dsa", *place)
    assert (len(replaced["retired"]), len(replaced["keys"])) == (1, 2)
    assert run("rekey", *place)["code"] == "reason_missing"
    assert run("verify", str(decided))["findings"] == []
    assert run_command(["record", "verify", str(decided)]) == 0
    page = capsys.readouterr().out
    assert "note: erased, by Eve on" in page
    assert "was retired at" in page
