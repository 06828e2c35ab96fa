"""Two sessions without a network: bytes are carried by hand, and either side can be killed."""

from dataclasses import dataclass, field
from pathlib import Path

from alphaloom.execution.fix import TRADING_RESENT, FixMessage, FixSession, FixVersion, SessionSettings, SessionStore
from alphaloom.execution.fix.message import Fields

from .wire import AT, ORDER, US

HEARTBEAT_S = 30


def kill(store: SessionStore) -> None:
    """Leave a store as `kill -9` does: what was not synced is gone, and the system takes the lock back."""
    store._journal._pending.clear()
    store.close()


@dataclass
class Side:
    """A session, its file, and what its application has on record."""

    settings: SessionSettings
    path: Path
    taken: list[FixMessage] = field(default_factory=list)
    orders_seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.store = SessionStore(self.path)
        self.session = FixSession(self.settings, self.store)


class Pair:
    """A trading side and a venue side that answers each order with a report."""

    def __init__(self, folder: Path, version: FixVersion = "FIX.4.4") -> None:
        self.now_us = US
        self.desk = Side(SessionSettings(version, "DESK", "VENUE", True, HEARTBEAT_S, TRADING_RESENT), folder / "desk")
        venue = SessionSettings(version, "VENUE", "DESK", False, HEARTBEAT_S, frozenset("8"))
        self.venue = Side(venue, folder / "venue")
        self.sent: list[str] = []
        self.wires = {"desk": b"", "venue": b""}
        """Bytes that left a side and have not arrived."""
        self.connected = False

    def connect(self) -> None:
        self.wires = {"desk": b"", "venue": b""}
        self.venue.session.connect(self.now_us)
        self.desk.session.connect(self.now_us)
        self.connected = True

    def disconnect(self) -> None:
        self.desk.session.disconnect()
        self.venue.session.disconnect()
        self.connected = False

    def kill(self, name: str) -> None:
        side: Side = getattr(self, name)
        kill(side.store)
        self.disconnect()
        side.begin()

    def order(self) -> None:
        id = f"order-{len(self.sent)}"
        self.sent.append(id)
        self.desk.session.send("D", ((11, id), *ORDER[1:]), self.now_us, id)

    def collect(self) -> None:
        """Take what both sides want to send: from now on it is on their disks."""
        for name in self.wires:
            data = getattr(self, name).session.take_output()
            if self.connected:
                self.wires[name] += data

    def carry(self, name: str, size: int | None = None) -> None:
        """Carry bytes that a side sent to the other one."""
        data, self.wires[name] = self.wires[name][:size], self.wires[name][len(self.wires[name][:size]) :]
        to: Side = self.venue if name == "desk" else self.desk
        messages = to.session.receive(data, self.now_us)
        to.taken += messages
        for message in messages:
            if message.kind == "D":
                self.venue.orders_seen.append(message.get(11))
                self._report(message.get(11))
        to.session.confirm()
        to.store.sync()  # the venue's journal and the desk's ledger are on the disk by now
        if to.session.closing:
            self.collect()
            self.disconnect()

    def _report(self, id: str) -> None:
        fields: Fields = (
            (37, "O1"), (11, id), (17, f"E-{id}"), (150, "0"), (39, "0"), (55, "AAA"), (54, "1"), (38, "100"),
            (151, "100"), (14, "0"), (60, AT),
        )  # fmt: skip  # a table
        self.venue.session.send("8", fields, self.now_us, f"E-{id}")

    def settle(self) -> None:
        """Connect, and carry bytes until nothing moves any more."""
        if not self.connected:
            self.connect()
        for _ in range(50):
            self.now_us += 1_100_000
            for side in (self.desk, self.venue):
                side.session.tick(self.now_us)
            self.collect()
            if not any(self.wires.values()) and self.desk.session.synchronised:
                return
            for name in self.wires:
                self.carry(name)
        raise AssertionError(f"it does not settle: {self.desk.session.closing} {self.venue.session.closing}")
