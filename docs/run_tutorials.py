"""Run the tutorials and compare their output with the pages.

python docs/run_tutorials.py                      run all pages of docs/tutorials
python docs/run_tutorials.py first-campaign       run some of them
python docs/run_tutorials.py --write              write the output into the pages, where a block has no "..."

A tutorial is Markdown. Each page runs in an empty folder, in the order of its blocks:

- a block with a title is written to a file of that name;
- ``sh`` is run by a shell that stops at the first error;
- ``python`` is run in one interpreter a page;
- ``text`` straight after one of these is the expected standard output. "..." stands for anything.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
ROOT = TUTORIALS.parents[1]
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
PATIENCE_S = 1800
"""Seconds that a shell block may take on a slow machine."""
COLUMNS = "120"
"""Width of tables that commands print."""


@dataclass(frozen=True)
class Step:
    """A block to run or write, and its expected output: None where a page has none."""

    language: str
    title: str
    body: str
    line: int
    expected: re.Match[str] | None


def steps(text: str) -> Iterator[Step]:
    """Yield the steps of a page."""
    blocks = list(FENCE.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block["language"] == "text" or not (block["title"] or block["language"] in ("sh", "python")):
            continue
        follows = after is not None and after["language"] == "text"
        line = text.count("\n", 0, block.start()) + 1
        yield Step(block["language"], block["title"] or "", block["body"], line, after if follows else None)


def run_shell(body: str, environment: dict[str, str]) -> str:
    """Run a shell block; return its standard output."""
    finished = subprocess.run(
        ["sh", "-e", "-c", body], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if finished.returncode:
        raise SystemExit(f"exit code {finished.returncode}\n{finished.stdout[-2000:]}\n{finished.stderr[-2000:]}")
    return finished.stdout


def run_python(body: str, names: dict[str, object], place: str) -> str:
    """Run a Python block in the page's interpreter; return its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, place, "exec"), names)  # noqa: S102 - the pages are ours
    return printed.getvalue()


def differs(expected: str, output: str) -> str:
    """Return the difference between an output and the expected one; empty if they match."""
    if OutputChecker().check_output(expected, output, ELLIPSIS | NORMALIZE_WHITESPACE):
        return ""
    lines = difflib.unified_diff(expected.splitlines(), output.splitlines(), "the page", "the program", lineterm="")
    return "\n".join(lines)


def environment() -> dict[str, str]:
    """Return the environment of a page: this checkout, tables of one width, and no setting or key of the user's own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ALPHALOOM")}
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = {"PATH": paths, "PYTHONPATH": str(ROOT / ".root"), "ALPHALOOM_KEYS": "keys"}
    return {**inherited, **own, "COLUMNS": COLUMNS, "NO_COLOR": "1"}


def run_page(page: Path, *, write: bool) -> int:
    """Run a page in an empty folder; return how many outputs differ."""
    text, wrong = page.read_text(encoding="utf-8"), 0
    names: dict[str, object] = {"__name__": "__main__"}
    rewritten = text
    sys.path.insert(0, "")  # so that the page can import the files that it writes
    for step in steps(text):
        place = f"{page.name}:{step.line}"
        if step.title:
            Path(step.title).write_text(step.body, encoding="utf-8")
            continue
        print(f"  {place}", file=sys.stderr, flush=True)
        is_shell = step.language == "sh"
        output = run_shell(step.body, dict(os.environ)) if is_shell else run_python(step.body, names, place)
        if step.expected is None or not (wrong_here := differs(step.expected["body"], output)):
            continue
        if write and "..." not in step.expected["body"]:
            lines = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
            rewritten = rewritten.replace(step.expected[0], f"```text\n{lines}\n```", 1)
        else:
            print(f"{place} printed something else:\n{wrong_here}", flush=True)
            wrong += 1
    if rewritten != text:
        page.write_text(rewritten, encoding="utf-8")
    return wrong


def main() -> int:
    """Run the pages that are named, or all, each in a process and an empty folder of its own."""
    write, names = "--write" in sys.argv, [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if "--inside" in sys.argv:
        return min(run_page(Path(names[0]), write=write), 1)
    failed = []
    for page in sorted(TUTORIALS.glob("*.md")):
        if names and page.stem not in names:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                str(Path(__file__).resolve()),
                "--inside",
                str(page),
                *(["--write"] if write else []),
            ]
            code = subprocess.run(command, cwd=folder, env=environment(), check=False).returncode
        print(f"{'ok' if not code else 'FAILED'}  {page.name}  {time.monotonic() - began:.0f} s", flush=True)
        failed += [page.name] if code else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
