"""Every command answers, and every mistake is told in words with the right exit code."""

import errno
import io
import json
import re
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from alphaloom.campaign import Progress
from alphaloom.campaign.progress import Best, Counts, ModelSpend
from alphaloom.desk.cli.campaign.progress import PlainLines, build_progress_panel
from alphaloom.desk.cli.main import FIRST_NOTICE, SECOND_NOTICE, run_command
from alphaloom.desk.cli.options import DataOptions
from alphaloom.evaluation import CampaignResult
from alphaloom.ledger import AlphaloomError, Ledger, Run

from . import example

Capture = pytest.CaptureFixture[str]


class Refused(AlphaloomError):
    code = "refused"
    exit_code = 1


class Ended(AlphaloomError):
    code = "budget_ended"
    exit_code = 4


def progress(**changes: Any) -> Any:
    counts = {"hypotheses": 18, "proposed": 143, "readable": 120, "scored": 96, "sent": 2, "watched": 1, "rejected": 1}
    counted = Counts(**(counts | {name: changes.pop(name) for name in [*changes] if name in Counts.__annotations__}))
    best = Best("f1", "rank(close)", -3.21, -0.02)
    plain: dict[str, Any] = {
        "phase": "search",
        "round": 2,
        "rounds": 6,
        "evaluations_budget": 400,
        "trials": 2,
        "best": best,
    }
    spent = {"spent": ModelSpend(7, 4_200, 0.5), "elapsed_s": 41.0, "remaining_s": 75.0}
    return Progress(**(plain | spent | {"counts": counted} | changes))


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **parts: Any) -> None:
    """Put a made-up module in the place of one of the command line's."""
    module = types.ModuleType(f"alphaloom.desk.cli.{name}")
    module.__dict__.update(parts)
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Any]]:
    """Return a function that puts a made-up campaign in the wiring's place; what it was told is listed."""

    def place(raises: BaseException | None = None, results: dict[str, Any] | None = None) -> list[Any]:
        told: list[Any] = []

        class Campaign:
            def __init__(self, *arguments: Any, **options: Any) -> None:
                told.append((arguments, options))

            def run(self, progress: Callable[[Any], None]) -> CampaignResult:
                progress(globals()["progress"]())
                if raises is not None:
                    raise raises
                record = example.results() if results is None else results
                return CampaignResult("r1", tmp_path, record, tmp_path / "report.html")

            @classmethod
            def from_yaml(cls, path: Path, **options: Any) -> "Campaign":
                return cls(path, **options)

            def contained(self, executor: str | None, backend: str | None) -> "Campaign":
                assert (executor, backend) == (None, None)
                return self

            @classmethod
            def resume(cls, run: str, *, workspace: Path | None, progress: Any, where: Any) -> CampaignResult:
                assert where == (None, None)
                return cls(run, workspace=workspace).run(progress)

        def score_factor(text: str, place: DataOptions, **options: Any) -> dict[str, Any]:
            told.append(((text, place), options))
            if raises is not None:
                raise raises
            gate = {"verdict": "watchlist", "trial": 3, "reasons": example.reasons(), "selection": {"p_value": 0.01}}
            costs = {"bps_per_side": 12.5, "borrow_bps_per_year": 80.0}
            days = {"days": 500, "symbols": 40, "first_day": "2010-01-04", "last_day": "2011-12-02"}
            data = {"synthetic": True, "seed": 7, "file": None} | days
            sheet = {"id": "f1", "text": text, "data": data, **example.sheet(0.03, example.SEARCH)}
            return sheet | {"costs": costs, "gate": gate}

        stand_in(monkeypatch, "campaign.reported", Campaign=Campaign)
        stand_in(monkeypatch, "evaluator", score_factor=score_factor)
        return told

    return place


def test_run_prints_the_verdicts_and_the_report_on_a_line_of_its_own(
    campaign: Callable[..., list[Any]], capsys: Capture, tmp_path: Path
) -> None:
    campaign()
    assert run_command(["run"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == str(tmp_path / "report.html")
    assert f"Each step: alphaloom log r1 --workspace {tmp_path.parents[1]}" in output.out
    assert "rank(ts_std(returns, 30)) * -1" in output.out
    assert "and 35 more rejected (redundancy 35)" in output.out
    said = "search, round 2/6: 96/400 scored; 0 accepted, 1 watched; 41 s, 1 min 15 s left; best |t| 3.2; $0.50\n"
    assert output.err == said


def test_run_with_json_prints_one_object(campaign: Callable[..., list[Any]], capsys: Capture, tmp_path: Path) -> None:
    campaign()
    assert run_command(["run", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["run"] == "r1"
    assert printed["combination"] == str(tmp_path / "combination.parquet")
    assert printed["accepted"][0]["metrics"]["selection"]["rank_ic"] > 0
    assert {"watchlist", "rejected", "attempts", "evaluations", "trials", "spend", "power", "report"} <= set(printed)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay empty files beside each other, and stand there: a file that is missing is refused at once."""
    for name in ("c.yaml", "p.csv", "s.csv"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


def begun(workspace: Path) -> Path:
    """Begin run r1 in a workspace and return its folder."""
    with Ledger.open(workspace, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run("r1", {"settings": {}}, 7, "made up", "2026-01-01"))
        return ledger.runs.folder("r1")


@pytest.mark.usefixtures("given")
def test_run_hands_every_option_on(campaign: Callable[..., list[Any]], tmp_path: Path) -> None:
    told = campaign()
    arguments = ["run", "c.yaml", "--panel", "p.csv", "--sectors", "s.csv", "--as-of", "2020-01-31", "--seed", "3"]
    assert run_command([*arguments, "--workspace", str(tmp_path), "--set", "a.b=1", "--set", "c=2"]) == 0
    (path,), options = told[0]
    assert path == Path("c.yaml")
    assert options["panel"] == Path("p.csv")
    assert options["as_of"].isoformat() == "2020-01-31"
    assert (options["seed"], options["overrides"]) == (3, ("a.b=1", "c=2"))


def test_nothing_accepted_is_a_success(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    campaign(results=example.nothing_accepted())
    assert run_command(["run"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Nothing was accepted in 8 trials; none on the watchlist, 1 rejected.")
    assert "could have proven" in output


def test_a_budget_that_ended_is_told_after_the_results(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    campaign(results=example.results() | {"ended": "the budget of 3 calls is spent"})
    assert run_command(["run"]) == 4
    assert "The search ended early: the budget of 3 calls is spent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"), [(AlphaloomError("bad"), 2), (Refused("no"), 1), (Ended("spent"), 4), (KeyboardInterrupt(), 130)]
)
def test_every_error_has_its_exit_code(
    campaign: Callable[..., list[Any]], error: BaseException, code: int, capsys: Capture
) -> None:
    campaign(raises=error)
    assert run_command(["run"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupted_run_says_how_to_go_on(
    campaign: Callable[..., list[Any]], capsys: Capture, tmp_path: Path
) -> None:
    campaign(raises=KeyboardInterrupt())
    begun(tmp_path)
    assert run_command(["resume", "r1", "--workspace", str(tmp_path)]) == 130
    assert f"resume with: alphaloom resume latest --workspace {tmp_path}" in capsys.readouterr().err


def test_a_run_may_be_named_by_its_folder(campaign: Callable[..., list[Any]], tmp_path: Path) -> None:
    told = campaign()
    assert run_command(["resume", str(begun(tmp_path / "w"))]) == 0
    assert told == [(("r1",), {"workspace": tmp_path / "w"})]


def test_an_error_names_field_value_and_remedy(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    campaign(raises=Refused("there is [red]no[/red] room", field="disk", got=3, allowed="at least 5", hint="tidy up"))
    run_command(["run"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert lines[-5:] == [
        "error: there is [red]no[/red] room",
        "field disk",
        "got 3",
        "allowed at least 5",
        "hint tidy up",
    ]


def test_a_mistake_in_a_formula_is_pointed_at(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    class Misread(AlphaloomError):
        def caret(self) -> str:
            return "rank(clse)\n     ^"

    campaign(raises=Misread("unknown field 'clse'", got="rank(clse)", hint="Did you mean close?"))
    assert run_command(["factor", "score", "rank(clse)"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: unknown field 'clse'\nrank(clse)\n     ^\n")
    assert errors.count("rank(clse)") == 1


def test_an_error_with_json_is_one_object_on_standard_output(
    campaign: Callable[..., list[Any]], capsys: Capture
) -> None:
    campaign(raises=Refused("no", field="f", got=3, hint="h"))
    assert run_command(["factor", "score", "close", "--json"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out) == {
        "code": "refused",
        "field": "f",
        "got": 3,
        "allowed": None,
        "hint": "h",
        "message": "no",
    }
    assert output.err == ""


def test_a_full_disk_is_told_as_such(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    campaign(raises=OSError(errno.ENOSPC, "No space left on device", "/data/x"))
    assert run_command(["run"]) == 2
    error = capsys.readouterr().err
    assert "No space left on device: /data/x" in error
    assert "alphaloom resume latest" in error


def test_a_mistake_of_ours_is_one_line_and_a_file(
    campaign: Callable[..., list[Any]], capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    campaign(raises=ZeroDivisionError("by zero"))
    assert run_command(["run"]) == 1
    error = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: by zero" in error
    assert "Traceback" not in error
    (kept,) = tmp_path.glob("alphaloom-crash-*.txt")
    assert str(kept) in error
    assert "Traceback" in kept.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["run", "--sede", "3"], "--seed"),
        (["run", "--seed", "x"], "integer"),
        (["run", "--as-of", "2020"], "such as 2017-12-29"),
        (["serve", "mcp", "markte"], "market"),
        (["resume"], "RUN"),
    ],
)
def test_a_mistyped_command_is_told_with_the_nearest(arguments: list[str], said: str, capsys: Capture) -> None:
    assert run_command(arguments) == 2
    assert said in capsys.readouterr().err


def test_no_command_shows_the_commands(capsys: Capture) -> None:
    assert run_command([]) == 2
    assert "doctor" in capsys.readouterr().err


def test_help_names_the_exit_codes(capsys: Capture) -> None:
    assert run_command(["--help"]) == 0
    assert "130 interrupted" in capsys.readouterr().out


def test_factor_score_prints_the_sheet(campaign: Callable[..., list[Any]], capsys: Capture) -> None:
    told = campaign()
    assert run_command(["factor", "score", "rank(close)", "--gate"]) == 0
    assert told[0][1]["gate"] is True
    output = capsys.readouterr().out
    assert "+0.0300" in output
    assert "no. 3, p 0.01" in output
    assert "12.5 bp for each side of a trade and 80 bp a year for borrowing" in " ".join(output.split())


@pytest.mark.usefixtures("given")
def test_a_campaign_file_and_what_goes_before_it_are_handed_on(campaign: Callable[..., list[Any]]) -> None:
    told = campaign()
    data = ["--panel", "p.csv", "--sectors", "s.csv", "--as-of", "2020-01-31", "--workspace", "w"]
    assert run_command(["factor", "score", "close", "--campaign", "c.yaml", *data]) == 0
    assert told[0][0][1] == DataOptions(Path("c.yaml"), Path("p.csv"), Path("s.csv"), date(2020, 1, 31), Path("w"))


def test_report_writes_the_page_again(finished: Callable[..., Path], capsys: Capture) -> None:
    folder = finished()
    assert run_command(["report", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "report.html")


def test_an_unknown_run_is_told(capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["report", "nowhere", "--workspace", str(tmp_path)]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "resume"])
def test_asking_for_a_run_makes_no_workspace(command: str, capsys: Capture, tmp_path: Path) -> None:
    assert run_command([command, "r1", "--workspace", str(tmp_path / "none")]) == 2
    assert "There is no workspace at" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_init_writes_once(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    assert run_command(["init", str(file)]) == 0
    written = file.read_bytes()
    assert run_command(["init", str(file)]) == 1
    assert "exists and is left as it is" in capsys.readouterr().err
    assert file.read_bytes() == written


def test_plain_progress_says_little_until_something_happens() -> None:
    clock = iter([0.0, 1.0, 2.0, 13.0])
    output = io.StringIO()
    console = Console(file=output, width=300)
    show = PlainLines(console, lambda: next(clock))
    for each in (progress(), progress(message="a"), progress(accepted=1), progress(accepted=1, message="b")):
        show(each)
    lines = output.getvalue().splitlines()
    assert ["accepted" in line for line in lines] == [True, True, True]
    assert [line.partition(" accepted")[0][-1] for line in lines] == ["0", "1", "1"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accepted": 12, "watched": 345, "awaiting": 10, "scored": 123_456, "evaluations_budget": 200_000, "round": 40},
        {"doing": {"idea": "asks for hypotheses about " + "volume " * 30, "factor": "writes formulas"}},
        {"phase": "searching", "message": "r02/h03 repair: " + "the model wrote something that is no formula " * 9},
        {
            "evaluations_budget": 0,
            "round": 0,
            "phase": "looking for the models",
            "message": "qwen does not answer " * 20,
        },
        {"spent": ModelSpend(70_000, 42_000_000, 12_345.5), "elapsed_s": 400_000.0, "remaining_s": 800_000.0},
    ],
)
def test_a_plain_line_has_at_most_a_hundred_characters_and_loses_no_message(changes: dict[str, Any]) -> None:
    output = io.StringIO()
    PlainLines(Console(file=output, width=300))(progress(**changes))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(changes.get("message", "").split()) in " ".join(output.getvalue().split())
    assert len(lines) == 1 or "message" in changes


def test_a_message_of_the_search_is_printed_once_and_at_once() -> None:
    output = io.StringIO()
    show = PlainLines(Console(file=output, width=300), lambda: 0.0)
    for message in ("a", "a", "b", "scored", "b"):
        show(progress(phase="searching", message=message))
    lines = output.getvalue().splitlines()
    assert [line.rpartition(" ")[2] for line in lines if line.endswith((" a", " b"))] == ["a", "b"]


def test_a_message_before_anything_is_counted_is_printed_once() -> None:
    output = io.StringIO()
    PlainLines(Console(file=output, width=300))(Progress("searching", message="what can be proven"))
    assert output.getvalue().splitlines() == ["searching: what can be proven"]


def test_a_step_that_takes_minutes_is_told_again_and_again() -> None:
    output = io.StringIO()
    now = [0.0]
    show = PlainLines(Console(file=output, width=300), lambda: now[0])
    show.still()
    show(Progress("reading the market"))
    for second in range(1, 100):
        now[0] = float(second)
        show.still()
    lines = output.getvalue().splitlines()
    assert lines[:2] == ["reading the market", "reading the market: still at the same step, for 10 s"]
    assert lines[-1] == "reading the market: still at the same step, for 1 min 30 s"
    assert len(lines) == 10


def test_a_step_that_just_began_is_not_called_long() -> None:
    output = io.StringIO()
    now = [0.0]
    show = PlainLines(Console(file=output, width=300), lambda: now[0])
    show(Progress("reading the market"))
    now[0] = 9.0
    show(Progress("reading the market"))
    now[0] = 12.0
    show.still()
    assert output.getvalue().splitlines() == ["reading the market"]


def test_a_long_step_of_the_search_says_what_agents_do_in_it() -> None:
    output = io.StringIO()
    now = [0.0]
    show = PlainLines(Console(file=output, width=300), lambda: now[0])
    show(Progress("searching", doing={"idea": "thinks of hypotheses"}))
    now[0] = 20.0
    show.still()
    said = "searching: still at the same step, for 20 s; idea thinks of hypotheses"
    assert output.getvalue().splitlines()[-1] == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--as-of", "2017-02-30"], "'--as-of': '2017-02-30' is not a day of the calendar, such as 2017-12-29."),
        (["serve", "mcp", "nosuch"], "'server': 'nosuch' is not one of 'market'"),
    ],
)
def test_a_refused_option_is_told_without_the_parsers_words(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "alphaloom", *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert said in result.stderr


def test_the_longer_a_run_takes_the_rarer_are_its_lines() -> None:
    output = io.StringIO()
    now = [0.0]
    show = PlainLines(Console(file=output, width=300), lambda: now[0])
    for second in range(3600):
        now[0] = float(second)
        show(progress(elapsed_s=float(second)))
    assert 60 <= len(output.getvalue().splitlines()) <= 120


def test_one_trial_is_one_trial() -> None:
    output = io.StringIO()
    console = Console(file=output, width=300)
    console.print(build_progress_panel(progress(trials=1)))
    assert output.getvalue().count("1 trial") == 1
    assert "1 trials" not in output.getvalue()


def test_the_panel_shows_counts_once_there_are_some() -> None:
    output = io.StringIO()
    console = Console(file=output, width=100)
    console.print(
        build_progress_panel(progress(evaluations_budget=0, round=0, phase="compiling", message="compiled 3 of 69"))
    )
    console.print(build_progress_panel(progress()))
    early, _, late = output.getvalue().partition("round 2 of 6")
    assert "compiled 3 of 69" in early
    assert "evaluated" not in early
    assert "143 proposed → 120 readable → 96 of 400 scored → 2 sent" in late
    assert "|t| 3.2 on search: rank(close)" in late


def test_the_panel_shows_what_agents_do_and_what_an_accepted_factor_cost() -> None:
    output = io.StringIO()
    console = Console(file=output, width=100)
    console.print(build_progress_panel(progress(accepted=2, awaiting=1, doing={"factor": "writes formulas"})))
    assert "$0.5000 ($0.2500 each accepted)" in output.getvalue()
    assert "2 accepted, 1 watched, 1 rejected, 1 to approve" in output.getvalue()
    assert re.search(r"factor +writes formulas", output.getvalue())


SLOW = """
import signal, sys, time
from alphaloom.desk.cli.main import answer_interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job hands on that it is ignored
with answer_interrupts():
    try:
        print("begun", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print("safe", flush=True)
        {then}
"""


def interrupted(then: str) -> subprocess.Popen[str]:
    """Start a command that takes long, interrupt it once, and return it."""
    command = [sys.executable, "-c", SLOW.format(then=then)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "safe\n"
    return process


def test_the_first_interruption_is_answered_and_the_second_ends_the_process() -> None:
    process = interrupted("time.sleep(600)")
    assert process.stderr is not None
    assert process.stderr.readline() == f"{FIRST_NOTICE}\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, f"{SECOND_NOTICE}\n")


def test_a_server_that_handles_interruptions_is_not_ended_by_the_second() -> None:
    process = interrupted(
        "import signal; signal.signal(signal.SIGINT, lambda *_: sys.exit(7)); print('mine', flush=True); "
        "time.sleep(600)"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 7


def test_a_command_that_is_interrupted_says_so(
    campaign: Callable[..., list[Any]], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign(raises=KeyboardInterrupt())
    assert run_command(["factor", "score", "close"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert run_command(["factor", "score", "close", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["code"] == "interrupted"


def test_the_process_ends_without_a_last_collection_of_garbage() -> None:
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count())); "
        "sys.argv = ['alphaloom', '--version']"
    )
    command = [sys.executable, "-c", f"{code}; from alphaloom.desk.cli.main import main; main()"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(words[-1]) > 1000


@pytest.mark.parametrize("command", ["report", "status", "resume"])
def test_latest_in_a_folder_of_workspaces_names_the_newest(command: str, capsys: Capture, tmp_path: Path) -> None:
    for name in ("demo-20260101-000000", "demo-20260102-000000"):
        begun(tmp_path / name)
    assert run_command([command, "latest", "--workspace", str(tmp_path)]) == 2
    assert f"--workspace {tmp_path / 'demo-20260102-000000'}" in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.is_file()]
