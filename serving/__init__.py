"""Servers of models: a launch of vLLM that fits a device, why, how fast it should be, and somebody who watches it."""

from __future__ import annotations

from .architecture import Architecture
from .catalogue import found, names
from .devices import DEVICES, device
from .files import KINDS, described
from .plan import Plan, arguments, made, read, written
from .request import Request
from .supervision import Launch, supervise

__all__ = [
    "DEVICES",
    "KINDS",
    "Architecture",
    "Launch",
    "Plan",
    "Request",
    "arguments",
    "described",
    "device",
    "found",
    "made",
    "names",
    "read",
    "supervise",
    "written",
]
