"""The report: one HTML file without scripts or network access, made of a run's files alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ReportError

if TYPE_CHECKING:
    from jinja2 import Environment

    from ...evaluation.closing import Curves, Results
    from ..remarks import ModelRemark


Part = TypeVar("Part")
TEMPLATE_FOLDER = Path(__file__).parent / "templates"
RESULTS_FORMAT = 1
SEALED_FILE = "sealed.json"
"""The result on the sealed days, if they were opened after the run's close."""
REMARK_FILE = "remark.json"
"""What a model said of the results, if the campaign's file names one for it."""


def write_report(run_folder: Path) -> Path:
    """Write `report.html` from `results.json`, `curves.json`, `sealed.json` and `remark.json`, at once or not at all.

    Raises
    ------
    ReportError
        The results are missing, damaged or of another format, or the folder cannot be written.
    """
    results = read_results(run_folder)
    target = run_folder / "report.html"
    _replace(target, render_report(results, _read_curves(run_folder), _read_remark(run_folder)))
    return target


def read_results(run_folder: Path) -> Results:
    """Return a run's results, with the exam of sealed days that were opened after its close.

    Raises
    ------
    ReportError
        They are missing, damaged or of another format.
    """
    from ...evaluation.closing import Results

    record = _read_object(run_folder / "results.json")
    if record.get("format") != RESULTS_FORMAT:
        raise ReportError(
            "the run's results have a format that this version does not read",
            field="format",
            got=record.get("format"),
            allowed=RESULTS_FORMAT,
            hint="report it with the version that ran the campaign",
        )
    if not record.get("sealed") and (run_folder / SEALED_FILE).exists():
        record["sealed"] = _read_object(run_folder / SEALED_FILE)
    return _parse(Results.read, record, run_folder / "results.json")


def _read_curves(run_folder: Path) -> Curves:
    from ...evaluation.closing import Curves

    path = run_folder / "curves.json"
    return _parse(Curves.read, _read_object(path), path) if path.exists() else Curves()


def _read_remark(run_folder: Path) -> ModelRemark | None:
    path = run_folder / REMARK_FILE
    if not path.exists():
        return None
    from ..remarks import ModelRemark

    return _parse(ModelRemark.read, _read_object(path), path)


def render_report(results: Results, curves: Curves, remark: ModelRemark | None = None) -> str:
    """Return the report's HTML; the same input gives the same bytes."""
    from .page import build_page

    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    page = build_page(results, curves)
    template = environment().get_template("report.html.j2")
    return template.render(page=page, style=style, remark=remark).strip() + "\n"


def environment() -> Environment:
    """Return the template environment; an undefined name in a template is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Any text may come from a model, so all text is escaped; the template marks only our own drawings as safe.
    return Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{path.name} of the run cannot be read ({error})",
            field="run",
            got=str(path.parent),
            hint="finish the campaign first: alphaloom resume RUN",
        ) from error
    if not isinstance(content, dict):
        raise ReportError(f"{path.name} of the run is not an object", field="run", got=str(path.parent))
    return content


def _parse(read: Callable[[dict[str, Any]], Part], record: dict[str, Any], path: Path) -> Part:
    """Return the typed record of a file."""
    from pydantic import ValidationError

    try:
        return read(record)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ReportError(
            f"{path.name} of the run holds a value that no run writes, at {where}",
            field="run",
            got=str(path.parent),
            hint="restore the file, or report another run",
        ) from error


def _replace(target: Path, text: str) -> None:
    """Write the report whole or not at all."""
    from ...ledger.files import write_whole

    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise ReportError(
            f"the report cannot be written ({error.strerror or error})",
            field="run",
            got=str(target.parent),
            hint="free some disk space or make the folder writable, then: alphaloom report RUN",
        ) from error
