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
from ..errors import describe_error
from ..facts.standing import name_workspace, workspace_option
from ..report.report import TEMPLATE_FOLDER
from ..users import GivenNames, PersonScope, Signer, Users
from . import books, campaigns, compare, control, factors, jump, library, record, what_if
from .access import Guards, LoginLimit, LoginPage, Sessions, find_signer, give_name, load_name
from .live import LiveRequest, Stream
from .pages import Page, PageRequest, Problem, render
from .review import blind, cases, read_waiting, seal, texts

STATIC_FOLDER = Path(__file__).parent / "static"
NOT_ENTERED = Problem(
    "Nobody is known at this browser.",
    "Start `alphaloom desk` and open the address that it prints. It works once, within ten minutes.",
)
NO_LOGIN = "Name or password is wrong."
TOO_MANY_LOGINS = "Too many tries. Wait a minute, then try again."


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
    def users(self) -> Users:
        """Return who may sign; none where the workspace is one person's."""
        return Users(self.workspace)

    def issue_launch(self, person: str) -> str:
        """Return a secret that begins one session of a person, who must be a user where there are users."""
        user = self.users.find(person)
        return self.sessions.issue_launch(person, user.mark if user else "")

    def find_signer(self, secret: str) -> Signer | None:
        """Return the person of a session, or None."""
        return find_signer(self.sessions, self.users, GivenNames(self.workspace), secret)

    @property
    def cookie(self) -> str:
        """Return the cookie's name: each workspace has its own, since browsers share cookies between ports."""
        return f"alphaloom_{sha256(str(self.workspace.resolve()).encode()).hexdigest()[:12]}"

    def open(self) -> AbstractContextManager[Ledger]:
        """Open the record."""
        return Ledger.open(self.workspace, clock=self.clock)


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class DeskChange:
    """What a form does: `apply` records what a person decided, and returns the address of the page that follows."""

    scope: PersonScope
    apply: Callable[[PageRequest, dict[str, str]], str]


DESK_PAGES = {
    "/inbox": Page("inbox.html.j2", read_waiting),
    "/runs": Page("runs.html.j2", campaigns.load_runs),
    "/runs/new": Page("new_campaign.html.j2", control.load_form),
    "/launches/{name}": Page("launch.html.j2", control.load_launch),
    "/runs/{run}": Page("run.html.j2", campaigns.load_run),
    "/runs/{run}/report": Page("", campaigns.load_report),
    "/runs/{run}/models": Page("models.html.j2", campaigns.load_models),
    "/runs/{run}/factors/{factor}": Page("scored_factor.html.j2", factors.load_factor),
    "/runs/{run}/what-if/{factor}": Page("what_if.html.j2", what_if.load_what_if),
    "/runs/{run}/cases/{case}": Page("case_desk.html.j2", cases.load_case),
    "/runs/{run}/cases/{case}/blind": Page("blind_desk.html.j2", blind.load_blind),
    "/name": Page("name.html.j2", load_name),
    "/calibration": Page("calibration.html.j2", blind.load_calibration),
    "/runs/{run}/seal": Page("seal.html.j2", seal.load_seal),
    "/runs/{run}/alarms/{factor}": Page("alarm.html.j2", cases.load_alarm),
    "/compare": Page("compare.html.j2", compare.load_comparison),
    "/library": Page("library.html.j2", library.load_library),
    "/library/{factor}": Page("entry.html.j2", library.load_entry),
    "/books": Page("books.html.j2", books.load_books),
    "/books/{book}": Page("book.html.j2", books.load_book),
    "/books/{book}/positions": Page("book_positions.html.j2", books.load_positions),
    "/books/{book}/orders": Page("book_orders.html.j2", books.load_orders),
    "/books/{book}/refusals": Page("book_refusals.html.j2", books.load_refusals),
    "/books/{book}/stress": Page("book_stress.html.j2", books.load_stress),
    "/jump": Page("jump.html.j2", jump.load_jump),
    "/record": Page("record.html.j2", record.load_record),
    "/texts/{text}": Page("text.html.j2", texts.load_text),
}
"""Every page by its address; the same address with `.json` gives its record, except that of a report."""
DESK_CHANGES = {
    "/name": DeskChange(PersonScope.REVIEW_DECIDE, give_name),
    "/runs/new": DeskChange(PersonScope.RUN_CONTROL, control.start_campaign),
    "/launches/{name}": DeskChange(PersonScope.RUN_CONTROL, control.change_launch),
    "/runs/{run}": DeskChange(PersonScope.RUN_CONTROL, control.change_run),
    "/runs/{run}/cases/{case}": DeskChange(PersonScope.REVIEW_DECIDE, cases.decide),
    "/runs/{run}/cases/{case}/blind": DeskChange(PersonScope.REVIEW_DECIDE, blind.judge),
    "/runs/{run}/seal": DeskChange(PersonScope.SEAL_OPEN, seal.decide),
    "/runs/{run}/alarms/{factor}": DeskChange(PersonScope.RISK_APPROVE, cases.acknowledge),
    "/library/{factor}": DeskChange(PersonScope.LIBRARY_WRITE, library.decide),
    "/books/{book}": DeskChange(PersonScope.RISK_APPROVE, books.order),
    "/books/{book}/orders": DeskChange(PersonScope.RISK_APPROVE, books.cancel),
    "/texts/{text}": DeskChange(PersonScope.TEXT_RELEASE, texts.release),
}
"""What the form of a page does, by the page's address."""
LIVE_PAGES = {
    "/runs/{run}/live": campaigns.stream_run,
    "/launches/{name}/live": campaigns.stream_launch,
    "/books/{book}/orders/live": books.stream_orders,
}


def build_app(desk: Desk) -> ASGIApp:
    """Return the app of a workspace."""
    routes = [
        Route("/", lambda _: RedirectResponse("/inbox")),
        Route("/enter/{launch}", _build_entry(desk)),
        Route("/login", _build_login_page(desk)),
        Route("/login", _build_login(desk), methods=["POST"]),
        Route("/leave", _build_exit(desk), methods=["POST"]),
        Route("/static/report.css", lambda _: FileResponse(TEMPLATE_FOLDER / "report.css")),
        Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
        *(
            Route(f"{place}.json", _build_page(desk, page, as_json=True))
            for place, page in DESK_PAGES.items()
            if page.template  # a report is a document, and no record of ours
        ),
        *(Route(place, _build_change(desk, change), methods=["POST"]) for place, change in DESK_CHANGES.items()),
        *(Route(place, _build_page(desk, page)) for place, page in DESK_PAGES.items()),
        *(Route(place, _build_stream(desk, stream)) for place, stream in LIVE_PAGES.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _answer_http_error})
    return Guards(app)


def _build_entry(desk: Desk) -> Handler:
    def enter(request: Request) -> Response:
        secret = desk.sessions.enter(request.path_params["launch"])
        if secret is None or desk.find_signer(secret) is None:
            desk.sessions.end(secret or "")
            return _answer_stranger(desk)
        # The answer is a page of its own, not a redirection: after one, a browser that came from another program's
        # link would not send a cookie that is for our own pages alone.
        return _give_cookie(desk, HTMLResponse(render("entered.html.j2", None, None)), secret)

    return _in_thread(enter)


def _give_cookie(desk: Desk, response: Response, secret: str) -> Response:
    response.set_cookie(desk.cookie, secret, httponly=True, samesite="strict", path="/")
    return response


def _build_login_page(desk: Desk) -> Handler:
    def show(_: Request) -> Response:
        return _answer_stranger(desk, status=200)

    return _in_thread(show)


def _build_login(desk: Desk) -> Handler:
    limit = LoginLimit()

    def log_in(request: Request, name: str, password: str) -> Response:
        try:
            user = desk.users.admit(name, password)
        except AlphaloomError as error:
            return _answer_error(error)
        if user is None:
            return _answer_stranger(desk, NO_LOGIN)
        # Always a new secret: one that somebody planted in the browser before opens nothing afterwards.
        secret = desk.sessions.begin(user.name, user.mark, request.cookies.get(desk.cookie, ""))
        return _give_cookie(desk, RedirectResponse("/inbox", 303), secret)

    async def answer(request: Request) -> Response:
        form = await _read_form(request)
        name = form.get("name", "").strip()
        if limit.take(name):
            return HTMLResponse(render("login.html.j2", LoginPage(TOO_MANY_LOGINS), None), 429)
        return await run_in_threadpool(log_in, request, name, form.get("password", ""))  # a hash takes long

    return answer


def _build_exit(desk: Desk) -> Handler:
    async def leave(request: Request) -> Response:
        await run_in_threadpool(desk.sessions.end, request.cookies.get(desk.cookie, ""))
        response = _answer_problem(Problem("You have left the desk.", NOT_ENTERED.hint), 200)
        response.delete_cookie(desk.cookie)
        return response

    return leave


def _find_signer(desk: Desk, request: Request) -> Signer | None:
    return desk.find_signer(request.cookies.get(desk.cookie, ""))


def _in_thread(answer: Callable[[Request], Response]) -> Handler:
    """Return a handler off the event loop, whose errors are answered."""

    def attempt(request: Request) -> Response:
        try:
            return answer(request)
        except Exception as error:  # noqa: BLE001 - no error may reach a browser as a trace
            return _answer_error(error, as_json=request.url.path.endswith(".json"))

    async def handle(request: Request) -> Response:
        return await run_in_threadpool(attempt, request)

    return handle


def _build_page(desk: Desk, page: Page, *, as_json: bool = False) -> Handler:
    def load(request: Request) -> Response:
        signer = _find_signer(desk, request)
        if signer is None:
            return _answer_stranger(desk, as_json=as_json)
        with desk.open() as ledger:
            facts = page.load(_read_request(desk, ledger, signer, request))
            if isinstance(facts, Response):
                if as_json and "location" in facts.headers:
                    facts.headers["location"] += ".json"
                return facts
            if as_json:
                return JSONResponse(asdict(facts))
            option = workspace_option(name_workspace(desk.workspace))
            recorded = request.query_params.get("recorded", "")
            return HTMLResponse(render(page.template, facts, signer, request.url.path, option, recorded))

    return _in_thread(load)


def _build_change(desk: Desk, change: DeskChange) -> Handler:
    def apply(request: Request, form: dict[str, str]) -> Response:
        try:
            signer = _find_signer(desk, request)
            if signer is None:
                return _answer_stranger(desk)
            signer.check(change.scope)
            with desk.open() as ledger:
                place = change.apply(_read_request(desk, ledger, signer, request), form)
        except Exception as error:  # noqa: BLE001 - as above
            return _answer_error(error)
        return RedirectResponse(place, 303)

    async def answer(request: Request) -> Response:
        return await run_in_threadpool(apply, request, await _read_form(request))

    return answer


def _read_request(desk: Desk, ledger: Ledger, signer: Signer, request: Request) -> PageRequest:
    return PageRequest(ledger, signer, request.path_params, request.query_params, desk.clock())


async def _read_form(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=20) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _build_stream(desk: Desk, stream: Stream) -> Handler:
    async def answer(request: Request) -> Response:
        # Asked each time the page looks for something new, so that a stream ends with its session.
        def admits() -> bool:
            return _find_signer(desk, request) is not None

        if not await run_in_threadpool(admits):
            return await run_in_threadpool(_answer_stranger, desk)
        return stream(LiveRequest(desk.open, desk.workspace, admits, request))

    return answer


def _answer_stranger(desk: Desk, problem: str = "", *, status: int = 401, as_json: bool = False) -> Response:
    """Ask for name and password where the workspace has users; else say how the desk is opened."""
    if as_json or not desk.users.all():
        return _answer_problem(NOT_ENTERED, 401, as_json=as_json)
    return HTMLResponse(render("login.html.j2", LoginPage(problem), None), status)


def _answer_error(error: Exception, *, as_json: bool = False) -> Response:
    """Return an error as a page, or as the JSON that the command line prints."""
    record, _ = describe_error(error)
    code = str(record["code"])
    known = 404 if code.startswith("unknown_") else 409 if isinstance(error, AlphaloomError) else 500
    status = {"scope_missing": 403, "settings": 503, "busy": 503}.get(code, known)
    if as_json:
        return JSONResponse(record, status)
    allowed = record.get("allowed")
    words = ", ".join(map(str, allowed)) if isinstance(allowed, list | tuple) else str(allowed or "")
    hint = f"{record['hint']} {f'Allowed: {words}.' if words else ''}".strip()
    # The empty address is that of this page: after a form that was refused, the page with the form.
    ways = [("/inbox", "Inbox")] if status == 404 else [("", "Open the page again"), ("/inbox", "Inbox")]
    return _answer_problem(Problem(str(record["message"]), hint, ways), status)


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
