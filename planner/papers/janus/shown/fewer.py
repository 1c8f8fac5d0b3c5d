"""Why fewer GPUs than those of a plan are too few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.papers.janus import fixed_point, model
from planner.papers.janus.frontier import family, slots_fit
from planner.papers.janus.model import Option
from planner.papers.janus.shown.words import pools
from planner.units import seconds


def fastest_within(option: Option, total: int, demand: float) -> tuple[int, int, float] | None:
    """n_a, n_e and TPOT [s] of the fastest pools of at most so many GPUs, whatever their memory.

    None where no such pools hold all experts, or none reaches a steady batch.
    """
    limits = option.limits.model_copy(update={"max_total_instances": min(total, option.limits.max_total_instances)})
    allowed = family(replace(option, limits=limits))
    # From the second step on attention instances never make a token slower (`frontier`): one of the ends is fastest.
    n_a = np.append(allowed.step, allowed.most * allowed.step)
    pairs = model.pairs_of(option, n_a, np.tile(allowed.n_e, 2))
    batch = fixed_point.batches(pairs, demand)
    met = ~np.isnan(batch)
    if not met.any():
        return None
    tpot = np.where(met, model.tpot_s(pairs, np.where(met, batch, 1.0)), np.inf)
    place = int(tpot.argmin())
    return int(pairs.n_a[place]), int(pairs.n_e[place]), float(tpot[place])


def why_not_fewer(choices: Sequence[Option], total: int, demand: float) -> str:
    """Why ``total`` - 1 GPUs are too few on every pair of devices, in words; none of theirs carry the demand."""
    fewest = min(option.fewest_experts for option in choices if slots_fit(option)) + 1
    if total <= fewest:
        return f"{fewest} are the fewest that hold all experts beside an attention instance"
    found = [(made, option) for option in choices if (made := fastest_within(option, total - 1, demand)) is not None]
    if not found:
        return f"no allowed pools of up to {total - 1} reach a steady batch within batch_grid"
    (n_a, n_e, tpot_s), option = min(found, key=lambda pair: pair[0][2])
    named = pools(n_a, n_e, option.device)
    if tpot_s > option.slo_s:
        return f"the fastest pools of up to {total - 1}, {named}, take {seconds(tpot_s)} a token"
    return f"pools of up to {total - 1} that make tokens in time, such as {named}, lack the memory"
