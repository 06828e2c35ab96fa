"""Recorded verdicts replayed, and the log of calls checked: what was found, as facts and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeskError
from ..figures import plural

if TYPE_CHECKING:
    from ...evidence import Replay, RunArchive
    from ...ledger.calls import Verified

RATIOS_NOTE = (
    "Values, sheets and daily series were computed again from the panel. "
    "The ratios of originality and redundancy were not: "
    "they are taken as recorded, and only held against their thresholds again."
)
MAX_DIFFERENCES_SHOWN = 8
"""Differences of one verdict that are shown; `alphaloom evidence verify --json` has all."""
UNCHANGED_NOTE = "what was noted earlier is unchanged"
UNCOMPARED_NOTE = (
    "it was not compared with a head noted elsewhere, "
    "so it cannot show whether whoever may write to this folder made all of it again"
)


@dataclass(frozen=True)
class PanelFiles:
    """The given panel files, and whether to use the panel at all; `say` is told of long work."""

    panel: Path | None = None
    sectors: Path | None = None
    ledger_only: bool = False
    say: Callable[[str], None] = lambda _: None


def choose_verdicts(archive: RunArchive, ids: Sequence[str]) -> list[str]:
    """Return the given ids, each once; all verdicts of the run where none is given.

    Raises
    ------
    DeskError
        The run holds no verdict of an id.
    """
    names = sorted(archive.verdicts)
    strange = [name for name in ids if name not in archive.verdicts]
    if strange:
        raise DeskError(
            f"Run {archive.run.id} holds no verdict on {strange[0]}.",
            field="ID",
            got=strange[0],
            allowed=names[:20],
            hint="Leave the ids away to verify every verdict of the run.",
            code="unknown_verdict",
        )
    return list(dict.fromkeys(ids)) or names


def verify_verdicts(
    archive: RunArchive, ids: Sequence[str], files: PanelFiles, goes_on: Callable[[], bool] = lambda: True
) -> dict[str, Any]:
    """Return what replaying verdicts found: from the ledger alone, and with the panel where it is there.

    Without the panel, `goes_on` is asked before each verdict; those after a no are left out.
    """
    from ...evaluation.checks import find_loose_ends
    from ...evidence import replay_verdict

    replays = [replay_verdict(archive, archive.verdicts[name]) for name in ids if goes_on()]
    obstacle, depth = "", "ledger"
    if not files.ledger_only:
        replays, obstacle = _replay_with_panel(archive, ids, replays, files)
        depth = "ledger" if obstacle else "panel"
    words = [replay.word for replay in replays]
    return {
        "run": archive.run.id,
        "depth": depth,
        "without_panel": obstacle,
        "same": words.count("same"),
        "differ": words.count("differs"),
        "cannot": words.count("cannot be replayed"),
        "verdicts": [replay.record() for replay in replays],
        "record": [end.record() for end in find_loose_ends(archive)],
    }


def _replay_with_panel(
    archive: RunArchive, ids: Sequence[str], replays: list[Replay], files: PanelFiles
) -> tuple[list[Replay], str]:
    """Return the replays with the panel's values, or why the panel could not be opened."""
    from ...campaign import Settings
    from ...evaluation import PanelContext
    from ...evaluation.checks import replay_on_panel
    from ...evidence.values import LazySandbox

    recorded = archive.run.config.get("settings") or archive.run.config.get("rules")
    if not recorded:
        return replays, "the run did not write down where its panel is"
    settings = Settings.from_record(recorded)
    market = settings.market.given(files.panel, files.sectors, None)
    if files.panel is None and market.panel is not None and not market.panel.is_file():
        return replays, f"{market.panel} is not there: give the panel with --panel"
    files.say("reading the panel")
    panel, dataset = market.open(settings.seed)
    digest = str(archive.run.config["panel"])
    if panel.digest != digest:
        raise DeskError(
            "The panel is not the one that this run began with.",
            field="--panel",
            got=panel.digest[:12],
            allowed=digest[:12],
            hint="Give the file as it was then, or use --ledger-only.",
            code="other_panel",
        )
    rows = (archive.verdicts[name] for name in ids)
    with LazySandbox(settings.sandbox) as sandbox:
        context = PanelContext.set_up(panel, archive.ledger, settings.evidence, dataset, store=False, runner=sandbox)
        evaluator = context.evaluator(archive.run.id, settings.budget)
        return [replay_on_panel(archive, evaluator, row, replay) for row, replay in zip(rows, replays, strict=True)], ""


def describe_verdicts(facts: dict[str, Any]) -> str:
    """Return what was found, in a sentence."""
    basis = "from the ledger and the panel" if facts["depth"] == "panel" else "from the ledger alone"
    if not facts["verdicts"]:
        return f"{facts['run']} has no verdicts yet: nothing was put before the gate"
    counts = [f"{facts['same']} the same", f"{facts['differ']} differ"]
    counts += [f"{facts['cannot']} cannot be run again"] if facts["cannot"] else []
    return f"{plural(len(facts['verdicts']), 'verdict')} of {facts['run']}, {basis}: {', '.join(counts)}"


def describe_replay(row: dict[str, Any]) -> str:
    """Return what differs in one verdict, line by line, or why it could not be replayed."""
    lines = [describe_difference(difference) for difference in row["differs"][:MAX_DIFFERENCES_SHOWN]]
    more = len(row["differs"]) - len(lines)
    unread = [f"taken as recorded: {', '.join(row['unread'])}"] if row["unread"] else []
    missing = [row["missing"]] if row["missing"] else []
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else []), *missing, *unread])


def describe_difference(difference: dict[str, Any]) -> str:
    """Return a field with what was recorded and what was computed again."""
    return f"{difference['field']}: {difference['recorded']}, {difference['recomputed']}"


def describe_log(findings: Sequence[Any]) -> str:
    """Return whether the record is as its log has it, in a sentence."""
    whole = f"{plural(len(findings), 'finding')} in the record" if findings else "The record is as it was written"
    return f"{whole}; who saw it, and what cannot be told: alphaloom record verify."


def list_verification_notes(facts: dict[str, Any]) -> list[str]:
    """Return what was taken as recorded."""
    if facts["depth"] == "panel":
        return [RATIOS_NOTE] if facts["verdicts"] else []
    why = f" ({facts['without_panel']})" if facts["without_panel"] else ""
    return [f"Values and daily series are taken as recorded; with the panel they would be computed again{why}."]


def describe_calls(reading: Verified, *, compared: bool) -> list[str]:
    """Return what checking the log of calls found, line by line; `compared`: with what was noted elsewhere."""
    lines = [f"{plural(reading.calls, 'call')} in {plural(len(reading.heads), 'segment')}, root {reading.root}"]
    for finding in reading.findings:
        line = f", line {finding.line}" if finding.line is not None else ""
        lines.append(f"{finding.kind}: {finding.segment}{line}: {finding.message}")
    lines += [f"note: {note}" for note in reading.notes]
    lines += [f"head {tip.hash} (line {tip.sequence} of {tip.segment})" for tip in reading.tips]
    if reading.findings:
        return [*lines, plural(len(reading.findings), "finding")]
    return [*lines, f"the chain is consistent; {UNCHANGED_NOTE if compared else UNCOMPARED_NOTE}"]
