"""What programs read off a plan of Janus: its unit, shares by source, memory by cause, decisions and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.attribution import Sources
from planner.derivation.shares import by_source
from planner.json_text import Json
from planner.paper import MemoryRow
from planner.papers.janus.model import Option
from planner.papers.janus.problem import JanusProblem, SeriesProblem, SizingProblem
from planner.papers.janus.shown.used import Used, used_of
from planner.papers.janus.solution import (
    ExpertMap,
    JanusSolution,
    PlacementSolution,
    ScalingSolution,
    SeriesSolution,
)

CO_ACTIVATIONS = "co-activations"
ATTENTION_INSTANCE, EXPERT_INSTANCE = "attention instance", "expert instance"


def is_priced(problem: SizingProblem) -> bool:
    """Whether a price is the objective in place of GPUs."""
    return problem.prices is not None or any(device.prices for device in problem.devices)


def unit(problem: JanusProblem) -> str:
    """Of the objective: GPUs or their price for an hour, over a series GPU-hours or the price, or co-activations."""
    if isinstance(problem, SizingProblem):
        whole, hourly = (problem.price_unit, f"{problem.price_unit}/h") if is_priced(problem) else ("GPU-hours", "GPUs")
        return whole if isinstance(problem, SeriesProblem) else hourly
    return CO_ACTIVATIONS


def shares(problem: JanusProblem, solution: JanusSolution) -> dict[str, float]:
    """Fraction of an output token's seconds by the source of the seconds per request, expert and byte behind them.

    Of a series the mean over GPU-hours. What a_max comes from is the load's, and no part of it.
    """
    return by_source(_parts(problem, solution))


def _parts(problem: JanusProblem, solution: JanusSolution) -> Iterator[tuple[float, Sources | None]]:
    """GPU-seconds of attention, experts and communication."""
    for used in used_of(problem, solution):
        parts = used.layer_s()
        total = parts[0] + parts[1] + parts[2]
        option = used.option
        for part, cost in zip(parts, (option.attention, option.moe, option.comm), strict=True):
            yield float((used.gpu_seconds * part / total).sum()), cost.sources


def memory(problem: JanusProblem, solution: JanusSolution) -> list[MemoryRow]:
    """Bytes by cause of the fullest attention instance, over all intervals, then of the fullest expert instance.

    None of what no memory is stated for.
    """
    used = [each for each in used_of(problem, solution) if each.option.memory is not None]
    attention = [_attention_rows(each) for each in used]
    experts = [_expert_rows(each.option) for each in used]
    return [*max(attention, key=_filled, default=[]), *max(experts, key=_filled, default=[])]


def by_instance(rows: list[MemoryRow]) -> list[list[MemoryRow]]:
    """Rows of one instance together, in their order."""
    return [[row for row in rows if row.where == where] for where in dict.fromkeys(row.where for row in rows)]


def _filled(rows: list[MemoryRow]) -> float:
    return sum(row.bytes for row in rows) / rows[0].capacity_bytes if rows else 0.0


def _expert_rows(option: Option) -> list[MemoryRow]:
    held = option.memory
    if held is None or held.expert_bytes_per_slot is None:
        return []
    causes = _causes(held.expert_fixed_bytes or 0.0) | {"expert_slots": option.slots * held.expert_bytes_per_slot}
    where = _where(EXPERT_INSTANCE, option)
    return [
        MemoryRow(where, cause, amount, option.expert_capacity_bytes)
        for cause, amount in sorted(causes.items())
        if amount
    ]


def _where(instance: str, option: Option) -> str:
    return instance if option.device is None else f"{instance}, {option.device}"


def _causes(fixed: float | Mapping[str, float]) -> dict[str, float]:
    return dict(fixed) if isinstance(fixed, Mapping) else {"fixed": fixed}


def _attention_rows(used: Used) -> list[MemoryRow]:
    held = used.option.memory
    if held is None:
        return []
    where = _where(ATTENTION_INSTANCE, used.option)
    requests = float(used.requests().max())
    causes = _causes(held.attention_fixed_bytes)
    causes["kv_cache"] = requests * used.option.context_tokens * held.kv_bytes_per_token
    causes["activations"] = requests * held.activation_bytes_per_request
    return [MemoryRow(where, cause, amount, held.capacity_bytes) for cause, amount in sorted(causes.items()) if amount]


def decisions(solution: JanusSolution) -> dict[str, Json]:
    """What a launcher is told: pools, by interval where there are several, and which instances hold each expert."""
    if isinstance(solution, PlacementSolution):
        return {"experts": _homes(solution.placement)}
    told: dict[str, Json] = {}
    if isinstance(solution, ScalingSolution):
        told = _pools(solution.attention_instances, solution.expert_instances, solution.device)
    elif isinstance(solution, SeriesSolution):
        told = {
            "intervals": {
                str(place): _pools(pools.attention_instances, pools.expert_instances, pools.device)
                for place, pools in enumerate(solution.intervals)
            }
        }
    if isinstance(solution, ScalingSolution | SeriesSolution) and solution.expert_maps:
        told["expert_maps"] = {_name(of): _map(of) for of in solution.expert_maps}
    return told


def _pools(attention: int, experts: int, device: str | None) -> dict[str, Json]:
    told: dict[str, Json] = {"attention_instances": attention, "expert_instances": experts}
    return told if device is None else told | {"device": device}


def _name(of: ExpertMap) -> str:
    return f"{of.expert_instances}" if of.device is None else f"{of.expert_instances} of {of.device}"


def _map(of: ExpertMap) -> dict[str, Json]:
    return {str(layer.layer_id): _homes(layer.placement) for layer in of.layers}


def _homes(placement: tuple[tuple[int, ...], ...]) -> dict[str, Json]:
    """Where each expert sits, in words: ids are no quantities."""
    held: dict[int, list[int]] = {}
    for instance, experts in enumerate(placement):
        for expert in experts:
            held.setdefault(expert, []).append(instance)
    return {
        str(expert): f"instance{'s' if len(homes) > 1 else ''} {', '.join(map(str, homes))}"
        for expert, homes in sorted(held.items())
    }


def metrics(solution: JanusSolution) -> dict[str, Json]:
    """The recomputable figures."""
    if isinstance(solution, ScalingSolution):
        return {
            "objective": solution.objective,
            "total_instances": solution.total_instances,
            "batch": solution.batch,
            "batch_per_attention_instance": solution.batch_per_attention_instance,
            "tpot_s": solution.tpot_s,
            "a_max": solution.a_max,
            "attention_memory_bytes": solution.attention_memory_bytes,
            "tokens_per_s_per_gpu": solution.tokens_per_s_per_gpu,
            "layer": solution.layer.model_dump(),
            "max_coactivation": _most_together(solution.expert_maps),
        }
    if isinstance(solution, SeriesSolution):
        totals = [pools.attention_instances + pools.expert_instances for pools in solution.intervals]
        return {
            "objective": solution.objective,
            "gpu_hours": solution.gpu_hours,
            "gpu_hours_monolithic": solution.gpu_hours_monolithic,
            "gpu_hours_peak": solution.gpu_hours_peak,
            "fewest_instances": min(totals),
            "most_instances": max(totals),
            "longest_tpot_s": max(pools.tpot_s for pools in solution.intervals),
            "max_coactivation": _most_together(solution.expert_maps),
        }
    if isinstance(solution, PlacementSolution):
        return {"objective": solution.objective, "a_max_per_batch": list(solution.a_max_per_batch)}
    return {}


def _most_together(maps: tuple[ExpertMap, ...]) -> dict[str, Json]:
    """The largest co-activation of an instance, by map and layer."""
    return {_name(of): {str(layer.layer_id): layer.max_coactivation for layer in of.layers} for of in maps}
