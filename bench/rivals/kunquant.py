"""KunQuant: generates C++ for a set of formulas, compiles it, runs it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .wire import Array, Tree, key_of, load, operators, serve

op: Any = import_module("KunQuant.Op")
ops: Any = import_module("KunQuant.ops")
misc: Any = import_module("KunQuant.ops.MiscOp")
elementwise: Any = import_module("KunQuant.ops.ElewiseOp")
stage: Any = import_module("KunQuant.Stage")
driver: Any = import_module("KunQuant.Driver")
cfake: Any = import_module("KunQuant.jit.cfake")
runner: Any = import_module("KunQuant.runner.KunRunner")

Op = Any
Numbers = dict[str, float]


class DayZScore(misc.GenericCrossSectionalOp):  # type: ignore[misc]
    """Z-score over the names of a day, ddof 1, written as KunQuant asks its users to."""

    def __init__(self, v: Op) -> None:
        super().__init__([v], None)

    def generate_head(self) -> str:
        """Return nothing: no declarations are needed."""
        return ""

    def generate_body(self) -> str:
        """Return the C++ for one day."""
        return """
        double sum = 0, squares = 0; size_t n = 0;
        for (size_t i = 0; i < num_stocks; i++) { T x = input_0[i]; if (x == x) { sum += x; n++; } }
        double mean = sum / n;
        for (size_t i = 0; i < num_stocks; i++) { T x = input_0[i]; if (x == x) squares += (x - mean) * (x - mean); }
        double scale = std::sqrt(squares / (double(n) - 1));
        for (size_t i = 0; i < num_stocks; i++) { output_0[i] = T((input_0[i] - mean) / scale); }
        """


class DayDemean(misc.GenericCrossSectionalOp):  # type: ignore[misc]
    """The value less the mean of the names of the day."""

    def __init__(self, v: Op) -> None:
        super().__init__([v], None)

    def generate_head(self) -> str:
        """Return nothing: no declarations are needed."""
        return ""

    def generate_body(self) -> str:
        """Return the C++ for one day."""
        return """
        double sum = 0; size_t n = 0;
        for (size_t i = 0; i < num_stocks; i++) { T x = input_0[i]; if (x == x) { sum += x; n++; } }
        double mean = sum / n;
        for (size_t i = 0; i < num_stocks; i++) { output_0[i] = T(input_0[i] - mean); }
        """


class GroupDemean(misc.GenericCrossSectionalOp):  # type: ignore[misc]
    """The value less the mean of its group; the codes of the groups come as a second panel."""

    def __init__(self, v: Op, codes: Op) -> None:
        super().__init__([v, codes], None)

    def generate_head(self) -> str:
        """Return nothing: no declarations are needed."""
        return ""

    def generate_body(self) -> str:
        """Return the C++ for one day."""
        return """
        double sum[64] = {0}, n[64] = {0};
        for (size_t i = 0; i < num_stocks; i++) {
            T x = input_0[i]; if (x == x) { int g = int(input_1[i]); sum[g] += x; n[g] += 1; }
        }
        for (int g = 0; g < 64; g++) sum[g] /= n[g];
        for (size_t i = 0; i < num_stocks; i++) { output_0[i] = T(input_0[i] - sum[int(input_1[i])]); }
        """


def _number(value: float) -> Op:
    return op.ConstantOp(value)


def _chain(function: Callable[[Op, Op], Op], *args: Op) -> Op:
    result = args[0]
    for each in args[1:]:
        result = function(result, each)
    return result


def _holds(condition: Op) -> Op:
    return ops.Select(condition, _number(1), _number(0))


def _zscore(x: Op, window: int) -> Op:
    return (x - ops.WindowedAvg(x, window)) / ops.WindowedStddev(x, window)


def _since(kind: Any, x: Op, window: int) -> Op:
    return window - kind(x, window)


PLAIN: dict[str, Callable[..., Op]] = {
    "add": partial(_chain, ops.Add),
    "sub": ops.Sub,
    "mul": partial(_chain, ops.Mul),
    "div": ops.Div,
    "neg": lambda x: 0 - x,
    "abs": ops.Abs,
    "sign": ops.Sign,
    "log": ops.Log,
    "sqrt": ops.Sqrt,
    "exp": ops.Exp,
    "power": ops.Pow,
    "signed_power": lambda x, y: ops.Sign(x) * ops.Pow(ops.Abs(x), y),
    "max": partial(_chain, ops.Max),
    "min": partial(_chain, ops.Min),
    "lt": ops.LessThan,
    "le": ops.LessEqual,
    "gt": ops.GreaterThan,
    "ge": ops.GreaterEqual,
    "eq": ops.Equals,
    "and": partial(_chain, ops.And),
    "or": partial(_chain, ops.Or),
    "not": ops.Not,
    "where": ops.Select,
    "rank": op.Rank,
    "scale": op.Scale,
    "zscore": DayZScore,
    "demean": DayDemean,
    "group_demean": GroupDemean,
}
WINDOWED: dict[str, Callable[..., Op]] = {
    "delay": ops.BackRef,
    "delta": lambda x, w: x - ops.BackRef(x, w),
    "ts_returns": lambda x, w: x / ops.BackRef(x, w) - 1,
    "ts_sum": ops.WindowedSum,
    "ts_mean": ops.WindowedAvg,
    "ts_std": ops.WindowedStddev,
    "ts_var": ops.WindowedVar,
    "ts_skew": ops.WindowedSkew,
    "ts_kurt": ops.WindowedKurt,
    "ts_min": ops.WindowedMin,
    "ts_max": ops.WindowedMax,
    "ts_argmin": partial(_since, ops.TsArgMin),
    "ts_argmax": partial(_since, ops.TsArgMax),
    "ts_rank": lambda x, w: ops.TsRank(x, w) / w,
    "ts_median": lambda x, w: ops.WindowedQuantile(x, w, 0.5),
    "ts_zscore": _zscore,
    "ts_product": ops.WindowedProduct,
    "ts_slope": ops.WindowedLinearRegressionSlope,
    "ts_residual": ops.WindowedLinearRegressionResi,
    "ts_rsquare": ops.WindowedLinearRegressionRSqaure,
    "decay_linear": ops.DecayLinear,
    "ts_count": lambda condition, w: ops.WindowedSum(_holds(condition), w),
}
PAIRED: dict[str, Callable[..., Op]] = {
    "ts_corr": lambda x, y, w: ops.WindowedCorrelation(x, w, y),
    "ts_cov": lambda x, y, w: ops.WindowedCovariance(x, w, y),
    "ts_beta": lambda y, x, w: ops.WindowedCovariance(y, w, x) / ops.WindowedVar(x, w),
}
OWN = {"clip", "ts_quantile"}
TRUTH = {"lt", "le", "gt", "ge", "eq", "and", "or", "not"}


class _Builder:
    """Turns trees into KunQuant's operators; equal subtrees become one."""

    def __init__(self) -> None:
        self.inputs: dict[str, Op] = {}
        self.made: dict[str, Op] = {}

    def make(self, tree: Tree) -> Op:
        name = key_of(tree)
        if name not in self.made:
            self.made[name] = self._make(tree)
        return self.made[name]

    def panel(self, tree: Tree) -> Op:
        """Make a tree whose values are numbers; its comparisons are masks of bits, not ones and zeros."""
        made = self.make(tree)
        return _holds(made) if tree[0] in TRUTH else made

    def condition(self, kind: str, place: int, tree: Tree) -> Op:
        """Make an argument of an operator: a mask where it takes one, else numbers."""
        takes_mask = kind in ("and", "or", "not", "ts_count") or (kind == "where" and place == 0)
        return self.make(tree) if takes_mask else self.panel(tree)

    def _make(self, tree: Tree) -> Op:
        kind, numbers = tree[0], tree[1]
        if kind in ("field", "group"):
            return self.inputs.setdefault(numbers, op.Input(numbers))
        if kind == "number":
            return _number(numbers)
        args = [self.condition(kind, place, each) for place, each in enumerate(tree[2:])]
        if kind == "clip":
            return ops.Max(ops.Min(args[0], _number(numbers["high"])), _number(numbers["low"]))
        if kind in PLAIN:
            return PLAIN[kind](*args)
        window = int(numbers["window"])
        if kind == "ts_quantile":
            return ops.WindowedQuantile(args[0], window, numbers["q"])
        return (WINDOWED.get(kind) or PAIRED[kind])(*args, window)


class KunQuant:
    """Formulas as compiled libraries.

    Parameters
    ----------
    data : Path
        The folder of the columns.
    settings : dict
        ``lanes`` (8 or 16), ``layout`` (``TS`` or ``STs``), ``threads``, ``options`` of its compiler, and
        ``libraries``, a folder that keeps what was compiled.
    """

    def __init__(self, data: Path, settings: dict[str, Any]) -> None:
        self.lanes = int(settings.get("lanes", 8))
        self.options = dict(settings.get("options", {}))
        self.libraries = Path(settings.get("libraries") or tempfile.mkdtemp())
        threads = int(settings.get("threads", 1))
        self.executor = (
            runner.createSingleThreadExecutor() if threads == 1 else runner.createMultiThreadExecutor(threads)
        )
        self.columns = {name: np.ascontiguousarray(values) for name, values in load(data).items()}
        self.shape = self.columns["close"].shape
        self.columns["sector"] = np.ascontiguousarray(np.broadcast_to(self.columns["sector"], self.shape))
        self.ready: dict[str, tuple[Any, dict[str, Array], dict[str, Array]]] = {}
        self.room: list[Array] = []
        """Where results are written, made once and used by every run."""

    def unable(self, tree: Tree) -> str:
        """Name the operators that it does not have."""
        lacks = sorted(operators(tree) - PLAIN.keys() - WINDOWED.keys() - PAIRED.keys() - OWN)
        return f"has no {', '.join(lacks)}" if lacks else ""

    def prepare(self, key: str, trees: Sequence[Tree]) -> Any:
        """Generate, compile and load; a library that is there already is only loaded."""
        made = self.libraries / key / f"{key}.so"
        if not made.exists():
            self._compile(key, trees)
        module = runner.Library.load(str(made)).getModule(key)
        named = {name: self.columns[name] for name in sorted(_inputs(trees))}
        self.room += [np.empty(self.shape, np.float32) for _ in range(len(trees) - len(self.room))]
        outputs = {f"out{place}": self.room[place] for place in range(len(trees))}
        self.ready[key] = (module, named, outputs)
        return None

    def _compile(self, key: str, trees: Sequence[Tree]) -> None:
        graph, builder = op.Builder(), _Builder()
        with graph:
            for place, tree in enumerate(trees):
                op.Output(builder.panel(tree), f"out{place}")
        config = driver.KunCompilerConfig(
            input_layout="TS",
            output_layout="TS",
            blocking_len=self.lanes,
            options=dict(self.options),
            allow_unaligned=bool(self.shape[1] % self.lanes),
        )
        cfake.compileit(
            [(key, stage.Function(graph.ops), config)],
            key,
            cfake.CppCompilerConfig(),
            tempdir=str(self.libraries),
            keep_files=True,
            load=False,
        )

    def run(self, key: str) -> list[Array]:
        """Run a compiled set into arrays that are there already."""
        module, inputs, outputs = self.ready[key]
        runner.runGraph(self.executor, module, inputs, 0, self.shape[0], outputs)
        return [outputs[f"out{place}"] for place in range(len(outputs))]


def _inputs(trees: Sequence[Tree]) -> set[str]:
    """Return the columns that trees read."""
    found: set[str] = set()
    for tree in trees:
        found |= {tree[1]} if tree[0] in ("field", "group") else _inputs(tree[2:]) if tree[0] != "number" else set()
    return found


if __name__ == "__main__":
    serve(KunQuant)
