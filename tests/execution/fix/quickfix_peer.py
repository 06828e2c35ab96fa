"""A real QuickFIX with its own dictionaries on either side, in a process of its own.

quickfix_peer.py venue FOLDER PORT BEGINSTRING fills each order once, and keeps what it saw.
quickfix_peer.py desk FOLDER PORT BEGINSTRING trades, and prints the kind of each message that comes.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

fix: Any = import_module("quickfix")


def find_dictionaries() -> Path:
    """Return the folder of QuickFIX's dictionaries."""
    places = (Path(fix.__file__).parent, Path(sys.prefix))
    return next(place / "share/quickfix" for place in places if (place / "share/quickfix").is_dir())


CONFIG = """[DEFAULT]
ConnectionType={kind}
{place}
FileStorePath={folder}/store
StartTime=00:00:00
EndTime=00:00:00
ReconnectInterval=1
HeartBtInt=2
SocketNodelay=Y
UseDataDictionary=Y
SenderCompID={sender}
TargetCompID={target}
[SESSION]
BeginString={begin}
{dictionaries}
"""


def make_config(folder: Path, kind: str, port: int, parties: tuple[str, str], begin: str = "FIX.4.4") -> str:
    """Return a configuration of QuickFIX with its own dictionaries, and write it into the folder."""
    folder.mkdir(exist_ok=True)
    xml = find_dictionaries()
    names = f"DataDictionary={xml}/FIX44.xml"
    if begin == "FIXT.1.1":
        names = f"TransportDataDictionary={xml}/FIXT11.xml\nAppDataDictionary={xml}/FIX50SP2.xml"
        names += "\nDefaultApplVerID=FIX.5.0SP2"
    place = f"SocketAcceptPort={port}\nSocketReuseAddress=Y"
    if kind == "initiator":
        place = f"SocketConnectHost=127.0.0.1\nSocketConnectPort={port}"
    path = folder / "quickfix.cfg"
    path.write_text(
        CONFIG.format(
            kind=kind, place=place, folder=folder, sender=parties[0], target=parties[1], begin=begin, dictionaries=names
        )
    )
    return str(path)


class Fills(fix.Application):  # type: ignore[misc]
    """Fills each order at 10, once; what it saw is on the disk first."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "orders.txt"
        self.path.touch()
        self.seen = set(self.path.read_text().split())
        self.file = self.path.open("a")

    def onCreate(self, session: object) -> None: ...
    def onLogon(self, session: object) -> None: ...
    def onLogout(self, session: object) -> None: ...
    def toAdmin(self, message: object, session: object) -> None: ...
    def fromAdmin(self, message: object, session: object) -> None: ...
    def toApp(self, message: object, session: object) -> None: ...

    def fromApp(self, message: fix.Message, session: fix.SessionID) -> None:
        kind = message.getHeader().getField(35)
        if kind == "F":
            self.answer_cancel(message, session)
        elif kind == "D":
            id = message.getField(11)
            if id not in self.seen:
                self.seen.add(id)
                self.file.write(f"{id}\n")
                self.file.flush()
                os.fsync(self.file.fileno())
            self.fill(message, id, session)  # of one seen before too: the report may have been lost

    def fill(self, order: fix.Message, id: str, session: fix.SessionID) -> None:
        shares = order.getField(38)
        fields = {
            37: f"O-{id}", 11: id, 17: f"E-{id}", 150: "F", 39: "2", 55: order.getField(55), 54: order.getField(54),
            38: shares, 32: shares, 31: "10", 151: "0", 14: shares, 6: "10", 60: order.getField(60),
        }  # fmt: skip  # a table
        self.tell("8", fields, session)

    def answer_cancel(self, cancel: fix.Message, session: fix.SessionID) -> None:
        id = cancel.getField(41)
        known = id in self.seen
        if known:  # the desk asks since it heard nothing of the fill
            self.fill(cancel, id, session)
        fields = {37: f"O-{id}" if known else "NONE", 11: cancel.getField(11), 41: id, 39: "2" if known else "8"}
        self.tell("9", {**fields, 434: "1", 102: "0" if known else "1"}, session)

    def tell(self, kind: str, fields: dict[int, str], session: fix.SessionID) -> None:
        message = fix.Message()
        message.getHeader().setField(fix.StringField(35, kind))
        for tag, value in fields.items():
            message.setField(fix.StringField(tag, value))
        fix.Session.sendToTarget(message, session)


def run_venue(folder: Path, port: int, begin: str) -> None:
    settings = fix.SessionSettings(make_config(folder, "acceptor", port, ("VENUE", "DESK"), begin))
    application, store = Fills(folder), fix.FileStoreFactory(settings)
    acceptor = fix.SocketAcceptor(application, store, settings)
    acceptor.start()
    print("ready", flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    while not ended.wait(0.2):
        pass
    acceptor.stop()


COUNT = 20


class QuickFixDesk(fix.Application):  # type: ignore[misc]
    """Puts what comes into a queue."""

    def __init__(self) -> None:
        super().__init__()
        self.came: queue.SimpleQueue[str] = queue.SimpleQueue()

    def onCreate(self, session: object) -> None: ...
    def onLogon(self, session: object) -> None:
        self.came.put("logon")

    def onLogout(self, session: object) -> None: ...
    def toAdmin(self, message: fix.Message, session: object) -> None:
        if message.getHeader().getField(35) == "3":
            self.came.put("3")

    def toApp(self, message: object, session: object) -> None: ...

    def fromAdmin(self, message: fix.Message, session: object) -> None:
        if message.getHeader().getField(35) == "3":
            self.came.put("3")

    def fromApp(self, message: fix.Message, session: object) -> None:
        kind = message.getHeader().getField(35)
        self.came.put(f"8/{message.getField(150)}" if kind == "8" else kind)


def send(session: fix.SessionID, kind: str, fields: dict[int, str]) -> None:
    message = fix.Message()
    message.getHeader().setField(fix.StringField(35, kind))
    now = datetime.now(UTC).strftime("%Y%m%d-%H:%M:%S.000")
    for tag, value in {**fields, 60: now}.items():
        message.setField(fix.StringField(tag, value))
    fix.Session.sendToTarget(message, session)


def run_desk(folder: Path, port: int, begin: str) -> None:
    settings = fix.SessionSettings(make_config(folder, "initiator", port, ("QF", "VENUE"), begin))
    desk, store = QuickFixDesk(), fix.FileStoreFactory(settings)
    initiator = fix.SocketInitiator(desk, store, settings)
    initiator.start()
    session = fix.SessionID(begin, "QF", "VENUE")
    kinds = [desk.came.get(timeout=20)]
    same = {55: "AAA", 54: "1"}
    for number in range(COUNT):
        send(session, "D", {11: f"o{number}", **same, 38: "100", 40: "1"})
    for name in ("rest", "rest2", "rest3"):
        send(session, "D", {11: name, **same, 38: "100", 40: "2", 44: "1"})
    send(session, "F", {11: "c1", 41: "rest", **same, 38: "100"})
    send(session, "F", {11: "c2", 41: "never", **same, 38: "100"})
    send(session, "q", {11: "m", 530: "7"})
    send(session, "H", {11: "rest", 37: "O1", **same})
    end = time.monotonic() + 15
    while time.monotonic() < end and (kinds.count("8/4") < 3 or "j" not in kinds):
        kinds.append(desk.came.get(timeout=15))
    initiator.stop()
    print(*kinds)


if __name__ == "__main__":
    {"venue": run_venue, "desk": run_desk}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
