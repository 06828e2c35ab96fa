"""The benchmark of the sandbox: its tables say what was counted, its fuzzer repeats itself, and calls leave nothing."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from alphaloom.sandbox import Sandbox, SandboxUnavailable
from bench.sandbox import ablation, calls
from bench.sandbox.__main__ import main
from bench.sandbox.calls import Held
from bench.sandbox.latency import taken
from tests.sandbox.attacks.fuzzer import LEFT_OUT, fuzzed
from tests.sandbox.attacks.snippet import read


def test_a_table_of_walls_sums_what_every_column_has() -> None:
    cells = {"none": {"tcp": (6, 11)}, "all": {"tcp": (0, 11), "files_write": (0, 19)}}
    table = "\n".join(ablation.lines(cells))
    assert "| files_write | not run | 0 / 19 |" in table
    assert "| classes that every column has | 6 / 11 | 0 / 11 |" in table


def test_mutations_come_from_the_seed_alone() -> None:
    first, again = ([snippet.code for snippet in islice(fuzzed(read(), 3), 40)] for _ in range(2))
    assert first == again
    assert first != [snippet.code for snippet in islice(fuzzed(read(), 4), 40)]
    assert len(set(first)) == 40


def test_what_stays_out_of_the_fuzzer_is_a_class() -> None:
    assert set(LEFT_OUT) <= {snippet.group for snippet in read()}


def test_ways_take_turns() -> None:
    seen: list[str] = []
    times = taken({"often": (6, lambda: seen.append("often")), "rarely": (2, lambda: seen.append("rarely"))})
    assert {way: len(each) for way, each in times.items()} == {"often": 6, "rarely": 2}
    assert seen[2:5] == ["often", "rarely", "often"]


def test_growth_is_seen() -> None:
    begin = [Held("caller", 50.0, 9), Held("server", 30.0, 4)]
    assert calls.flat(begin, [Held("caller", 51.0, 9), Held("server", 30.0, 4)])
    assert not calls.flat(begin, [Held("caller", 60.0, 9), Held("server", 30.0, 4)])
    assert not calls.flat(begin, [Held("caller", 50.0, 10), Held("server", 30.0, 4)])
    assert not calls.flat(begin, [*begin, Held("worker", 1.0, 4)])
    assert calls.flat([Held("worker", 9.0, None)], [Held("worker", 9.0, None)])


def test_a_process_that_may_not_be_read_is_weighed_by_what_all_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = (process for process in calls.held() if process.name == "caller")
    read, listed = Path.read_text, os.listdir

    def kept(path: Path, *more: Any, **named: Any) -> str:
        if path.name == "smaps_rollup":
            raise PermissionError(path)
        return read(path, *more, **named)

    def closed(path: str) -> list[str]:
        if path.endswith("/fd"):
            raise PermissionError(path)
        return listed(path)

    monkeypatch.setattr(Path, "read_text", kept)
    monkeypatch.setattr(os, "listdir", closed)
    (found,) = (process for process in calls.held() if process.name == "caller")
    assert found.descriptors is None
    resident_mb = int(read(Path("/proc/self/statm")).split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    assert whole.memory_mb / 2 < found.memory_mb < resident_mb, "what forked children share counts here, and not there"


def test_some_calls_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        Sandbox().close()
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field}: {error.message}")
    assert calls.main(["--count", "60"]) == 0
    assert "60 calls, 18 of them with an error" in capsys.readouterr().out


def test_parts_are_listed() -> None:
    assert (main([]), main(["nothing"])) == (0, 2)
