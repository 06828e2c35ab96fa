"""QuickFIX as the engine of a FIX session, behind the same protocol as ours; the one file that knows QuickFIX.

QuickFIX keeps its numbers and messages itself. Beside them, an own file holds what was handed to it, so that no order
is handed over twice, and another what came from it, written before QuickFIX counts the message as received. An order
of which nothing came before a crash may have been lost between the two: it counts as withdrawn, and the venue is asked.

QuickFIX does not wait for the disk. What it received survives `kill -9`, but not always a power cut; the drop copy
shows what is missing then.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence, Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from ...extras import install_hint
from ...ledger.files import make_folder
from .codec import decode, encode
from .dictionary import BEGIN_STRINGS
from .errors import FixError
from .journal import LineJournal
from .link import Outgoing
from .message import Fields, FixMessage, format_time
from .session import SessionSettings
from .session_store import SessionStore

CONFIRMED: Final = "confirmed "
PROBE_SECONDS: Final = 0.5
"""A test of whether the other side has everything is repeated after this time: one sent into a gap is not answered."""
STATE_POLL_SECONDS: Final = 0.02
STOP_SECONDS: Final = 2.0
PROBE_ID: Final = "synchronise"


class QuickFixLink:
    """A `FixLink` over a QuickFIX initiator.

    Parameters
    ----------
    host, port
        Where the counterparty listens.
    settings
        Of the session.
    folder
        Of QuickFIX's files and ours.

    Raises
    ------
    FixError
        QuickFIX is not installed, or its configuration is refused.
    """

    def __init__(self, host: str, port: int, settings: SessionSettings, folder: Path) -> None:
        self._fix = _load_quickfix()
        make_folder(folder)
        self._store = SessionStore(folder / "handed.journal")
        self._inbox = LineJournal(folder / "received.journal")
        self._numbers: dict[int, str] = {}
        self._new: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._answered = threading.Event()
        self._up = threading.Event()
        self._lock = threading.Lock()
        self._settings = settings
        self._open_inbox()
        fix = self._fix
        self._id = fix.SessionID(BEGIN_STRINGS[settings.version], settings.sender, settings.target)
        config = folder / "quickfix.cfg"
        config.write_text(_make_config(host, port, settings, folder), encoding="utf-8")
        try:
            application = type("QuickFixApplication", (QuickFixCalls, fix.Application), {})
            self._application = application(self, fix.DoNotSend)
            self._config = fix.SessionSettings(str(config))
            self._files = fix.FileStoreFactory(self._config)
            self._initiator = fix.SocketInitiator(self._application, self._files, self._config)
            self._initiator.start()
        except (fix.ConfigError, fix.RuntimeError) as error:
            raise FixError(f"QuickFIX refuses its configuration: {error}", field=str(config)) from None

    def _open_inbox(self) -> None:
        """Read what came before: what was not confirmed comes again, and orders without any answer are withdrawn."""
        confirmed, texts = 0, []
        for line in self._inbox.lines:
            if line.startswith(CONFIRMED):
                confirmed = int(line.removeprefix(CONFIRMED))
            else:
                texts.append(line)
        self._inbox.lines.clear()
        self._confirmed = confirmed
        for text in texts[confirmed:]:
            self._new.put(text)
        answered = {value for text in texts for tag, value in _read(text).fields if tag in (11, 41)}
        for note in self._store.notes:
            if note not in answered:
                self._store.withdraw(note)
        self._store.sync()
        self._delivered = confirmed

    @property
    def withdrawn(self) -> AbstractSet[str]:
        """Return the notes of messages that will never be sent again."""
        with self._lock:
            return set(self._store.withdrawn)

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Wait for the Logon, and return whether the other side has what was sent before."""
        end, probed = time.monotonic() + timeout_s, float("-inf")
        while not (self._up.is_set() and self._answered.is_set()):
            now = time.monotonic()
            if now >= end:
                return False
            if self._up.is_set() and now - probed > PROBE_SECONDS:
                probed = now
                self._hand_over("1", ((112, PROBE_ID),))
            time.sleep(STATE_POLL_SECONDS)
        return True

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Put messages on record, each under its note, and hand them to QuickFIX."""
        with self._lock:
            for one in messages:
                text = encode(self._build(one.kind, one.fields)).decode("latin-1")
                self._store.add_sent(self._store.next_out, one.note, text)
            self._store.sync()
        for one in messages:
            self._hand_over(one.kind, one.fields)

    def receive(self, timeout_s: float) -> list[FixMessage]:
        """Return the messages that came, the oldest first, and wait for one for at most so many seconds."""
        messages: list[FixMessage] = []
        while True:
            try:
                text = self._new.get(timeout=timeout_s) if timeout_s > 0 and not messages else self._new.get_nowait()
            except queue.Empty:
                return messages
            self._delivered += 1
            messages.append(_read(text))

    def confirm(self) -> None:
        """Note that what was received is on record."""
        with self._lock:
            if self._delivered > self._confirmed:
                self._confirmed = self._delivered
                self._inbox.add(f"{CONFIRMED}{self._confirmed}")
                self._inbox.sync()

    def find(self, note: str) -> FixMessage | None:
        """Return the message that was put on record under a note."""
        kept = self._store.read_sent(self._store.notes.get(note, 0))
        return _read(kept[1]) if kept else None

    def find_number(self, number: int) -> str:
        """Return the note of the message that had a MsgSeqNum since this process began; empty where there is none."""
        return self._numbers.get(number, "")

    def close(self) -> None:
        """Log out and close."""
        session = self._fix.Session.lookupSession(self._id)
        if session is not None:
            session.logout()
        end = time.monotonic() + STOP_SECONDS
        while self._up.is_set() and time.monotonic() < end:
            time.sleep(STATE_POLL_SECONDS)
        self._initiator.stop()
        self._store.close()
        self._inbox.close()

    def _build(self, kind: str, fields: Fields) -> FixMessage:
        """Return a message as the record keeps it: QuickFIX gives it another number."""
        now = format_time(time.time_ns() // 1000)
        head = ((49, self._settings.sender), (56, self._settings.target), (34, str(self._store.next_out)), (52, now))
        return FixMessage(BEGIN_STRINGS[self._settings.version], kind, (*head, *fields))

    def _hand_over(self, kind: str, fields: Fields) -> None:
        message = self._fix.Message()
        message.getHeader().setField(self._fix.StringField(35, kind))
        for tag, value in fields:
            message.setField(self._fix.StringField(tag, value.encode("latin-1").decode("utf-8", "surrogateescape")))
        self._fix.Session.sendToTarget(message, self._id)

    # What QuickFIX's own thread calls.

    def note_state(self, *, up: bool) -> None:
        """Note a logon or its end: what is on its way is tested anew."""
        self._answered.clear()
        (self._up.set if up else self._up.clear)()

    def keep(self, text: str) -> None:
        """Write a received message into the inbox, before QuickFIX counts it as received."""
        with self._lock:
            self._inbox.add(text)
            self._inbox.write()
            self._new.put(text)

    def note_heartbeat(self, test: str) -> None:
        """Note the answer to a test: the other side has everything before it."""
        if test == PROBE_ID:
            self._answered.set()

    def may_send(self, kind: str, number: int, note: str, *, again: bool) -> bool:
        """Return whether a message may leave; one that may not be sent again is withdrawn first."""
        with self._lock:
            if again and kind not in self._settings.resent:
                if note in self._store.notes:
                    self._store.withdraw(note)
                    self._store.write()
                return False
            self._numbers[number] = note
            return True


def _load_quickfix() -> Any:
    try:
        import quickfix
    except ImportError:
        raise FixError(
            "QuickFIX is not installed.",
            hint=f"It has no wheels: it is built for ten minutes with a C++ compiler and 3 GB. {install_hint('fix')}",
            code="fix_missing",
            exit_code=3,
        ) from None
    return quickfix


def _make_config(host: str, port: int, settings: SessionSettings, folder: Path) -> str:
    """Return QuickFIX's configuration. The codec of ours checks what comes in, so its dictionaries are not needed."""
    begin = BEGIN_STRINGS[settings.version]
    lines = {
        "ConnectionType": "initiator", "ReconnectInterval": "1", "FileStorePath": folder / "store",
        "StartTime": "00:00:00", "EndTime": "00:00:00", "UseDataDictionary": "N", "HeartBtInt": settings.heartbeat_s,
        "SocketConnectHost": host, "SocketConnectPort": port, "SocketNodelay": "Y", "ValidateLengthAndChecksum": "Y",
        "LogonTimeout": "10", "DefaultApplVerID": settings.version,
    }  # fmt: skip  # a table
    if begin == settings.version:
        del lines["DefaultApplVerID"]
    default = "".join(f"{name}={value}\n" for name, value in lines.items())
    session = f"BeginString={begin}\nSenderCompID={settings.sender}\nTargetCompID={settings.target}\n"
    return f"[DEFAULT]\n{default}[SESSION]\n{session}"


class QuickFixCalls:
    """What QuickFIX calls, from a thread of its own; the other base of the object is `quickfix.Application`."""

    def __init__(self, link: QuickFixLink, do_not_send: type[Exception]) -> None:
        super().__init__()
        self._link, self._do_not_send = link, do_not_send

    def onCreate(self, session: Any) -> None:
        """Do nothing."""

    def onLogon(self, session: Any) -> None:
        """Note that the session is up."""
        self._link.note_state(up=True)

    def onLogout(self, session: Any) -> None:
        """Note that it is not."""
        self._link.note_state(up=False)

    def toAdmin(self, message: Any, session: Any) -> None:
        """Do nothing."""

    def fromAdmin(self, message: Any, session: Any) -> None:
        """Keep a Reject, and note an answered test."""
        kind = message.getHeader().getField(35)
        if kind == "3":
            self._link.keep(_write(message))
        elif kind == "0" and message.isSetField(112):
            self._link.note_heartbeat(message.getField(112))

    def toApp(self, message: Any, session: Any) -> None:
        """Let no order be sent again."""
        header = message.getHeader()
        again = header.isSetField(43) and header.getField(43) == "Y"
        note = message.getField(11) if message.isSetField(11) else ""
        if not self._link.may_send(header.getField(35), int(header.getField(34)), note, again=again):
            raise self._do_not_send

    def fromApp(self, message: Any, session: Any) -> None:
        """Keep what came."""
        self._link.keep(_write(message))


def _write(message: Any) -> str:
    """Return the bytes of one of QuickFIX's messages as a text in Latin-1."""
    return str(message.toString()).encode("utf-8", "surrogateescape").decode("latin-1")


def _read(text: str) -> FixMessage:
    return decode(text.encode("latin-1"))
