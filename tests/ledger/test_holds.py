"""What calls under way hold counts for every process until they end, or until their process is gone."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.ledger import Event, Ledger, LedgerConflict, Run
from alphaloom.ledger.reservations import Cap, CapReached, Hold, Taken, Wish

from .test_store import CALL

ROOT = Path(__file__).resolve().parents[2] / ".root"
NOTE = Event("one", "route", "c1", {"reason": "told"})
DAY = [Cap("day", "usd", 1.0)]
HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger import Ledger
from alphaloom.ledger.reservations import Wish
ledger = Ledger.open(Path(sys.argv[2]), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
print(type(ledger.holds.hold(Wish("one", "theirs", "", 10, 0.8), [], 100.0)).__name__, flush=True)
sys.stdin.read()
"""


def wish(key: str = "mine", usd: float = 0.5, run: str = "one", tenant: str = "") -> Wish:
    return Wish(run, key, tenant, 10, usd)


@pytest.fixture
def other(ledger: Ledger) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has a call under way that may take 0.8 USD."""
    command = [sys.executable, "-c", HOLD, str(ROOT), str(ledger.workspace)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Hold\n"
        yield process
        process.kill()


def test_a_hold_counts_until_it_is_settled_and_the_call_from_then_on(ledger: Ledger) -> None:
    held = ledger.holds.hold(wish(CALL.key, 0.9), DAY, 100.0)
    assert isinstance(held, Hold)
    assert ledger.holds.hold(wish(usd=0.2), DAY, 100.0) == CapReached(DAY[0], "2026-01-02", 0.0, 0.9, 0.2, 1)
    ledger.holds.settle(held, CALL, NOTE)
    assert ledger.holds.open() == []
    assert ledger.calls.of("one") == [CALL]
    assert ledger.events.of("one", "route") == [NOTE]
    assert ledger.holds.hold(wish(usd=1.0), DAY, 100.0) == CapReached(DAY[0], "2026-01-02", 0.01, 0.0, 1.0, 0)
    assert isinstance(ledger.holds.hold(wish(usd=0.99), DAY, 100.0), Hold)


def test_letting_go_twice_and_after_settling_changes_nothing(ledger: Ledger) -> None:
    held = ledger.holds.hold(wish(CALL.key), DAY, 100.0)
    assert isinstance(held, Hold)
    ledger.holds.settle(held, CALL, NOTE)
    for _ in range(2):
        ledger.holds.release(held)
    again = ledger.holds.hold(wish("c9"), DAY, 100.0)
    assert isinstance(again, Hold)
    with pytest.raises(LedgerConflict, match="differs in cost_usd"):
        ledger.holds.settle(again, replace(CALL, cost_usd=0.02), NOTE)
    assert [hold.key for hold in ledger.holds.open()] == ["c9"]


def test_a_call_is_under_way_once_and_never_after_it_was_answered(ledger: Ledger) -> None:
    ledger.runs.start(Run("two", {}, 1, "data", "2026"))
    held = ledger.holds.hold(wish(CALL.key), [], 100.0)
    assert isinstance(held, Hold)
    assert ledger.holds.hold(wish(CALL.key, run="two"), [], 100.0) == "busy"
    ledger.holds.settle(held, CALL, NOTE)
    assert ledger.holds.hold(wish(CALL.key, run="two"), [], 100.0) == "answered"


def test_who_lives_holds_and_the_worst_of_who_is_killed_stays_counted(
    ledger: Ledger, other: "subprocess.Popen[str]"
) -> None:
    assert isinstance(ledger.holds.hold(wish(), DAY, 100.0), CapReached)
    assert ledger.holds.lapse("one") == 0
    other.kill()
    other.wait()
    assert isinstance(ledger.holds.hold(wish(), DAY, 100.0), CapReached)  # nobody has looked yet
    assert ledger.holds.lapse("one") == 1
    found = ledger.holds.hold(wish(), DAY, 100.0)
    assert isinstance(found, CapReached)  # nobody heard what it took
    assert (found.spent, found.held) == (0.8, 0.0)
    assert ledger.holds.killed("one", "2026-01-02") == Taken(1, 10, int(0.8e12))
    assert ledger.holds.killed("two") == ledger.holds.killed(tenant="desk") == Taken()
    room = [Cap("day", "usd", 1.4)]
    assert isinstance(ledger.holds.hold(wish(), room, 100.0), Hold)
    assert len(list((ledger.workspace / "under-way").iterdir())) == 1  # what it left is cleared away


def test_what_a_ledger_still_holds_lapses_when_it_is_closed(filed: Ledger) -> None:
    clock = lambda: datetime(2026, 1, 2, tzinfo=UTC)
    with Ledger.open(filed.workspace, clock=clock) as second:
        assert isinstance(second.holds.hold(wish(), DAY, 100.0), Hold)
        assert filed.holds.lapse() == 0
    assert filed.holds.lapse() == 1
    assert filed.holds.open() == []
    assert not list((filed.workspace / "under-way").glob("*"))


def test_a_database_elsewhere_waits_for_the_longest_time_of_a_call_of_another_run(
    ledger: Ledger, other: "subprocess.Popen[str]"
) -> None:
    """A server may have lost a connection whose process lives; locks of a file cannot be lost so."""
    other.kill()
    other.wait()
    elsewhere = "ledger.json" in {path.name for path in ledger.workspace.iterdir()}
    now = datetime(2026, 1, 2, tzinfo=UTC)
    with Ledger.open(ledger.workspace, clock=lambda: now + later) as watch:
        later = timedelta(seconds=99)
        assert watch.holds.lapse("two") == (0 if elsewhere else 1)
        later = timedelta(seconds=100)
        assert watch.holds.lapse("two") == (1 if elsewhere else 0)


def test_calls_are_found_by_day_and_by_tenant_however_the_clock_writes_its_time(tmp_path: Path) -> None:
    times = iter(
        ["2026-01-02T12:00:00", "2026-01-03T00:30:00+01:00", "2026-01-02T23:30:00-01:00", "2026-01-02T00:00:00+00:00"]
    )
    now = ["2026-01-01"]
    names = ['de"sk%', "de", 'de"sk%', "ä_\\"]
    with Ledger.open(tmp_path, clock=lambda: datetime.fromisoformat(now[0])) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026"))
        for key, tenant in zip("abcd", names, strict=True):
            now[0] = next(times)
            ledger.calls.add(replace(CALL, key=key, tenant=tenant))

        def found(day: str, tenant: str | None = None) -> str:
            return "".join(call.key for call in ledger.holds.calls(day, tenant))

        assert [found("2026-01-02"), found("2026-01-03")] == ["abd", "c"]
        assert [found("", name) for name in ('de"sk%', "de", "ä_\\", "nobody")] == ["ac", "b", "d", ""]
        assert found("2026-01-02", 'de"sk%') == "a"
        now[0] = "2026-01-02"
        cap = Cap("tenant_day", "usd", 0.01)
        assert isinstance(ledger.holds.hold(wish(tenant='de"sk%', usd=0.001), [cap], 1.0), CapReached)
        assert isinstance(ledger.holds.hold(wish(tenant="nobody", usd=0.01), [cap], 1.0), Hold)


def test_what_was_recorded_before_there_were_tenants_counts(filed: Ledger) -> None:
    body = (
        '{"attempts":1,"cost_usd":0.9,"intent":"new","model":"m","prompt":"p","reply":"r","request":"q",'
        '"role":"idea","tier":"local","tokens_in":1,"tokens_out":1}'
    )
    add = "INSERT INTO calls (run, key, at, body) VALUES ('one', 'old', '2026-01-02T01:00:00+00:00', ?)"
    filed._database.write(lambda session: session.execute(add, (body,)))
    assert isinstance(filed.holds.hold(wish(usd=0.2), DAY, 1.0), CapReached)
    assert filed.holds.calls("2026-01-02")[0].tenant == ""


def test_a_call_holds_what_it_changed_to_or_what_it_held(ledger: Ledger) -> None:
    hold = ledger.holds.hold(wish(usd=0.5), DAY, 1.0)
    assert isinstance(hold, Hold)
    smaller = ledger.holds.change(hold, 5, 0.2, DAY)
    assert isinstance(smaller, Hold)
    assert ledger.holds.open() == [smaller]
    assert isinstance(ledger.holds.change(smaller, 5, 1.1, DAY), CapReached)
    assert ledger.holds.open() == [smaller]
    assert (smaller.key, smaller.tokens, smaller.picos) == (hold.key, 5, 2 * 10**11)
    assert ledger.holds.hold(wish(usd=0.1), DAY, 1.0) == "busy"
    ledger.holds.release(hold)  # it holds nothing any more
    ledger.holds.settle(smaller, replace(CALL, key=hold.key), replace(NOTE, key=hold.key))
    assert ledger.holds.open() == []
    assert ledger.holds.killed().calls == 0


steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 100),
        st.integers(0, 100),
        st.sampled_from(["settle", "release", "lapse", "change"]),
    ),
    max_size=30,
)


@settings(max_examples=25)
@given(steps=steps, cap=st.integers(0, 200))
def test_no_order_of_events_over_several_ledgers_passes_a_cap(
    steps: list[tuple[int, int, int, str]], cap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cents; each step asks for a hold in one of three ledgers, then ends the oldest one there in some way."""
    folder = tmp_path_factory.mktemp("w")
    opened: Callable[[], Ledger] = lambda: Ledger.open(folder, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
    caps = [Cap("day", "usd", cap / 100), Cap("tenant", "usd", cap / 200)]
    held: list[list[Hold]] = [[], [], []]
    ledgers = [opened() for _ in held]
    ledgers[0].runs.start(Run("one", {}, 1, "data", "2026"))
    for number, (who, worst, took, deed) in enumerate(steps):
        tenant = "ab"[number % 2]
        found = ledgers[who].holds.hold(wish(f"k{number}", worst / 100, tenant=tenant), caps, 1.0)
        if isinstance(found, Hold):
            held[who].append(found)
        if held[who] and deed == "settle":
            first = held[who].pop(0)
            call = replace(CALL, key=first.key, cost_usd=min(took, first.picos / 1e10) / 100, tenant=first.tenant)
            ledgers[who].holds.settle(first, call, replace(NOTE, key=first.key))
        elif held[who] and deed == "change":
            other = ledgers[who].holds.change(held[who][0], 10, took / 100, caps)
            held[who][0] = other if isinstance(other, Hold) else held[who][0]
        elif held[who] and deed == "release":
            ledgers[who].holds.release(held[who].pop(0))
        else:
            assert ledgers[who].holds.lapse() == 0
        spent = {name: sum(call.cost_usd for call in ledgers[who].holds.calls(tenant=name)) for name in "ab"}
        under_way = {
            name: sum(hold.picos for hold in ledgers[who].holds.open() if hold.tenant == name) for name in "ab"
        }
        both = {name: round(spent[name] * 1e12) + under_way[name] for name in "ab"}
        assert sum(both.values()) <= cap * 10**10
        assert max(both.values()) <= cap * 10**10 / 2
    for ledger in ledgers:
        ledger.close()
