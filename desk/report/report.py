"""The report: one HTML file, or a folder of them, which runs no script and fetches nothing, made of a run's files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DeskError, ReportError
from .sections.outline import BOOK_FILE, INDEX_FILE, Places, factor_file, list_parts
from .sections.run_notes import RunNotes

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from ...evaluation.closing import Curves, Results
    from ..remarks import ModelRemark
    from .page import ReportPage


Part = TypeVar("Part")
TEMPLATE_FOLDER = Path(__file__).parent / "templates"
RESULTS_FORMAT = 1
REPORT_FILE = "report.html"
SEALED_FILE = "sealed.json"
"""The result on the sealed days, if they were opened after the run's close."""
REMARK_FILE = "remark.json"
"""What a model said of the results, if the campaign's file names one for it."""
REPORT_MARK = '<meta name="generator" content="alphaloom report">'
"""The line by which a page of a report is recognised, and may be replaced."""
REPORT_MARK_CHARS = 1_000
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
UNIT = re.compile(r"(?<=\d) (?=%)")
FORMULA_BREAK = re.compile(r"(?<=[(,*/+])(?=[^\s])|(?<=[^\s(,*/+-])(?=[*/])")
"""Places inside a formula where a line may break; spaces break by themselves."""


def write_report(run_folder: Path, notes: RunNotes | None = None) -> Path:
    """Write `report.html` from `results.json`, `curves.json`, `sealed.json` and `remark.json`, at once or not at all.

    `notes` are what the record knows beside these files.

    Raises
    ------
    ReportError
        The results are missing, damaged or of another format, or the folder cannot be written.
    """
    target = run_folder / REPORT_FILE
    _replace(target, render_run(run_folder, notes))
    return target


def render_run(run_folder: Path, notes: RunNotes | None = None) -> str:
    """Return the report of the files in a run's folder as HTML; errors and `notes` as for `write_report`."""
    return render_report(read_results(run_folder), _read_curves(run_folder), _read_remark(run_folder), notes)


def write_report_folder(run_folder: Path, target: Path, notes: RunNotes | None = None) -> Path:
    """Write the report as a folder: `index.html`, a page for each factor and one for the book; return its first page.

    Pages of an earlier report in that folder are replaced; those that this one lacks are removed.

    Raises
    ------
    DeskError
        The folder holds something else.
    ReportError
        As `write_report`.
    """
    results = read_results(run_folder)
    earlier = _list_earlier_pages(target)
    pages = render_folder(results, _read_curves(run_folder), _read_remark(run_folder), notes)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in earlier:
            if path.name not in pages:
                path.unlink()
    except OSError as error:
        raise _make_write_error(error, target) from error
    for name, text in pages.items():
        _replace(target / name, text)
    return target / INDEX_FILE


def _list_earlier_pages(target: Path) -> list[Path]:
    """Return the pages of an earlier report in a folder, and refuse a folder that holds anything else.

    Raises
    ------
    DeskError
        It is a file, or a folder with files that no report wrote.
    """
    found = sorted(target.iterdir()) if target.is_dir() else [target] if target.exists() else []
    foreign = [path for path in found if path == target or not _is_report_page(path)]
    if foreign:
        raise DeskError(
            f"{foreign[0]} is there already, and no report wrote it.",
            field="--folder",
            got=str(target),
            allowed="a new or empty folder, or one with an earlier report",
            hint="Name another folder, or remove what is in this one.",
            code="file_exists",
            exit_code=1,
        )
    return found


def _is_report_page(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return path.suffix == ".html" and REPORT_MARK in file.read(REPORT_MARK_CHARS)
    except (OSError, UnicodeDecodeError):
        return False


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


def render_report(
    results: Results, curves: Curves, remark: ModelRemark | None = None, notes: RunNotes | None = None
) -> str:
    """Return the report's HTML as one file; the same input gives the same bytes."""
    from .page import build_page

    page = build_page(results, curves, notes or RunNotes())
    return _render("report.html.j2", page=page, remark=remark, places=Places(page), marks=_write_marks(page, remark))


def render_folder(
    results: Results, curves: Curves, remark: ModelRemark | None = None, notes: RunNotes | None = None
) -> dict[str, str]:
    """Return the pages of the folder form by file name."""
    from .page import build_page

    page = build_page(results, curves, notes or RunNotes())
    places, marks = Places(page, INDEX_FILE), _write_marks(page, remark, INDEX_FILE)
    pages = {INDEX_FILE: _render("report.html.j2", page=page, remark=remark, places=places, marks=marks)}
    others = [(factor_file(section.id), section) for section in page.sections]
    for file, section in [*others, (BOOK_FILE, None)]:
        places, marks = Places(page, file), _write_marks(page, None, file)
        pages[file] = _render("report_page.html.j2", page=page, section=section, places=places, marks=marks)
    return pages


def _write_marks(page: ReportPage, remark: ModelRemark | None, here: str = "") -> Markup:
    """Return the machine-readable marks of one page: of the factors and sections that are on it."""
    shown = [section.id for section in page.sections if here in ("", factor_file(section.id))]
    anchors = [anchor.id for part in list_parts(page) for anchor in part.anchors if here in ("", anchor.file)]
    return page.marks.write(page.title, shown, anchors, remark)


def _render(template: str, **content: object) -> str:
    style = (TEMPLATE_FOLDER / "report.css").read_text(encoding="utf-8")
    return environment().get_template(template).render(style=style, **content).strip() + "\n"


def environment() -> Environment:
    """Return the template environment; an undefined name in a template is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Any text may come from a model, so all text is escaped; the template marks only our own drawings as safe.
    made = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_keep_units,
    )
    made.filters["breakable"] = make_breakable
    return made


def _keep_units(value: object) -> object:
    """Return a text whose numbers stay on the line of their unit; anything else, escaped texts too, as it is."""
    return UNIT.sub(NO_BREAK_SPACE, value) if type(value) is str else value


def make_breakable(formula: str) -> Markup:
    """Return a formula, escaped, that may break after an opening parenthesis, a comma and an operator, in no name."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in FORMULA_BREAK.split(formula))


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
        raise _make_write_error(error, target.parent) from error


def _make_write_error(error: OSError, folder: Path) -> ReportError:
    return ReportError(
        f"the report cannot be written ({error.strerror or error})",
        field="run",
        got=str(folder),
        hint="free some disk space or make the folder writable, then: alphaloom report RUN",
    )
