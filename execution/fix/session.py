"""A FIX session without input or output: bytes go in, messages and bytes come out, the time is passed in.

A number is on the disk before the message that has it leaves (`take_output` syncs first). Received messages are
confirmed by the application once it has recorded them: until then a crash makes the counterparty send them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ..orders import US_PER_SECOND
from .codec import FrameReader, decode, encode
from .dictionary import (
    APPLICATION_VERSION,
    BEGIN_STRINGS,
    REQUIRED,
    REQUIRED_MISSING,
    SESSION_KINDS,
    WRONG_PARTY,
    WRONG_SENDING_TIME,
    WRONG_VALUE,
    FixVersion,
)
from .errors import InvalidMessage
from .message import Fields, FixMessage, format_time, parse_time
from .session_store import SessionStore

SessionState = Literal["down", "logging on", "up", "leaving"]
CLOCK_TOLERANCE_US: Final = 120 * US_PER_SECOND
LOGON_WAIT_US: Final = 10 * US_PER_SECOND
LOGOUT_WAIT_US: Final = 2 * US_PER_SECOND
RESEND_PAUSE_US: Final = US_PER_SECOND
"""The same gap is asked for again after this time, where messages behind it go on coming."""
ORIGINAL_TIME = 122


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What both sides agree on before they connect.

    Attributes
    ----------
    version
        "FIX.4.4" or "FIX.5.0SP2".
    sender, target
        Our CompID and theirs.
    initiator
        Whether we log on.
    heartbeat_s
        Seconds of silence after which a heartbeat is due; an acceptor takes those of the Logon.
    resent
        Kinds of application messages that are sent again where the counterparty missed them. An order is not among
        those of a trading side: minutes later it is another decision.
    """

    version: FixVersion
    sender: str
    target: str
    initiator: bool
    heartbeat_s: int
    resent: frozenset[str]


class FixSession:
    """One session: its numbers, its state, and what is to be sent.

    Attributes
    ----------
    state
        "down", "logging on", "up" or "leaving".
    closing : str
        Why the connection must be closed once the output is sent; empty while it stays.
    refusal : str
        Why another connection would end the same way, such as numbers that do not fit; empty where it may work.
    synchronised : bool
        Whether the other side has, since this connection began, everything that we sent or a gap in its place.
    garbled : int
        Stretches of bytes on this connection that were no message.
    """

    def __init__(self, settings: SessionSettings, store: SessionStore) -> None:
        self.settings = settings
        self.store = store
        self.begin = BEGIN_STRINGS[settings.version]
        self.expected = store.next_in
        self._unconfirmed = False
        self._disconnect_state()

    def _disconnect_state(self) -> None:
        self.state: SessionState = "down"
        self.closing = self.refusal = ""
        self.synchronised = False
        self._heartbeat_us = self.settings.heartbeat_s * US_PER_SECOND
        self._reader = FrameReader()
        self._output: list[bytes] = []
        self._received_us = self._sent_us = self._since_us = 0
        self._tested = False
        self._asked = (0, 0)

    @property
    def garbled(self) -> int:
        """Return the stretches of bytes on this connection that were no message."""
        return self._reader.garbled

    # What the connection tells.

    def connect(self, now_us: int) -> None:
        """Begin on a new connection: an initiator logs on."""
        self._disconnect_state()
        self.state = "logging on"
        self._received_us = self._sent_us = self._since_us = now_us
        if self.settings.initiator:
            self._send_logon((), now_us)

    def disconnect(self) -> None:
        """Note that the connection is gone."""
        self._disconnect_state()

    def receive(self, data: bytes, now_us: int) -> list[FixMessage]:
        """Take bytes from the connection, and return the application messages in their order.

        They are to be recorded and then confirmed. A Reject of the counterparty is among them.
        """
        delivered: list[FixMessage] = []
        for frame in self._reader.feed(data):
            if self.closing:
                break
            self._received_us, self._tested = now_us, False
            try:
                message = decode(frame)
            except InvalidMessage as error:
                self._answer_invalid(error, now_us)
                continue
            if self._take(message, now_us):
                self._unconfirmed = True
                delivered.append(message)
        if not self._unconfirmed:
            self.store.set_next_in(self.expected)
        return delivered

    def confirm(self) -> None:
        """Note that the application has recorded every message that was delivered."""
        self._unconfirmed = False
        self.store.set_next_in(self.expected)

    def tick(self, now_us: int) -> None:
        """Do what is due: heartbeats, a test of a silent counterparty, the end of a wait."""
        if self.state == "down" or self.closing:
            return
        waited = now_us - self._since_us
        if self.state == "logging on" and waited > LOGON_WAIT_US:
            self.closing = "no Logon came"
        elif self.state == "leaving" and waited > LOGOUT_WAIT_US:
            self.closing = "no Logout came"
        elif self.state == "up":
            self._keep_alive(now_us)

    def _keep_alive(self, now_us: int) -> None:
        silence = now_us - self._received_us
        if silence > self._heartbeat_us * 12 // 5:
            self.closing = "the counterparty is silent"
            return
        if silence > self._heartbeat_us * 6 // 5 and not self._tested:
            self._tested = True
            self._send_session("1", ((112, f"test-{now_us}"),), now_us)
        if now_us - self._sent_us >= self._heartbeat_us:
            self._send_session("0", (), now_us)

    # What the application asks for.

    def send(self, kind: str, fields: Fields, now_us: int, note: str = "") -> int:
        """Keep an application message, send it if the session is up, and return its number.

        A message that is kept while the session is down, or in the moment in which it is lost, goes out only where its
        kind is `resent`; in the place of another one the counterparty gets a gap, and its note is withdrawn.
        """
        number = self.store.next_out
        message = self._build(kind, fields, number, now_us)
        data = encode(message)
        self.store.add_sent(number, note, data.decode("latin-1"))
        if self.state == "up":
            self._output.append(data)
            self._sent_us = now_us
        return number

    def preview(self, kind: str, fields: Fields, now_us: int) -> bytes:
        """Return the bytes that `send` would send now, without a number being taken."""
        return encode(self._build(kind, fields, self.store.next_out, now_us))

    def log_out(self, text: str, now_us: int) -> None:
        """Say goodbye; the connection closes when the counterparty has answered."""
        if self.state == "up":
            self._send_session("5", ((58, text),) if text else (), now_us)
            self.state, self._since_us = "leaving", now_us
        elif self.state != "leaving":
            self.closing = text or "logged out"

    def take_output(self) -> bytes:
        """Return the bytes to send now; the numbers in them are on the disk before."""
        self.store.sync()
        data = b"".join(self._output)
        self._output.clear()
        return data

    # Sending.

    def _build(self, kind: str, fields: Fields, number: int, now_us: int, original: str = "") -> FixMessage:
        head: list[tuple[int, str]] = [(49, self.settings.sender), (56, self.settings.target), (34, str(number))]
        if original:
            head.append((43, "Y"))
        head.append((52, format_time(now_us)))
        if original:
            head.append((ORIGINAL_TIME, original))
        return FixMessage(self.begin, kind, (*head, *fields))

    def _send_session(self, kind: str, fields: Fields, now_us: int) -> None:
        number = self.store.next_out
        self._output.append(encode(self._build(kind, fields, number, now_us)))
        self.store.set_next_out(number + 1)
        self._sent_us = now_us

    def _send_logon(self, extra: Fields, now_us: int) -> None:
        seconds = self._heartbeat_us // US_PER_SECOND
        version = ((1137, APPLICATION_VERSION),) if self.settings.version == "FIX.5.0SP2" else ()
        self._send_session("A", ((98, "0"), (108, str(seconds)), *extra, *version), now_us)

    def _refuse(self, text: str, now_us: int) -> None:
        """End the session with the reason in a Logout."""
        self._send_session("5", ((58, text),), now_us)
        self.closing = self.refusal = text

    def _reject(self, number: int, kind: str, error: InvalidMessage, now_us: int) -> None:
        fields = [(45, str(number)), *([(371, str(error.tag))] if error.tag else [])]
        fields += [*([(372, kind)] if kind else []), (373, str(error.reason)), (58, error.message)]
        self._send_session("3", tuple(fields), now_us)

    # Receiving.

    def _take(self, message: FixMessage, now_us: int) -> bool:
        """Handle a message, and return whether it is one for the application."""
        try:
            if not self._check_party(message, now_us):
                return False
        except InvalidMessage as error:
            error.kind, error.seq = message.kind, message.seq
            self._answer_invalid(error, now_us)
            return False
        if message.kind == "4" and not message.flag(123):
            self._reset_sequence(message, now_us)
        elif self.state == "logging on" or message.kind == "A":
            self._take_logon(message, now_us)
        elif message.seq > self.expected:
            self._take_early(message, now_us)
        elif message.seq < self.expected:
            if not message.possible_duplicate:
                self._refuse(f"MsgSeqNum too low, expecting {self.expected} but received {message.seq}", now_us)
        else:
            self.expected += 1
            return self._take_expected(message, now_us)
        return False

    def _take_expected(self, message: FixMessage, now_us: int) -> bool:
        """Handle the message that is next, and return whether it is one for the application."""
        if message.kind in SESSION_KINDS and message.kind != "3":
            self._take_session(message, now_us)
            return False
        if message.kind not in REQUIRED:
            self.send("j", ((45, str(message.seq)), (372, message.kind), (380, "3"), (58, "not supported")), now_us)
            return False
        return True

    def _check_party(self, message: FixMessage, now_us: int) -> bool:
        """Return whether a message is of this session and of this hour; what is not ends the session."""
        ours = (message.get(49), message.get(56)) == (self.settings.target, self.settings.sender)
        sent_us = parse_time(message.get(52))
        if message.begin != self.begin:
            self._refuse(f"BeginString is {message.begin}, and {self.begin} was agreed", now_us)
        elif not ours:
            self._reject(message.seq, message.kind, InvalidMessage("another CompID", WRONG_PARTY), now_us)
            self._refuse("SenderCompID or TargetCompID is that of another session", now_us)
        elif abs(now_us - sent_us) > CLOCK_TOLERANCE_US:
            self._reject(message.seq, message.kind, InvalidMessage("SendingTime", WRONG_SENDING_TIME, 52), now_us)
            self._refuse("SendingTime is more than two minutes from our clock", now_us)
        elif message.possible_duplicate and message.kind != "4" and not message.get(ORIGINAL_TIME):
            raise InvalidMessage("A required field is missing.", REQUIRED_MISSING, ORIGINAL_TIME)
        return not self.closing

    def _take_logon(self, message: FixMessage, now_us: int) -> None:
        """Handle the first message of a connection, or a Logon later."""
        number, reset = message.seq, message.flag(141)
        if self.state != "logging on" or message.kind != "A":
            self.closing = "a second Logon" if message.kind == "A" else "the first message is no Logon"
            if message.kind == "5":
                self.refusal = message.get(58, "the counterparty logged out at once")
            return
        problem = self._find_logon_problem(message, number, reset)
        if problem:
            self._refuse(problem, now_us)
            return
        if reset:
            self.store.reset()
            self.expected = 1
        if not self.settings.initiator:
            self._heartbeat_us = message.number(108) * US_PER_SECOND
            self._send_logon(((141, "Y"),) if reset else (), now_us)
        self.state = "up"
        if number > self.expected:
            self._ask_again(now_us)
        else:
            self.expected += 1
        if self.settings.initiator:
            self._send_session("1", ((112, "synchronise"),), now_us)

    def _find_logon_problem(self, message: FixMessage, number: int, reset: bool) -> str:
        if reset and (self.settings.initiator or number != 1):
            return "ResetSeqNumFlag was not agreed, or MsgSeqNum is not 1"
        if number < self.expected and not reset:
            return f"MsgSeqNum too low, expecting {self.expected} but received {number}"
        if self.settings.version == "FIX.5.0SP2" and message.get(1137) != APPLICATION_VERSION:
            return f"DefaultApplVerID must be {APPLICATION_VERSION}"
        if message.get(98) != "0" or not 0 < message.number(108) <= 3600:
            return "EncryptMethod must be 0 and HeartBtInt from 1 to 3600"
        return ""

    def _take_early(self, message: FixMessage, now_us: int) -> None:
        """Handle a message that comes before an expected one: it will come again with the missing ones."""
        if message.kind == "2":
            self._resend(message, now_us)  # else two sides that both miss something would wait for each other
        if message.kind == "5":
            self._take_logout(now_us)
            return
        self._ask_again(now_us)

    def _ask_again(self, now_us: int) -> None:
        number, asked_us = self._asked
        if number == self.expected and now_us - asked_us < RESEND_PAUSE_US:
            return
        self._asked = (self.expected, now_us)
        self._send_session("2", ((7, str(self.expected)), (16, "0")), now_us)

    def _take_session(self, message: FixMessage, now_us: int) -> None:
        if message.kind == "0" and message.get(112) == "synchronise":
            self.synchronised = True
        elif message.kind == "1":
            self._send_session("0", ((112, message.get(112)),), now_us)
        elif message.kind == "2":
            self._resend(message, now_us)
        elif message.kind == "4":
            self._fill_gap(message, now_us)
        elif message.kind == "5":
            self._take_logout(now_us)

    def _take_logout(self, now_us: int) -> None:
        if self.state == "up":
            self._send_session("5", (), now_us)
        self.closing = "logged out"

    def _fill_gap(self, message: FixMessage, now_us: int) -> None:
        new = message.number(36)
        if new < self.expected:
            error = InvalidMessage("NewSeqNo is not above MsgSeqNum.", WRONG_VALUE, 36)
            self._reject(message.seq, "4", error, now_us)
        else:
            self.expected = new

    def _reset_sequence(self, message: FixMessage, now_us: int) -> None:
        """Handle a SequenceReset without GapFillFlag, whose own number does not count."""
        new = message.number(36)
        if self.state != "up":
            self.closing = "the first message is no Logon"
        elif new < self.expected:
            error = InvalidMessage("NewSeqNo is below the expected number.", WRONG_VALUE, 36)
            self._reject(message.seq, "4", error, now_us)
        else:
            self.expected = new

    def _resend(self, request: FixMessage, now_us: int) -> None:
        """Answer a ResendRequest: what may be sent again is, and everything else becomes a gap."""
        last = self.store.next_out - 1
        first, end = request.number(7), request.number(16)
        if not 1 <= first <= last or (end and end < first):
            error = InvalidMessage("BeginSeqNo or EndSeqNo was never sent.", WRONG_VALUE, 7)
            self._reject(request.seq, "2", error, now_us)
            return
        end = last if end == 0 else min(end, last)
        gap = first
        for number in range(first, end + 1):
            kept = self.store.read_sent(number)
            again = self._build_again(number, kept, now_us)
            if again is not None:
                self._send_gap(gap, number, now_us)
                self._output.append(again)
                gap = number + 1
        self._send_gap(gap, end + 1, now_us)
        self._sent_us = now_us
        if self.settings.initiator and not self.synchronised:
            self._send_session("1", ((112, "synchronise"),), now_us)

    def _build_again(self, number: int, kept: tuple[str, str] | None, now_us: int) -> bytes | None:
        """Return a message as it is sent again; None where a gap takes its place, which is kept first."""
        if kept is None:
            return None
        note, text = kept
        before = decode(text.encode("latin-1"))
        if before.kind not in self.settings.resent:
            if note:
                self.store.withdraw(note)
            return None
        own = (49, 56, 34, 52)
        fields = tuple((tag, value) for tag, value in before.fields if tag not in own)
        return encode(self._build(before.kind, fields, number, now_us, before.get(52)))

    def _send_gap(self, first: int, following: int, now_us: int) -> None:
        """Send the gap from `first` to the number before `following`; none where it is empty."""
        if first < following:
            fields = ((123, "Y"), (36, str(following)))
            self._output.append(encode(self._build("4", fields, first, now_us, format_time(now_us))))

    def _answer_invalid(self, error: InvalidMessage, now_us: int) -> None:
        """Answer a message with wrong content: a Reject takes its number; without one the session ends."""
        if self.state != "up" or error.seq is None:
            if self.state != "logging on":
                self._refuse("MsgSeqNum is missing", now_us)
            self.closing = self.closing or f"the Logon is wrong: {error.message}"
        elif error.seq > self.expected:
            self._ask_again(now_us)
        elif error.seq == self.expected:
            self.expected += 1
            self._reject(error.seq, error.kind, error, now_us)
