"""What became of a Python factor that was checked, for a person and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...figures import count, duration, percent, plural

if TYPE_CHECKING:
    from rich.console import Console

    from ....factors.python import Remark
    from ....sandbox import CausalProof, Frames, SandboxError
    from ....sandbox.causality import Cost

__all__ = ["FactorCheck"]

Rows = list[tuple[str, str, str]]
GOOD_STYLE, BAD_STYLE, DIM_STYLE = "green", "bold red", "dim"


@dataclass(frozen=True, eq=False)
class FactorCheck:
    """A factor that was checked: either a proof or an error, what its calls took, and what they tried."""

    name: str
    frames: Frames
    remarks: tuple[Remark, ...]
    proof: CausalProof | None
    error: SandboxError | None
    cost: Cost
    tried: tuple[str, ...]
    seconds: float
    stamp: str = ""
    wall: str = "native"
    synthetic: bool = False

    @property
    def passed(self) -> bool:
        """Tell whether it ran, is deterministic, and changed with no later day that was tried."""
        return self.error is None

    @property
    def _code(self) -> str:
        return "" if self.error is None else self.error.code

    @property
    def ran(self) -> bool:
        """Tell whether it gave values on the whole panel."""
        return self._code in {"", "not_causal", "not_deterministic"}

    @property
    def deterministic(self) -> bool | None:
        """Tell whether two calls gave the same bits; None if that was not found out."""
        return None if not self.ran else self._code != "not_deterministic"

    @property
    def causal(self) -> bool | None:
        """Tell whether no value changed with later days; None if that was not found out."""
        return {"": True, "not_causal": False}.get(self._code)

    def record(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        days, names = self.frames.shape
        return {
            "file": self.name,
            "panel": {
                "days": days, "names": names, "first_day": str(self.frames.dates[0]),
                "last_day": str(self.frames.dates[-1]), "columns": list(self.frames.names), "synthetic": self.synthetic,
            },
            "backend": self.wall,
            "stamp": self.stamp,
            "passed": self.passed,
            "ran": self.ran,
            "deterministic": self.deterministic,
            "causal": self.causal,
            "unshown_days": self.proof.start_up if self.proof else 0,
            "swept": bool(self.proof and self.proof.point_in_time),
            "lint": [remark.record() for remark in self.remarks],
            "refused_system_calls": list(self.tried),
            "cost": self.cost.record(),
            "proof": self.proof.record() if self.proof else None,
            "error": self.error.record() if self.error else None,
        }  # fmt: skip

    def print(self, console: Console) -> None:
        """Print it for a person."""
        from rich.table import Table
        from rich.text import Text

        days, names = self.frames.shape
        market = "the SYNTHETIC market (for your own prices add --panel FILE), " if self.synthetic else ""
        span = f"{market}{days:,} days of {names:,} names, {self.frames.dates[0]} to {self.frames.dates[-1]}"
        console.print(Text.assemble((self.name, "bold"), f" on {span}"))
        table = Table.grid(padding=(0, 2))
        for word, said, style in self._rows():
            table.add_row(Text(f"  {word}", style=DIM_STYLE), Text(said, style=style))
        console.print(table)
        words = Table.grid(padding=(0, 1))
        for sentence in self.proof.words if self.proof else ():
            words.add_row("-", Text(sentence))
        console.print(words)

    def _rows(self) -> Rows:
        return [*self._reading(), *self._running(), *self._verdicts(), *self._advice()]

    def _reading(self) -> Rows:
        told = [(f"line {each.line}: " if each.line else "") + f"{each.message}. {each.hint}" for each in self.remarks]
        style = "yellow" if told else ""
        return [
            ("first reading" if not place else "", said, style) for place, said in enumerate(told or ["nothing to say"])
        ]

    def _running(self) -> Rows:
        refused = f"the kernel refused {', '.join(self.tried)}" if self.tried else "it tried nothing that is forbidden"
        behind = (
            f"yes; {refused}" if self.wall == "native" else f"yes, by {self.wall}, which does not tell what it tried"
        )
        held = f"NO: {self.stamp}" if self.stamp else behind
        one = f"at most {self.cost.wall_ms / 1000.0:.2f} s and {self.cost.peak_mb:.0f} MiB"
        each = "each " if self.cost.calls > 1 else ""
        took = f"{plural(self.cost.calls, 'call')}, {each}in a fresh process, in {duration(self.seconds)}"
        return [("contained", held, BAD_STYLE if self.stamp else ""), ("one call", one, ""), ("all", took, "")]

    def _verdicts(self) -> Rows:
        if not self.ran:
            return [
                (
                    "values",
                    f"none: {self._code.replace('_', ' ')}: {self.error.message if self.error else ''}",
                    BAD_STYLE,
                )
            ]
        values = [("values", self._values(), "")] if self.proof else []
        steady = "yes, in two calls" if self.deterministic else f"no: {self.error.message if self.error else ''}"
        rows = [*values, ("deterministic", steady, GOOD_STYLE if self.deterministic else BAD_STYLE)]
        return [*rows, ("causal", *self._causal())]

    def _values(self) -> str:
        if self.proof is None:
            return ""
        share = percent(self.proof.record()["covered"])
        return f"from {self.proof.first} on, after {plural(self.proof.warm_up, 'day')} of warm-up; {share} of all cells"

    def _causal(self) -> tuple[str, str]:
        if self.causal is None:
            return "not asked: first it must give the same values twice", DIM_STYLE
        if self.error is not None:
            return f"no: {self.error.message}", BAD_STYLE
        late, style = self._unshown()
        if self.proof is not None and self.proof.point_in_time:
            return f"yes, on each of {count(self.proof.swept - self.proof.start_up)} days{late}", style
        return f"nothing was seen at a few days; --sweep asks every day{late}", style

    def _unshown(self) -> tuple[str, str]:
        """Return what to say of days that the code refuses to compute by themselves, and a style."""
        days = 0 if self.proof is None else self.proof.start_up
        said = f"; not shown for the first {plural(days, 'day')}, on which it raises an error" if days else ""
        return said, "yellow" if days else GOOD_STYLE

    def _advice(self) -> Rows:
        return [("to do", self.error.hint, "")] if self.error is not None and self.error.hint else []
