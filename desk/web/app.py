"""The web app: its addresses, who may open them, and how a page or its JSON is answered.

Nothing is held in the process: each request opens the record, so a restart loses nothing and a campaign may run
meanwhile. Every page is a record, and the same address with `.json` gives that record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ...ledger import AlphaloomError, Ledger
from ..cli.failures import describe_error
from ..report.report import TEMPLATE_FOLDER
from . import books, campaigns, cases, compare, factors, library, texts, what_if
from .guards import Guards
from .inbox import read_inbox
from .pages import Page, PageRequest, Problem, render
from .sessions import DeskSession, Sessions

STATIC_FOLDER = Path(__file__).parent / "static"
NOT_ENTERED = Problem(
    "Nobody is known at this browser.",
    "Start `alphaloom desk` and open the address that it prints. It works once, within ten minutes.",
)


@dataclass(frozen=True)
class Desk:
    """What the app works on."""

    workspace: Path
    clock: Callable[[], datetime]

    @property
    def sessions(self) -> Sessions:
        """Return who is at the desk."""
        return Sessions(self.workspace, self.clock)

    @property
    def cookie(self) -> str:
        """Return the cookie's name: each workspace has its own, since browsers share cookies between ports."""
        return f"alphaloom_{sha256(str(self.workspace.resolve()).encode()).hexdigest()[:12]}"

    def open(self) -> AbstractContextManager[Ledger]:
        """Open the record."""
        return Ledger.open(self.workspace, clock=self.clock)


Handler = Callable[[Request], Awaitable[Response]]
Change = Callable[[PageRequest, dict[str, str]], str]
"""Records what a person decided, and returns the address of the page that follows."""
DESK_PAGES = {
    "/inbox": Page("inbox.html.j2", lambda asked: read_inbox(asked.ledger)),
    "/runs": Page("runs.html.j2", campaigns.load_runs),
    "/runs/{run}": Page("run.html.j2", campaigns.load_run),
    "/runs/{run}/report": Page("", campaigns.load_report),
    "/runs/{run}/factors/{factor}": Page("scored_factor.html.j2", factors.load_factor),
    "/runs/{run}/what-if/{factor}": Page("what_if.html.j2", what_if.load_what_if),
    "/runs/{run}/cases/{case}": Page("case_desk.html.j2", cases.load_case),
    "/runs/{run}/alarms/{factor}": Page("alarm.html.j2", cases.load_alarm),
    "/compare": Page("compare.html.j2", compare.load_comparison),
    "/library": Page("library.html.j2", library.load_library),
    "/library/{factor}": Page("entry.html.j2", library.load_entry),
    "/books": Page("books.html.j2", books.load_books),
    "/books/{book}": Page("book.html.j2", books.load_book),
    "/texts/{text}": Page("text.html.j2", texts.load_text),
}
"""Every page by its address; the same address with `.json` gives its record."""
DESK_CHANGES: dict[str, Change] = {
    "/runs/{run}/cases/{case}": cases.decide,
    "/runs/{run}/alarms/{factor}": cases.acknowledge,
    "/library/{factor}": library.retire,
    "/texts/{text}": texts.release,
}
"""What the form of a page does, by the page's address."""
LIVE_PAGES = {"/runs/{run}/live": campaigns.stream_run}


def build_app(desk: Desk) -> ASGIApp:
    """Return the app of a workspace."""
    routes = [
        Route("/", lambda _: RedirectResponse("/inbox")),
        Route("/enter/{launch}", _build_entry(desk)),
        Route("/leave", _build_exit(desk), methods=["POST"]),
        Route("/static/report.css", lambda _: FileResponse(TEMPLATE_FOLDER / "report.css")),
        Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
        *(Route(f"{place}.json", _build_page(desk, page, as_json=True)) for place, page in DESK_PAGES.items()),
        *(Route(place, _build_change(desk, change), methods=["POST"]) for place, change in DESK_CHANGES.items()),
        *(Route(place, _build_page(desk, page)) for place, page in DESK_PAGES.items()),
        *(Route(place, _build_stream(desk, stream)) for place, stream in LIVE_PAGES.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _answer_http_error})
    app.state.desk = desk
    return Guards(app)


def _build_entry(desk: Desk) -> Handler:
    async def enter(request: Request) -> Response:
        secret = await run_in_threadpool(desk.sessions.enter, request.path_params["launch"])
        if secret is None:
            return _answer_problem(NOT_ENTERED, 401)
        # The answer is a page of its own, not a redirection: after one, a browser that came from another program's
        # link would not send a cookie that is for our own pages alone.
        response = HTMLResponse(render("entered.html.j2", None, None))
        response.set_cookie(desk.cookie, secret, httponly=True, samesite="strict", path="/")
        return response

    return enter


def _build_exit(desk: Desk) -> Handler:
    async def leave(request: Request) -> Response:
        await run_in_threadpool(desk.sessions.end, request.cookies.get(desk.cookie, ""))
        response = _answer_problem(Problem("You have left the desk.", NOT_ENTERED.hint), 200)
        response.delete_cookie(desk.cookie)
        return response

    return leave


def _find_session(desk: Desk, request: Request) -> DeskSession | None:
    return desk.sessions.find(request.cookies.get(desk.cookie, ""))


def _build_page(desk: Desk, page: Page, *, as_json: bool = False) -> Handler:
    def load(request: Request) -> Response:
        session = _find_session(desk, request)
        if session is None:
            return _answer_problem(NOT_ENTERED, 401, as_json=as_json)
        try:
            with desk.open() as ledger:
                facts = page.load(PageRequest(ledger, session.person, request.path_params, request.query_params))
                if isinstance(facts, Response):
                    return facts
                if as_json:
                    return JSONResponse(asdict(facts))
                return HTMLResponse(render(page.template, facts, session.person, request.url.path))
        except Exception as error:  # noqa: BLE001 - no error may reach a browser as a trace
            return _answer_error(error, as_json=as_json)

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(load, request)

    return answer


def _build_change(desk: Desk, change: Change) -> Handler:
    def apply(request: Request, form: dict[str, str]) -> Response:
        session = _find_session(desk, request)
        if session is None:
            return _answer_problem(NOT_ENTERED, 401)
        try:
            with desk.open() as ledger:
                place = change(PageRequest(ledger, session.person, request.path_params, request.query_params), form)
        except Exception as error:  # noqa: BLE001 - as above
            return _answer_error(error)
        return RedirectResponse(place, 303)

    async def answer(request: Request) -> Response:
        async with request.form(max_files=0, max_fields=20) as form:
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
        return await run_in_threadpool(apply, request, fields)

    return answer


def _build_stream(desk: Desk, stream: campaigns.Stream) -> Handler:
    async def answer(request: Request) -> Response:
        if await run_in_threadpool(_find_session, desk, request) is None:
            return _answer_problem(NOT_ENTERED, 401)
        return stream(desk.open, request)

    return answer


def _answer_error(error: Exception, *, as_json: bool = False) -> Response:
    """Return an error as a page, or as the JSON that the command line prints."""
    record, _ = describe_error(error)
    status = 404 if str(record["code"]).startswith("unknown_") else 409 if isinstance(error, AlphaloomError) else 500
    if as_json:
        return JSONResponse(record, status)
    allowed = record.get("allowed")
    words = ", ".join(map(str, allowed)) if isinstance(allowed, list | tuple) else str(allowed or "")
    hint = f"{record['hint']} {f'Allowed: {words}.' if words else ''}".strip()
    return _answer_problem(Problem(str(record["message"]), hint), status)


def _answer_problem(problem: Problem, status: int, *, as_json: bool = False) -> Response:
    if as_json:
        return JSONResponse({"code": "desk", "message": problem.message, "hint": problem.hint}, status)
    return HTMLResponse(render("problem.html.j2", problem, None), status)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = {404: "There is no such page.", 405: "This page cannot be changed."}.get(status, "This cannot be done.")
    return _answer_problem(
        Problem(message, "The inbox is at /inbox."), status, as_json=request.url.path.endswith(".json")
    )
