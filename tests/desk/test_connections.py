"""Who makes room when there are more connections than places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from alphaloom.desk.cli.serve.connections import (
    ASKED_STATE,
    HEADER_SECONDS,
    IDLE_STATE,
    KNOWN_STATE,
    OWED_STATE,
    REQUEST_SECONDS,
    SPARE_CONNECTIONS,
    YOUNG_SECONDS,
    Connection,
    ConnectionTable,
    PlacedConnection,
)

MOST = 5


@dataclass
class Wire:
    """What a place looks at of its connection."""

    known: bool = False
    unread: bool = False
    limit_s: float = HEADER_SECONDS


class Held:
    """Places, the clock that they look at, and the connections that were closed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.places = ConnectionTable(MOST, lambda: self.now)
        self.closed: list[PlacedConnection] = []

    def come(self, state: str = OWED_STATE, **about: Any) -> PlacedConnection:
        place = PlacedConnection(cast(Connection, Wire(known=state == KNOWN_STATE, **about)))
        place.hang_up = lambda: self.closed.append(place)
        self.places.move(place, ASKED_STATE if state == KNOWN_STATE else state)
        return place

    def fill(self, state: str) -> list[PlacedConnection]:
        return [self.come(state) for _ in range(MOST - len(self.places))]


@given(
    st.lists(
        st.tuples(st.sampled_from([OWED_STATE, IDLE_STATE, ASKED_STATE, KNOWN_STATE]), st.floats(0, 3)), max_size=60
    )
)
def test_known_callers_stay_and_nobody_beyond_the_spare_ones_comes(arrivals: list[tuple[str, float]]) -> None:
    held = Held()
    for state, passed in arrivals:
        held.now += passed
        if held.places.room():
            held.come(state)
        assert len(held.places) <= MOST + SPARE_CONNECTIONS
    assert all(not place.connection.known for place in held.closed)


@given(st.lists(st.sampled_from([OWED_STATE, IDLE_STATE, ASKED_STATE]), min_size=MOST, max_size=MOST))
def test_where_strangers_hold_all_places_one_of_them_makes_room(states: list[str]) -> None:
    held = Held()
    there = [held.come(state) for state in states]
    held.now += 2 * YOUNG_SECONDS
    assert held.places.room()
    first = min(
        there,
        key=lambda place: ([OWED_STATE, IDLE_STATE, ASKED_STATE].index(states[there.index(place)]), there.index(place)),
    )
    assert held.closed == [first]


def test_who_has_only_begun_is_spared_while_another_can_make_room() -> None:
    held = Held()
    idle = held.come(IDLE_STATE)
    young = held.fill(OWED_STATE)
    assert held.places.room()
    assert held.closed == [idle]
    for _ in range(SPARE_CONNECTIONS + 1):
        held.come()
    assert not set(held.closed) & set(young)
    assert held.places.room()
    assert held.closed == [idle, young[0]]


def test_where_every_place_is_a_known_callers_a_few_more_are_told_so() -> None:
    held = Held()
    held.fill(KNOWN_STATE)
    for _ in range(SPARE_CONNECTIONS):
        assert held.places.room()
        held.come(KNOWN_STATE)
    assert not held.places.room()
    assert held.places.full
    assert held.closed == []


@pytest.mark.parametrize("limit_s", [HEADER_SECONDS, REQUEST_SECONDS])
def test_a_byte_now_and_then_gains_no_time(limit_s: float) -> None:
    held = Held()
    slow, fair = held.come(limit_s=limit_s), held.come(KNOWN_STATE)
    while held.now <= limit_s:
        held.places.overdue()
        assert held.closed == []
        held.places.move(slow, OWED_STATE)
        held.now += 1
    held.places.overdue()
    assert held.closed == [slow]
    assert fair.state


def test_a_client_has_its_time_again_after_the_server_let_it_wait() -> None:
    held = Held()
    place = held.come(unread=True)
    held.now = 1_000.0
    held.places.overdue()
    cast(Wire, place.connection).unread = False
    held.now += HEADER_SECONDS - 1
    held.places.overdue()
    assert held.closed == []
    held.now += 2
    held.places.overdue()
    assert held.closed == [place]
