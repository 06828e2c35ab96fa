"""The codec is strict: what it reads it writes back as the same bytes, and no wrong checksum is accepted."""

import os
import random
import time

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution.fix import FixMessage, FrameReader, GarbledMessage, InvalidMessage, decode, encode
from alphaloom.execution.fix.message import format_price, format_time, parse_price, parse_time

from .wire import AT, HEAD, ORDER, US, messages, order

PIECES = (b"\x01", b"=", b"10=000\x01", b"0", b"8=FIX.4.4\x019=5\x01", b"9=99\x01")
FUZZ_SECONDS = float(os.environ.get("FIX_FUZZ_SECONDS", "600"))


def frame(body: bytes, begin: bytes = b"FIX.4.4", *, length: int | None = None, checksum: int | None = None) -> bytes:
    """Return bytes with a right or a wrong frame."""
    head = b"8=%s\x019=%d\x01%s" % (begin, len(body) if length is None else length, body)
    return head + b"10=%03d\x01" % (sum(head) % 256 if checksum is None else checksum)


def body_of(message: FixMessage) -> bytes:
    parts = [f"35={message.kind}\x01", *(f"{tag}={value}\x01" for tag, value in message.fields)]
    return "".join(parts).encode("latin-1")


@given(messages())
def test_what_is_written_is_read(message: FixMessage) -> None:
    assert decode(encode(message)) == message


@given(messages(), st.data())
def test_no_change_of_one_byte_is_accepted(message: FixMessage, data: st.DataObject) -> None:
    whole = bytearray(encode(message))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    with pytest.raises(GarbledMessage):
        decode(bytes(whole))


@given(messages(), st.data())
def test_every_cut_and_every_addition_is_refused(message: FixMessage, data: st.DataObject) -> None:
    whole = encode(message)
    with pytest.raises(GarbledMessage):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(GarbledMessage):
        decode(whole + data.draw(st.binary(min_size=1, max_size=3)))


def judge(data: bytes) -> str:
    """Return how bytes are judged; what is accepted must have the right sum and come back as the same bytes."""
    try:
        message = decode(data)
    except (GarbledMessage, InvalidMessage) as error:
        return error.code
    assert data[-7:] == b"10=%03d\x01" % (sum(data[:-7]) % 256)
    assert encode(message) == data
    return "accepted"


def fuzz(seconds: float, seed: int) -> dict[str, int]:
    """Mutate messages for so long, half of them with a frame made right again; return how many ended how."""
    chance = random.Random(seed)
    extras = ((), ((354, "3"), (355, "a\x01b")), ((453, "1"), (448, "x"), (447, "D")))
    seeds = [encode(order(*extra)) for extra in extras]
    counts: dict[str, int] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            place, way = chance.randrange(len(data)), chance.randrange(4)
            if way == 0:
                data[place] = chance.randrange(256)
            elif way == 1:
                del data[place : place + chance.randint(1, 8)]
            elif way == 2:
                data[place:place] = data[chance.randrange(len(data)) :][: chance.randint(1, 20)]
            else:
                data[place:place] = chance.choice(PIECES)
            data = data or bytearray(b"8")
        whole = bytes(data)
        if chance.random() < 0.5 and b"\x0135=" in whole:
            whole = frame(whole[whole.index(b"\x0135=") + 1 : -7])
        outcome = judge(whole)
        counts[outcome] = counts.get(outcome, 0) + 1
        for piece in FrameReader().feed(whole):
            judge(piece)
    return counts


def test_a_short_fuzz() -> None:
    assert len(fuzz(2, 1)) == 3


@pytest.mark.slow
def test_ten_minutes_of_fuzz_find_no_crash_and_no_wrong_checksum() -> None:
    counts = fuzz(FUZZ_SECONDS, int(os.environ.get("FIX_FUZZ_SEED", "2")))
    print(f"{FUZZ_SECONDS:g} s of mutated messages: {counts}")
    assert len(counts) == 3


@pytest.mark.parametrize(
    ("body", "reason", "tag"),
    [
        (b"35=D\x01", 1, 49),
        (body_of(order()).replace(b"55=AAA\x01", b""), 1, 55),
        (body_of(order()).replace(b"55=AAA", b"55="), 4, 55),
        (body_of(order()).replace(b"55=AAA", b"AAA"), 0, 0),
        (body_of(order()).replace(b"55=AAA", b"055=AAA"), 0, 0),
        (body_of(order()).replace(b"38=100", b"38=100.5"), 6, 38),
        (body_of(order()).replace(b"38=100", b"38=+100"), 6, 38),
        (body_of(order()).replace(b"44=10.5", b"44=1e3"), 6, 44),
        (body_of(order()).replace(b"60=2026", b"60=26"), 6, 60),
        (body_of(order()) + b"43=maybe\x01", 6, 43),
        (body_of(order()) + b"43=Y\x01", 14, 43),
        (body_of(order()) + b"55=BBB\x01", 13, 55),
        (body_of(order()) + b"9=5\x01", 0, 9),
        (body_of(order()) + b"355=abc\x01", 14, 355),
        (body_of(order()) + b"354=2\x01355=abc\x01", 6, 355),
        (body_of(order()) + b"354=9\x01355=abc\x01", 6, 355),
        (body_of(order()) + b"354=3\x01", 1, 355),
        (body_of(order()) + b"453=2\x01448=x\x01447=D\x01", 16, 453),
        (body_of(order()) + b"453=0\x01", 16, 453),
        (body_of(order()) + b"453=1\x01447=D\x01448=x\x01", 15, 447),
        (body_of(order()) + b"453=1\x01448=x\x01447=D\x01447=D\x01", 15, 447),
        (body_of(order()) + b"89=ab\x01", 14, 89),
    ],
)  # fmt: skip  # a table
def test_wrong_content_is_named(body: bytes, reason: int, tag: int) -> None:
    with pytest.raises(InvalidMessage) as caught:
        decode(frame(body))
    assert (caught.value.reason, caught.value.tag, caught.value.kind) == (reason, tag, "D")
    assert caught.value.seq == (None if body == b"35=D\x01" else 7)


@pytest.mark.parametrize(
    "data",
    [
        frame(body_of(order()), checksum=999),
        frame(body_of(order()), length=len(body_of(order())) - 1),
        frame(body_of(order())).replace(b"9=1", b"9=01"),
        frame(b"49=DESK\x01" + body_of(order())),
        frame(body_of(order()), b"FIX.44"),
        frame(b""),
        b"",
    ],
)  # fmt: skip  # a table
def test_a_wrong_frame_is_garbled(data: bytes) -> None:
    with pytest.raises(GarbledMessage):
        decode(data)


@pytest.mark.parametrize("fields", [((55, "A\x01B"),), ((10, "000"),), ((58, ""),), ((354, "2"), (355, "abc"))])
def test_what_could_not_be_read_is_not_written(fields: tuple[tuple[int, str], ...]) -> None:
    kept = tuple(pair for pair in ORDER if pair[0] not in {tag for tag, _ in fields})
    with pytest.raises(InvalidMessage):
        encode(FixMessage("FIX.4.4", "D", (*HEAD, *kept, *fields)))


@given(st.lists(messages(), min_size=1, max_size=4), st.binary(max_size=40), st.data())
def test_a_stream_is_cut_into_its_messages(found: list[FixMessage], noise: bytes, data: st.DataObject) -> None:
    """However the bytes arrive, and whatever stands before the first message and between two."""
    noise = noise.replace(b"8", b"7")
    stream = b"".join(noise + encode(one) for one in found)
    reader, frames = FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        frames += reader.feed(stream[:size])
        stream = stream[size:]
    assert [decode(one) for one in frames] == found
    assert reader.garbled == (len(found) if noise else 0)


def test_a_garbled_message_costs_only_itself() -> None:
    whole = encode(order())
    wrong = frame(body_of(order()), checksum=(sum(whole[:-7]) + 1) % 256)
    long = frame(body_of(order()), length=70_000)
    for bad in (wrong, long, whole[:-9], b"8=FIX.4.4\x019=x\x01"):
        reader = FrameReader()
        assert reader.feed(bad + whole + whole) == [whole, whole]
        assert reader.garbled == 1


@given(st.integers(0, 4_102_444_799_999))
def test_times_come_back_in_milliseconds(ms: int) -> None:
    assert parse_time(format_time(ms * 1000)) == ms * 1000


@given(st.integers(-(10**12), 10**12))
def test_prices_come_back(price_e4: int) -> None:
    assert parse_price(format_price(price_e4)) == price_e4


def test_values_at_their_edges() -> None:
    assert parse_time(AT) == US
    assert parse_time("20260105-14:30:00") == US
    assert parse_time("20260105-14:30:00.000001999") == US + 1
    assert [parse_price(text) for text in ("10", "0.00005", "0.000049", "-1.5", "10.12345")] == [
        100_000, 1, 0, -15_000, 101_235
    ]  # fmt: skip  # a table
    for text in ("", ".5", "1.", "1,5", "nan"):
        with pytest.raises(InvalidMessage):
            parse_price(text)
    with pytest.raises(InvalidMessage):
        parse_time("20260230-14:30:00")


def test_it_agrees_with_simplefix() -> None:
    """Another library's bytes, where it is installed (`make fix` installs it)."""
    simplefix = pytest.importorskip("simplefix")
    theirs = simplefix.FixMessage()
    theirs.append_pair(8, "FIX.4.4")
    theirs.append_pair(35, "D")
    for tag, value in order().fields:
        theirs.append_pair(tag, value)
    assert theirs.encode() == encode(order())
