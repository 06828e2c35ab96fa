"""Neither a log nor an error text holds a key or says what is held; what is no position stays as it is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from string import ascii_letters
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.router import ModelFailed, Router, Task
from alphaloom.router.endpoints.failures import ServerRefused
from alphaloom.router.redaction import (
    GUARDED_LOGGERS,
    KEY_MASK,
    LIBRARY_LOGGERS,
    POSITION_MASK,
    Redactor,
    guard_loggers,
    hold_own_call,
    redact_text,
)

from ..growth import linear
from .scripted import ScriptedModel, ScriptedReply

TICKERS = ["AAPL", "MSFT", "F", "BRK.B", "7203.T", "0700.HK", "GOOGL"]
AMOUNTS = ["12,000", "3,400", "+500", "-77", "0.035", "1'250'000", "$2.5", "12.75"]
UNITS = ["sh", "shares", "%", "bps", "contracts", "lots", "k shares", "mm notional", "USD"]
SIDES = ["long", "short", "Bought", "sold", "holding", "SELL", "position in", "target weight", "exposure to"]
tickers, amounts, units, sides = (st.sampled_from(choices) for choices in (TICKERS, AMOUNTS, UNITS, SIDES))
SHAPES = (
    "{name} {much} {unit}",
    "{name}: {much} {unit}",
    "{much} {unit} of {name}",
    "{much} {unit} {name}",
    "{side} {much} {name}",
    "{side} {name} {much}",
    "{side} {much} {unit} of {name}",
    "{side} {name}: {much} {unit}",
    "{name} {side} {much}",
)
around = st.text(alphabet="abcdefghij .,;:\n()", max_size=20).map(lambda text: f" {text} ")


@given(st.sampled_from(SHAPES), tickers, amounts, units, sides, st.tuples(around, around))
def test_a_position_in_words_goes_and_the_words_around_it_stay(
    shape: str, name: str, much: str, unit: str, side: str, context: tuple[str, str]
) -> None:
    before, after = context
    told = before + shape.format(name=name, much=much, unit=unit, side=side) + after
    kept = redact_text(told)
    assert POSITION_MASK in kept
    assert not any(char.isdigit() for char in kept)
    assert kept.startswith(before)
    assert kept.endswith(after)


WHO = st.sampled_from(["symbol", "ticker", "asset", "isin", "Symbol", "instrument"])
HOW_MUCH = st.sampled_from(
    ["quantity", "qty", "target", "weight", "notional", "target_bp", "target_e8", "shares", "position", "exposure"]
)
value = st.one_of(st.integers(1000, 10**9), st.floats(0.001, 1e6), st.sampled_from(["12,000", "77.5%"]))
SPELLINGS: tuple[Callable[[Any], str], ...] = (
    json.dumps,
    repr,
    lambda it: json.dumps(json.dumps(it)),
    lambda it: json.dumps(it, indent=2),
    lambda it: json.dumps({"more": [it, {"x": 1}]}),
    lambda it: " ".join(f"{key}={each}" for key, each in it.items()),
)


@given(WHO, HOW_MUCH, tickers, value, st.sampled_from(SPELLINGS), st.booleans())
def test_a_record_of_a_position_goes_however_it_is_spelt(
    who: str, much: str, name: str, amount: Any, spelt: Callable[[Any], str], turned: bool
) -> None:
    pairs = [(who, name), (much, amount), ("note", "kept")]
    text = spelt(dict(reversed(pairs) if turned else pairs))
    kept = redact_text(f"refused: {text}")
    assert name not in kept
    assert str(amount) not in kept
    assert "kept" in kept


@given(
    st.dictionaries(tickers, st.floats(-1, 1), min_size=1),
    st.sampled_from(["weights", "positions", "holdings", "targets"]),
)
def test_a_book_goes_as_a_whole(book: dict[str, float], name: str) -> None:
    kept = redact_text(json.dumps({name: book, "day": "2026-05-04"}))
    assert not any(ticker in kept for ticker in book if len(ticker) > 1)
    assert json.loads(kept) == {name: POSITION_MASK, "day": "2026-05-04"}
    assert POSITION_MASK in redact_text(json.dumps({name: book})[:-3]), "one that was cut off as well"


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 500 from the server", "status 404, 12 bytes", "GPT 4 answered in 2.5 s", '{"weight": 0.3}',
        "RankIC 0.03 t 4.1", "budget.usd: 10 of 10 USD", "context 8192 tokens, max 4096",
        "POST /v1/chat/completions 200 OK", "timeout: 120 S",
        "Error code: 400 - {'error': {'message': 'too long', 'code': 400}}", "ts_mean(returns, 20) * 5%", "buy AAPL",
        "", "no reply from near: Connection error.", "rank(close) / 2 hold", "litellm.RateLimitError: slow down",
    ],
)  # fmt: skip  # a table
def test_what_is_no_position_stays(text: str) -> None:
    assert redact_text(text) == text


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=20), max_size=3))
def test_a_second_time_changes_nothing(text: str, keys: list[str]) -> None:
    redactor = Redactor(key for key in keys if set(key) - {*KEY_MASK, *POSITION_MASK, '"'})
    once = redactor(text)
    assert redactor(once) == once


keys = st.text(alphabet=ascii_letters + "0123456789-_/+= \"'\\é", min_size=8, max_size=60).filter(
    lambda key: len(set(key) - {*POSITION_MASK, *"Key *"}) >= 4
)


@given(keys, around, around)
def test_a_key_goes_in_each_of_its_spellings(key: str, before: str, after: str) -> None:
    redactor = Redactor([key])
    for spelt in (key, json.dumps({"k": key}), repr({"k": key}), f"https://host/?q={key}", f"{key}{key}"):
        kept = redactor(before + spelt + after)
        assert key not in kept
        assert KEY_MASK in kept


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcDEF123456", "api_key=abcdef123456", '"api_key": "abcdef123456"',
        "sk-abcdef0123456789abcd", "AIza" + "x" * 35, "hf_" + "x" * 30, "postgres://me:abcdef123456@host/db",
        "AKIA" + "A1" * 8, "ghp_" + "a" * 36, "-----BEGIN PRIVATE KEY-----\nabcdef123456\n-----END PRIVATE KEY-----",
        "OPENAI_API_KEY=abcdef123456",
    ],
)  # fmt: skip  # a table
def test_what_looks_like_a_key_goes_though_nobody_configured_it(text: str) -> None:
    kept = redact_text(f"failed: {text} (again)")
    assert KEY_MASK in kept
    assert "abcdef" not in kept.lower()
    assert kept.startswith("failed: ")
    assert kept.endswith(" (again)")


@pytest.mark.parametrize("piece", ["1", "A", '"symbol":', "long ", "weights:{", '\\"', "-eyJ", "."])
def test_no_text_takes_long(piece: str) -> None:
    assert linear(redact_text, piece, 12_000)


# Where it is used.

SECRET = "sk-0123456789abcdef"
HELD = "we are short 3,400 MSFT and hold AAPL 12,000 sh"


@pytest.mark.parametrize("name", [*GUARDED_LOGGERS, "alphaloom.router.calls.backend", "openai._base_client"])
def test_no_logger_of_the_room_writes_them_in_words_arguments_errors_or_extras(
    name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger(name)
    guard_loggers([SECRET])
    monkeypatch.setenv("LITELLM_LOG", "DEBUG")  # else LiteLLM writes nothing of a call of ours
    monkeypatch.setattr(caplog.handler, "formatter", logging.Formatter("%(message)s %(request)s"))  # all tests share it
    before = logger.level
    if not logger.propagate:  # LiteLLM, once loaded, writes by itself
        logger.addHandler(caplog.handler)
    with caplog.at_level(logging.DEBUG, logger=name), hold_own_call():
        logger.setLevel(logging.DEBUG)
        try:
            raise ValueError(f"{HELD} {SECRET}")
        except ValueError:
            logger.exception(
                "with %s: %r",
                SECRET,
                {"symbol": "MSFT", "quantity": 3400},
                extra={"request": {"k": SECRET, "said": HELD}},
            )
        logger.error("broken %d", "x", extra={"request": ""})
        logger.setLevel(before)
    if not logger.propagate:
        logger.removeHandler(caplog.handler)
    members = [member for record in caplog.records for member in vars(record).items()]
    # the digits of a time or a thread may be those of a position by chance
    texts = [value for name, value in members if name != "asctime" and not isinstance(value, int | float)]
    said = caplog.text + "".join(map(str, texts))
    assert "with " in said
    assert "broken " in said
    assert "ValueError" in said
    assert not [word for word in (SECRET, "MSFT", "3,400", "3400", "AAPL", "12,000") if word in said]


def guard_of(logger: logging.Logger) -> Any:
    """Return the room's filter of a logger."""
    (guard,) = [each for each in logger.filters if type(each).__module__.startswith("alphaloom")]
    return guard


@pytest.mark.parametrize("name", LIBRARY_LOGGERS)
def test_what_a_library_logs_of_somebody_elses_call_stays_as_it_is_unless_it_has_a_key_of_ours(name: str) -> None:
    guard_loggers([SECRET])
    logger, args = logging.getLogger(name), (HELD, "sk-another0123456789")
    guard = guard_of(logger)
    record = logger.makeRecord(name, logging.WARNING, "x.py", 1, "%s %s", args, None)
    assert guard.filter(record)
    assert (record.msg, record.args) == ("%s %s", args)
    leak = logger.makeRecord(name, logging.WARNING, "x.py", 1, "with %s", (SECRET,), None)
    assert guard.filter(leak)
    assert SECRET not in leak.getMessage()


def test_litellm_says_nothing_of_a_call_of_ours_unless_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    guard_loggers()
    logger = logging.getLogger("LiteLLM")
    guard = guard_of(logger)
    record = logger.makeRecord("LiteLLM", logging.ERROR, "x.py", 1, "broken", (), None)
    monkeypatch.delenv("LITELLM_LOG", raising=False)
    with hold_own_call():
        assert not guard.filter(record)
        monkeypatch.setenv("LITELLM_LOG", "INFO")
        assert guard.filter(record)
    monkeypatch.delenv("LITELLM_LOG")
    assert guard.filter(record)


def test_an_error_of_a_provider_is_said_without_them_and_the_model_sees_all(
    build: Callable[..., Router], task: Callable[..., Task], double: ScriptedModel
) -> None:
    text = f'propose: {HELD}, {{"symbol": "TSLA", "target": 0.25}}'
    echo = f"cannot read: {HELD} {{'symbol': 'TSLA', 'target': 0.25}} key {SECRET}"
    double.script = [
        ServerRefused(500, echo, {}),
        ScriptedReply('{"text": "a", "direction": 1}'),
    ]
    router = build(
        {"K": SECRET}, models={"small": {"model": "double/x", "place": "local", "api_key_env": "K"}}, retries=0
    )
    with pytest.raises(ModelFailed) as failed:
        asyncio.run(router.ask(task(text)))
    chain = [failed.value, failed.value.__cause__]
    assert not [
        word for word in (SECRET, "MSFT", "TSLA", "0.25", "12,000") for error in chain if word in f"{error!r} {error}"
    ]
    assert POSITION_MASK in str(failed.value)
    asyncio.run(router.ask(task(text)))
    assert [seen["messages"][-1]["content"] for seen in double.seen] == [text, text]
