"""`alphaloom kill` stops a workspace whatever else is broken, and two people let trading go on."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookSettings, open_book, order_mode, read_trading_mode
from alphaloom.desk.cli.main import run_command
from alphaloom.execution import HaltSwitch, list_releases
from alphaloom.ledger import Ledger

AT = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with two open books, one of them halted before."""
    with Ledger.open(tmp_path, clock=lambda: AT) as ledger:
        for name in ("one", "stopped"):
            open_book(ledger, name, BookSettings(), AT)
        order_mode(ledger, "stopped", "halted", ("an audit", "eve", ""), AT)
    return tmp_path


def list_trading_modes(workspace: Path) -> list[str]:
    with Ledger.open(workspace, clock=lambda: AT) as ledger:
        return [read_trading_mode(ledger, f"book-{name}")[1] for name in ("one", "stopped")]


def test_a_kill_and_its_release_are_on_record(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--workspace", str(workspace), "--json"]
    assert run_command(["kill", "--reason", "the feed is frozen", "--by", "ann", *place]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["reason"], told["books"], told["not_recorded"]) == ("the feed is frozen", ["one"], "")
    assert list_trading_modes(workspace) == ["halted", "halted"]
    assert run_command(["kill", "--by", "bob", *place]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "ann"  # the first one stands

    for words in (["--second", "ann"], ["--second", ""], []):
        assert run_command(["kill", "--release", "--reason", "it is back", "--by", "ann", *words, *place]) == 1
    assert list_trading_modes(workspace) == ["halted", "halted"]
    capsys.readouterr()
    assert run_command(["kill", "--release", "--reason", "it is back", "--by", "ann", "--second", "bob", *place]) == 0
    assert json.loads(capsys.readouterr().out)["books"] == ["one"]
    assert list_trading_modes(workspace) == ["active", "halted"]  # what a person halted stays halted
    assert [one["halt"]["reason"] for one in list_releases(workspace)] == ["the feed is frozen"]


def test_a_damaged_record_does_not_stop_a_kill(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = next(path for path in workspace.iterdir() if path.suffix in (".db", ".sqlite"))
    whole = database.read_bytes()
    database.write_bytes(b"no database" * 1000)
    assert run_command(["kill", "--reason", "disk fault", "--workspace", str(workspace)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("HALTED")
    assert "The file stands" in captured.err
    with HaltSwitch(workspace) as switch:
        assert switch.is_set()
    database.write_bytes(whole)
    assert run_command(["kill", "--workspace", str(workspace)]) == 0
    assert list_trading_modes(workspace) == ["halted", "halted"]


ON_A_FULL_DISK = """
mount -t tmpfs -o size=64k none "$1" || exit 77
cat /dev/zero > "$1/filler" 2> /dev/null
echo "no room" 2> /dev/null > "$1/filler2" && exit 78
"$2" -m alphaloom kill --by ann --workspace "$1" && test -e "$1/HALTED" && test ! -s "$1/HALTED"
"""


@pytest.mark.integration
def test_a_disk_without_a_free_byte_takes_the_halt(tmp_path: Path) -> None:
    """Fill a file system of 64 KiB, in a mount namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare: only Linux mounts a small disk for a test")
    command = ["unshare", "-rm", "sh", "-c", ON_A_FULL_DISK, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"this system mounts nothing for a user: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("HALTED")


def test_a_wrong_workspace_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["kill", "--workspace", str(tmp_path / "none")]) == 2
    assert "--workspace" in capsys.readouterr().err
