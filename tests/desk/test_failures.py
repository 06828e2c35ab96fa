"""What a person sees of errors that no command waits for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BEFORE = (
    "import logging, sys, threading\n"
    "from alphaloom.desk.cli import main as cli\n\n"
    "class Odd:\n"
    "    def __del__(self):\n"
    "        raise ValueError('odd\\nend')\n\n"
)
RUN = "\ncli.run_command = lambda _: deed()\ncli.main()\n"
DEEDS = {
    "thread": (
        "def deed():\n"
        "    each = threading.Thread(target=lambda: 1 / 0)\n"
        "    each.start()\n"
        "    each.join()\n"
        "    return 0\n"
    ),
    "finaliser": "def deed():\n    Odd()\n    return 0\n",
    "log": (
        "def deed():\n"
        "    try:\n"
        "        1 / 0\n"
        "    except ZeroDivisionError:\n"
        "        logging.getLogger('any').exception('a task failed\\nthere')\n"
        "    return 0\n"
    ),
    "task": (
        "import asyncio, gc\n"
        "async def one():\n"
        "    asyncio.ensure_future(two())\n"
        "    await asyncio.sleep(0)\n"
        "async def two():\n"
        "    1 / 0\n"
        "def deed():\n"
        "    asyncio.run(one())\n"
        "    gc.collect()\n"
        "    return 0\n"
    ),
    "exit": "import atexit\ndef deed():\n    atexit.register(lambda: 1 / 0)\n    return 0\n",
    "main": "def deed():\n    return 1 / 0\n",
}


@pytest.mark.parametrize("deed", DEEDS)
def test_an_error_in_the_background_is_one_line_and_its_stack_is_kept_apart(deed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + DEEDS[deed] + RUN],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert re.search("ZeroDivisionError|odd", done.stderr)
    (kept,) = tmp_path.glob("alphaloom-crash-*.txt")
    assert str(kept) in done.stderr
    assert "Traceback" in kept.read_text()
    assert sys.platform == "win32" or kept.stat().st_mode & 0o077 == 0
