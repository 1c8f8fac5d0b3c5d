"""What a plan of Janus warns of, most serious first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.memory.near_capacity import NEAR_CAPACITY
from planner.paper import Warned
from planner.papers.janus.costs import Caution
from planner.papers.janus.load_cautions import (
    context_shorter,
    drawn_tokens,
    few_layers_traced,
    grid_ends,
    of_activated,
    tiled,
)
from planner.papers.janus.model import Option
from planner.papers.janus.one_pool import smallest_pool
from planner.papers.janus.presentation import EXPERT_INSTANCE, by_instance, is_priced, memory
from planner.papers.janus.problem import (
    JanusProblem,
    PlacementProblem,
    ScalingProblem,
    SizingProblem,
)
from planner.papers.janus.shown.used import Used, used_of
from planner.papers.janus.shown.words import many
from planner.papers.janus.solution import JanusSolution, ScalingSolution, SeriesSolution
from planner.papers.janus.suspicions import experts_without_load, suspicious_units
from planner.units import amount, percent, seconds

NEAR_SLO = 0.01
"""The model is hardly nearer to a device than this part of the SLO."""
ATTENTION_HOLDS = "which the model counts without fragmentation, at the mean context: plan with a larger reserve"
EXPERT_HOLDS = (
    "whose reserve must hold activations and buffers of all requests in flight: plan with fewer slots, or a larger "
    "reserve"
)


def warnings(problem: JanusProblem, solution: JanusSolution) -> list[Warned]:
    """All that holds of the pools a plan uses, each code once; of a placement whether slots stay empty."""
    if isinstance(problem, PlacementProblem):
        return list(_spare_slots(problem.slots_per_instance, problem.num_experts))
    if not isinstance(problem, SizingProblem):
        return []
    used = used_of(problem, solution)
    found = [
        *suspicious_units(each.option for each in used),
        *experts_without_load(problem),
        *_one_pool_smaller(problem, solution),
        *_limits_beyond_cluster(each.option for each in used),
        *(warned for each in used for warned in _of_costs(each)),
        *grid_ends(problem, solution),
        *_beyond_memory_bound(used),
        *context_shorter(problem),
        *tiled(problem),
        *(warned for each in used for warned in of_activated(problem, each)),
        *drawn_tokens(problem),
        *few_layers_traced(problem),
        *_near_slo(used),
        *_near_capacity(problem, solution),
        *(warned for each in used for warned in _spare_slots(each.option.slots, each.option.num_experts)),
        *_one_request(problem, used),
    ]
    return list({warned.code: warned for warned in reversed(found)}.values())[::-1]


def _one_pool_smaller(problem: SizingProblem, solution: JanusSolution) -> Iterator[Warned]:
    """GPUs of one kind alone are compared: one that does both sides has no price, and is none of the devices listed."""
    if is_priced(problem) or problem.devices:
        return
    if isinstance(problem, ScalingProblem) and isinstance(solution, ScalingSolution):
        pool = smallest_pool(problem, problem.demand_tokens_per_s)
        if pool is not None and pool.gpus < solution.total_instances:
            yield Warned(
                "one_pool_smaller",
                f"by the same costs {many(pool.gpus, 'GPU')} as one pool carry the demand too, in "
                f"{seconds(pool.tpot_s)} a token: two pools save nothing here (plan compare: monolithic)",
            )
    elif isinstance(solution, SeriesSolution):
        hours = solution.gpu_hours_monolithic
        if hours is not None and hours < solution.gpu_hours:
            yield Warned(
                "one_pool_smaller",
                f"by the same costs one pool, sized for each interval, takes {amount(hours, 'GPU-hours')}: two pools "
                "save nothing here (plan compare: monolithic)",
            )


def _limits_beyond_cluster(used: Iterable[Option]) -> Iterator[Warned]:
    for option in used:
        limits, ranks = option.limits, option.priced_ranks
        most = min(limits.max_total_instances, limits.max_attention_instances + limits.max_expert_instances)
        if ranks is not None and most > ranks:
            yield Warned(
                "limits_beyond_cluster",
                f"{option.limits_place} allow {many(most, 'GPU')}, and the cluster has {ranks:,}: prices are those of "
                "the stated cluster, and may be others in a larger one; state derive.cluster with as many ranks",
            )
            return


def _of_costs(used: Used) -> Iterator[Warned]:
    """What attention and experts say of their own seconds."""
    said: dict[Caution, list[str]] = {}
    for cost in (used.option.attention, used.option.moe):
        for code, text in (cost.cautions or {}).items():
            said.setdefault(code, []).append(text)
    yield from (Warned(code, "; ".join(texts)) for code, texts in said.items())


def _beyond_memory_bound(used: list[Used]) -> Iterator[Warned]:
    for each in used:
        holds = each.option.moe.holds_to_batch
        if holds is not None and (each.batch > holds).any():
            yield Warned(
                "beyond_memory_bound",
                f"{each.batch.max():,.0f} requests in flight are more than the {holds:,.0f} up to which reading "
                "weights is what experts take: they will take longer than beta x a_max + c_e says",
            )
            return


def _near_slo(used: list[Used]) -> Iterator[Warned]:
    for each in used:
        longest = float(each.tpot_s().max())
        if longest > each.option.slo_s * (1 - NEAR_SLO):
            left = percent(max(0.0, 1 - longest / each.option.slo_s))
            yield Warned(
                "near_slo",
                f"an output token takes {seconds(longest)} of {seconds(each.option.slo_s)}, {left} under the SLO: any "
                "number of the model may be further off",
            )
            return


def _near_capacity(problem: JanusProblem, solution: JanusSolution) -> Iterator[Warned]:
    said = []
    for rows in by_instance(memory(problem, solution)):
        filled = sum(row.bytes for row in rows) / rows[0].capacity_bytes
        if filled > NEAR_CAPACITY:
            holds = EXPERT_HOLDS if rows[0].where.startswith(EXPERT_INSTANCE) else ATTENTION_HOLDS
            said.append(f"the {rows[0].where} is planned at {filled:.1%} of its memory, {holds}")
    if said:
        yield Warned("near_capacity", "; ".join(said))


def _spare_slots(slots: int, experts: int) -> Iterator[Warned]:
    if slots > experts:
        yield Warned(
            "spare_slots",
            f"an instance has {slots} slots for {many(experts, 'expert')}: every instance holds all of them, and "
            f"{slots - experts} of its slots stay empty",
        )


def _one_request(problem: SizingProblem, used: list[Used]) -> Iterator[Warned]:
    if isinstance(problem, ScalingProblem) and all((each.batch <= 1).all() for each in used):
        yield Warned(
            "one_request",
            "the demand keeps less than one request in flight: the pools are what one request needs to meet the SLO",
        )
