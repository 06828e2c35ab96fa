"""The session: numbers, gaps, resends, and what survives a kill of either side."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.execution.fix import FixError, FixMessage, SessionStore, decode, encode, journal
from alphaloom.execution.fix.codec import FrameReader
from alphaloom.execution.fix.journal import LineJournal, escape, unescape
from alphaloom.execution.fix.message import Fields, format_time
from alphaloom.ledger import RunLocked

from .pair import HEARTBEAT_S, Pair, Side, kill
from .wire import ORDER, US

STEPS = st.one_of(
    st.sampled_from(["order", "order", "collect", "connect", "drop", "kill desk", "kill venue", "wait"]),
    st.tuples(st.sampled_from(["desk", "venue"]), st.integers(1, 900)),
    st.sampled_from(["carry desk", "carry venue"]),
)


PARTY = "SenderCompID or TargetCompID"
FAR = "more than two minutes from our clock"


def play(pair: Pair, step: str | tuple[str, int]) -> None:
    """Do one step of a random history."""
    if isinstance(step, tuple):
        pair.carry(*step)
    elif step == "order":
        pair.order()
    elif step == "collect":
        pair.collect()
    elif step == "connect" and not pair.connected:
        pair.connect()
    elif step == "drop":
        pair.disconnect()
    elif step.startswith("kill"):
        pair.kill(step[5:])
    elif step.startswith("carry"):
        pair.carry(step[6:])
    elif step == "wait":
        pair.now_us += 1_000_000


@given(st.lists(STEPS, max_size=40))
@settings(max_examples=60)
def test_each_order_is_there_once_or_withdrawn(steps: list[str | tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        pair = Pair(Path(folder))
        for step in steps:
            play(pair, step)
        pair.settle()
        seen, withdrawn = pair.venue.orders_seen, pair.desk.store.withdrawn
        assert len(seen) == len(set(seen))
        known = {id for id in pair.sent if id in pair.desk.store.notes}  # others were lost before they had a number
        assert {*seen} | withdrawn == known
        assert not {*seen} & withdrawn
        reported = [message.get(11) for message in pair.desk.taken if message.kind == "8"]
        assert {*reported} == {*seen}
        kill(pair.desk.store)
        kill(pair.venue.store)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    made = Pair(tmp_path)
    made.settle()
    return made


def say(
    pair: Pair, kind: str, fields: Fields, seq: int | None = None, head: Mapping[int, str] | None = None
) -> list[FixMessage]:
    """Send a message to the venue that the desk's session would not write, and return the answers."""
    number = pair.venue.session.expected if seq is None else seq
    own = {49: "DESK", 56: "VENUE", 34: str(number), 52: format_time(pair.now_us)}
    own |= head or {}
    data = encode(FixMessage("FIX.4.4", kind, (*own.items(), *fields)))
    pair.venue.taken += pair.venue.session.receive(data, pair.now_us)
    return answers(pair.venue)


def answers(side: Side) -> list[FixMessage]:
    return [decode(frame) for frame in FrameReader().feed(side.session.take_output())]


def brief(messages: list[FixMessage]) -> list[tuple[str, str]]:
    return [(message.kind, message.get(58)) for message in messages]


@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
def test_two_sides_log_on_trade_and_log_out(tmp_path: Path, version: str) -> None:
    pair = Pair(tmp_path, "FIX.5.0SP2" if version == "FIX.5.0SP2" else "FIX.4.4")
    pair.settle()
    pair.order()
    pair.settle()
    assert [message.get(17) for message in pair.desk.taken] == ["E-order-0"]
    pair.desk.session.log_out("done", pair.now_us)
    pair.collect()
    pair.carry("desk")
    pair.carry("venue")
    assert not pair.connected


def test_a_test_request_is_answered_and_silence_is_noticed(pair: Pair) -> None:
    (answer,) = say(pair, "1", ((112, "are you there"),))
    assert (answer.kind, answer.get(112)) == ("0", "are you there")
    kinds = []
    for _ in range(HEARTBEAT_S * 3):
        pair.now_us += 1_000_000
        pair.venue.session.tick(pair.now_us)
        kinds += [message.kind for message in answers(pair.venue)]
    assert kinds == ["0", "1", "0"]
    assert pair.venue.session.closing == "the counterparty is silent"


def test_a_gap_is_asked_for_once_a_second(pair: Pair) -> None:
    expected = pair.venue.session.expected
    (request,) = say(pair, "0", (), seq=expected + 3)
    assert (request.kind, request.get(7), request.get(16)) == ("2", str(expected), "0")
    assert say(pair, "0", (), seq=expected + 4) == []
    pair.now_us += 1_100_000
    assert [one.kind for one in say(pair, "0", (), seq=expected + 5)] == ["2"]
    gap = {43: "Y", 122: format_time(pair.now_us)}
    assert say(pair, "4", ((123, "Y"), (36, str(expected + 6))), seq=expected, head=gap) == []
    assert pair.venue.session.expected == expected + 6


def test_a_report_is_sent_again_and_an_order_is_not(pair: Pair) -> None:
    first = pair.desk.store.next_out
    pair.order()
    pair.settle()
    pair.desk.session.receive(
        encode(
            FixMessage(
                "FIX.4.4", "2",
                ((49, "VENUE"), (56, "DESK"), (34, str(pair.desk.session.expected)), (52, format_time(pair.now_us)),
                 (7, str(first)), (16, "0")),
            )
        ),
        pair.now_us,
    )  # fmt: skip  # a table
    (gap,) = answers(pair.desk)
    assert (gap.kind, gap.seq, gap.get(123), gap.get(43)) == ("4", first, "Y", "Y")
    assert pair.desk.store.withdrawn == {"order-0"}
    told = say(pair, "2", ((7, "1"), (16, "0")))
    assert [(one.kind, one.get(43), one.get(36)) for one in told] == [("4", "Y", "3"), ("8", "Y", "")]
    assert told[1].get(122)


@pytest.mark.parametrize(
    ("kind", "fields", "head", "answer"),
    [
        ("D", ORDER, {49: "OTHER"}, [("3", "another CompID"), ("5", f"{PARTY} is that of another session")]),
        ("0", (), {52: format_time(US - 10**9)}, [("3", "SendingTime"), ("5", f"SendingTime is {FAR}")]),
        ("0", (), {43: "Y"}, [("3", "A required field is missing.")]),
        ("0", (), {52: "20260230-00:00:00.000"}, [("3", "'20260230-00:00:00.000' is no time.")]),
        ("AE", ((571, "x"),), {}, [("j", "not supported")]),
        ("4", ((123, "Y"), (36, "1")), {}, [("3", "NewSeqNo is not above MsgSeqNum.")]),
        ("4", ((36, "1"),), {}, [("3", "NewSeqNo is below the expected number.")]),
        ("2", ((7, "99"), (16, "0")), {}, [("3", "BeginSeqNo or EndSeqNo was never sent.")]),
        ("5", (), {}, [("5", "")]),
        ("A", ((98, "0"), (108, "30")), {}, []),
    ],
)  # fmt: skip  # a table
def test_what_is_wrong_is_answered(
    pair: Pair, kind: str, fields: Fields, head: dict[int, str], answer: list[tuple[str, str]]
) -> None:
    assert brief(say(pair, kind, fields, head=head)) == answer
    assert pair.venue.taken == []


def test_a_number_that_is_too_low_ends_the_session_unless_it_is_a_repetition(pair: Pair) -> None:
    assert say(pair, "0", (), seq=1, head={43: "Y", 122: format_time(pair.now_us)}) == []
    told = f"MsgSeqNum too low, expecting {pair.venue.session.expected} but received 1"
    assert brief(say(pair, "0", (), seq=1)) == [("5", told)]
    assert pair.venue.session.refusal


def test_content_that_is_wrong_takes_its_number_and_garbled_bytes_do_not(pair: Pair) -> None:
    expected = pair.venue.session.expected
    head_fields = ((49, "DESK"), (56, "VENUE"), (34, str(expected)), (52, format_time(pair.now_us)))
    whole = encode(FixMessage("FIX.4.4", "0", head_fields))
    garbled = whole[:-4] + b"%03d\x01" % ((int(whole[-4:-1]) + 1) % 256)
    assert pair.venue.session.receive(garbled, pair.now_us) == []
    assert (pair.venue.session.expected, pair.venue.session.garbled) == (expected, 1)
    body = b"35=D\x0149=DESK\x0156=VENUE\x0134=%d\x0152=%s\x01" % (expected, format_time(pair.now_us).encode())
    head = b"8=FIX.4.4\x019=%d\x01%s" % (len(body), body)
    pair.venue.session.receive(head + b"10=%03d\x01" % (sum(head) % 256), pair.now_us)
    (reject,) = answers(pair.venue)
    assert [reject.get(tag) for tag in (45, 371, 372, 373)] == [str(expected), "11", "D", "1"]
    assert pair.venue.session.expected == expected + 1


def test_a_logon_may_reset_both_numbers_at_the_venue_alone(pair: Pair) -> None:
    pair.disconnect()
    pair.venue.session.connect(pair.now_us)
    fields = ((98, "0"), (108, "30"), (141, "Y"))
    (logon,) = say(pair, "A", fields, seq=1)
    assert (logon.kind, logon.seq, logon.get(141), pair.venue.session.expected) == ("A", 1, "Y", 2)
    pair.desk.session.connect(pair.now_us)
    answers(pair.desk)
    head = ((49, "VENUE"), (56, "DESK"), (34, "1"), (52, format_time(pair.now_us)))
    theirs = FixMessage("FIX.4.4", "A", (*head, *fields))
    pair.desk.session.receive(encode(theirs), pair.now_us)
    assert pair.desk.session.refusal


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        (((98, "1"), (108, "30")), "EncryptMethod must be 0 and HeartBtInt from 1 to 3600"),
        (((98, "0"), (108, "0")), "EncryptMethod must be 0 and HeartBtInt from 1 to 3600"),
        (((98, "0"), (108, "30"), (141, "Y")), "ResetSeqNumFlag was not agreed, or MsgSeqNum is not 1"),
    ],
)  # fmt: skip  # a table
def test_a_logon_that_is_not_agreed_is_refused(pair: Pair, fields: Fields, answer: str) -> None:
    pair.disconnect()
    pair.venue.session.connect(pair.now_us)
    assert brief(say(pair, "A", fields, seq=5)) == [("5", answer)]


def test_nothing_leaves_before_its_number_is_on_the_disk(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.settle()
    pair.order()
    assert b"order-0" not in pair.desk.path.read_bytes()
    assert b"order-0" in pair.desk.session.take_output()
    assert b"order-0" in pair.desk.path.read_bytes()


def test_a_received_report_waits_for_no_disk_and_comes_again_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(tmp_path)
    pair.settle()
    pair.order()
    pair.collect()
    pair.carry("desk")
    pair.collect()
    synced, waits = pair.desk.path.stat().st_size, list[int]()
    monkeypatch.setattr(journal, "_sync", waits.append)
    pair.carry("venue")
    pair.collect()
    assert pair.desk.path.stat().st_size > synced  # `kill -9` loses nothing
    assert not waits
    monkeypatch.undo()
    kill(pair.desk.store)
    pair.disconnect()
    os.truncate(pair.desk.path, synced)
    pair.desk.begin()
    pair.settle()
    first, again = (message for message in pair.desk.taken if message.kind == "8")
    assert (again.get(17), again.possible_duplicate) == (first.get(17), True)
    assert pair.venue.orders_seen == ["order-0"]


@given(st.lists(st.text(st.characters(codec="latin-1"), max_size=20), max_size=5), st.integers(0, 200))
def test_a_journal_gives_back_its_lines_and_cuts_a_torn_one(lines: list[str], cut: int) -> None:
    assert all(unescape(escape(line)) == line for line in lines)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        with LineJournal(path) as journal:
            for line in lines:
                journal.add(line)
        whole = path.read_bytes()
        path.write_bytes(whole[: max(len(whole) - cut, 0)])
        with LineJournal(path) as journal:
            assert journal.lines == lines[: path.read_bytes().count(b"\n")]
            journal.add("after")
        with LineJournal(path) as journal:
            assert journal.lines[-1] == "after"


def test_a_changed_line_is_refused_and_one_process_has_the_file(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "session")
    for number in (1, 2):
        store.add_sent(number, f"n{number}", "text")
    store.sync()
    with pytest.raises(RunLocked):
        SessionStore(tmp_path / "session")
    store.close()
    whole = (tmp_path / "session").read_bytes()
    (tmp_path / "session").write_bytes(whole.replace(b"n1", b"n3"))
    with pytest.raises(FixError, match="was changed"):
        SessionStore(tmp_path / "session")
