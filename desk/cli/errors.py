"""What can go wrong at the desk.

AlphaloomError
└── DeskError
    ├── ReportError        a run's results cannot be read, or the report cannot be written
    ├── AddressTaken       servers cannot listen where they were asked to
    ├── ServingBroken      a server ended though nobody asked it to
    ├── FileExists         a file would have been overwritten
    ├── BadPrompts         a file holds no prompts, or a line of it is none
    ├── NoFormula          a command on formulas was given none, or a file that cannot be read as text
    ├── NoName             nobody stands for a person's act
    ├── NoDecision         a decision on a case is not said as it must be
    ├── GateRefused        a step before scoring refused a factor that was submitted by hand
    ├── OtherPanel         a panel is not the one that a run began with
    ├── UnknownVerdict     a run holds no verdict on a factor
    ├── SealRefused        the sealed days may not be opened for this run
    └── CapabilityMissing  something that this command needs is not on this machine
"""

from __future__ import annotations

from ...ledger import AlphaloomError

__all__ = [
    "AddressTaken",
    "BadPrompts",
    "CapabilityMissing",
    "DeskError",
    "FileExists",
    "GateRefused",
    "NoDecision",
    "NoFormula",
    "NoName",
    "OtherPanel",
    "ReportError",
    "SealRefused",
    "ServingBroken",
    "UnknownVerdict",
]


class DeskError(AlphaloomError):
    """Something that the desk was asked to do cannot be done."""

    code = "desk"


class AddressTaken(DeskError):
    """Servers cannot listen where they were asked to."""

    code = "address"
    exit_code = 1


class ServingBroken(DeskError):
    """A server ended though nobody asked it to."""

    code = "serving"
    exit_code = 1


class BadPrompts(DeskError):
    """A file holds no prompts, or a line of it is none."""

    code = "prompts"


class ReportError(DeskError):
    """A run's results cannot be read, or the report cannot be written."""

    code = "report"


class FileExists(DeskError):
    """A file would have been overwritten."""

    code = "file_exists"
    exit_code = 1


class NoDecision(DeskError):
    """A decision on a case is not said as it must be: no case is named, or several decisions."""

    code = "decision"


class NoFormula(DeskError):
    """A command on formulas was given none, or a file that cannot be read as text."""

    code = "no_formula"


class GateRefused(DeskError):
    """A step before scoring refused a factor that was submitted by hand; no trial was spent."""

    code = "gate_refused"
    exit_code = 1


class SealRefused(DeskError):
    """The sealed days may not be opened for this run: it has not ended, or accepted nothing."""

    code = "seal_refused"
    exit_code = 1


class CapabilityMissing(DeskError):
    """Something that this command needs is not on this machine."""

    code = "capability_missing"
    exit_code = 3


class OtherPanel(DeskError):
    """A panel is not the one that a run began with."""

    code = "other_panel"


class UnknownVerdict(DeskError):
    """A run holds no verdict on a factor."""

    code = "unknown_verdict"


class NoName(DeskError):
    """Nobody stands for a person's act."""

    code = "no_name"
