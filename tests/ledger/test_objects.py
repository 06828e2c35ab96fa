import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from alphaloom.ledger import Ledger, WorkspaceError, compute_digest, cut_listed, cut_member, write_json
from alphaloom.ledger.errors import DamagedObject
from alphaloom.ledger.files.objects import Objects


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=st.binary(max_size=2000))
def test_bytes_come_back_by_their_digest(ledger: Ledger, body: bytes) -> None:
    name = ledger.objects.put(body)
    assert name == compute_digest(body) == ledger.objects.put(body)
    assert ledger.objects.get(name) == body


def test_a_changed_file_is_noticed_and_mended_by_storing_again(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    name = objects.put(b"true")
    objects.path(name).write_bytes(b"fals")
    with pytest.raises(DamagedObject, match="does not hold what its name says"):
        objects.get(name)
    assert objects.put(b"true") == name
    assert objects.get(name) == b"true"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedObject, match=f"object {compute_digest(b'gone')} is not in"):
        Objects(tmp_path).get(compute_digest(b"gone"))


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkspaceError, match="no space is left"):
        Objects(tmp_path).put(b"body")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_part_of_a_written_object_is_found_without_parsing_the_rest(tmp_path: Path) -> None:
    tricky = '\n "b": [\n  {\n   "id": "x"\n  }'
    rows = [{"id": tricky, "a": {"id": "y"}}, {"id": "x", "z": [{"id": "y"}, tricky]}]
    record = {"a": tricky, "b": rows, "c": {"b": [], "id": "x"}, "d": [], "é": None, "z": 1.5}
    body = write_json(tmp_path / "record.json", record)
    assert {name: cut_member(body, name) for name in record} == record
    assert [cut_listed(body, "b", name) for name in (tricky, "x", "y")] == [*rows, None]
    assert [cut_listed(body, name, "x") for name in ("c", "d", "none")] == [None] * 3
    assert cut_member(b"", "a") is None
