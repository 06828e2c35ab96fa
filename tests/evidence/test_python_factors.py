"""Python factors before the evidence: what they are shown, what they are refused for, and what is held of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import Budget, Evaluator, PanelContext, stress_on_search
from alphaloom.evaluation.admission import add_by_hand
from alphaloom.evaluation.score_log import RefusedRuns
from alphaloom.evidence import Claim, EvidenceSettings, Proposal
from alphaloom.evidence.archive import RunArchive
from alphaloom.evidence.errors import NeedsSandbox, PythonRefused
from alphaloom.evidence.gate.adjusted_price_leak import READS_LEVEL_MESSAGE
from alphaloom.evidence.replay import replay_verdict
from alphaloom.evidence.values.computing import Computing
from alphaloom.evidence.values.contained import Contained
from alphaloom.evidence.values.retry import SECOND_TRY_FACTOR, Allowance, TimeSteps
from alphaloom.evidence.values.sandbox_settings import LazySandbox, SandboxSettings
from alphaloom.factors import Engine, parse
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel
from alphaloom.sandbox import Frames, Job, Outcome, Runner, SandboxUnavailable, TimedOut

from .lab import SMALL, WIDE, clock, market, scorer, steps
from .test_adjusted_price_leak import adjusted

pytestmark = pytest.mark.integration

COPY = 'def factor(panel):\n    return -panel["returns"].rolling(20).std()'
TELLS = 'def factor(panel):\n    raise ValueError(panel["close"].iloc[0].to_list())\n    return panel["close"]'
STATE = """
def factor(panel):
    close = panel["close"].to_numpy()
    state, out = np.zeros(close.shape[1]), np.zeros(close.shape)
    for t in range(1, len(close)):
        state = np.where(close[t] > close[t - 1], state * 0.9 + 1, state * 0.5)
        out[t] = state
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
"""


class Counting:
    """A runner that remembers the jobs that it was given."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self.jobs = runner, list[Job]()

    @property
    def stamp(self) -> str:
        return self._runner.stamp

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        def noted() -> Iterator[Job]:
            for job in jobs:
                self.jobs.append(job)
                yield job

        return self._runner.run_each(noted())

    @property
    def rows(self) -> int:
        """Return the most days that any job held, shown or not."""
        return max(len(job.frames.dates) for job in self.jobs)


class Busy(Counting):
    """A runner on a busy machine: calls that hold more days than `calm` take too long, if they get the usual time."""

    def __init__(self, runner: Runner, calm: int, most: int = 2) -> None:
        super().__init__(runner)
        self.calm, self.most = calm, most

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        for job, outcome in zip(jobs := list(jobs), super().run_each(jobs), strict=True):
            late = (job.rows or len(job.frames.dates)) > self.calm and job.patience < self.most
            yield Outcome(None, TimedOut("the call took too long"), 0.0, 0.0, 0.0) if late else outcome


@pytest.fixture(scope="module")
def jail() -> Iterator[LazySandbox]:
    with LazySandbox(SandboxSettings(workers=1)) as made:
        try:
            Computing(Engine(market()), Contained(market(), made)).evaluate([parse(COPY)])
        except (NeedsSandbox, SandboxUnavailable) as error:
            pytest.skip(f"{error.field}: {error.message}")
        yield made


@pytest.fixture
def runner(jail: LazySandbox) -> Counting:
    return Counting(jail)


class Spending(Counting):
    """A runner whose calls cost so many seconds of CPU, as they tell."""

    def __init__(self, runner: Runner, cpu_s: float) -> None:
        super().__init__(runner)
        self.cpu_s = cpu_s

    def run_each(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        for job in jobs:
            self.jobs.append(job)
            yield Outcome(np.zeros(job.shape), None, 0.0, 1000.0 * self.cpu_s, 1.0)


def runner_frames(runner: Runner) -> Frames:
    """Return frames of the tests' market."""
    return Contained(market(), runner)._make_frames(parse(COPY), 30)


Maker = Callable[..., Evaluator]
ALONE = SMALL.model_copy(update={"published": False})
"""Settings that judge code although it ranks the names as some published factor does, as simple code will."""
SHORT, QUICK = 280, ALONE.model_copy(update={"windows": WIDE.model_copy(update={"min_sealed_days": 20})})
"""Days of a market on which a look is quickly taken, since each of its days is a call or more; and its rules."""


@pytest.fixture
def service(ledger: Ledger, runner: Counting) -> Maker:
    """Return a maker of evaluation services with a sandbox."""

    def make(
        run: str = "run", *, panel: Panel | None = None, settings: EvidenceSettings = SMALL, python: bool = True
    ) -> Evaluator:
        panel = panel or market()
        set_up = PanelContext.set_up(panel, ledger, settings, "small", runner=runner)
        bench = PanelContext(set_up.engine, scorer(panel, settings), set_up.windows, ledger)
        rules = {"evidence": settings.model_dump(mode="json")}
        config: dict[str, Any] = {"panel": panel.digest, "last_day": str(panel.dates[-1]), "rules": rules}
        ledger.runs.start(Run(run, config, 1, "small", clock().isoformat()))
        return bench.evaluator(run, Budget(evaluations=20, trials=5), python=python)

    return make


def proposed(evaluator: Evaluator, text: str, direction: int = 1, key: str = "") -> dict[str, Any]:
    fields = ("close", "returns", "volume", "open")
    claim = Claim(f"h{direction}", "control", "code of the tests", direction, 5, fields)
    return evaluator.propose(Proposal(text, claim, key or text))


def judged(evaluator: Evaluator, text: str) -> Any:
    direction = -1 if (evaluator.score(text)["rank_ic"] or 0.0) < 0 else 1
    answer = proposed(evaluator, text, direction)
    assert answer["ok"], answer
    return evaluator.submissions.submit([answer["id"]])[0]


def test_a_copy_in_python_scores_as_the_formula_does_and_is_not_new(service: Maker) -> None:
    evaluator = service()
    mine, theirs = evaluator.score(COPY), evaluator.score("-ts_std(returns, 20)")
    assert mine["rank_ic"] == pytest.approx(theirs["rank_ic"], abs=1e-4)
    assert mine["id"] != theirs["id"]
    answer = proposed(evaluator, COPY)
    assert (answer["ok"], answer["stage"]) == (False, "originality")


def test_no_code_is_shown_a_day_after_search(service: Maker, runner: Counting) -> None:
    evaluator = service()
    told = (
        "def factor(panel):\n"
        '    x = panel["close"]\n'
        '    raise ValueError(f"{len(x)} days to {x.index[-1]}")\n'
        "    return x"
    )
    answer = proposed(evaluator, told)
    last = evaluator.windows.search.stop
    assert answer["stage"] == "python"
    assert f"{last} days to {evaluator.panel.dates[last - 1]}" in answer["errors"][0]["message"]
    assert proposed(evaluator, STATE)["ok"]
    evaluator.score(STATE)
    stress_on_search(evaluator, [evaluator.read(STATE)])
    assert runner.rows == last


def test_names_are_numbers_and_columns_those_that_it_names(service: Maker, runner: Counting) -> None:
    told = 'def factor(panel):\n    x = panel["open"]\n    raise ValueError(list(x.columns)[:2])\n    return x'
    answer = proposed(service(), told)
    assert "['n0', 'n1']" in answer["errors"][0]["message"]
    assert {name for job in runner.jobs for name in job.frames.names} == {"open"}


@pytest.mark.parametrize(
    ("code", "stage", "said", "ran"),
    [
        ('def factor(panel):\n    return panel["returns"].shift(-1)', "causal", "reads later days", 0),
        (
            'def factor(panel):\n    x = panel["returns"]\n    return x - x.mean()',
            "causal",
            "changed when later days",
            1,
        ),
        ('def factor(panel):\n    return panel["returns"].iloc[:5]', "python", "allowed: (210, 59)", 1),
        ('def factor(panel):\n    return open("/etc/passwd").read() + panel["returns"]', "python", "", 1),
        ('def factor(panel):\n    return panel["price"]', "python", "no column 'price'", 0),
        ("def other(panel):\n    return panel", "python", "no function factor", 0),
    ],
)
def test_what_is_refused_says_why_and_costs_an_evaluation_if_it_ran(
    service: Maker, runner: Counting, code: str, stage: str, said: str, ran: int
) -> None:
    evaluator = service()
    answer = proposed(evaluator, code)
    assert (answer["ok"], answer["stage"]) == (False, stage)
    assert said in answer["errors"][0]["message"]
    assert evaluator.meter.evaluations_spent() == ran
    assert [row.stage for row in evaluator.ledger.attempts.of("run")] == [stage]
    before = len(runner.jobs)
    assert proposed(evaluator, code) == answer, "the same attempt again is answered, and not run"
    assert (evaluator.meter.evaluations_spent(), len(runner.jobs)) == (ran, before)
    assert RefusedRuns(evaluator.ledger, "run").find_refusal(code) == (answer if ran else None), (
        "a process that resumes knows it"
    )
    if ran:
        proposed(evaluator, code, key="another")
        assert evaluator.meter.evaluations_spent() == 2, "what is run again is paid again"


def test_no_code_is_run_when_no_evaluation_is_left(service: Maker, runner: Counting) -> None:
    evaluator = replace(service(panel=adjusted()), budget=Budget(evaluations=1))
    assert proposed(evaluator, TELLS)["stage"] == "python"
    before = len(runner.jobs)
    assert proposed(evaluator, TELLS, key="2")["stage"] == "budget"
    assert len(runner.jobs) == before


def test_days_that_code_refuses_to_compute_have_no_values_and_it_is_said(service: Maker, runner: Counting) -> None:
    """It sees the whole panel when it is scored, and looks ahead where it refuses to be asked day by day."""
    code = STATE.replace("    close =", '    assert len(panel["close"]) >= 40, "too few"\n    close =').replace(
        "    return pd", "    out[:39] = close[1:40] / close[:39]\n    return pd"
    )
    evaluator = service()
    answer = proposed(evaluator, code)
    assert answer["ok"], answer
    said = {warning["code"]: warning["message"] for warning in answer["sheet"]["warnings"]}
    assert f"nothing is shown of the days before {evaluator.panel.dates[39]}" in said["unshown_days"]
    fresh = Contained(evaluator.panel, runner)  # a process that resumes has not screened it
    for values in (evaluator.values(evaluator.read(code)), fresh.values(evaluator.read(code), 210)):
        assert np.isnan(values[:39]).all()
        assert np.isfinite(values[39:210]).any()
    swept = Contained(evaluator.panel, runner).sweep(evaluator.read(code), (90,))
    assert swept.start_up == 39
    assert np.isnan(swept.values[:39]).all()


def test_code_on_days_after_search_shares_a_fixed_time(runner: Counting) -> None:
    """Whatever it computes there: the allowance hangs on the number of days, and what is left over is not run."""
    jobs = [Job(COPY, runner_frames(runner))] * 40
    spent = Spending(runner, cpu_s=9.0)
    found = list(Allowance(spent, days=12).run_each(jobs))
    errors = [outcome.error for outcome in found]
    assert [isinstance(error, TimedOut) for error in errors] == [False] * 8 + [True] * 32
    assert len(spent.jobs) == 8, "72 seconds in one group are the end of it"
    quick = Allowance(Spending(runner, cpu_s=0.1), days=12)
    assert not any(outcome.error for outcome in quick.run_each(jobs))


def test_a_look_that_runs_code_ends_at_a_whole_step_of_the_clock(service: Maker) -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    def worked(seconds: float) -> float:
        began, now[0] = 100.0, 100.0
        with suppress(ValueError), TimeSteps(lambda: now[0], sleep, step=60.0).even():
            now[0] += seconds
            raise ValueError("failed")
        return now[0] - began

    assert [worked(seconds) for seconds in (7.0, 59.0, 61.0, 119.0)] == [60.0, 60.0, 120.0, 120.0]
    slept.clear()
    evaluator = replace(service(panel=market(days=SHORT), settings=QUICK), pace=TimeSteps(lambda: 3.0, sleep))
    assert judged(evaluator, STATE).trial == 1
    assert len(slept) == 1
    assert judged(evaluator, "-ts_skew(returns, 17) * ts_std(volume, 9) / ts_mean(volume, 9)").word
    assert len(slept) == 1, "a formula's look takes as long whatever it sees"


def test_what_the_lint_only_doubts_is_run(service: Maker) -> None:
    """Its words stand beside the factor; what the code may do is not for a reading of it to say."""
    odd = (
        "def factor(panel):\n"
        '    look = getattr(panel["returns"], "rolling")\n'
        '    return -look(20).std() * panel["open"]'
    )
    evaluator = service()
    answer = proposed(evaluator, odd)
    assert answer["ok"], answer
    assert "getattr is not for factors" in str(evaluator.read(odd).warnings)


def test_a_campaign_without_python_takes_none(service: Maker, runner: Counting) -> None:
    answer = proposed(service(python=False), STATE)
    assert (answer["stage"], runner.jobs) == ("python", [])


def test_nothing_runs_code_without_a_sandbox(ledger: Ledger) -> None:
    panel = market()
    bench = PanelContext.set_up(panel, ledger, SMALL, "small")
    with pytest.raises(NeedsSandbox, match="need the sandbox"):
        bench.evaluator("run", Budget()).score(STATE)


def test_the_level_of_adjusted_prices_is_refused(service: Maker) -> None:
    evaluator = service(panel=adjusted())
    level = 'def factor(panel):\n    return np.log(panel["close"].expanding().max()) ** 3'
    assert proposed(evaluator, level)["errors"][0]["message"] == READS_LEVEL_MESSAGE
    assert proposed(evaluator, STATE)["ok"], "what only compares prices keeps its order"


def test_code_cannot_tell_the_days_on_which_its_level_is_tried(service: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alphaloom.evidence.gate.adjusted_price_leak.LEVEL_TEST_DAYS", 80)
    level = 'def factor(panel):\n    c = panel["close"]\n    return c.pct_change(5) if len(c) <= 80 else c * 1.0'
    evaluator = service(panel=adjusted())
    assert evaluator.levels.objection(evaluator.read(level)) == READS_LEVEL_MESSAGE


def test_a_score_is_refused_to_code_that_sees_later_days(service: Maker) -> None:
    ahead = 'def factor(panel):\n    n = -2\n    return panel["close"].shift(n) / panel["close"]'
    with pytest.raises(PythonRefused, match="when later days") as told:
        service().score(ahead)
    assert told.value.stage == "causal"


def test_code_of_the_library_that_fails_here_says_nothing_and_stops_nobody(service: Maker) -> None:
    evaluator = service()
    broken = (
        'def factor(panel):\n    return panel["close"] / len(panel["close"][panel["close"].index < "1900"].iloc[0])'
    )
    add_by_hand(evaluator.ledger, parse(broken), "2026-01-01")
    told = evaluator.score("rank(ts_std(returns, 20))")
    assert told["incremental"]["against"], "it was there to be compared with"
    assert "adds_little" not in {warning["code"] for warning in told["warnings"]}


def test_what_took_too_long_is_tried_again_another_time(tmp_path: Path, runner: Counting) -> None:
    late = 'def factor(panel):\n    while len(panel["close"]) > 60: pass\n    return panel["close"]'
    with LazySandbox(SandboxSettings(workers=1, wall_s=0.5)) as hasty:
        found = Contained(market(), hasty, tmp_path).sweep(parse(late), (50, 70))
    assert found.fault is not None
    assert "too long" in found.fault["message"]
    assert len(list(tmp_path.iterdir())) == 1, "the first part alone is kept"


def test_a_busy_machine_decides_nothing(jail: LazySandbox) -> None:
    """A call that met its limits is run once more with more time; only the code that stays too slow is at fault."""
    calm = Contained(market(), jail).sweep(parse(COPY), (22, 24))
    busy = Busy(jail, calm=22)
    found = Contained(market(), busy).sweep(parse(COPY), (22, 24))
    assert found.fault is None
    np.testing.assert_array_equal(found.values, calm.values)
    assert {job.patience for job in busy.jobs} == {1, SECOND_TRY_FACTOR}
    slow = Busy(jail, calm=22, most=SECOND_TRY_FACTOR + 1)
    fault = Contained(market(), slow).sweep(parse(COPY), (22, 24)).fault
    assert fault is not None
    assert "too long" in fault["message"]
    assert sum(job.patience > 1 for job in slow.jobs) == 1


def test_a_look_is_taken_at_values_that_were_computed_day_by_day(service: Maker, runner: Counting) -> None:
    evaluator = service(settings=ALONE)
    verdict = judged(evaluator, STATE)
    assert verdict.trial == 1
    told = {reason.step: reason for reason in verdict.reasons}
    search, selection = evaluator.windows.search.stop, evaluator.windows.selection.stop
    assert told["causal"].numbers == {"swept": search}
    assert runner.rows == selection
    values = evaluator.values(evaluator.read(STATE), evaluator.windows.selection)
    for first, last in ((0, search), (search, selection)):  # names that are listed later have no column before
        once = Contained(evaluator.panel, runner).values(evaluator.read(STATE), last)
        np.testing.assert_allclose(values[first:last], once[first:last], rtol=1e-6)
    assert np.isnan(values[selection:]).all()
    before = len(runner.jobs)
    again = evaluator.engine.sweep(evaluator.read(STATE), (search, selection))
    assert len(runner.jobs) == before, "what was swept is kept"
    np.testing.assert_array_equal(again.values, values)
    row = evaluator.ledger.verdicts.of("run")[0]
    assert replay_verdict(RunArchive(evaluator.ledger, evaluator.ledger.runs.find("run")), row).word == "same"


def test_a_verdict_says_that_its_code_ran_uncontained(service: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "stamp", "computed by code that ran loose")
    verdict = judged(service(panel=market(days=SHORT), settings=QUICK), STATE)
    causal = next(reason for reason in verdict.reasons if reason.step == "causal")
    assert causal.message.endswith("computed by code that ran loose")


def test_code_that_cheats_after_search_costs_a_look_and_tells_agents_nothing(service: Maker) -> None:
    evaluator = service(settings=ALONE)
    day = str(evaluator.panel.dates[evaluator.windows.search.stop + 20])
    cheat = STATE.replace(
        "    return pd",
        f'    late = panel["close"].index > "{day}"\n'
        "    ahead = np.roll(close, -1, 0)\n"
        "    out = np.where(late[:, None], ahead / close, out)\n"
        "    return pd",
    )
    verdict = judged(evaluator, cheat)
    assert (verdict.word, verdict.trial) == ("rejected", 1)
    assert steps(verdict)["causal"] is False
    fault = next(reason for reason in verdict.reasons if reason.step == "causal").numbers["fault"]
    assert fault["stage"] == "causal"
    assert fault["day"] > day
    said = str(verdict.for_agents())
    assert "changed with later days" in str(verdict.row("run").reasons)
    assert "later days" not in said
    assert not any(word in said for word in (fault["day"], fault["message"], day[:4]))
    row = evaluator.ledger.verdicts.of("run")[0]
    assert replay_verdict(RunArchive(evaluator.ledger, evaluator.ledger.runs.find("run")), row).word == "same"


def test_what_comes_after_search_changes_no_answer(service: Maker, jail: LazySandbox, tmp_path: Path) -> None:
    """Two markets that are the same until search ends and opposite after it: agents hear the same bytes."""
    texts = [
        STATE,
        COPY,
        STATE.replace("return pd", "raise ValueError(close[-1])\n    return pd"),
        STATE.replace("return pd", "out = out - out.mean(axis=0)\n    return pd"),
    ]
    panel = market()
    stop = service().windows.search.stop
    heard = []
    for turned, folder in ((1.0, "one"), (-1.0, "other")):
        fields = dict(panel.fields)
        for name in ("open", "high", "low", "close", "volume"):
            late = np.arange(panel.days)[:, None] >= stop
            last = fields[name][stop - 1]
            fields[name] = np.where(late, last * (fields[name] / last) ** turned, fields[name])
        with Ledger.open(tmp_path / folder, clock=clock) as ledger:
            other = replace(panel, fields=fields)
            bench = PanelContext.set_up(other, ledger, SMALL, "small", runner=jail)
            ledger.runs.start(Run("run", {}, 1, "small", clock().isoformat()))
            evaluator = bench.evaluator("run", Budget(evaluations=9, trials=1))
            heard.append([proposed(evaluator, text) for text in texts])
    assert heard[0] == heard[1]


def test_code_that_fails_after_search_costs_a_look(service: Maker) -> None:
    evaluator = service(panel=market(days=SHORT), settings=QUICK)
    days = evaluator.windows.search.stop
    failing = STATE.replace("    return pd", f"    assert len(close) <= {days}, close[-1]\n    return pd")
    verdict = judged(evaluator, failing)
    assert (verdict.word, verdict.trial, steps(verdict)["causal"]) == ("rejected", 1, False)
    assert "the code failed" in str(verdict.row("run").reasons)
    assert [reason[:10] for reason in verdict.for_agents()["reasons"]] == ["statistics"]


def test_it_stands_in_the_library_like_a_formula(service: Maker, tmp_path: Path) -> None:
    from alphaloom.evaluation.admission import add_by_hand
    from alphaloom.ledger import write_json
    from alphaloom.library.exchange import export_library, import_library

    evaluator = service(settings=ALONE)
    add_by_hand(evaluator.ledger, parse(STATE), "2026-01-01")
    answer = proposed(evaluator, STATE.replace("0.9", "0.85").replace("state", "memory"))
    assert answer["stage"] == "originality"
    assert len(evaluator.library.values) == 1
    like = evaluator.library.values.closest(evaluator.values(parse(STATE)))
    assert like is not None
    assert like.rank_correlation == pytest.approx(1.0)
    write_json(tmp_path / "library.json", export_library(evaluator.ledger))
    with Ledger.open(tmp_path / "other", clock=clock) as other:
        assert import_library(other, tmp_path / "library.json", "2026-01-02")["added"] == 1
        assert other.library.rows()[0].text == STATE


def test_stress_runs_it_on_every_altered_panel(service: Maker) -> None:
    evaluator = service()
    found = stress_on_search(evaluator, [evaluator.read(COPY), evaluator.read("-ts_std(returns, 20)")])
    mine, theirs = found["factors"].values()
    for one, other in zip(mine["scenarios"], theirs["scenarios"], strict=True):
        assert one["code"] == other["code"]
        if one.get("rank_ic") and other.get("rank_ic"):
            assert one["rank_ic"]["stressed"] == pytest.approx(other["rank_ic"]["stressed"], abs=2e-3)


def test_new_days_alone_are_computed_where_only_they_are_asked_for(service: Maker, runner: Counting) -> None:
    evaluator = service()
    expression = evaluator.read(COPY)
    whole = evaluator.engine.sweep(expression, (22, 26)).values
    late = evaluator.engine.sweep(expression, (26,), since=22).values
    np.testing.assert_array_equal(late[22:26], whole[22:26])
    assert np.isnan(late[:22]).all()


def test_a_damaged_file_of_kept_values_is_computed_again(service: Maker, runner: Counting) -> None:
    evaluator = service()
    expression, edges = evaluator.read(COPY), (22, 26)
    first = evaluator.engine.sweep(expression, edges).values
    folder = evaluator.ledger.workspace / "python"
    for path in folder.glob("*.rows"):
        path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    before = len(runner.jobs)
    np.testing.assert_array_equal(evaluator.engine.sweep(expression, edges).values, first)
    assert len(runner.jobs) > before


def test_a_fault_before_the_first_edge_is_a_refusal(service: Maker) -> None:
    evaluator = service()
    with pytest.raises(PythonRefused, match="changed when later days") as caught:
        evaluator.engine.sweep(evaluator.read('def factor(panel):\n    return panel["close"].bfill().shift(-1)'), (60,))
    assert caught.value.stage == "causal"
