"""Time the pages of the desk on a large workspace, and watch its memory under live pages.

    python -m bench.desk FOLDER [--from WORKSPACE] [--campaigns 200] [--factors 10000] [--clients 50]

FOLDER is made from a workspace with a finished campaign, whose rows are copied under new names until there are so many
campaigns and factors; it is used again if it is there. Each page is asked for in this process, without a network: the
median of five answers after a first one. Then so many clients follow live pages, and the memory of the process is read
before and after. Exit code 1 where a page takes longer than 300 ms.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from starlette.testclient import TestClient

from alphaloom.desk.web import Desk, build_app
from alphaloom.ledger import Ledger

MAX_PAGE_SECONDS = 0.3
TIMES, LIVE_SECONDS, WHILES = 5, 45.0, 8


def make_workspace(folder: Path, source: Path, campaigns: int, factors: int) -> None:
    """Copy a workspace, then its first campaign's rows until there are so many campaigns with so many factors each."""
    shutil.copytree(source, folder)
    with Ledger.open(folder, clock=lambda: datetime.now(UTC)) as ledger:
        run = next(run.id for run in ledger.runs.all() if "settings" in run.config)
    (path,) = folder.glob("*.sqlite")
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA synchronous = OFF")
    base.execute("CREATE TEMP TABLE numbers (n INTEGER)")
    base.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(factors)])
    for number in range(campaigns - 1):
        copy_run(base, run, f"large-{number:04d}", factors)
        if number % 20 == 0:
            say(f"{number + 2} of {campaigns} campaigns")
    base.close()


def copy_run(base: sqlite3.Connection, run: str, copy: str, factors: int) -> None:
    """Copy a run under another name, with its attempts and evaluations repeated to so many."""
    base.execute("BEGIN")
    base.execute("INSERT INTO runs (id, at, body) SELECT ?, at, body FROM runs WHERE id = ?", (copy, run))
    base.execute("INSERT INTO statuses (run, at, status) SELECT ?, at, status FROM statuses WHERE run = ?", (copy, run))
    for table, key in (("events", "kind, key"), ("verdicts", "factor_id"), ("calls", "key")):
        base.execute(
            f"INSERT INTO {table} (run, {key}, at, body) SELECT ?, {key}, at, body FROM {table} WHERE run = ?",
            (copy, run),
        )
    for table, key in (("attempts", "key"), ("evaluations", "factor_id")):
        (rows,) = base.execute(f"SELECT count(*) FROM {table} WHERE run = ?", (run,)).fetchone()
        base.execute(
            f"INSERT INTO {table} (run, {key}, at, body) SELECT ?, {key} || '-' || n, at, body FROM {table}, numbers "
            "WHERE run = ? AND n < ? LIMIT ?",
            (copy, run, -(-factors // rows), factors),
        )
    base.execute("COMMIT")


def time_pages(client: TestClient, places: list[str]) -> dict[str, tuple[float, float]]:
    """Return the seconds of the first answer of each page, and the median of the next ones."""
    found = {}
    for place in places:
        seconds = []
        for _ in range(TIMES + 1):
            begin = time.perf_counter()
            answer = client.get(place)
            seconds.append(time.perf_counter() - begin)
            if answer.status_code != 200:
                raise SystemExit(f"{place} answered {answer.status_code}")
        found[place] = (seconds[0], statistics.median(seconds[1:]))
    return found


def read_memory() -> float:
    """Return the resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def follow(desk: Desk, clients: int, run: str) -> list[float]:
    """Let clients follow a live page over real connections; return MiB at the begin and after each while."""
    import http.client
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(build_app(desk), log_level="error"))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    launch, opened = desk.sessions.issue_launch("bench"), []
    first = http.client.HTTPConnection("127.0.0.1", port)
    first.request("GET", f"/enter/{launch}")
    cookie = str(first.getresponse().getheader("set-cookie")).split(";")[0]
    for _ in range(clients):
        one = http.client.HTTPConnection("127.0.0.1", port)
        one.request("GET", f"/runs/{run}/live", headers={"Cookie": cookie})
        opened.append((one, one.getresponse()))
    for _, answer in opened:
        answer.readline()
    memory = [read_memory()]
    for _ in range(WHILES):
        time.sleep(LIVE_SECONDS)
        memory.append(read_memory())
    for one, _ in opened:
        one.close()
    server.should_exit = True
    thread.join(10)
    return memory


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Make the workspace, time its pages, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--from", dest="source", type=Path, help="a workspace with a finished campaign")
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--factors", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    asked = parser.parse_args()
    if not asked.folder.exists():
        if asked.source is None:
            parser.error("--from names a workspace with a finished campaign")
        make_workspace(asked.folder, asked.source, asked.campaigns, asked.factors)
    desk = Desk(asked.folder, lambda: datetime.now(UTC))
    with desk.open() as ledger:
        run = [run.id for run in ledger.runs.all() if "settings" in run.config][-1]
        one, other = (row.factor_id for row in ledger.evaluations.find("run = ?", run, order="factor_id LIMIT 2"))
    client = TestClient(build_app(desk), base_url="http://127.0.0.1:8000")
    client.get(f"/enter/{desk.sessions.issue_launch('bench')}")
    places = ["/inbox", "/runs", "/runs?page=4", f"/runs/{run}", f"/runs/{run}?q=volume&page=3", "/library", "/books"]
    places += [f"/runs/{run}/factors/{one}", f"/compare?a={run}:{one}&b={run}:{other}"]
    places += ["/record", "/jump?q=volume", "/jump?q=unheard"]
    times = time_pages(client, places)
    for place, (first, usual) in times.items():
        say(f"{place:<40} first {first * 1e3:7.0f} ms, then {usual * 1e3:7.0f} ms")
    words = ", ".join(f"{one:.1f}" for one in follow(desk, asked.clients, run))
    say(f"{asked.clients} clients on a live page, memory every {LIVE_SECONDS:.0f} s: {words} MiB")
    return int(any(usual > MAX_PAGE_SECONDS for _, usual in times.values()))


if __name__ == "__main__":
    sys.exit(main())
