"""The halt file stops trading whatever is in it, and only two persons with a reason take it away."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from alphaloom.execution import ExecutionError, Halt, HaltSwitch, list_releases
from alphaloom.execution.halt import FOLDER_GONE, HALT_FILE, NO_REASON, UNREADABLE

KILL = Halt("the feed is frozen", "ann", 1_000)


def test_a_halt_stands_until_two_persons_release_it(tmp_path: Path) -> None:
    with HaltSwitch(tmp_path) as switch:
        assert not switch.is_set()
        assert switch.read() is None
        assert switch.set(KILL) == switch.read() == KILL
        assert switch.set(Halt("later", "bob", 2_000)) == KILL  # the first one stands
        for by, second, reason in (
            ("ann", "Ann ", "fine"),
            ("ann", "", "fine"),
            ("", "bob", "fine"),
            ("ann", "bob", " "),
        ):
            with pytest.raises(ExecutionError):
                switch.release(Halt(reason, by, 3_000), second)
            assert switch.is_set()
        assert switch.release(Halt("the feed is back", "ann", 3_000), "bob") == KILL
        assert not switch.is_set()
        with pytest.raises(ExecutionError, match="not halted"):
            switch.release(Halt("again", "ann", 4_000), "bob")
    released = {"reason": "the feed is back", "by": "ann", "at_us": 3_000, "second": "bob"}
    assert list_releases(tmp_path) == [{"halt": KILL.record(), "released": released}]


def test_who_halts_while_it_is_released_stops_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def halt_too(handle: int) -> None:
        other.set(Halt("and now this", "cid", 3_000))
        sync(handle)

    with HaltSwitch(tmp_path) as switch, HaltSwitch(tmp_path) as other:
        switch.set(KILL)
        os.utime(tmp_path / HALT_FILE, (1, 1))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", halt_too)
            with pytest.raises(ExecutionError, match="halted again"):
                switch.release(Halt("the feed is back", "ann", 4_000), "bob")
        assert switch.is_set()
        assert list_releases(tmp_path) == []
        assert switch.release(Halt("both are looked into", "ann", 5_000), "bob") == KILL
        assert not switch.is_set()


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.touch(), NO_REASON),
        (lambda path: path.write_bytes(b"\xff{"), NO_REASON),
        (lambda path: path.write_text('{"reason": 1, "by": "", "at_us": 0}'), NO_REASON),
        (lambda path: path.symlink_to("nowhere"), UNREADABLE),
        (make_folder, UNREADABLE),
        (lambda path: os.mkfifo(path), NO_REASON),
        (lambda path: shutil.rmtree(path.parent), FOLDER_GONE),
        (lambda path: path.parent.rename(path.parent.parent / "moved"), FOLDER_GONE),
    ],
    ids=[
        "empty",
        "no text",
        "wrong types",
        "a link to nothing",
        "a folder",
        "a pipe",
        "workspace deleted",
        "workspace moved",
    ],
)
def test_whatever_cannot_be_read_is_a_halt(tmp_path: Path, damage: Callable[[Path], None], reason: str) -> None:
    (tmp_path / "w").mkdir()
    with HaltSwitch(tmp_path / "w") as switch:
        damage(tmp_path / "w" / HALT_FILE)
        assert switch.is_set()
        assert switch.read() == Halt(reason)


def test_a_full_disk_still_takes_the_halt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    with HaltSwitch(tmp_path) as switch:
        switch.set(KILL)
        assert switch.is_set()
        assert switch.read() == Halt(NO_REASON)


def test_without_a_workspace_there_is_no_switch(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="workspace"):
        HaltSwitch(tmp_path / "none")
