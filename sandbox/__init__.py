"""Where generated Python runs: contained by the kernel, and proven causal.

The boundary is the kernel's (Landlock, seccomp, namespaces, limits); nothing in here trusts a reading of the code.
"""

from .capability import Status, probe_sandbox
from .causality.causality import prove
from .causality.proof import CausalProof
from .errors import (
    BadInput,
    BadResult,
    Busy,
    Crashed,
    NotCausal,
    NotDeterministic,
    OutOfMemory,
    Refused,
    SandboxError,
    SandboxUnavailable,
    TimedOut,
)
from .jail.frames import Frames
from .job import Job, Outcome, Runner
from .limits import Limits
from .sandbox import Sandbox

__all__ = [
    "BadInput",
    "BadResult",
    "Busy",
    "CausalProof",
    "Crashed",
    "Frames",
    "Job",
    "Limits",
    "NotCausal",
    "NotDeterministic",
    "OutOfMemory",
    "Outcome",
    "Refused",
    "Runner",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "Status",
    "TimedOut",
    "probe_sandbox",
    "prove",
]
