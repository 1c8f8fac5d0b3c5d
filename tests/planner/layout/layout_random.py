"""Small random layout problems: ties, holes in the table, every launcher and every field occur."""

from __future__ import annotations

from itertools import product
from random import Random

from planner.json_text import Json
from planner.papers.layout.problem import LayoutProblem
from planner.validation import validate

LISTS = {
    "tp": [1, 2, 3, 4],
    "cp": [1, 2, 4],
    "pp": [1, 2, 3, 4, 6],
    "vpp": [1, 2, 3],
    "ep": [1, 2, 4],
    "etp": [1, 2],
    "zero_stage": [0, 1, 2, 3],
    "recompute": ["none", "selective", "full"],
    "micro_batch": [1, 2, 3],
    "sequence_parallel": [False, True],
}


OF_ENDS = ("forward_s", "backward_s", "comm_forward_s", "comm_backward_s", "params")
"""What an end of the model may cost."""


def random_problem(rng: Random) -> LayoutProblem:
    """Some thousand combinations at most; half have no layout that keeps the rules and fits."""
    moe = rng.random() < 0.4
    search: dict[str, Json] = {}
    for name, values in LISTS.items():
        if not moe and name in ("ep", "etp") and rng.random() < 0.9:
            continue
        often = 0.9 if rng.random() < 0.9 else 0.3
        search[name] = [value for value in values if rng.random() < (often if value == values[0] else 0.4)] or values[
            :1
        ]
    search["partitions"] = rng.choice([["even"], ["ends"], ["even", "ends"]])
    search["keep"] = rng.choice([0, 1, 3, 20])
    layers = [{"kind": kind, "count": rng.choice([1, 2, 3, 4, 6])} for kind in _runs(rng, moe)]
    return validate(
        LayoutProblem,
        {
            "paper": "layout",
            "launcher_rules": rng.choice(["none", "none", "megatron", "deepspeed", "torchtitan"]),
            "cluster": {
                "num_gpus": rng.choice([1, 4, 8, 12, 16, 24, 24]),
                "gpus_per_node": rng.choice([1, 4, 4, 8, 12]),
                "gpu_memory_bytes": rng.choice([60.0, 120.0, 250.0, 1000.0]),
                "reserve_bytes": rng.choice([0.0, 5.0]),
            },
            "batch": {
                "global_batch_size": rng.choice([4, 12, 24, 48, 48]),
                "sequence_length": rng.choice([8, 16, 24, 48]),
            },
            "model": {
                "layers": layers,
                "num_heads": rng.choice([4, 12]),
                "num_kv_heads": rng.choice([1, 2, 4]),
                "num_experts": 4 if moe else 0,
                "tied_embeddings": rng.random() < 0.3,
            },
            "search": search,
            "costs": _costs(rng, moe),
        },
    )


def _runs(rng: Random, moe: bool) -> list[str]:
    if not moe:
        return rng.choice([["dense"], ["dense", "dense"]])
    return rng.choice([["moe"], ["dense", "moe"], ["moe", "dense", "moe"]])


def _costs(rng: Random, moe: bool) -> Json:
    kinds = ["dense", "embedding", "head", *(["moe"] if moe else [])]
    # One step a table: of round seconds ties are many, of others none.
    step = rng.choice([1.0, 0.1, None])
    scale = rng.choice([0.0, 1.0])
    holes = rng.choice([0.0, 0.0, 0.1])
    # Both ends of nothing: then hops alone tell the first rank from the last.
    bare_ends = rng.random() < 0.4

    def seconds(most: int) -> float:
        return rng.random() * most if step is None else rng.randint(0, most) * step

    def link() -> dict[str, Json]:
        return {"alpha_s": scale * seconds(1), "beta_s_per_byte": scale * seconds(1)}

    rows: list[Json] = []
    for kind in kinds:
        experts = product(LISTS["ep"], LISTS["etp"]) if kind == "moe" else [(None, None)]
        for (ep, etp), tp, cp, sp, micro_batch in product(
            experts, LISTS["tp"], LISTS["cp"], [False, True], LISTS["micro_batch"]
        ):
            if rng.random() < holes:
                continue
            kept = sorted(float(rng.randint(0, 6) * micro_batch) for _ in range(3))
            rows.append(
                {
                    "kind": kind, "tp": tp, "cp": cp, "sp": sp, "micro_batch": micro_batch,
                    **({"ep": ep, "etp": etp} if kind == "moe" else {}),
                    "forward_s": seconds(3) * micro_batch, "backward_s": seconds(5) * micro_batch,
                    "comm_forward_s": seconds(1), "comm_backward_s": seconds(1), "selective_s": seconds(1),
                    "params": float(rng.randint(0, 4)),
                    "expert_params": float(rng.randint(0, 4)) if kind == "moe" else 0.0,
                    "kept_bytes": kept[2], "selective_bytes": kept[1], "input_bytes": kept[0],
                    "workspace_bytes": float(rng.choice([0, 0, 2])),
                }
            )  # fmt: skip
            if bare_ends and kind in ("embedding", "head"):
                rows[-1].update(dict.fromkeys(OF_ENDS, 0.0))
    return {
        "rows": rows,
        "collectives": {"intra": link(), "inter": link() | {"beta_of": rng.choice(["ring", "gpu"])}},
        "p2p": {"intra": link(), "inter": link()},
        "boundary_bytes_per_sample": seconds(2),
        "bytes_per_param": {"param": 2, "grad": rng.choice([2, 4]), "optimizer": rng.choice([0, 12])},
        "comm_bytes": {"param": 2, "grad": 4},
        "optimizer_s_per_param": rng.choice([0.0, 0.1]),
        "overlap": {"dp": rng.choice([0.0, 0.5, 1.0]), "p2p": rng.choice([0.0, 1.0])},
        "fixed_s": rng.choice([0.0, 0.5]),
        "fragmentation": rng.choice([0.0, 0.25]),
        "communicator_bytes": rng.choice([0.0, 1.0]),
    }
