"""Servers of models: a launch of vLLM that fits a device, why, how fast it should be, and somebody who watches it."""

from __future__ import annotations

from .architecture import Architecture
from .catalogue import find_model, model_names
from .devices import DEVICES, find_device
from .files import FILE_WRITERS, render_file
from .plan import ServingPlan, arguments, dump_plan, make_plan, read_plan
from .request import Request
from .supervision import ServerLaunch, supervise

__all__ = [
    "DEVICES",
    "FILE_WRITERS",
    "Architecture",
    "Request",
    "ServerLaunch",
    "ServingPlan",
    "arguments",
    "dump_plan",
    "find_device",
    "find_model",
    "make_plan",
    "model_names",
    "read_plan",
    "render_file",
    "supervise",
]
