"""Expert products: all experts of a layer on one device, or split over any number of expert ranks.

Rows of experts split over n ranks were measured with every token of the group on every rank, and most devices spend
time on all of them: at equal tokens seconds are a + b / n, a growing with the tokens (on H200 1.4 of 3.3 ms for 16,384
tokens of Qwen3-235B at n = 4). Rows of n = 1 are free of that, and the formula fitted to them alone meets them better
than the one of all rows. Experts without rows take from it, and from how far it is off experts of like size
(`profiles.kin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from profiles.families import DTYPE_BYTES
from profiles.kin import OffCurve, correction, off_curve
from profiles.priced import MODELLED, Priced, modelled
from profiles.pricing import Extrapolate
from profiles.profile import Profile
from profiles.roofline import fit_roofline, modelled_seconds
from profiles.sizes import Floats, flat

FAMILY = "moe_gemm"


@dataclass(frozen=True)
class ExpertRows:
    """Which rows of a profile: sizes of the experts, how tokens were routed, what was multiplied."""

    profile: Profile
    hidden: int
    ffn: int
    experts: int
    top_k: int
    workload: str = "balanced"
    dtype: str = "bf16"

    @property
    def geometry(self) -> tuple[int, int, int, int, int]:
        """The exact axes but expert_ranks, on one tensor rank."""
        return self.hidden, self.ffn, self.experts, self.top_k, 1

    def expert_ranks(self) -> list[int]:
        """Over how many ranks rows split these experts, ascending; empty if the profile has no rows of them."""
        if not self.profile.has(FAMILY, self.dtype, workload=self.workload):
            return []
        grids = self.profile.cost_table(FAMILY, self.dtype, workload=self.workload).grids
        return sorted(group[5] for group in grids if group[:5] == self.geometry)

    def look_up(self, tokens: Floats, expert_ranks: Floats, extrapolate: Extrapolate) -> Priced:
        """Rows of just so many ranks, flat arrays."""
        return self.profile.operation(
            FAMILY, self.axes(tokens, expert_ranks), dtype=self.dtype, workload=self.workload, extrapolate=extrapolate
        )

    def axes(self, tokens: Floats, expert_ranks: Floats) -> dict[str, Floats]:
        """All axes of the family, flat arrays."""
        sizes = {"hidden": self.hidden, "ffn": self.ffn, "experts": self.experts, "top_k": self.top_k}
        wide = {name: np.full_like(tokens, size) for name, size in sizes.items()}
        return {**wide, "tokens": tokens, "tensor_ranks": np.ones_like(tokens), "expert_ranks": expert_ranks}


@dataclass(frozen=True)
class WholeFormula:
    """The formula of `profiles.roofline` fitted to rows of all experts on one device, and how far each geometry is off.

    ``error`` is (median, p90) over all those rows, each geometry priced from the others' curves.
    """

    coefficients: Mapping[str, float]
    element_bytes: float
    curves: tuple[OffCurve, ...]
    error: tuple[float, float]

    def seconds(self, axes: Mapping[str, Floats]) -> Floats:
        """The formula, corrected by what it is off experts of like size; flat ``axes`` of one geometry, not empty."""
        sizes, copies = _sizes(axes)[0], _copies(axes)
        plain = modelled_seconds(FAMILY, axes, self.coefficients, self.element_bytes)
        return np.asarray(plain * correction(self.curves, sizes, copies))


@lru_cache(maxsize=8)
def whole_formula(profile: Profile, workload: str, dtype: str) -> WholeFormula:
    """Fitted when asked for. Raises `ProfileError` (outside_measured_range) without such a table.

    Fitted to all geometries but one and asked for that, it is 3 to 8 % off in the median on the built-in tables and 13
    to 43 % in p90; the formula alone 8 to 12 % and 30 to 45 %. Experts of two products (Nemotron) make the worst of it.
    """
    table = profile.cost_table(FAMILY, dtype, workload=workload)
    columns, size = table.columns, float(DTYPE_BYTES[dtype])
    whole = (columns["expert_ranks"] == 1) & (columns["tensor_ranks"] == 1)
    chosen = whole if whole.any() else np.ones_like(whole)
    axes = {axis: column[chosen].astype(np.float64) for axis, column in columns.items()}
    seconds = table.seconds[chosen]
    found = fit_roofline(FAMILY, axes, seconds, size)
    ratio = seconds / modelled_seconds(FAMILY, axes, found, size)
    if not whole.any():
        return WholeFormula(found, size, (), _spread(np.abs(1.0 / ratio - 1.0)))
    sizes, copies = _sizes(axes), _copies(axes)
    geometries, member = np.unique(sizes, axis=0, return_inverse=True)
    member = member.reshape(-1)
    curves = tuple(
        off_curve(one, copies[member == number], ratio[member == number]) for number, one in enumerate(geometries)
    )
    off = np.empty_like(ratio)
    for number, one in enumerate(geometries):
        mine, others = member == number, curves[:number] + curves[number + 1 :]
        off[mine] = np.abs(correction(others, one, copies[mine]) / ratio[mine] - 1.0)
    return WholeFormula(found, size, curves, _spread(off))


def _spread(off: Floats) -> tuple[float, float]:
    return float(np.median(off)), float(np.quantile(off, 0.9))


def _sizes(axes: Mapping[str, Floats]) -> Floats:
    """Hidden, ffn, experts and top_k of every row (rows, 4)."""
    return np.stack([axes[axis] for axis in ("hidden", "ffn", "experts", "top_k")], axis=1)


def _copies(axes: Mapping[str, Floats]) -> Floats:
    """Token copies of one expert."""
    return np.asarray(axes["tokens"] * axes["top_k"] / axes["experts"])


def whole_products(rows: ExpertRows, tokens: Floats, extrapolate: Extrapolate) -> Priced:
    """All experts on one device that `tokens` tokens reach, in the shape of `tokens`.

    Rows of these experts on one rank, else (roofline) the formula of all such rows, corrected by the nearest ones.
    Raises `ProfileError`.
    """
    axes, shape = flat({"tokens": tokens})
    one = np.ones_like(axes["tokens"])
    if extrapolate == "roofline" and 1 not in rows.expert_ranks():
        formula = whole_formula(rows.profile, rows.workload, rows.dtype)
        return _shaped(modelled(formula.seconds(rows.axes(axes["tokens"], one))), shape)
    return _shaped(rows.look_up(axes["tokens"], one, extrapolate), shape)


def launch_seconds(rows: ExpertRows) -> float:
    """What a device takes for next to no tokens: the shortest row of these experts, else the whole formula's overhead.

    Raises `ProfileError` if the profile has no such table at all.
    """
    grids = rows.profile.cost_table(FAMILY, rows.dtype, workload=rows.workload).grids
    own = [float(grid.seconds.min()) for group, grid in grids.items() if group[:5] == rows.geometry]
    if own:
        return min(own)
    return whole_formula(rows.profile, rows.workload, rows.dtype).coefficients["overhead_s"]


def split_products(rows: ExpertRows, tokens: Floats, expert_ranks: Floats, extrapolate: Extrapolate) -> Priced:
    """`Profile.moe_gemm` for any number of expert ranks; arrays that broadcast.

    A rank has experts / expert_ranks experts and so many times tokens x top_k / experts of their rows, whatever the
    number, so between two measured numbers of ranks log seconds are linear in the logarithm of that number, tagged
    modelled. The widest and the narrowest measured split carry the level beyond them, the formula the slope (roofline
    only). Experts without any rows are the formula's alone (roofline only). Raises `ProfileError`.
    """
    axes, shape = flat({"tokens": tokens, "expert_ranks": expert_ranks})
    asked, ranks = axes["tokens"], axes["expert_ranks"]
    measured = np.array(rows.expert_ranks(), dtype=np.float64)
    beyond = (ranks < measured.min(initial=np.inf)) | (ranks > measured.max(initial=0.0))
    if not len(measured) or (extrapolate == "refuse" and beyond.any()):
        return _shaped(rows.look_up(asked, ranks, extrapolate), shape)
    above = measured[np.minimum(np.searchsorted(measured, ranks), len(measured) - 1)]
    below = measured[np.maximum(np.searchsorted(measured, ranks, side="right") - 1, 0)]
    low, high = rows.look_up(asked, below, extrapolate), rows.look_up(asked, above, extrapolate)
    exact = above == below
    share = np.divide(np.log(ranks / below), np.log(above / below), out=np.zeros_like(ranks), where=~exact)
    between = np.exp((1.0 - share) * np.log(low.seconds) + share * np.log(high.seconds))
    seconds = np.where(exact, low.seconds, between)
    if beyond.any():
        formula = rows.profile.formula(FAMILY, rows.dtype, workload=rows.workload)
        size = float(DTYPE_BYTES[rows.dtype])
        here, there = (modelled_seconds(FAMILY, rows.axes(asked, n), formula, size) for n in (ranks, below))
        seconds = np.where(beyond, seconds * here / there, seconds)
    source = np.where(exact & ~beyond, low.source, MODELLED).astype(np.int8)
    return _shaped(Priced(seconds, source), shape)


def _shaped(priced: Priced, shape: tuple[int, ...]) -> Priced:
    return Priced(priced.seconds.reshape(shape), priced.source.reshape(shape))
