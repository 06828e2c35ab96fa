"""Many voices at once are noise; a story that a credible source told is none."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from alphaloom.news.screening.crowd import (
    MIN_BURST_VOICES,
    WINDOW_MICROSECONDS as WINDOW,
    Utterance,
    compute_bands,
    find_bursts,
)

SAID = compute_bands("zorvex gets secret takeover offer at forty dollars a share")


def said(number: int, known: int, voice: str = "", credible: bool = False) -> Utterance:
    return Utterance(f"item{number:03d}", known, voice or f"voice{number}", credible, SAID)


def test_enough_voices_are_noise_from_the_last_of_them_on() -> None:
    bursts = find_bursts([said(n, n * 10) for n in range(MIN_BURST_VOICES + 1)])
    assert [bursts[f"item{n:03d}"].since for n in range(MIN_BURST_VOICES + 1)] == [
        (MIN_BURST_VOICES - 1) * 10
    ] * MIN_BURST_VOICES + [MIN_BURST_VOICES * 10]


def test_fewer_voices_one_voice_and_slow_voices_are_none() -> None:
    assert not find_bursts([said(n, n) for n in range(MIN_BURST_VOICES - 1)])
    assert not find_bursts([said(n, n, voice="one") for n in range(5 * MIN_BURST_VOICES)])
    assert not find_bursts([said(n, n * (WINDOW // (MIN_BURST_VOICES - 1) + 1)) for n in range(MIN_BURST_VOICES)])


def test_copies_of_a_credible_story_are_one_story() -> None:
    assert not find_bursts([said(99, 0, credible=True), *(said(n, 1 + n) for n in range(MIN_BURST_VOICES))])
    late = find_bursts([said(99, MIN_BURST_VOICES, credible=True), *(said(n, n) for n in range(MIN_BURST_VOICES))])
    assert len(late) == MIN_BURST_VOICES
    assert "item099" not in late


def test_copies_share_a_band_and_other_texts_do_not() -> None:
    text = "RT @bob: zorvex gets secret takeover offer at forty dollars a share https://x.example/1 $ZVX"
    other = "zorvex reports results for the second quarter, sales rise in all regions"
    assert set(compute_bands(text)) & set(SAID)
    assert not set(compute_bands(other)) & set(SAID)
    assert compute_bands("too short a") == ()


@given(
    st.lists(st.tuples(st.integers(0, 3 * WINDOW), st.integers(0, 12), st.booleans()), max_size=60),
    st.integers(0, 3 * WINDOW),
    st.integers(0, 9),
)
def test_no_later_text_changes_what_was_known(rows: list[tuple[int, int, bool]], moment: int, seed: int) -> None:
    every = [said(n, known, f"voice{voice}", credible and voice > 9) for n, (known, voice, credible) in enumerate(rows)]
    then = {item: held for item, held in find_bursts(every).items() if held.since <= moment}
    assert then == {
        item: held
        for item, held in find_bursts([one for one in every if one.known <= moment]).items()
        if held.since <= moment
    }
    random.Random(seed).shuffle(every)
    assert then == {item: held for item, held in find_bursts(every).items() if held.since <= moment}
