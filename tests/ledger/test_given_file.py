"""Files that a person names."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from alphaloom.ledger.files.given_file import NotRegular, open_given, read_given, read_given_text


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_kernel_file(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


@pytest.mark.parametrize(
    ("make", "what"),
    [(as_pipe, "a pipe"), (as_socket, "a socket"), (as_device, "a device"), (as_kernel_file, "a file of the kernel")],
)
def test_what_is_no_regular_file_is_refused_in_words(tmp_path: Path, make: Callable[[Path], None], what: str) -> None:
    make(tmp_path / "x")
    with pytest.raises(NotRegular, match="not a regular file") as caught:
        read_given(tmp_path / "x")
    assert caught.value.strerror == f"it is {what}, not a regular file"


def test_a_pipe_that_took_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "x"
    as_pipe(place)
    monkeypatch.setattr(
        "alphaloom.ledger.files.given_file.check_given", lambda path: None
    )  # as if it had come a moment later
    let_go = threading.Timer(20.0, lambda: os.close(os.open(place, os.O_RDWR | os.O_NONBLOCK)))
    let_go.start()
    try:
        with pytest.raises(NotRegular):
            open_given(place)
    finally:
        let_go.cancel()


def test_a_regular_file_is_read_whole_through_links_and_descriptors(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\r\nb")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert read_given(tmp_path / "link") == b"a\r\nb"
    assert read_given_text(tmp_path / "link") == "a\nb"
    with (tmp_path / "x").open("rb") as file:
        assert read_given(Path(f"/proc/self/fd/{file.fileno()}")) == b"a\r\nb"


def test_more_than_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert read_given(tmp_path / "x", 3) == b"abc"
    with pytest.raises(NotRegular, match="at most 2 bytes"):
        read_given(tmp_path / "x", 2)


def test_a_folder_and_a_missing_file_are_what_the_system_calls_them(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_given(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_given(tmp_path / "x")
