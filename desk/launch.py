"""Campaigns that the desk starts: each is the ordinary command in a process of its own, which outlives the desk.

A note in the workspace says which process it is and who started it. The note holds the time at which the system began
the process: its number alone may have gone to another program since. Other accounts may write to a shared workspace, so
no note names a file to read, and a process is interrupted only if it runs our command on this workspace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..ledger import AlphaloomError, Ledger, compute_digest, note_start, read_json, write_json
from ..ledger.database import wait_for_lock
from ..ledger.files import make_file, make_folder, write_whole
from .errors import DeskError

LAUNCH_FOLDER: Final = Path("desk") / "launches"
PENDING: Final = "new"
"""Folder of the notes on campaigns that have no run yet."""
CAMPAIGN_FOLDER: Final = "campaigns"
TAIL_BYTES: Final = 64 * 1024
MAX_OUTPUT_LINES: Final = 14
"""Lines of a process's output that are shown."""
ERROR_WORDS: Final = ("error: ", "internal error: ")
"""How the command line begins a message on an error."""
FOLLOW_SECONDS: Final = 1.0
"""How often the desk looks whether a process has begun its run."""


@dataclass(frozen=True)
class CampaignLaunch:
    """One process that the desk started.

    Attributes
    ----------
    campaign
        The campaign's name.
    run
        The run's id; empty until the process has begun it.
    by, at
        Who started it and when, ISO.
    pid, began
        The process, and when the system began it, in the system's own words.
    offset
        Where in the file of its output this process began to write.
    form, digest
        What was typed to start it, and the digest of the campaign file; empty for a resumed run.
    """

    campaign: str
    run: str
    by: str
    at: str
    pid: int
    began: str
    offset: int = 0
    form: dict[str, str] = field(default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        """Refuse values of other kinds: a note is a file that anybody may have edited."""
        texts = (self.campaign, self.run, self.by, self.at, self.began, self.digest, *self.form, *self.form.values())
        numbers = (self.pid, self.offset)
        if not all(isinstance(text, str) for text in texts) or any(type(one) is not int or one < 0 for one in numbers):
            raise TypeError("not a note on a process")
        if Path(self.campaign).name != self.campaign or datetime.fromisoformat(self.at).tzinfo is None:
            raise ValueError("a name with a folder, or a time without a zone")

    @property
    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return bool(self.began) and read_begin(self.pid) == self.began

    @property
    def place(self) -> str:
        """Return where its note and its output lie in the folder of launches, without the ending."""
        return self.run or f"{PENDING}/{self.campaign}"


class Launches:
    """The processes that the desk of a workspace started."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace.resolve()
        self._folder = self._workspace / LAUNCH_FOLDER

    @property
    def campaign_folder(self) -> Path:
        """Return the folder of the campaign files that the desk writes."""
        return self._workspace / CAMPAIGN_FOLDER

    def find_run(self, run: str) -> CampaignLaunch | None:
        """Return the process that last worked on a run; None where the desk did not start it."""
        return self._read_note(run)

    def find_pending(self, campaign: str) -> CampaignLaunch | None:
        """Return the process of a campaign that has no run yet."""
        return self._read_note(f"{PENDING}/{campaign}")

    def list_pending(self) -> list[CampaignLaunch]:
        """Return all processes of campaigns without a run: those that start, and those that could not."""
        found = [self.find_pending(path.stem) for path in sorted(self._pending.glob("*.json"))]
        return [launch for launch in found if launch]

    def start(
        self, ledger: Ledger, campaign: str, text: str, signed: tuple[str, datetime], form: dict[str, str]
    ) -> CampaignLaunch:
        """Write a campaign's file and run it; `signed` says who asked for it and when.

        Raises
        ------
        DeskError
            There is a file of this name, unless the desk wrote it for a process that ended before it had a run.
        """
        file, (by, at) = self._file(campaign), signed
        with self._changing():
            # Its process may have ended while no desk looked, with a run that must not be paid for again.
            if pending := self.find_pending(campaign):
                self._settle(ledger, pending)
            self.refuse_taken(campaign)
            make_folder(file.parent)
            write_whole(file, text.encode())
            words = at.isoformat(timespec="seconds")
            draft = CampaignLaunch(campaign, "", by, words, 0, "", 0, form, compute_digest(text.encode()))
            self._log(draft).unlink(missing_ok=True)
            return self._spawn(draft)

    def refuse_taken(self, campaign: str) -> None:
        """Refuse a name that a campaign file has, unless the desk wrote it for a process that could not start."""
        file, pending = self._file(campaign), self.find_pending(campaign)
        if pending and pending.is_alive:
            raise DeskError("This campaign is starting.", field="name", got=campaign, code="running")
        if os.path.lexists(file) and not (pending and self._is_as_written(pending)):
            raise DeskError(
                "There is a campaign of this name.",
                field="name",
                got=campaign,
                allowed="a name that no file in the folder campaigns has",
                hint=f"Choose another one, or run the file: alphaloom run {file} --workspace {self._workspace}",
                code="file_exists",
            )

    def resume(self, ledger: Ledger, run: str, campaign: str, by: str, at: datetime) -> CampaignLaunch:
        """Go on with a run, and record who asked for it.

        Raises
        ------
        DeskError
            A process works on it.
        """
        with self._changing():
            earlier = self.find_run(run)
            if ledger.runs.holder(run) is not None or (earlier and earlier.is_alive):
                raise DeskError("A process works on this run already.", field="run", got=run, code="running")
            note_start(ledger.events, run, by)
            return self._spawn(CampaignLaunch(campaign, run, by, at.isoformat(timespec="seconds"), 0, ""))

    def settle(self, ledger: Ledger, launch: CampaignLaunch) -> CampaignLaunch:
        """Return a launch with its run, once the process has begun one; who started it is then put on the record."""
        if launch.run:
            return launch
        with self._changing():
            return self._settle(ledger, launch)

    def _settle(self, ledger: Ledger, launch: CampaignLaunch) -> CampaignLaunch:
        held, run = self.find_pending(launch.campaign), _find_begun(ledger, launch)
        if held != launch or not run:
            return launch
        note_start(ledger.events, run, launch.by)
        found = replace(launch, run=run)
        with suppress(FileNotFoundError):  # moved before a crash
            self._log(launch).rename(self._log(found))
        self._write_note(found)
        self._note(launch.place).unlink()
        return found

    def discard(self, launch: CampaignLaunch) -> None:
        """Forget a process that ended before it had a run, its output, and its file as the desk wrote it."""
        with self._changing():
            if launch.is_alive or launch.run:
                raise DeskError("It is running: stop it first.", field="campaign", got=launch.campaign, code="running")
            for path in (self._note(launch.place), self._log(launch)):
                path.unlink(missing_ok=True)
            if self._is_as_written(launch):
                self._file(launch.campaign).unlink()

    def read_output(self, launch: CampaignLaunch) -> list[str]:
        """Return the last lines that a process wrote, without the stack of an error."""
        return read_tail(self._log(launch), launch.offset)

    def _file(self, campaign: str) -> Path:
        return self.campaign_folder / f"{campaign}.yaml"

    def _note(self, place: str) -> Path:
        return self._folder / f"{place}.json"

    def _log(self, launch: CampaignLaunch) -> Path:
        return self._folder / f"{launch.place}.log"

    def _is_as_written(self, launch: CampaignLaunch) -> bool:
        """Return whether the campaign file of a launch is there and nobody changed it since."""
        with suppress(FileNotFoundError):
            return compute_digest(self._file(launch.campaign).read_bytes()) == launch.digest
        return False

    @property
    def _pending(self) -> Path:
        return self._folder / PENDING

    @contextmanager
    def _changing(self) -> Iterator[None]:
        make_folder(self._pending)
        with wait_for_lock(self._folder / "lock"):
            yield

    def _write_note(self, launch: CampaignLaunch) -> None:
        write_json(self._note(launch.place), asdict(launch))

    def _read_note(self, place: str) -> CampaignLaunch | None:
        """Return the note of a place; None where there is none, or one that is not of this place or cannot be read."""
        with suppress(OSError, ValueError, TypeError, AttributeError):  # also a name that is no file's
            found = CampaignLaunch(**read_json(self._note(place)))
            return found if found.place == place else None
        return None

    def _write_command(self, launch: CampaignLaunch) -> list[str]:
        """Return the command that the process of a launch runs, after the interpreter and its options."""
        resumed = not launch.digest
        words = ["resume", launch.run] if resumed else ["run", str(self._file(launch.campaign))]
        return ["-m", "alphaloom", *words, "--workspace", str(self._workspace)]

    def _spawn(self, draft: CampaignLaunch) -> CampaignLaunch:
        """Run the command line in a session of its own, so that neither the desk's end nor its Ctrl-C reaches it."""
        if sys.platform == "win32":
            raise DeskError("The desk starts processes on Linux and macOS alone.", hint="Use the command line.")
        log = self._log(draft)
        make_file(log)
        # -P: a module in the current folder must not take the place of one of ours.
        command = [sys.executable, "-P", *self._write_command(draft)]
        with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "ab") as output:
            offset = output.tell()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        launch = replace(draft, pid=process.pid, began=read_begin(process.pid), offset=offset)
        self._write_note(launch)
        threading.Thread(target=self._follow, args=(process, launch), daemon=True).start()
        return launch

    def interrupt(self, launch: CampaignLaunch) -> None:
        """Send the process of a launch what Ctrl-C sends, if it is still that process.

        Raises
        ------
        DeskError
            It has ended, or it belongs to another account of this machine.
        """
        if not launch.pid:
            raise _ended_error(launch)
        try:
            if sys.platform == "linux":
                with _pinned(launch.pid) as handle:
                    self._refuse_other(launch)
                    signal.pidfd_send_signal(handle, signal.SIGINT)
            else:
                self._refuse_other(launch)
                os.kill(launch.pid, signal.SIGINT)
        except (ProcessLookupError, OverflowError):  # a number that no process can have
            raise _ended_error(launch) from None
        except PermissionError:
            raise DeskError(
                "The process belongs to another account of this machine.", field="process", got=launch.pid,
                hint="Whoever started it can interrupt it.", code="ended",
            ) from None  # fmt: skip  # a table

    def _refuse_other(self, launch: CampaignLaunch) -> None:
        """Refuse a process that has ended, or that is not the command of the launch: a note may have been edited."""
        if not (launch.is_alive and _runs_command(launch.pid, self._write_command(launch))):
            raise _ended_error(launch)

    def _follow(self, process: subprocess.Popen[bytes], launch: CampaignLaunch) -> None:
        """Wait for a process, since one that nobody waits for stays in the system's table; put its start on record."""
        while not launch.run:
            ended = process.poll() is not None
            with (
                suppress(AlphaloomError, OSError),  # a page that reads the launch settles it too
                Ledger.open(self._workspace, clock=lambda: datetime.now(UTC)) as ledger,
            ):
                launch = self.settle(ledger, launch)
            if ended:
                return
            time.sleep(FOLLOW_SECONDS)
        process.wait()


@contextmanager
def _pinned(pid: int) -> Iterator[int]:
    """Hold a process by a descriptor: meanwhile its number cannot go to another one."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def _ended_error(launch: CampaignLaunch) -> DeskError:
    return DeskError("The process has ended.", field="process", got=launch.pid, code="ended")


def _runs_command(pid: int, words: Sequence[str]) -> bool:
    """Return whether a process was started with some words at the end of its command."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0".join(map(os.fsencode, words)) + b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
    # Elsewhere `ps` may write a path in another way than it was given.
    found = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return " ".join(words[:3]) in found.stdout


def read_begin(pid: int) -> str:
    """Return when the system began a process, in the system's own words; empty where it has ended."""
    if pid <= 0:
        return ""
    if sys.platform == "linux":
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
        fields = status.rpartition(")")[2].split()  # the name before it may hold spaces
        return "" if fields[0] in "ZX" else fields[19]
    line = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = line.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()


def read_tail(log: Path, offset: int) -> list[str]:
    """Return the last lines that a process wrote, without the stack of an error; none of a link or a pipe."""
    try:
        with open(os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(min(offset, end), end - TAIL_BYTES))
            body = file.read(TAIL_BYTES)
    except OSError:
        return []
    lines, in_stack = [], False
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("Traceback (most recent call last)"):
            in_stack = True
        elif not (in_stack and line.startswith(" ")):
            in_stack = False
            lines.append(line)
    return lines


def find_error(lines: Sequence[str]) -> list[str]:
    """Return the last message on an error in the output of a command, with its hint; empty where there is none."""
    starts = [place for place, line in enumerate(lines) if line.startswith(ERROR_WORDS)]
    return list(lines[starts[-1] :][:MAX_OUTPUT_LINES]) if starts else []


def _find_begun(ledger: Ledger, launch: CampaignLaunch) -> str:
    """Return the run that the process of a launch began: of the campaign's name, since then, and its own if held."""
    begun = datetime.fromisoformat(launch.at)
    for run in ledger.runs.all():
        name = run.config.get("settings", {}).get("name")
        if name == launch.campaign and datetime.fromisoformat(run.started_at) >= begun:
            holder = ledger.runs.holder(run.id)
            if holder is None or holder.split()[0] == str(launch.pid):
                return run.id
    return ""
