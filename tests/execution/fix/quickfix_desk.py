"""A desk over a real QuickFIX initiator with its own dictionaries; prints the kind of each message that comes.

quickfix_desk.py FOLDER PORT BEGINSTRING
"""

from __future__ import annotations

import queue
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import quickfix as fix

from alphaloom.execution.fix.dictionary import BEGIN_STRINGS

sys.path.insert(0, str(Path(__file__).parent))
from quickfix_venue import make_config  # noqa: E402 - it lies beside this file, which runs as a script

COUNT = 20
assert set(BEGIN_STRINGS.values()) == {"FIX.4.4", "FIXT.1.1"}


class Desk(fix.Application):  # type: ignore[misc]
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


def main() -> None:
    folder, port, begin = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    settings = fix.SessionSettings(make_config(folder, "initiator", port, ("QF", "VENUE"), begin))
    desk, store = Desk(), fix.FileStoreFactory(settings)
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
    main()
