"""What is each way to score worth? The RankIC that a window can prove, by variant, at equal false-acceptance rate.

python -m bench.power                                  quick: about two minutes of CPU
python -m bench.power --worlds 12 --draws 400 --keep build/power.json
python -m bench.power --panel prices.parquet --sectors sectors.parquet

The noise is a market's own daily returns with the sign of each day drawn anew: volatility, sectors and fat tails stay,
and nothing known before a day tells of it, so the null is exact. Factors are formulas drawn from the grammar. A planted
factor adds strength x the median name's volatility x the normal score of its rank to each day's log returns, at
strengths at which its RankIC with the raw five-day label is 0.02, 0.03 ... in expectation: one yardstick for all
variants.

Size counts both tails, each of which is a one-sided test: twice the level is expected, and the interval is exact
(Clopper-Pearson). Provable is the true RankIC at which four of five are accepted as the tenth trial with none found
before; worth compares it with `+ size`, overlapping labels, plain returns. Worlds that `--keep` holds are not run
again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta as beta_law, norm

from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.evidence.newey_west import newey_west_t, null_distribution
from alphaloom.evidence.scoring.exposures import Exposures, idiosyncratic_volatility, measure_exposures
from alphaloom.evidence.scoring.holding_ic import holding_ranks
from alphaloom.factors import Engine, order_rows, rank_rows, row_rank_correlation
from alphaloom.factors.space.planted import GRAMMAR
from alphaloom.factors.space.sampling import sample
from alphaloom.market import Panel, PanelSource, SyntheticConfig, load_panel, simulate
from alphaloom.market.synthetic.market import compute_normal_scores

from .power_picture import draw

Frame = NDArray[np.float64]
H, LAG, TRIAL = 5, 10, 10
GRID = (0.0, 0.02, 0.03, 0.04, 0.05, 0.06)
LEVELS = (0.05, 1e-3)
FACTORS = 12
MOST_COMMON = 0.3
"""Largest mean rank correlation of a planted factor with size or beta."""
EVERY = {
    "raw": (),
    "market": ("beta",),
    "+ sector": ("beta", "sector"),
    "+ size": ("beta", "sector", "size"),
    "own risk": ("beta", "sector", "size"),
}
PLAIN, SCALED = "+ size", "own risk"
WEIGHTED, HELD, SET = "own risk, days weighted", "own risk, held", "own risk, a set of five"
VARIANTS = (*EVERY, WEIGHTED, HELD, SET)
MEMBERS = 5
PICTURE = Path(__file__).with_name("power.svg")


@dataclass(frozen=True, eq=False)
class World:
    """A market's daily log returns from open to open on one selection window, and what was known at each close."""

    panel: Panel
    start: int
    stop: int

    @cached_property
    def daily(self) -> Frame:
        """Return the log return from open[t+1] to open[t+2] at row t, centred by name, 0 where unknown. `[T, N]`."""
        opened = self.panel.fields["open"]
        out = np.full(opened.shape, np.nan)
        out[:-2] = np.log(opened[2:] / opened[1:-1])
        known = ~np.isnan(out).all(axis=0)
        out[:, known] -= np.nanmedian(out[:, known], axis=0)
        return np.where(self.panel.universe, out, np.nan)

    @cached_property
    def exposures(self) -> Exposures:
        """Return market, sector and size exposures."""
        return measure_exposures(self.panel)

    @cached_property
    def risk(self) -> Frame:
        """Return each name's own risk."""
        return idiosyncratic_volatility(self.panel, self.exposures)

    def rows(self, span: int) -> slice:
        """Return the window's days whose label of so many days ends inside."""
        return slice(self.start, self.stop - span - 1)

    def label(self, daily: Frame, span: int) -> Frame:
        """Add up the daily returns of a label, `[days, N]`."""
        rows = self.rows(span)
        return sum((daily[rows.start + k : rows.stop + k] for k in range(span)), np.zeros(()))

    @cached_property
    def projections(self) -> Mapping[str, Projection]:
        """Return what takes exposures out of a label, by variant; that of the held test has one-day labels."""
        found = {name: Projection.of(self, H, parts, name == SCALED) for name, parts in EVERY.items()}
        return found | {HELD: Projection.of(self, 1, EVERY[SCALED], scaled=True)}

    @cached_property
    def usual(self) -> Frame:
        """Return the median name's daily volatility as a column."""
        inside = np.where(self.panel.universe, self.exposures.volatility, np.nan)
        rows = [row[~np.isnan(row)] for row in inside]
        return np.array([float(np.median(row)) if row.size else 0.0 for row in rows])[:, None]


@dataclass(frozen=True, eq=False)
class Projection:
    """Takes exposures out of a label: linear, so made once a day and used for every draw.

    `basis` `[D, N, K]` is orthonormal on the names that are `seen`, in units of `unit` `[D, N]`.
    """

    basis: Frame
    unit: Frame
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, world: World, span: int, parts: Sequence[str], scaled: bool) -> Projection:
        """Make the projection of one variant."""
        rows, exposures = world.rows(span), world.exposures
        seen = ~np.isnan(world.label(world.daily, span))
        unit = world.risk[rows] if scaled else np.ones(seen.shape)
        codes = exposures.sector if "sector" in parts else np.zeros_like(exposures.sector)
        dummies = (codes[:, None] == np.unique(codes)).astype(np.float64)
        single = [_known(getattr(exposures, name)[rows]) for name in parts if name != "sector"]
        bases = [
            _orthonormal(np.column_stack([dummies, *(part[day] for part in single)]), unit[day], seen[day])
            for day in range(len(seen))
        ]
        basis = np.zeros((*seen.shape, max(base.shape[1] for base in bases)))
        for day, each in enumerate(bases):
            basis[day, :, : each.shape[1]] = each
        return cls(basis, unit, seen)

    def __call__(self, label: Frame) -> Frame:
        """Return the residual of a label, 0 where it is missing; raw where only the mean could be taken out."""
        scaled = np.where(self.seen, np.nan_to_num(label) / self.unit, 0.0)
        out: Frame = (
            scaled - np.matmul(self.basis, np.matmul(scaled[:, None, :], self.basis).transpose(0, 2, 1))[..., 0]
        )
        return out


def _known(frame: Frame) -> Frame:
    """Give unknown exposures the mean of their day."""
    rows = [row[~np.isnan(row)] for row in frame]
    mean = np.array([row.mean() if row.size else 0.0 for row in rows])[:, None]
    return np.where(np.isnan(frame), mean, frame)


def _orthonormal(columns: Frame, unit: Frame, seen: NDArray[np.bool_]) -> Frame:
    scaled = np.where(seen[:, None], columns / unit[:, None], 0.0)
    length = np.sqrt((scaled**2).sum(axis=0))
    q, r = np.linalg.qr(scaled[:, length > 0] / length[length > 0])
    return np.asarray(q[:, np.abs(np.diag(r)) > 1e-8])


@dataclass(frozen=True, eq=False)
class Planted:
    """One factor on one world: its orders for both tests, and the drift that it adds to each variant's label.

    `centred` `[days, N]` are its ranks about their day's mean, 0 where missing.
    """

    ranks: Mapping[str, Any]
    drift: Mapping[str, Frame]
    centred: Frame


def plant(world: World, values: NDArray[np.float32]) -> Planted:
    """Return a factor with its drift, at the strength at which its raw RankIC rises by 1 for small strengths."""
    known = np.where(world.panel.universe, values, np.nan).astype(np.float64)
    daily = np.nan_to_num(compute_normal_scores(known)) * world.usual
    own = slice(world.start, world.stop)
    held = holding_ranks(known[own], H)[: world.stop - world.start - 2]
    plain = order_rows(known[world.rows(H)])
    orders = {name: plain for name in EVERY} | {HELD: order_rows(held)}
    label, noise = world.label(daily, H), world.label(np.nan_to_num(world.daily), H)
    seen = world.projections["raw"].seen
    strength = 0.03
    for _ in range(2):
        both = [row_rank_correlation(plain, _shown(strength * label + sign * noise, seen)) for sign in (1, -1)]
        strength *= 0.03 / max(float(np.nanmean(both)), 1e-3)
    spans = {name: 1 if name == HELD else H for name in world.projections}
    drift = {n: project(world.label(daily, spans[n]) * strength / 0.03) for n, project in world.projections.items()}
    return Planted(orders, drift, np.nan_to_num(rank_rows(known[world.rows(H)]) - 0.5))


def together(planted: Sequence[Planted]) -> Planted:
    """Return factors as one: the sum of their ranks, and all that each of them adds."""
    centred = np.sum([effect.centred for effect in planted], axis=0)
    drift = np.sum([effect.drift[SCALED] for effect in planted], axis=0)
    return Planted({SCALED: order_rows(centred)}, {SCALED: drift}, centred)


def test_of_set(world: World, members: Planted, noise: Mapping[str, Frame], rank_ic: float) -> float:
    """Return the t of a set in one draw of the noise, each of its members with this true RankIC."""
    label = noise[SCALED] + rank_ic * members.drift[SCALED]
    shown = _shown(label, world.projections[SCALED].seen)
    return newey_west_t(row_rank_correlation(members.ranks[SCALED], shown), LAG).t


def _shown(label: Frame, seen: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(seen, label, np.nan).astype(np.float32)


def tests(world: World, planted: Planted, noise: Mapping[str, Frame], rank_ic: float) -> list[float]:
    """Return the t of each variant in one draw of the noise, with a factor of this true RankIC."""
    found: dict[str, float] = {}
    for name, project in world.projections.items():
        label = noise[name] + rank_ic * planted.drift[name]
        daily = row_rank_correlation(planted.ranks[name], _shown(label, project.seen))
        found[name] = newey_west_t(daily, 2 if name == HELD else LAG).t
        if name == SCALED:
            found[WEIGHTED] = newey_west_t(daily * _day_weights(daily), LAG).t
    return [found[name] for name in VARIANTS if name != SET]


def _day_weights(daily: Frame) -> Frame:
    """Return a weight per day: the inverse mean square of the RankIC of 40 earlier days, half shrunk to all.

    Only days whose labels ended before the day count.
    """
    square = np.nan_to_num(daily) ** 2
    total = np.concatenate([[0.0], np.cumsum(square)])
    stop = np.maximum(np.arange(len(daily)) - H, 0)
    start = np.maximum(stop - 40, 0)
    usual = total[stop] / np.maximum(stop, 1)
    recent = (total[stop] - total[start]) / np.maximum(stop - start, 1)
    weight = 1.0 / np.where(stop >= 20, 0.5 * usual + 0.5 * recent, np.inf)
    early = stop < 20
    weight[early] = weight[~early][0] if (~early).any() else 1.0
    return np.asarray(weight / weight.mean())


def run(world: World, seed: int, draws: int) -> dict[str, Any]:
    """Return t by draw and variant: without any effect (`null`), and by strength (`planted`, on every fifth draw)."""
    rng = np.random.default_rng(seed)
    planted = [plant(world, values) for values in Engine(world.panel).evaluate(formulas(rng, world))]
    pick, null, strong = np.random.default_rng([seed, MEMBERS]), [], []
    for number in range(draws):
        signs = rng.choice([-1.0, 1.0], world.panel.days)
        daily, chosen = world.daily * signs[:, None], planted[int(rng.integers(len(planted)))]
        noise = {n: p(world.label(daily, 1 if n == HELD else H)) for n, p in world.projections.items()}
        members = together([planted[place] for place in pick.choice(len(planted), MEMBERS, replace=False)])

        def found(strength: float, *, of: Planted = chosen, many: Planted = members, noise: Any = noise) -> list[float]:
            return [*tests(world, of, noise, strength), test_of_set(world, many, noise, strength)]

        null.append(found(0.0))
        if number % 5 == 0:
            strong.append([found(column) for column in GRID[1:]])
    return {"null": null, "planted": strong, "days": world.stop - world.start}


def formulas(rng: np.random.Generator, world: World) -> list[str]:
    """Draw formulas that spread most names and are no size or beta in disguise: residual returns hold neither."""
    found: list[str] = []
    panel, thin = world.panel, slice(world.start, world.stop, 20)
    engine = Engine(panel, threads=1)
    common = [order_rows(getattr(world.exposures, name)[thin]) for name in ("size", "beta")]
    while len(found) < FACTORS:
        text = f"rank({sample(rng, max_size=7, grammar=GRAMMAR).text})"
        values = engine.evaluate([text])[0][thin]
        present = np.isfinite(values)
        distinct = min(np.unique(row[there]).size for row, there in zip(values, present, strict=True))
        if present.sum() < 0.6 * panel.universe[thin].sum() or distinct < panel.names // 4:
            continue
        if all(abs(np.nanmean(row_rank_correlation(values, other))) < MOST_COMMON for other in common):
            found.append(text)
    return found


def worlds(given: argparse.Namespace) -> Iterator[tuple[str, World]]:
    """Yield worlds: the selection window of a synthetic market, or stretches of as many days of a given panel."""
    if given.panel is None:
        for seed in range(given.worlds):
            panel = simulate(SyntheticConfig(seed=seed, nothing=True)).panel
            yield f"seed-{seed}", World(panel, 921, 1200)
        return
    derived = {"vwap": "typical", "amount": "close*volume"}
    panel = load_panel(PanelSource(given.panel, given.sectors, derive=derived))
    length = round(0.2 * panel.days) - 21
    starts = np.linspace(300, panel.days - length, given.worlds).astype(int)
    for start in map(int, starts):
        yield f"row-{start}", World(panel, start, start + length)


@dataclass(frozen=True)
class Row:
    """What is printed of a variant: exceedances by level, acceptance by strength, provable RankIC."""

    name: str
    draws: int
    beyond: tuple[int, ...]
    accepted: tuple[float, ...]
    provable: float

    def size(self, place: int) -> tuple[float, float, float]:
        """Return measured size and its exact 95 % interval, of a one-sided test."""
        hits, draws = self.beyond[place], self.draws
        low = beta_law.ppf(0.025, hits, draws - hits + 1) if hits else 0.0
        high = beta_law.ppf(0.975, hits + 1, draws - hits) if hits < draws else 1.0
        return hits / draws / 2, float(low) / 2, float(high) / 2


def summarise(found: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the rows of the table."""
    days = found[0]["days"]
    null = np.concatenate([np.array(world["null"], dtype=np.float64) for world in found])
    strong = np.concatenate([np.array(world["planted"], dtype=np.float64) for world in found])
    rows = []
    for place, name in enumerate(VARIANTS):
        law = null_distribution(days - 2, 1, 2) if name == HELD else null_distribution(days - H - 1, H, LAG)
        beyond = tuple(int((np.abs(null[:, place]) >= law.t_required(level)).sum()) for level in LEVELS)
        bar = law.t_required(lond_level(TRIAL, 0))
        accepted = (float((null[:, place] >= bar).mean()), *map(float, (strong[:, :, place] >= bar).mean(axis=0)))
        rows.append(Row(name, len(null), beyond, accepted, provable(accepted)))
    return rows


def provable(accepted: Sequence[float], share: float = 0.8) -> float:
    """Return the RankIC at which this share is accepted: a straight line between strengths, in normal quantiles."""
    known = norm.ppf(np.clip(accepted, 0.002, 0.998))
    for place in range(1, len(GRID)):
        if accepted[place] >= share:
            step = (norm.ppf(share) - known[place - 1]) / (known[place] - known[place - 1])
            return float(GRID[place - 1] + step * (GRID[place] - GRID[place - 1]))
    return math.nan


def table(rows: Sequence[Row]) -> str:
    """Return the table as text."""
    base = next(row.provable for row in rows if row.name == PLAIN)
    lines = [f"{'variant':30s} {'size at 0.05':24s} {'size at 0.001':28s} provable  worth"]
    for row in rows:
        sizes = [row.size(place) for place in range(len(LEVELS))]
        shown = [
            f"{size:.{d}f} ({low:.{d}f} to {high:.{d}f})" for (size, low, high), d in zip(sizes, (3, 5), strict=True)
        ]
        gain = base / row.provable - 1.0
        lines.append(f"{row.name:30s} {shown[0]:24s} {shown[1]:28s} {row.provable:8.4f} {gain:+6.1%}")
    return "\n".join(lines)


def kept(path: Path | None) -> dict[str, Any]:
    """Return the worlds that were measured before."""
    return json.loads(path.read_text()) if path and path.exists() else {}


def main() -> int:
    """Measure world after world, print the table after each, and draw the picture; 1 if a test is too liberal."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--worlds", type=int, default=2, help="markets, or stretches of the panel")
    options.add_argument("--draws", type=int, default=300, help="draws of the signs for each")
    options.add_argument("--panel", type=Path, help="prices, instead of the synthetic market")
    options.add_argument("--sectors", type=Path)
    options.add_argument("--keep", type=Path, help="JSON file to go on from")
    options.add_argument(
        "--picture", type=Path, help=f"where to draw acceptance by strength, for example {PICTURE.name}"
    )
    given = options.parse_args()
    done = kept(given.keep)
    for number, (name, world) in enumerate(worlds(given)):
        if name not in done:
            done[name] = run(world, 1000 + number, given.draws)
            if given.keep:
                given.keep.parent.mkdir(parents=True, exist_ok=True)
                given.keep.write_text(json.dumps(done))
        rows = summarise(list(done.values()))
        sys.stdout.write(f"{len(done)} worlds, {rows[0].draws} draws\n{table(rows)}\n\n")
        sys.stdout.flush()
    if given.picture:
        given.picture.write_text(draw(GRID, {row.name: row.accepted for row in rows}))
    return int(any(row.size(place)[1] > level for row in rows for place, level in enumerate(LEVELS)))


if __name__ == "__main__":
    sys.exit(main())
