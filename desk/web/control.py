"""Start, stop and go on with a campaign: the form that writes a campaign file, its process, and the buttons of a run.

No value of the form names a command, an address or a path: files are chosen from a folder of the workspace, models from
its router.yaml. What the form wrote is read by the reader of campaign files before anything starts.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from ...ledger import SettingsError, ask_to_close, ask_to_stop, compute_digest, is_closing
from ..cli.models.router_file import ROUTER_FILE
from ..errors import DeskError
from ..facts.standing import (
    STATE_DECIDED,
    STATE_INTERRUPTED,
    STATE_PAUSED,
    STATE_RUNNING,
    STATE_STOPPED,
    RunStanding,
)
from ..launch import MAX_OUTPUT_LINES, CampaignLaunch, Launches, find_error
from ..users import PersonScope
from .pages import PageRequest

if TYPE_CHECKING:
    from ...ledger import Ledger, Run

DATA_FOLDER: Final = "data"
"""Folder of a workspace whose files the form offers. Others are not: what a file holds may show in a message on it."""
PANEL_KINDS, HYPOTHESES_KINDS = (".parquet", ".csv"), (".yaml", ".yml")
MAX_FILES_OFFERED, MAX_FILES_SEEN = 200, 20_000
"""Files that the form offers, and files of the folder among which they are sought."""
YAML_WIDTH: Final = 120
SETTINGS: Final = {
    "name": "name", "seed": "seed", "panel": "market.panel", "sectors": "market.sectors", "goal": "steer.goal",
    "hypotheses": "steer.hypotheses", "rounds": "agents.rounds", "evaluations": "budget.evaluations",
    "trials": "budget.trials", "horizon": "evidence.horizon_days", "approve": "approve", "models": "models",
    "usd": "models.budget.usd",
}  # fmt: skip  # a table
"""The fields of the form, and the setting of a campaign file that each one writes."""
INTERRUPTED_WORDS: Final = ("interrupted", "Ctrl-C: ")
"""How the last line of a command begins that somebody ended by Ctrl-C."""
RESUMABLE: Final = (STATE_STOPPED, STATE_INTERRUPTED, STATE_DECIDED)


@dataclass(frozen=True)
class FormProblem:
    """Why a value of the form cannot be used."""

    field: str
    message: str
    got: str
    allowed: str


@dataclass(frozen=True)
class FormOptions:
    """What the form offers: files by their path in the data folder, and the models of a router.yaml if it is there."""

    panels: list[str]
    hypotheses: list[str]
    models: list[str]
    router: str

    @classmethod
    def of(cls, workspace: Path) -> FormOptions:
        """Look for files and models."""
        files = list(islice(_list_files(workspace), MAX_FILES_OFFERED))
        found = find_router_file(workspace)
        return cls(
            [name for name in files if name.lower().endswith(PANEL_KINDS)],
            [name for name in files if name.lower().endswith(HYPOTHESES_KINDS)],
            sorted(_read_router(found)["models"]) if found and _reads(found) else [],
            str(found) if found else "",
        )


@dataclass(frozen=True)
class CampaignDraft:
    """The text of a campaign file that the values of the form make, or why they make none."""

    text: str
    problems: list[FormProblem]

    @classmethod
    def of(cls, values: Mapping[str, str], workspace: Path, options: FormOptions) -> CampaignDraft:
        """Write the file's text and read it as a campaign file is read."""
        problems, text = list(_refuse_unlisted(values, options)), ""
        kept = {**values, **dict.fromkeys((one.field for one in problems), "")}
        try:
            text = _write(_arrange(kept, workspace))
            _read(text)
            Launches(workspace).refuse_taken(values["name"])
        except SettingsError as error:
            found = [_explain(one.field, one.message, one.got, one.allowed) for one in error.mistakes]
            problems += found or [FormProblem("models", error.message, "", "")]
        except DeskError as error:
            words = "" if error.allowed is None else str(error.allowed)
            problems.append(FormProblem("name", f"{error.message} {error.hint}".strip(), str(error.got), words))
        return cls("" if problems else text, problems)


@dataclass(frozen=True)
class CampaignForm:
    """The form for a campaign, with what was typed; once that makes a campaign file, its text waits for a start."""

    values: dict[str, str]
    problems: list[FormProblem]
    options: FormOptions
    data_folder: str
    text: str
    file: str
    command: str
    shown: str
    has_changed: bool


def load_form(view: PageRequest) -> CampaignForm:
    """Return the form; with values in the query, the file that they make."""
    workspace = view.ledger.workspace.resolve()
    if not view.signer.may(PersonScope.RUN_CONTROL):  # the names of files and models are for those who may use them
        return CampaignForm({}, [], FormOptions([], [], [], ""), "", "", "", "", "", has_changed=False)
    options, defaults = FormOptions.of(workspace), _read_defaults()
    values = {name: view.query.get(name, defaults[name]).strip() for name in SETTINGS}
    if "name" in view.query:
        _settle(view.ledger, values["name"])
    draft = CampaignDraft.of(values, workspace, options) if "name" in view.query else CampaignDraft("", [])
    file = Launches(workspace).campaign_folder / f"{values['name']}.yaml"
    command = shlex.join(["alphaloom", "run", str(file), "--workspace", str(workspace)])
    return CampaignForm(
        values=values,
        problems=draft.problems,
        options=options,
        data_folder=str(workspace / DATA_FOLDER),
        text=draft.text,
        file=str(file) if draft.text else "",
        command=command if draft.text else "",
        shown=compute_digest(draft.text) if draft.text else "",
        has_changed=bool(draft.text) and "changed" in view.query,
    )


def start_campaign(view: PageRequest, form: dict[str, str]) -> str:
    """Write the campaign file that was shown and start it; return its page, or the form if it is another one now."""
    workspace = view.ledger.workspace.resolve()
    values = {name: form.get(name, "").strip() for name in SETTINGS}
    draft = CampaignDraft.of(values, workspace, FormOptions.of(workspace))
    if draft.problems or compute_digest(draft.text) != form.get("shown"):
        return f"/runs/new?{urlencode({**values, 'changed': 'yes'})}"
    signed = (view.person, datetime.now(UTC))  # the clock of the process that is started, whose run is compared
    Launches(workspace).start(view.ledger, values["name"], draft.text, signed, values)
    return f"/launches/{values['name']}"


@dataclass(frozen=True)
class LaunchPage:
    """A campaign that has no run yet: its process reads the market, or could not start."""

    campaign: str
    by: str
    at: str
    is_alive: bool
    lines: list[str]
    is_error: bool
    file: str
    change: str

    @classmethod
    def of(cls, launches: Launches, launch: CampaignLaunch) -> LaunchPage:
        """Read the output of a process."""
        lines, alive = launches.read_output(launch), launch.is_alive
        error = [] if alive else find_error(lines)
        file = launches.campaign_folder / f"{launch.campaign}.yaml"
        shown = error or lines[-MAX_OUTPUT_LINES:]
        change = f"/runs/new?{urlencode(launch.form)}"
        return cls(launch.campaign, launch.by, launch.at, alive, shown, bool(error), str(file), change)


def load_launch(view: PageRequest) -> LaunchPage | Response:
    """Return a campaign that starts; once it has a run, the way to it."""
    found = find_launch(view.ledger, view.path["name"])
    return RedirectResponse(f"/runs/{found}", 303) if isinstance(found, str) else found


def find_launch(ledger: Ledger, name: str) -> LaunchPage | str:
    """Return a campaign that starts, or the id of its run.

    Raises
    ------
    DeskError
        The desk started no campaign of this name.
    """
    if launch := _settle(ledger, name):
        return launch.run or LaunchPage.of(Launches(ledger.workspace), launch)
    run = next((run for run in ledger.runs.all()[::-1] if run.config.get("settings", {}).get("name") == name), None)
    if run is None:
        raise DeskError("The desk started no campaign of this name.", field="name", got=name, code="unknown_launch")
    return run.id


def _settle(ledger: Ledger, name: str) -> CampaignLaunch | None:
    """Return the process of a campaign that had no run when it was last looked at, with its run if it has one now."""
    launches = Launches(ledger.workspace)
    launch = launches.find_pending(name)
    return launches.settle(ledger, launch) if launch else None


def list_launches(ledger: Ledger) -> list[LaunchPage]:
    """Return the campaigns that start, and those that could not."""
    launches = Launches(ledger.workspace)
    found = [launches.settle(ledger, launch) for launch in launches.list_pending()]
    return [LaunchPage.of(launches, launch) for launch in found if not launch.run]


def change_launch(view: PageRequest, form: dict[str, str]) -> str:
    """Stop a campaign that starts, or forget one that could not; return the page that follows."""
    name, choice = view.path["name"], form.get("choice", "")
    if choice not in ("stop", "discard"):
        raise _unknown_choice(choice, ("stop", "discard"))
    launches, found = Launches(view.ledger.workspace), find_launch(view.ledger, name)
    launch = launches.find_pending(name)
    if isinstance(found, str) or launch is None:  # it has begun its run since the page was read
        place = f"/runs/{found}" if isinstance(found, str) else "/runs"
        if choice == "stop" and isinstance(found, str):
            _stop(view.ledger, view.ledger.runs.find(found), view.person)
        return place
    if choice == "discard":
        launches.discard(launch)
        return "/runs"
    launches.interrupt(launch)
    return f"/launches/{name}"


@dataclass(frozen=True)
class ControlRequest:
    """Who asked what of a run, and when, ISO."""

    words: str
    by: str
    at: str


@dataclass(frozen=True)
class RunControl:
    """What a person may do about the process of a run.

    Attributes
    ----------
    can_stop, can_interrupt, can_resume
        A process may be asked to stop; it is the desk's own and may be sent Ctrl-C; the run may go on.
    stopping
        What the process was asked for and has not done yet, in words; empty if nothing.
    error
        The message on the error with which the last process of the desk ended; its last lines where a run was cut
        short; empty otherwise.
    requests
        Who set it running and stopped it, the last first.
    """

    can_stop: bool
    can_interrupt: bool
    can_resume: bool
    stopping: str
    error: list[str]
    requests: list[ControlRequest]

    @classmethod
    def of(cls, ledger: Ledger, run: Run, state: str) -> RunControl:
        """Read what is known of the process of a run that is in a state."""
        launches = Launches(ledger.workspace)
        launch = launches.find_run(run.id)
        alive, requests = launch is not None and launch.is_alive, list(_list_requests(ledger, run.id))
        starts = read_phase(ledger, run.id) == STARTING
        error = [] if launch is None or alive or state == STATE_RUNNING else _find_end(launches, launch, state)
        return cls(
            can_stop=state == STATE_RUNNING or starts,
            can_interrupt=alive and (state == STATE_RUNNING or starts),
            can_resume=_may_go_on(ledger, run.id, state) and not alive,
            stopping=_find_open_request(ledger, run.id, requests) if state == STATE_RUNNING else "",
            error=error,
            requests=requests[::-1],
        )


def _find_end(launches: Launches, launch: CampaignLaunch, state: str) -> list[str]:
    """Return why a process ended, in its own words: nothing where a person stopped it, or where it did its work."""
    lines = launches.read_output(launch)
    is_cut = state == STATE_INTERRUPTED and not any(line.startswith(INTERRUPTED_WORDS) for line in lines[-1:])
    return find_error(lines) or (lines[-MAX_OUTPUT_LINES:] if is_cut else [])


REQUEST_WORDS: Final = {
    "start": "set it running",
    "stop": "asked it to stop",
    "close": "asked it to end with a report",
}


STARTING, ENDING = "starting", "ending"


def read_phase(ledger: Ledger, run: str) -> str:
    """Return whether a process of the desk has not taken up a run yet, or has let go of it; else an empty text."""
    launch = Launches(ledger.workspace).find_run(run)
    if launch is None or ledger.runs.holder(run) is not None or not launch.is_alive:
        return ""
    taken = any(at >= launch.at and status == STATE_RUNNING for at, status in ledger.runs.statuses(run))
    return ENDING if taken else STARTING


def change_run(view: PageRequest, form: dict[str, str]) -> str:
    """Stop a run, end it with a report, interrupt its process, or go on with it; return its page."""
    from ...evaluation import find_campaign

    run, choice, ledger = find_campaign(view.ledger, view.path["run"]), form.get("choice", ""), view.ledger
    changes = {"stop": _stop, "close": _close, "interrupt": _interrupt, "resume": _resume}
    if choice not in changes:
        raise _unknown_choice(choice, tuple(changes))
    changes[choice](ledger, run, view.person)
    return f"/runs/{run.id}"


def _stop(ledger: Ledger, run: Run, by: str) -> None:
    if ledger.runs.holder(run.id) is None:
        _interrupt(ledger, run, by)  # a process of the desk that has not taken up the run yet
    else:
        ask_to_stop(ledger.events, run.id, by)


def _close(ledger: Ledger, run: Run, by: str) -> None:
    if ledger.runs.holder(run.id) is None:
        raise _nothing_runs(run.id)
    ask_to_close(ledger.events, run.id, by)


def _interrupt(ledger: Ledger, run: Run, by: str) -> None:
    launches = Launches(ledger.workspace)
    launch = launches.find_run(run.id)
    if launch is None or not launch.is_alive:
        raise _nothing_runs(run.id)
    ask_to_stop(ledger.events, run.id, by)
    launches.interrupt(launch)


def _resume(ledger: Ledger, run: Run, by: str) -> None:
    state = RunStanding.of(ledger, run).state
    if not _may_go_on(ledger, run.id, state):
        hint = "Decide on what waits for a person first." if state == STATE_PAUSED else ""
        raise DeskError("This run cannot go on.", field="run", got=state, allowed=RESUMABLE, hint=hint, code="state")
    Launches(ledger.workspace).resume(ledger, run.id, run.config["settings"]["name"], by, datetime.now(UTC))


def _may_go_on(ledger: Ledger, run: str, state: str) -> bool:
    """Return whether `alphaloom resume` would go on with a run in a state."""
    return state in RESUMABLE or (state == STATE_PAUSED and is_closing(ledger.events, run))


def _nothing_runs(run: str) -> DeskError:
    return DeskError("No process works on this run that can be stopped here.", field="run", got=run, code="ended")


def _unknown_choice(choice: str, allowed: tuple[str, ...]) -> DeskError:
    return DeskError("There is no such choice.", field="choice", got=choice, allowed=allowed, code="choice")


def _list_requests(ledger: Ledger, run: str) -> Iterator[ControlRequest]:
    """Yield who asked what of a run, in the order of time."""
    events = [event for kind in REQUEST_WORDS for event in ledger.events.of(run, kind)]
    timed = [(ledger.events.find_time(run, event.kind, event.key), event) for event in events]
    for at, event in sorted(timed, key=lambda pair: pair[0]):
        yield ControlRequest(REQUEST_WORDS[event.kind], str(event.body.get("by", "")), at)


def _find_open_request(ledger: Ledger, run: str, requests: list[ControlRequest]) -> str:
    """Return what a process was asked for since it took up a run; an end with a report is asked for once and stands."""
    taken = max((at for at, status in ledger.runs.statuses(run) if status == STATE_RUNNING), default="")
    wishes = [one for one in requests if one.words != REQUEST_WORDS["start"]]
    wishes = [one for one in wishes if one.at >= taken or one.words == REQUEST_WORDS["close"]]
    return f"{wishes[-1].by} {wishes[-1].words}" if wishes else ""


def _list_files(workspace: Path) -> Iterator[str]:
    """Yield the tables and hypotheses in the data folder by their path in it: none that is a link to elsewhere."""
    folder = workspace / DATA_FOLDER
    root = Path(os.path.realpath(folder))  # `resolve` raises on a link to itself
    if not root.is_relative_to(workspace):
        return
    for path in islice(_walk_files(root), MAX_FILES_SEEN):
        text = path.relative_to(root).as_posix()
        if not (text.isprintable() and text.lower().endswith((*PANEL_KINDS, *HYPOTHESES_KINDS))):
            continue
        if Path(os.path.realpath(path)).is_relative_to(root) and path.is_file():
            yield text


def _walk_files(root: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(root):
        folders.sort()
        yield from (Path(place) / name for name in sorted(names))


def find_router_file(workspace: Path) -> Path | None:
    """Return the router.yaml of a workspace, or that of the current folder, which commands read too."""
    return next((path for path in (workspace / ROUTER_FILE, ROUTER_FILE.absolute()) if path.is_file()), None)


def _reads(router: Path) -> bool:
    try:
        _read_router(router)
    except SettingsError:
        return False
    return True


def _read_router(path: Path) -> dict[str, Any]:
    """Return a router.yaml as it is written, after it was checked; its paths start from its own folder."""
    from ...ledger import read_settings
    from ...ledger.files import read_text
    from ...router import RouterConfig

    read_settings(path, RouterConfig)
    return dict(read_text(path).value)


def _refuse_unlisted(values: Mapping[str, str], options: FormOptions) -> Iterator[FormProblem]:
    """Yield a problem for each choice that the form does not offer."""
    offers = {
        "panel": ["", *options.panels],
        "sectors": ["", *options.panels] if values["panel"] else [""],
        "hypotheses": ["", *options.hypotheses],
        "models": ["", "router"] if options.router else [""],
        "approve": ["yes", "no"],
    }
    for name, offered in offers.items():
        if values[name] not in offered:
            message = "goes with a file of prices" if name == "sectors" and not values["panel"] else "is not offered"
            yield FormProblem(name, message, values[name], ", ".join(filter(None, offered)) or "to leave it empty")


def _arrange(values: Mapping[str, str], workspace: Path) -> dict[str, Any]:
    """Return the settings of a campaign file in their order; empty sections are left out."""
    files = {name: f"../{DATA_FOLDER}/{values[name]}" for name in ("panel", "sectors", "hypotheses") if values[name]}
    goal = " ".join(values["goal"].split())
    steer = {"goal": goal} if goal else {}
    steer |= {"hypotheses": files.pop("hypotheses")} if "hypotheses" in files else {}
    return {
        "name": values["name"],
        "seed": _parse_number(values["seed"]),
        "market": files,
        "steer": steer,
        "budget": {name: _parse_number(values[name]) for name in ("evaluations", "trials")},
        "agents": {"rounds": _parse_number(values["rounds"])},
        "evidence": {"horizon_days": _parse_number(values["horizon"])},
        "approve": values["approve"] == "yes",
        "models": _arrange_models(values, workspace),
    }


def _arrange_models(values: Mapping[str, str], workspace: Path) -> dict[str, Any]:
    found = find_router_file(workspace) if values["models"] else None
    models = _read_router(found) if found else {}
    if found and "routing" in models:
        models["routing"] = _rebase(models["routing"], found.parent, workspace)
    if values["usd"]:
        models["budget"] = {**models.get("budget", {}), "usd": _parse_number(values["usd"])}
    return models


def _rebase(routing: Mapping[str, Any], folder: Path, workspace: Path) -> dict[str, Any]:
    """Return a section `routing` whose paths start from the folder of campaign files instead of another one."""

    def move(path: str) -> str:
        return os.path.relpath(folder / path, Launches(workspace).campaign_folder)

    moved = dict(routing)
    if moved.get("embedding"):
        moved["embedding"] = move(moved["embedding"])
    moved["own_intents"] = {
        name: {**intent, "file": move(intent["file"])} if intent.get("file") else intent
        for name, intent in moved.get("own_intents", {}).items()
    }
    return {name: value for name, value in moved.items() if value != {}}


def _parse_number(text: str) -> int | float | str:
    """Return a number as it is meant; another text as it is, for the reader of settings to refuse."""
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text) else text


def _write(settings: Mapping[str, Any]) -> str:
    """Return the text of a campaign file, a blank line between its sections."""
    import yaml

    from ...ledger.files import QuotingDumper

    parts = [
        str(yaml.dump({name: value}, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=YAML_WIDTH))
        for name, value in settings.items()
        if value != {}
    ]
    return parts[0] + "\n".join(parts[1:])


def _read(text: str) -> None:
    """Read a text as a campaign file is read."""
    from ...campaign import Settings
    from ...ledger.files import parse_settings

    parse_settings(text, Settings, "the form")


def _read_defaults() -> dict[str, str]:
    """Return what the form shows first: the defaults of a campaign file, and that a person approves."""
    from ...campaign import Settings

    plain = Settings()
    return dict.fromkeys(SETTINGS, "") | {
        "seed": str(plain.seed),
        "rounds": str(plain.agents.rounds),
        "evaluations": str(plain.budget.evaluations),
        "trials": str(plain.budget.trials),
        "horizon": str(plain.evidence.horizon_days),
        "approve": "yes",
    }


def _explain(setting: str, message: str, got: object, allowed: object) -> FormProblem:
    """Return a mistake in a setting as one of the field that wrote it."""
    names = [name for name, own in SETTINGS.items() if setting == own or setting.startswith(f"{own}.")]
    words = ", ".join(map(str, allowed)) if isinstance(allowed, list | tuple) else str(allowed or "")
    return FormProblem(names[-1] if names else "name", message, "" if got is None else str(got), words)
