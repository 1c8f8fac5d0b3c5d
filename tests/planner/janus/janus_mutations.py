"""Plans that are wrong in one way: what is changed of a problem or of its right solution, and what has to be found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import janus_oracle as oracle

Document = dict[str, Any]
Change = Callable[[Document], object]


def nothing(_: Document) -> None:
    """The document as it is."""


def put(path: str, value: object) -> Change:
    """Sets a field; a function is given what was there."""

    def change(document: Document) -> None:
        *outer, last = path.split(".")
        inner: Any = document
        for name in outer:
            inner = inner[int(name) if isinstance(inner, list) else name]
        place: Any = int(last) if isinstance(inner, list) else last
        inner[place] = value(inner[place]) if callable(value) else value

    return change


def times(factor: float) -> Callable[[float], float]:
    return lambda value: value * factor


@dataclass(frozen=True)
class Wrong:
    """``codes`` are all that the check has to find."""

    codes: set[str]
    solution: Change = nothing
    problem: Change = nothing


def swap_alternatives(solution: Document) -> None:
    listed = solution["alternatives"]
    listed[1], listed[2] = listed[2], listed[1]


def repeat_alternative(solution: Document) -> None:
    solution["alternatives"].append(copy.deepcopy(solution["alternatives"][-1]))


def at_another_batch(solution: Document) -> None:
    """A hundredth more requests than demand keeps, with all figures of that batch."""
    own, batch = oracle.example(), solution["batch"] * 1.01
    changed = oracle.at_batch(own, solution["attention_instances"], solution["expert_instances"], batch)
    solution |= changed
    solution["alternatives"][0] |= {"batch": batch, "tpot_s": changed["tpot_s"]}


# The right solution is J4: (1, 6), 12.59 requests, 21 ms; on its instance 13 requests of 1 GB beside 10 GB.
SCALING: dict[str, Wrong] = {
    "no attention instance": Wrong(
        {"not_a_positive_integer", "alternatives_not_sorted"}, put("attention_instances", 0)
    ),
    "fewer than no experts": Wrong({"not_a_positive_integer", "alternatives_not_sorted"}, put("expert_instances", -1)),
    "6 instances of 2 slots for 16 experts": Wrong({"expert_slots"}, problem=put("slots_per_instance", 2)),
    "more expert instances than allowed": Wrong({"gpu_limit"}, problem=put("limits.max_expert_instances", 5)),
    "more GPUs than allowed": Wrong({"gpu_limit"}, problem=put("limits.max_total_instances", 6)),
    "1 attention instance for 6 of experts": Wrong({"launcher_rules"}, problem=put("launcher_rules", "vllm_afd")),
    "a table that starts later": Wrong(
        {"expert_slots", "a_max_table_missing", "alternatives_not_sorted"}, put("expert_instances", 3)
    ),
    "past the grid": Wrong(
        {"batch_range"},
        problem=put("a_max", lambda a_max: a_max | {"batch_grid": [1, 4, 5, 6]}),
    ),
    "less than one request": Wrong({"batch_range"}, put("batch", 0.5)),
    "a batch that demand does not keep": Wrong({"not_a_fixed_point"}, at_another_batch),
    "a TPOT too short": Wrong({"tpot_mismatch"}, put("tpot_s", times(0.999))),
    "an SLO that is missed": Wrong({"tpot_slo"}, problem=put("slo_tpot_s", 0.0185)),
    "memory for 12 requests": Wrong({"attention_memory"}, problem=put("memory.capacity_bytes", 2.2e10)),
    "slots that do not fit": Wrong({"expert_memory"}, problem=put("memory.expert_bytes_per_slot", 1.61e10)),
    "one request less in memory": Wrong({"memory_mismatch"}, put("attention_memory_bytes", 2.2e10)),
    "no memory where there is some": Wrong({"memory_mismatch"}, put("attention_memory_bytes", None)),
    "another total": Wrong({"total_mismatch"}, put("total_instances", 8)),
    "another batch of an instance": Wrong({"batch_per_instance_mismatch"}, put("batch_per_attention_instance", 12.0)),
    "other tokens a GPU": Wrong({"throughput_mismatch"}, put("tokens_per_s_per_gpu", times(1.1))),
    "another a_max": Wrong({"a_max_mismatch"}, put("a_max", 3.0)),
    "other attention": Wrong({"layer_mismatch"}, put("layer.attention_s", times(1.001))),
    "other experts": Wrong({"layer_mismatch"}, put("layer.moe_s", times(1.001))),
    "another exchange": Wrong({"layer_mismatch"}, put("layer.comm_s", times(1.001))),
    "the slower way": Wrong({"layer_mismatch"}, put("layer.comm_case", 1)),
    "a constant way": Wrong({"layer_mismatch"}, put("layer.comm_case", 0)),
    "another objective": Wrong({"objective_mismatch"}, put("objective", 6)),
    "another objective of an alternative": Wrong({"objective_mismatch"}, put("alternatives.2.objective", 7)),
    "an alternative at no operating point": Wrong(
        {"not_a_fixed_point", "tpot_mismatch"}, put("alternatives.3.batch", times(1.01))
    ),
    "alternatives the wrong way round": Wrong({"alternatives_not_sorted"}, swap_alternatives),
    "an alternative twice": Wrong({"alternatives_not_sorted"}, repeat_alternative),
    "no alternatives": Wrong({"alternatives_not_sorted"}, put("alternatives", [])),
    "not itself first": Wrong({"alternatives_not_sorted"}, put("alternatives", lambda listed: listed[1:])),
    "an alternative left out": Wrong(
        {"alternatives_incomplete"}, put("alternatives", lambda listed: [listed[0], *listed[2:]])
    ),
    "a device that is not": Wrong({"unknown_device", "alternatives_not_sorted"}, put("device", "H200")),
    "maps of layers that are not": Wrong(
        {"expert_map_set"}, put("expert_maps", [{"expert_instances": 6, "device": None, "layers": []}])
    ),
}


def series() -> Document:
    """J over three hours: (1, 4), (1, 6), (2, 8)."""
    document = oracle.example() | {"task": "series"}
    del document["demand_tokens_per_s"]
    document["series"] = [
        {"start_s": 3600.0 * hour, "duration_s": 3600.0, "demand_tokens_per_s": demand}
        for hour, demand in enumerate((100.0, 600.0, 1500.0))
    ]
    return document


def eight_instances_at_night(solution: Document) -> None:
    """(1, 8) in place of (1, 4) for the first hour, with all its figures."""
    own = oracle.example()
    batch = oracle.root(own, 1, 8, 100.0)
    assert batch is not None
    solution["intervals"][0] |= {"expert_instances": 8, "batch": batch, "tpot_s": oracle.tpot(own, 1, 8, batch)}
    solution["objective"] = solution["gpu_hours"] = 26.0


ONE_POOL = {"monolithic": {"allowed_gpus": [2, 4, 8, 16], "comm_s": 3e-4, "expert_bytes": 4e9}}

SERIES: dict[str, Wrong] = {
    "an interval less": Wrong({"interval_count"}, put("intervals", lambda listed: listed[:-1])),
    "an interval at no operating point": Wrong(
        {"not_a_fixed_point", "tpot_mismatch"}, put("intervals.1.batch", times(1.01))
    ),
    "an interval too slow": Wrong({"tpot_slo"}, problem=put("slo_tpot_s", 0.0202)),
    "a limit broken at the peak": Wrong({"gpu_limit"}, problem=put("limits.max_total_instances", 9)),
    "an unknown device": Wrong({"unknown_device"}, put("intervals.2.device", "H200")),
    "other GPU-hours": Wrong({"gpu_hours_mismatch"}, put("gpu_hours", 21.0)),
    "another objective": Wrong({"objective_mismatch"}, put("objective", 21.0)),
    "other hours at the peak": Wrong({"gpu_hours_mismatch"}, put("gpu_hours_peak", 27.0)),
    "hours of one pool without any": Wrong({"gpu_hours_mismatch"}, put("gpu_hours_monolithic", 24.0)),
    "none of one pool where it is described": Wrong({"gpu_hours_mismatch"}, problem=put("baselines", ONE_POOL)),
    "8 expert instances at night": Wrong({"not_minimal"}, eight_instances_at_night),
    "maps of layers that are not": Wrong(
        {"expert_map_set"}, put("expert_maps", [{"expert_instances": 6, "device": None, "layers": []}])
    ),
}


def placement() -> Document:
    """The page's J11, with two batches: tokens of experts {0, 1, 2, 4} and of all five."""
    return {
        "task": "placement",
        "num_experts": 5,
        "expert_instances": 2,
        "slots_per_instance": 3,
        "expert_load": [6, 9, 4, 8, 3],
        "coactivation": [[0, 1, 5.0], [1, 2, 5.0], [2, 3, 1.0], [2, 4, 2.0]],
        "batches": [[[0, 1], [2, 4]], [[0, 1, 2, 3, 4]]],
    }


def placed() -> Document:
    """Its answer: I of {0, 1, 4} is 5, of {1, 2, 3} 5 + 1. Experts 0 and 4 have instance 0, 2 instance 1, so 1 goes
    there as well: 2 and 2. With 3 on instance 1 as well 1 goes to either, 3 at most."""
    return {
        "task": "placement",
        "objective": 6.0,
        "replicas": [1, 2, 1, 1, 1],
        "placement": [[0, 1, 4], [1, 2, 3]],
        "a_max_per_batch": [2, 3],
    }


PLACEMENT: dict[str, Wrong] = {
    "two of the wrong expert": Wrong(
        {"replica_rule"},
        lambda solution: solution.update(
            replicas=[1, 1, 1, 2, 1], placement=[[0, 1, 3], [2, 3, 4]], objective=5.0, a_max_per_batch=[2, 3]
        ),
    ),
    "copies that are not placed": Wrong(
        {"replica_count"},
        lambda solution: solution.update(placement=[[0, 1, 4], [2, 3]], objective=5.0, a_max_per_batch=[3, 3]),
    ),
    "four in three slots": Wrong({"slots_exceeded", "replica_count"}, put("placement", [[0, 1, 3, 4], [1, 2, 3]])),
    "an expert twice on an instance": Wrong(
        {"duplicate_expert", "objective_mismatch"}, put("placement", [[0, 1, 1], [2, 3, 4]])
    ),
    "an expert that is not": Wrong({"unknown_expert", "replica_count"}, put("placement", [[0, 1, 5], [1, 2, 3]])),
    "an instance too many": Wrong({"placement_shape"}, put("placement", [[0, 1, 4], [1, 2, 3], []])),
    "experts out of order": Wrong({"placement_shape"}, put("placement", [[1, 0, 4], [1, 2, 3]])),
    "copies of four experts": Wrong({"placement_shape"}, put("replicas", [1, 2, 1, 1])),
    "a smaller objective": Wrong({"objective_mismatch"}, put("objective", 5.0)),
    "another a_max": Wrong({"a_max_per_batch"}, put("a_max_per_batch", [2, 2])),
    "a batch left out": Wrong({"a_max_per_batch"}, put("a_max_per_batch", [2])),
    "too few slots": Wrong({"expert_slots"}, problem=put("slots_per_instance", 2)),
    "routing that was not read": Wrong(
        {"routing_missing"},
        problem=lambda problem: problem.update(
            expert_load=[],
            coactivation=[],
            routing={"kind": "mask", "source_rank": [0], "expert_ids": [[0, 1]]},
        ),
    ),
}


def traced() -> Document:
    """J with two traced layers of six and four tokens."""
    first = [[0, 1], [0, 2], [0, 1], [1, 3], [14, 15], [0, 15]]
    second = [[2, 3], [2, 4], [2, 3], [5, 6]]
    return oracle.example() | {
        "layers": [
            {"layer_id": 7, "routing": {"kind": "mask", "source_rank": [0] * len(first), "expert_ids": first}},
            {"layer_id": 3, "routing": {"kind": "mask", "source_rank": [0] * len(second), "expert_ids": second}},
        ]
    }


def with_maps(document: Document) -> Document:
    """The right solution with a map of copies dealt in order: any placement of the right copies will do."""
    solution = oracle.scaling_solution(document)
    n_e, C, E = solution["expert_instances"], document["slots_per_instance"], document["num_experts"]
    layers = []
    for layer in sorted(document["layers"], key=lambda layer: layer["layer_id"]):
        loads = [0.0] * E
        together: dict[tuple[int, int], float] = {}
        for token in layer["routing"]["expert_ids"]:
            for expert in token:
                loads[expert] += 1
            together[token[0], token[1]] = together.get((token[0], token[1]), 0.0) + 1
        copies = oracle.ruled_replicas(loads, n_e, C)
        dealt = [expert for expert in range(E) for _ in range(copies[expert])]
        seats = [sorted(dealt[instance::n_e]) for instance in range(n_e)]
        layers.append(
            {
                "layer_id": layer["layer_id"],
                "replicas": copies,
                "placement": seats,
                "max_coactivation": oracle.coactivation(seats, together),
            }
        )
    solution["expert_maps"] = [{"expert_instances": n_e, "device": None, "layers": layers}]
    return solution


def _swap_experts(solution: Document) -> None:
    """Of layer 3 expert 2, which has a copy everywhere, against another that is not on the first instance."""
    layer = solution["expert_maps"][0]["layers"][0]
    layer["replicas"][2], layer["replicas"][9] = layer["replicas"][9], layer["replicas"][2]


MAPS: dict[str, Wrong] = {
    "no maps": Wrong({"expert_map_set"}, put("expert_maps", [])),
    "of other pools": Wrong({"expert_map_set"}, put("expert_maps.0.expert_instances", 7)),
    "of one layer": Wrong({"expert_map_set"}, put("expert_maps.0.layers", lambda layers: layers[:1])),
    "layers in another order": Wrong({"expert_map_set"}, put("expert_maps.0.layers", lambda layers: layers[::-1])),
    "copies of the wrong expert": Wrong({"replica_rule", "replica_count"}, _swap_experts),
    "fewer co-activations than there are": Wrong(
        {"objective_mismatch"}, put("expert_maps.0.layers.1.max_coactivation", lambda value: value - 1)
    ),
    "an instance emptied": Wrong({"replica_count"}, put("expert_maps.0.layers.0.placement.5", [])),
}
