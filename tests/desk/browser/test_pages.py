"""The desk in a real browser: worked by keyboard, across a restart, each page looked at for faults (`make browser`)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.evaluation import Reviews
from alphaloom.ledger import Ledger

from ...campaign import markets
from ..books import BOOK, EMPTY, ORDERED, PLANTED, lay_books
from ..workspace import CASE, CHILD, LEAK, lay, lay_seal

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make browser installs it")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SHOTS = Path("build") / "desk"
ROOT = Path(__file__).parents[3]
PLACES = {
    "inbox": "/inbox", "case": f"/runs/r1/cases/{CASE}", "alarm": f"/runs/r1/alarms/{LEAK}", "runs": "/runs",
    "run": "/runs/r1", "library": "/library", "factor": f"/library/{LEAK}", "books": "/books", "lost": "/nowhere",
    "scored": f"/runs/r1/factors/{CHILD}", "models": "/runs/r1/models", "seal": "/runs/r2/seal",
    "book": f"/books/{BOOK}", "positions": f"/books/{BOOK}/positions", "refusals": f"/books/{BOOK}/refusals",
    "stress": f"/books/{BOOK}/stress?scenario=crash", "planted-book": f"/books/{PLANTED}",
    "new-book": f"/books/{EMPTY}", "orders": f"/books/{ORDERED}/orders", "no-orders": f"/books/{BOOK}/orders",
    "new-campaign": "/runs/new", "new-campaign-file": "/runs/new?name=calm",
    "new-campaign-refused": "/runs/new?name=Calm%20Names&panel=/etc/passwd&evaluations=0&goal=calm",
    "record": "/record?verify=all", "jump": "/jump?q=alert",
    "compare": f"/compare?a=r1:{LEAK}&b=r1:{CHILD}", "runs-compared": "/compare?a=r1&b=r1&all=1",
}  # fmt: skip  # a table
LOOKS = [("light", 1280), ("dark", 1280), ("light", 400)]


class Server:
    """The command `alphaloom desk` on a workspace, in a process of its own."""

    def __init__(self, workspace: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "alphaloom", "desk", "--workspace", str(workspace), "--by", "ada"]
        self.process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.launch = next(line.strip() for line in self.process.stdout if "/enter/" in line)
        self.home = self.launch.partition("/enter/")[0]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(20) in (0, 130)
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    lay(tmp_path)
    lay_seal(tmp_path)
    started = Server(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Server]:
    """Return the desk of a workspace that has paper books too."""
    lay(tmp_path)
    lay_seal(tmp_path)
    lay_books(tmp_path)
    started = Server(tmp_path)
    yield started
    started.stop()


def test_a_case_and_an_alarm_are_decided_by_keyboard_across_a_restart(browser: Any, tmp_path: Path) -> None:
    lay(tmp_path)
    first = Server(tmp_path)
    page = browser.new_page()
    page.goto(first.launch)
    page.wait_for_url("**/inbox")
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/cases/{CASE}")
    first.stop()
    second = Server(tmp_path, int(first.home.rpartition(":")[2]))
    page.keyboard.press("c")
    page.keyboard.type("reads the volume of whole months")
    page.keyboard.press("Tab")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/alarms/{LEAK}?recorded=approve")
    page.keyboard.press("c")
    page.keyboard.type("both fields are of the close")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/runs/r1")
    assert "alphaloom resume r1 --workspace" in page.inner_text("main")
    page.close()
    second.stop()
    with Ledger.open(tmp_path, clock=lambda: datetime.now(UTC)) as ledger:
        decision = Reviews.of(ledger, ledger.runs.find("r1")).decision(CASE)
    assert decision
    assert (decision.by, decision.decision, decision.comment) == ("ada", "approve", "reads the volume of whole months")


def test_a_campaign_is_started_watched_stopped_and_resumed(browser: Any, tmp_path: Path) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    with Ledger.open(tmp_path, clock=lambda: datetime.now(UTC)):
        pass
    (tmp_path / "data").mkdir()
    markets.write(markets.tidy(markets.strong(days=450, names=24)), tmp_path / "data" / "prices.parquet")
    at = Server(tmp_path)
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(180_000)
        page.goto(at.launch)
        page.wait_for_url("**/inbox")
        drive_campaign(page, at.home)
        page.close()
    finally:
        at.stop()


def drive_campaign(page: Any, home: str) -> None:
    """Work a campaign from the form to its second end, and leave pictures."""
    page.goto(home + "/runs")
    page.click("text=New campaign")
    page.fill("#name", "calm")
    page.fill("#goal", "who must trade, and who is paid for waiting")
    page.select_option("#panel", "prices.parquet")
    page.click("text=Review the file")
    assert "panel:" in page.inner_text("pre")
    page.click("text=Start it")
    page.wait_for_url(
        "**/runs/2*-calm-*"
    )  # by way of the page on its start, which a quick machine shows for an instant
    page.wait_for_selector(".strip dd >> text=/^[1-9]/ >> nth=0")  # of the live part: the page began with zeros
    page.screenshot(path=SHOTS / "running-light-1280.png", full_page=True)
    page.click("button[value=stop]")
    page.wait_for_selector("text=ada asked it to stop")
    page.screenshot(path=SHOTS / "stopping-light-1280.png", full_page=True)
    page.wait_for_selector(".verdict >> text=stopped")
    page.click("button[value=resume]")
    page.wait_for_selector(".verdict >> text=/^running/")
    page.set_viewport_size({"width": 400, "height": 900})
    page.screenshot(path=SHOTS / "resumed-light-400.png", full_page=True)
    page.click("button[value=stop]")
    page.click("button[value=interrupt]")
    page.wait_for_selector("button[value=resume]")
    page.click("summary")
    assert page.inner_text("details").count("ada asked it to stop") == 3
    page.screenshot(path=SHOTS / "interrupted-light-400.png", full_page=True)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_no_page_has_a_fault(browser: Any, whole: Server, scheme: str, width: int) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    said: list[str] = []
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(f"a script ran: {dialog.message}"))
    page.goto(whole.launch)
    page.wait_for_url("**/inbox")
    faults: dict[str, Any] = {}
    for name, place in PLACES.items():
        page.goto(whole.home + place)
        page.screenshot(path=SHOTS / f"{name}-{scheme}-{width}.png", full_page=True)
        found = axe.Axe().run(page).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        faults[name] = [(one["id"], one["nodes"][0]["html"][:120]) for one in serious]
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        faults[name] += [f"{wider} px wider than the screen"] * (wider > 0)
    context.close()
    assert {name: found for name, found in faults.items() if found} == {}
    assert [line for line in said if "404" not in line] == []


def test_pages_work_without_script_and_at_200_percent(browser: Any, server: Server) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 640, "height": 450})
    page = context.new_page()
    page.goto(server.launch)
    page.click("text=To the inbox")
    page.click(f'a[href="/runs/r1/cases/{CASE}"]')
    page.check("input[value=reject]")
    page.fill("textarea", "too thin")
    page.click("button.main")
    assert page.url.endswith(f"/alarms/{LEAK}?recorded=reject")
    context.close()


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_the_jump_box_leads_anywhere_by_keyboard(browser: Any, server: Server, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.goto(server.launch)
    page.wait_for_url("**/inbox")
    page.keyboard.press("/")
    page.keyboard.type("alert")
    page.wait_for_selector("#jump a")
    page.screenshot(path=SHOTS / f"jump-box-{scheme}-{width}.png")
    found = axe.Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("r1")
    page.wait_for_selector('#jump a[href="/runs/r1"]')
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/r1")
    page.keyboard.press("Control+k")
    page.keyboard.type(CHILD[:6])
    page.wait_for_selector(f'#jump a[href="/runs/r1/factors/{CHILD}"]')
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/factors/{CHILD}")
    context.close()


def test_another_page_of_the_browser_can_neither_read_nor_change(browser: Any, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.launch)
    page.wait_for_url("**/inbox")
    page.goto("data:text/html,<p>elsewhere</p>")
    script = f"fetch('{server.home}/inbox.json', {{credentials: 'include'}}).then(r => r.text()).catch(() => 'refused')"
    assert page.evaluate(script) == "refused"
    form = f"<form method=post action={server.home}/runs/r1/cases/{CASE}><input name=choice value=approve></form>"
    page.set_content(form)
    with page.expect_navigation():
        page.evaluate("document.forms[0].submit()")
    assert "came from another page" in page.inner_text("body")
    context.close()


def test_the_demo_leaves_three_cases_that_are_decided_from_the_screen_alone(browser: Any, tmp_path: Path) -> None:
    campaign = ["run", str(ROOT / "examples" / "desk_demo.yaml"), "--workspace", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "alphaloom", *campaign], check=True, timeout=300)
    server = Server(tmp_path)
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto(server.launch)
    page.wait_for_url("**/inbox")
    assert "3 things wait" in page.inner_text("h1")
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "demo-inbox.png")
    page.click("[data-list] a >> nth=0")
    page.screenshot(path=SHOTS / "demo-case.png")
    page.click("text=All evidence")
    page.locator("#tear-sheet").scroll_into_view_if_needed()
    page.screenshot(path=SHOTS / "demo-evidence.png")
    page.go_back()
    for place, choice in enumerate(("approve", "approve", "reject")):
        assert page.locator(".cases b", has_text="waits").count() == 3 - place
        page.click("text=Decide >> nth=0")
        page.check(f"input[value={choice}]")
        page.fill("#comment", "as the figures beside the other cases say")
        page.click("button.main")
    page.wait_for_url("**/runs/*")
    command = page.inner_text(".lead code").split()
    assert command[:2] == ["alphaloom", "resume"]
    subprocess.run([sys.executable, "-m", *command], check=True, timeout=300)
    page.wait_for_selector("text=Read the report")  # the page follows the campaign by itself
    page.click("text=Read the report")
    assert "2 factors were accepted" in page.inner_text("body")
    context.close()
    server.stop()


MODES: dict[str, dict[str, Any]] = {
    "forced colours": {"forced_colors": "active", "color_scheme": "dark"},
    "200 percent": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},
    "400 percent": {"viewport": {"width": 320, "height": 225}, "device_scale_factor": 4},
}
"""Ways to look at the same pages; zoom is a smaller screen of larger points."""


@pytest.mark.parametrize("mode", MODES)
def test_pages_hold_in_fixed_colours_and_zoomed(browser: Any, whole: Server, mode: str) -> None:
    context = browser.new_context(**MODES[mode])
    page = context.new_page()
    page.goto(whole.launch)
    page.wait_for_url("**/inbox")
    faults = {}
    for name, place in PLACES.items():
        page.goto(whole.home + place)
        page.screenshot(path=SHOTS / f"{name}-{mode.replace(' ', '-')}.png", full_page=True)
        faults[name] = page.evaluate(FAULTS_OF_MODE)
    context.close()
    assert {name: found for name, found in faults.items() if found} == {}


FAULTS_OF_MODE = """() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`${root.scrollWidth - root.clientWidth} px too wide`);
  for (const one of document.querySelectorAll("svg rect.bar, .key")) {
    const style = getComputedStyle(one), paint = one.tagName === "rect" ? style.fill : style.backgroundColor;
    const shade = getComputedStyle(document.body).backgroundColor;
    if (paint === shade) found.push(`${one.getAttribute("class")} cannot be seen`);
  }
  return found;
}"""


def test_nothing_moves_where_motion_is_unwanted_and_paper_is_light(browser: Any, whole: Server) -> None:
    context = browser.new_context(reduced_motion="reduce", color_scheme="dark", viewport={"width": 720, "height": 900})
    page = context.new_page()
    page.goto(whole.launch)
    page.wait_for_url("**/inbox")
    moving = """[...document.querySelectorAll("*")].filter((one) => {
      const style = getComputedStyle(one);
      return parseFloat(style.transitionDuration) > 0 || style.animationName !== "none";
    }).length"""
    for place in PLACES.values():
        page.emulate_media(media="screen")
        page.goto(whole.home + place)
        assert page.evaluate(moving) == 0, place
        page.emulate_media(media="print")
        assert not page.locator(".bar, .decide").filter(visible=True).count(), place
        assert page.evaluate("getComputedStyle(document.body).color") != "rgb(228, 232, 238)", place
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), place
    context.close()


def test_tab_reaches_everything_in_order_and_shows_where_it_is(browser: Any, whole: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(whole.launch)
    page.wait_for_url("**/inbox")
    for name in ("inbox", "case", "scored", "run"):
        page.goto(whole.home + PLACES[name])
        expected = page.evaluate(REACHABLE)
        seen = []
        for _ in range(len(expected)):
            page.keyboard.press("Tab")
            place, outline = page.evaluate("[document.activeElement.dataset.walk, " + OUTLINE + "]")
            seen.append(place)
            assert outline, f"{name}: {page.evaluate('document.activeElement.outerHTML')[:120]}"
        assert seen == expected, name
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.goto(whole.home + PLACES["inbox"])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    context.close()


REACHABLE = """() => {
  const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const all = [...document.querySelectorAll(kinds)].filter((one) => one.checkVisibility() && !one.disabled);
  const groups = new Set();  // of radio buttons Tab reaches one
  const walked = all.filter((one) => one.type !== "radio" || (!groups.has(one.name) && groups.add(one.name)));
  walked.forEach((one, place) => { one.dataset.walk = place; });
  return walked.map((one) => one.dataset.walk);
}"""
OUTLINE = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
