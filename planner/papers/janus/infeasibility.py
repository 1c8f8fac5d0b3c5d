"""Why no pools carry a demand (page, "Algorithm": infeasible), and the least change that helps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.errors import InfeasibleError, Relaxation
from planner.papers.janus.corners import Broken, Corners
from planner.papers.janus.frontier import ROUNDING, family, slots_fit
from planner.papers.janus.larger_pools import AT_LEAST, least_raised, with_more_of_all
from planner.papers.janus.model import Option
from planner.papers.janus.options import options
from planner.papers.janus.problem import SizingProblem
from planner.papers.janus.search import cheapest
from planner.papers.janus.shown.words import many

LIMITS = "limits"
"""The three limits together: what a cluster's GPUs are to them."""


def diagnose(problem: SizingProblem, demand: float) -> InfeasibleError:
    """The error of a demand that nothing carries: the first of expert_memory, expert_slots and launcher_rules; else
    whichever of tpot_slo and attention_memory is relaxed least; else gpu_limit, where more GPUs help; else batch_limit
    or joint.
    """
    choices = options(problem)
    if not any(slots_fit(option) for option in choices):
        return _expert_memory_error(choices, demand)
    choices = tuple(option for option in choices if slots_fit(option))
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


def _expert_memory_error(choices: Sequence[Option], demand: float) -> InfeasibleError:
    """Slots of an expert instance that do not fit: of the devices the one that lacks least.

    Its memory is enough where it lets pools carry the demand; less never fits.
    """
    option = min(choices, key=lambda each: (each.expert_bytes or 0.0) / each.expert_capacity_bytes)
    own = option.memory is not None and option.memory.expert_capacity_bytes is not None
    name = "expert_capacity_bytes" if own else "capacity_bytes"
    field, needed = f"{option.memory_place}.{name}", option.expert_bytes or 0.0
    roomier = [_with_memory(each, name, needed) for each in choices if each.memory_place == option.memory_place]
    enough = bool(cheapest([each for each in roomier if slots_fit(each)], [demand])[0])
    return InfeasibleError(
        f"the {many(option.slots, 'slot')} of an expert instance{_of(option)} do not fit its memory, where "
        f"{_slots_that_fit(option)}: state slots_per_instance to fit, or more memory",
        code="expert_memory",
        where=field,
        required=needed,
        available=option.expert_capacity_bytes,
        unit="bytes",
        relaxation=Relaxation(field, needed, proven=enough, enough=enough),
    )


def _with_memory(option: Option, name: str, capacity_bytes: float) -> Option:
    if option.memory is None:
        return option
    return replace(option, memory=option.memory.model_copy(update={name: capacity_bytes}))


def _slots_that_fit(option: Option) -> str:
    """How many slots fit an expert instance beside its reserve, in words."""
    each = None if option.memory is None else option.memory.expert_bytes_per_slot
    if not each:
        return "not even the reserve fits"
    reserve = (option.expert_bytes or 0.0) - option.slots * each
    fit = math.floor((option.expert_capacity_bytes * (1 + ROUNDING) - reserve) / each)
    return f"{fit} would fit" if fit > 0 else "not even one fits"


def _slots_error(problem: SizingProblem, choices: Sequence[Option], demand: float) -> InfeasibleError:
    def shortage(option: Option) -> tuple[str, int, int]:
        limits, fewest = option.limits, option.fewest_experts
        if limits.max_expert_instances < fewest:
            return f"{option.limits_place}.max_expert_instances", fewest, limits.max_expert_instances
        return f"{option.limits_place}.max_total_instances", fewest + 1, limits.max_total_instances

    option = min(choices, key=lambda each: shortage(each)[1] / shortage(each)[2])
    field, needed, stated = shortage(option)
    why = (
        f"{many(option.num_experts, 'expert')} in {many(option.slots, 'slot')} each fill "
        f"{many(option.fewest_experts, 'instance')}"
    )
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
        also=_more_gpus(problem, demand),
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
        also=_more_gpus(problem, demand),
    )


def _broken_error(problem: SizingProblem, broken: Broken, demand: float) -> InfeasibleError:
    option = broken.option
    pools = f"{broken.n_a} attention and {many(broken.n_e, 'expert instance')}{_of(option)}"
    if broken.code == "tpot_slo":
        message = f"no pools within limits and memory make tokens in time; the fastest are {pools}"
    else:
        requests = round((broken.required - option.fixed_bytes) / option.request_bytes) if option.request_bytes else 0
        message = (
            f"no pools that make tokens in time have the memory; the nearest are {pools}, with "
            f"{many(requests, 'request')} on an attention instance; one request "
            f"takes {option.fixed_bytes + option.request_bytes:.9g} bytes"
        )
    return InfeasibleError(
        message + _more(problem, demand) + _priced(problem),
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
            f"{why}{_more(problem, demand)}{_priced(problem)}",
            code="gpu_limit",
            where=best.place,
            required=best.value,
            available=best.stated,
            relaxation=Relaxation(best.place, best.value, proven=True),
            also=_more_gpus(problem, demand),
        )
    if (best_pools := with_more_of_all(problem, demand)) is not None:
        place, needed, stated = _shortest(best_pools.option, options(problem), best_pools.n_a, best_pools.n_e)
        return InfeasibleError(
            f"{why}{_more(problem, demand)}{_priced(problem)}",
            code="gpu_limit",
            where=place,
            required=needed,
            available=stated,
            relaxation=Relaxation(place, needed, proven=False, enough=False),
            also=_more_gpus(problem, demand),
        )
    return InfeasibleError(
        f"{why}{_priced(problem)}",
        code="batch_limit" if past_data else "joint",
        where="a_max.batch_grid" if past_data else None,
    )


def _shortest(found: Option, stated: Sequence[Option], n_a: int, n_e: int) -> tuple[str, int, int]:
    """Of the limits that pools break, the one they break most: its place, what they take, what is stated."""
    return max(_taken(found, stated, n_a, n_e), key=lambda each: each[1] / each[2])


def _taken(found: Option, stated: Sequence[Option], n_a: int, n_e: int) -> tuple[tuple[str, int, int], ...]:
    """Of each limit its place, what pools take, and what is stated."""
    option = next(option for option in stated if option.device == found.device)
    limits, place = option.limits, option.limits_place
    return (
        (f"{place}.max_total_instances", n_a + n_e, limits.max_total_instances),
        (f"{place}.max_attention_instances", n_a, limits.max_attention_instances),
        (f"{place}.max_expert_instances", n_e, limits.max_expert_instances),
    )


def _more(problem: SizingProblem, demand: float) -> str:
    """What GPUs beyond the limits would do, as the end of a message."""
    best = with_more_of_all(problem, demand)
    if best is None:
        return ""
    pools = f"{best.n_a} attention and {many(best.n_e, 'expert instance')}{_of(best.option)}"
    needed = [each for each in _taken(best.option, options(problem), best.n_a, best.n_e) if each[1] > each[2]]
    settings = "" if len(needed) < 2 else ", with " + " ".join(f"--set {place}={value}" for place, value, _ in needed)
    other = ""
    if best.option.priced_in_one_node:
        ranks = best.option.priced_ranks
        other = f" (prices are those of one node of {ranks} GPUs, and more nodes change them: derive.cluster)"
    return f"; beyond limits {pools} would do{settings}{other}"


def _more_gpus(problem: SizingProblem, demand: float) -> tuple[Relaxation, ...]:
    """How many GPUs in all would do, whichever side needs them: the least number where GPUs are what is minimised.

    None where some devices have limits of their own.
    """
    best = with_more_of_all(problem, demand)
    if best is None or any(option.limits_place != LIMITS for option in options(problem)):
        return ()
    total = best.n_a + best.n_e
    return (Relaxation(LIMITS, total, proven=best.option.prices is None and total <= AT_LEAST),)


def _priced(problem: SizingProblem) -> str:
    """What attention and experts say of their own seconds, as the end of a message: what binds may be their price."""
    sides = [side for option in options(problem) for side in (option.attention, option.moe)]
    said = dict.fromkeys(text for side in sides for text in (side.cautions or {}).values())
    return "".join(f"; note: {text}" for text in said)


def _of(option: Option) -> str:
    return "" if option.device is None else f" of device {option.device}"
