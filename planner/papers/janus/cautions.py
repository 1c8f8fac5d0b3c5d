"""What a plan of Janus warns of, most serious first."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.janus.activated_source import activated_of, windows_near
from planner.papers.janus.costs import ActivatedBound, ActivatedTable, Caution
from planner.papers.janus.one_pool import smallest_pool
from planner.papers.janus.presentation import is_priced, memory
from planner.papers.janus.problem import (
    JanusProblem,
    PlacementProblem,
    ScalingProblem,
    SeriesProblem,
    SizingProblem,
)
from planner.papers.janus.shown.used import Used, used_of
from planner.papers.janus.shown.words import many
from planner.papers.janus.solution import JanusSolution, ScalingSolution, SeriesSolution
from planner.routing.document import LoadsRouting, UniformRouting, ZipfRouting
from planner.units import amount, percent, seconds

FEW_WINDOWS = 8
DRAWN = (LoadsRouting, UniformRouting, ZipfRouting)
NEAR_SLO = 0.01
"""The model is hardly nearer to a device than this part of the SLO."""
NEAR_CAPACITY = 0.85
"""The memory model is an optimist near the edge: fuller instances are worth a warning."""


def warnings(problem: JanusProblem, solution: JanusSolution) -> list[Warned]:
    """All that holds of the pools a plan uses, each code once; of a placement whether slots stay empty."""
    if isinstance(problem, PlacementProblem):
        return list(_spare_slots(problem.slots_per_instance, problem.num_experts))
    if not isinstance(problem, SizingProblem):
        return []
    used = used_of(problem, solution)
    found = [
        *_one_pool_smaller(problem, solution),
        *(warned for each in used for warned in _of_costs(each)),
        *_beyond_memory_bound(used),
        *_context_shorter(problem),
        *(warned for each in used for warned in _of_activated(problem, each)),
        *_drawn_tokens(problem),
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


def _context_shorter(problem: SizingProblem) -> Iterator[Warned]:
    if not isinstance(problem, SeriesProblem) or problem.arrivals is None:
        return
    mean = problem.arrivals.mean_context_tokens
    if mean is not None and problem.context_tokens < mean * (1 - 1e-9):
        yield Warned(
            "context_shorter",
            f"context_tokens is {problem.context_tokens:,.6g}, while the trace's requests have {mean:,.0f} in the "
            "mean over their output tokens: attention and its memory are planned too small",
        )


def _of_activated(problem: SizingProblem, used: Used) -> Iterator[Warned]:
    a_max = activated_of(problem, used.option.device)
    if isinstance(a_max, ActivatedBound):
        if a_max.kind != "printed_bound":
            yield Warned(
                "bound_used",
                f"a_max is the {a_max.kind.replace('_', ' ')}, which takes routing to be even and knows no "
                'placement: give layers and a_max {"kind": "routing"} for a table of your own traces',
            )
        else:
            yield Warned(
                "bound_used",
                "a_max is the printed bound, which counts every copy as used, so more expert instances make nothing "
                "faster: binomial_bound or a table says what they do",
            )
        return
    if not isinstance(a_max, ActivatedTable):
        return
    counts = [windows_near(problem, a_max, batch) for batch in (used.batch.min(), used.batch.max())]
    few = [count for count in counts if count is not None and count < FEW_WINDOWS]
    if few:
        yield Warned(
            "few_windows",
            f"a_max rests on {many(min(few), 'window')} of a traced layer at a batch of the plan, fewer than "
            f"{FEW_WINDOWS}: give a longer trace",
        )
    largest = int(a_max.expert_instances[-1])
    if len(a_max.expert_instances) > 1 and (used.pairs.n_e > largest).any():
        yield Warned(
            "beyond_the_table",
            f"the last row of a_max is of {many(largest, 'expert instance')}, and stands for up to "
            f"{int(used.pairs.n_e.max())} here: a row of their own would need no more, and may need fewer",
        )


def _drawn_tokens(problem: SizingProblem) -> Iterator[Warned]:
    drawn = [layer.layer_id for layer in problem.layers if isinstance(layer.routing, DRAWN)]
    if drawn:
        shown = ", ".join(map(str, drawn[:6])) + (f" and {len(drawn) - 6} more" if len(drawn) > 6 else "")
        yield Warned(
            "drawn_tokens",
            f"the tokens of layer{'s' if len(drawn) > 1 else ''} {shown} are drawn, each by itself: what real tokens "
            "have in common, in time and between experts, is not in a_max, copies and placement",
        )


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
    rows = memory(problem, solution)
    filled = sum(row.bytes for row in rows)
    if rows and filled > NEAR_CAPACITY * rows[0].capacity_bytes:
        yield Warned(
            "near_capacity",
            f"the {rows[0].where} is planned at {filled / rows[0].capacity_bytes:.1%} of its memory, which the model "
            "counts without fragmentation, at the mean context: plan with a larger reserve",
        )


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
