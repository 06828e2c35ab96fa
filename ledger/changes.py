"""What changed: versions of models, prompts, routers, policies and software in use, and of models as they were served.

The former are the register of changes, one dated row each. The latter are read from the calls: a server's operator
changes what it serves without a change here, so nothing could write a row before.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Final, Literal, get_args

from .store import Ledger

VersionKind = Literal["policy", "prompt", "model", "router", "software"]
VERSION_KINDS: Final[tuple[str, ...]] = get_args(VersionKind)
ChangeWord = Literal["beginning", "new", "changed"]
SERVED: Final = "served"
CHANGE_KINDS: Final = (*VERSION_KINDS, SERVED)
CHANGE_EVENT: Final = "change"
MAX_CHANGES: Final = 1_000_000
"""Rows of the register that are read."""
SHOWN_DIGITS: Final = 12
"""Digits of a prompt's digest by which it is named."""
RUNS_COMPARED: Final = 3
"""A version as served is new if none of the last runs that asked the model had it, this one included.

A provider answers from several machines with versions of their own in turn: only the first answer of each is a change.
"""


@dataclass(frozen=True)
class ChangeRow:
    """One version that came into use.

    Attributes
    ----------
    at, run
        When it was recorded (ISO, UTC), and the campaign, book or bench that used it first.
    kind, name
        What changed.
    what
        `beginning`: the workspace had no versions on record; `new`: this name had none; `changed`.
    before, after
        Digests of the version before, empty if there was none, and of this one. Each names a stored object. Before a
        person's own prompt page there is the shipped one. Of kind `served`: the versions as the server names them.
    diff
        What differs, without keys, cut where it is long; of a policy each limit with its direction.
    account
        The account of the machine that ran it.
    """

    at: str
    run: str
    kind: VersionKind | Literal["served"]
    name: str
    what: ChangeWord
    before: str
    after: str
    diff: str
    account: str

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def find_account() -> str:
    """Return the name of the account that runs this process; empty where the machine has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, and no variable with a name
        return ""


def list_changes(
    ledger: Ledger, *, since: date | None = None, kinds: Iterable[str] = VERSION_KINDS, most: int = MAX_CHANGES
) -> list[ChangeRow]:
    """Return the changes on record since a day (UTC), of some kinds, the newest first; `CHANGE_KINDS` has all kinds."""
    wanted, rows = {*kinds}, ledger.events.latest([CHANGE_EVENT], MAX_CHANGES)
    found = [ChangeRow(row.at, row.record.run, **row.record.body) for row in rows]
    if SERVED in wanted:
        found = sorted([*_list_served(ledger), *found], key=lambda row: row.at, reverse=True)
    start = since.isoformat() if since else ""
    return [row for row in found if row.kind in wanted and row.at >= start][:most]


def _list_served(ledger: Ledger) -> Iterator[ChangeRow]:
    """Yield the changes of models as they were served, the newest first."""
    asked = {run.id: list_asked_models(run.config) for run in ledger.runs.all()}
    rows = ledger.calls.list_bodies()
    calls = [(name_served(asked.get(run, {}), body), run, read_served(body)) for _, run, _, body in rows]
    for place, before in reversed([*find_served_changes(calls)]):
        (at, run, _, _), (name, _, after) = rows[place], calls[place]
        yield ChangeRow(at, run, SERVED, name, "changed", before, after, "", "")


def find_unapproved(ledger: Ledger, runs: Iterable[str], since: str) -> list[str]:
    """Return the models, as served, and the prompts that some runs used only after an ISO instant, by name.

    What any of these runs had used before is approved. A version that says more or less of the same is no new one.
    """
    known: dict[str, list[str]] = {}
    fresh: dict[str, list[str]] = {}
    start, configs = datetime.fromisoformat(since), {run.id: run.config for run in ledger.runs.all()}
    for run in runs:
        asked = list_asked_models(configs.get(run, {}))
        for entry in ledger.calls.entries(run):
            call = entry.record
            into = known if datetime.fromisoformat(entry.at) <= start else fresh
            into.setdefault(f"model {name_served(asked, {'model': call.model})}", []).append(
                call.served if call.attempts else ""
            )
            into.setdefault(f"prompt of {call.role}", []).append(call.prompt[:SHOWN_DIGITS])
    return sorted(
        {
            f"{name}: {version}" if version else name
            for name, versions in fresh.items()
            for version in versions
            if not any(_is_same(version, other) for other in known.get(name, []))
        }
    )


def _is_same(version: str, other: str) -> bool:
    """Return whether two versions of a name may be one: an empty one is not known."""
    return version in ("", other) or other == "" or _says_less(version, other) or _says_less(other, version)


def list_asked_models(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the model that a run asked under each name, from the settings with which it began."""
    rows = ((config.get("settings") or config).get("models") or {}).get("models") or {}
    return {name: str(row.get("model", "")) for name, row in rows.items()}


def name_served(asked: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the name of the model of a call, as the register of changes has it."""
    model = str(body.get("model", ""))
    return f"{asked[model]} as {model}" if model in asked else model


def read_served(body: Mapping[str, Any]) -> str:
    """Return the version that answered a call; empty if it is unknown or another run's call."""
    return str(body.get(SERVED) or "") if body.get("attempts", 1) else ""


def find_served_changes(calls: Iterable[tuple[str, str, str]]) -> Iterator[tuple[int, str]]:
    """Yield the place of each call that was answered by a new version, with the version that answered before it.

    Parameters
    ----------
    calls
        Model, run and version as served of each call, in the order of arrival; an empty version is left out. The first
        version of a model is no change, and neither is one that says more or less of the same: a busy server may not
        have told its program's version.
    """
    known: dict[str, dict[str, list[str]]] = {}
    last: dict[str, str] = {}
    for place, (model, run, served) in enumerate(calls):
        if not served:
            continue
        runs = known.setdefault(model, {})
        own = runs.setdefault(run, [])
        recent = {version for earlier in [*runs][-RUNS_COMPARED:] for version in runs[earlier]} | {*own}
        told = [one for one in recent if not any(_says_less(one, other) for other in recent)]
        if told and not any(served == one or _says_less(served, one) or _says_less(one, served) for one in told):
            yield place, last[model]
        if served not in own:
            own.append(served)
        last[model] = served


def _says_less(version: str, other: str) -> bool:
    """Return whether a version is the beginning of another one, without what the other has in brackets."""
    return other.startswith(f"{version} (")
