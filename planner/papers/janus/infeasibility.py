"""Why no pools carry a demand (page, "Algorithm": infeasible), and the least change that helps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.errors import InfeasibleError, Relaxation
from planner.papers.janus.corners import Broken, Corners
from planner.papers.janus.frontier import family
from planner.papers.janus.larger_pools import least_raised, with_more_of_all
from planner.papers.janus.model import Option
from planner.papers.janus.options import options
from planner.papers.janus.problem import SizingProblem


def diagnose(problem: SizingProblem, demand: float) -> InfeasibleError:
    """The error of a demand that nothing carries: the first of expert_slots and launcher_rules; else whichever of
    tpot_slo and attention_memory is relaxed least; else gpu_limit, where more GPUs help; else batch_limit or joint.
    """
    choices = options(problem)
    if all(_short_of_slots(option) for option in choices):
        return _slots_error(problem, choices, demand)
    if not any(len(family(option).n_e) for option in choices):
        return _rules_error(problem, demand)
    corners = [Corners.of(option, demand) for option in choices]
    nearest = [each for corner in corners for each in corner.nearest()]
    if nearest:
        return _broken_error(problem, min(nearest, key=lambda broken: broken.ratio), demand)
    return _nothing_alone_error(problem, corners, demand)


def _short_of_slots(option: Option) -> bool:
    limits, fewest = option.limits, option.fewest_experts
    return limits.max_expert_instances < fewest or limits.max_total_instances < fewest + 1


def _slots_error(problem: SizingProblem, choices: Sequence[Option], demand: float) -> InfeasibleError:
    def shortage(option: Option) -> tuple[str, int, int]:
        limits, fewest = option.limits, option.fewest_experts
        if limits.max_expert_instances < fewest:
            return f"{option.limits_place}.max_expert_instances", fewest, limits.max_expert_instances
        return f"{option.limits_place}.max_total_instances", fewest + 1, limits.max_total_instances

    option = min(choices, key=lambda each: shortage(each)[1] / shortage(each)[2])
    field, needed, stated = shortage(option)
    why = f"{option.num_experts} experts in {option.slots} slots each fill {option.fewest_experts} instances"
    if field.endswith("max_total_instances"):
        why += ", and attention takes one"
    enough = next((raised for raised in least_raised(problem, demand) if raised.place == field), None)
    return InfeasibleError(
        f"{why}{_of(option)}{_more(problem, demand)}",
        code="expert_slots",
        where=field,
        required=needed,
        available=stated,
        relaxation=Relaxation(field, needed, proven=False, enough=False)
        if enough is None
        else Relaxation(field, enough.value, proven=True),
    )


def _rules_error(problem: SizingProblem, demand: float) -> InfeasibleError:
    raised = least_raised(problem, demand)
    return InfeasibleError(
        f"no pools within limits obey launcher_rules {problem.launcher_rules}: it wants as many attention instances "
        f"as expert instances, or a multiple of them{_more(problem, demand)}",
        code="launcher_rules",
        where=raised[0].place if raised else "launcher_rules",
        required=raised[0].value if raised else None,
        available=raised[0].stated if raised else None,
        relaxation=Relaxation(raised[0].place, raised[0].value, proven=True) if raised else None,
    )


def _broken_error(problem: SizingProblem, broken: Broken, demand: float) -> InfeasibleError:
    option = broken.option
    pools = f"{broken.n_a} attention and {broken.n_e} expert instances{_of(option)}"
    if broken.code == "tpot_slo":
        message = f"no pools within limits and memory make tokens in time; the fastest are {pools}"
    else:
        requests = round((broken.required - option.fixed_bytes) / option.request_bytes) if option.request_bytes else 0
        message = (
            f"no pools that make tokens in time have the memory; the nearest are {pools}, with {requests} requests on "
            f"an attention instance; one request takes {option.fixed_bytes + option.request_bytes:.9g} bytes"
        )
    return InfeasibleError(
        message + _more(problem, demand),
        code=broken.code,
        where=broken.field,
        required=broken.required,
        available=broken.available,
        unit=broken.unit,
        relaxation=Relaxation(broken.field, broken.required, proven=True),
    )


def _nothing_alone_error(problem: SizingProblem, corners: Sequence[Corners], demand: float) -> InfeasibleError:
    past_data = all(np.isnan(corner.batch).all() for corner in corners)
    largest = max(corner.pairs.option.largest_batch for corner in corners)
    why = (
        f"{demand:.9g} tokens/s keep more than {largest:.0f} requests in flight, where batch_grid ends, on all pools "
        "within limits"
        if past_data
        else "of the pools within limits all that reach a steady batch miss both slo_tpot_s and memory.capacity_bytes"
    )
    if raised := least_raised(problem, demand):
        best = raised[0]
        return InfeasibleError(
            f"{why}{_more(problem, demand)}",
            code="gpu_limit",
            where=best.place,
            required=best.value,
            available=best.stated,
            relaxation=Relaxation(best.place, best.value, proven=True),
        )
    if (best_pools := with_more_of_all(problem, demand)) is not None:
        place, needed, stated = _shortest(best_pools.option, options(problem), best_pools.n_a, best_pools.n_e)
        return InfeasibleError(
            f"{why}{_more(problem, demand)}, which takes more than one limit",
            code="gpu_limit",
            where=place,
            required=needed,
            available=stated,
            relaxation=Relaxation(place, needed, proven=False, enough=False),
        )
    return InfeasibleError(
        why,
        code="batch_limit" if past_data else "joint",
        where="a_max.batch_grid" if past_data else None,
    )


def _shortest(found: Option, stated: Sequence[Option], n_a: int, n_e: int) -> tuple[str, int, int]:
    """Of the limits that pools break, the one they break most: its place, what they take, what is stated."""
    option = next(option for option in stated if option.device == found.device)
    limits, place = option.limits, option.limits_place
    taken = (
        (f"{place}.max_total_instances", n_a + n_e, limits.max_total_instances),
        (f"{place}.max_attention_instances", n_a, limits.max_attention_instances),
        (f"{place}.max_expert_instances", n_e, limits.max_expert_instances),
    )
    return max(taken, key=lambda each: each[1] / each[2])


def _more(problem: SizingProblem, demand: float) -> str:
    """What GPUs beyond the limits would do, as the end of a message."""
    best = with_more_of_all(problem, demand)
    if best is None:
        return ""
    return f"; beyond limits {best.n_a} attention and {best.n_e} expert instances{_of(best.option)} would do"


def _of(option: Option) -> str:
    return "" if option.device is None else f" of device {option.device}"
