"""The report: one HTML file, no script, no network, drawn from results.json and curves.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["SEALED_FILE", "TEMPLATE_FOLDER", "environment", "render_report", "write_report"]

TEMPLATE_FOLDER = Path(__file__).parent / "templates"
RESULTS_FORMAT = 1
SEALED_FILE = "sealed.json"
"""What the sealed days said, where they were opened after the run's close."""


def write_report(run_folder: Path) -> Path:
    """Write `report.html` beside `results.json` and `curves.json` (and `sealed.json`), at once or not at all.

    Raises
    ------
    ReportError
        When the results are missing, damaged or of another format, or the folder cannot be written.
    """
    results = _read(run_folder / "results.json")
    if results.get("format") != RESULTS_FORMAT:
        raise _error(
            "the run's results have a format that this version does not read",
            field="format",
            got=results.get("format"),
            allowed=RESULTS_FORMAT,
            hint="report it with the version that ran the campaign",
        )
    if not results.get("sealed") and (run_folder / SEALED_FILE).exists():
        results["sealed"] = _read(run_folder / SEALED_FILE)
    curves = _read(run_folder / "curves.json") if (run_folder / "curves.json").exists() else {}
    target = run_folder / "report.html"
    _replace(target, render_report(results, curves))
    return target


def render_report(results: dict[str, Any], curves: dict[str, Any]) -> str:
    """Return the report's HTML; the same input gives the same bytes."""
    from .page import page

    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    return environment().get_template("report.html.j2").render(page=page(results, curves), style=style).strip() + "\n"


def environment() -> Environment:
    """Return what fills templates in; a name that is missing is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Every text may come from a model, so all of it is escaped; only our own drawings are marked safe, in the template.
    return Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _error(
            f"{path.name} of the run cannot be read ({error})",
            field="run",
            got=str(path.parent),
            hint="finish the campaign first: alphaloom resume RUN",
        ) from error
    if not isinstance(content, dict):
        raise _error(f"{path.name} of the run is not an object", field="run", got=str(path.parent))
    return content


def _replace(target: Path, text: str) -> None:
    """Write the report whole or not at all."""
    from ...ledger.files import write_whole

    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise _error(
            f"the report cannot be written ({error.strerror or error})",
            field="run",
            got=str(target.parent),
            hint="free some disk space or make the folder writable, then: alphaloom report RUN",
        ) from error


def _error(message: str, **facts: Any) -> Exception:
    from ..cli.errors import ReportError

    return ReportError(message, **facts)
