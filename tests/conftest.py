"""Processes that tests start import this checkout; properties draw the same examples each time."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

ROOT = Path(__file__).resolve().parents[1] / ".root"

# `make test` gives the same result on every run, on a busy machine too: fixed examples, none from an earlier run, no
# time limit. `make fuzz` draws others. A property that names `max_examples` itself is too slow for as many.
settings.register_profile(
    "dev",
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fuzz", settings.get_profile("dev"), max_examples=400, derandomize=False, print_blob=True)
settings.load_profile("dev")

# Hypothesis also draws constants of the modules imported so far, so that a property would meet other examples when its
# file runs alone, and so would `make fuzz SEED=...`.
providers._get_local_constants = lambda: providers._local_constants


def pytest_configure() -> None:
    """Put the checkout before what is installed, for every process that is started from here; keys get a new folder."""
    places = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    if "ALPHALOOM_KEYS" not in os.environ:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # each signature waits for the disk twice
        os.environ["ALPHALOOM_KEYS"] = folder = tempfile.mkdtemp(prefix="alphaloom-keys-", dir=memory)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
