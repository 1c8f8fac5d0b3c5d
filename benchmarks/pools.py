"""Janus's pools: time to size them by the limits, beside plain enumeration; a day of public traces; the paper's shapes.

Times are of a warm process from the typed problem to the solution, or to the explained error. The traces are read from
the folder that PLAN_REAL_DATA names; without it that part is left out.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import best_of

from planner.comparison import compare_document
from planner.errors import InfeasibleError
from planner.paper import DeriveOptions
from planner.papers.janus.baselines import baselines
from planner.papers.janus.engines import solve
from planner.papers.janus.options import operating_point, options
from planner.papers.janus.problem import JanusProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.sizing import solve_series
from planner.plan import Options
from planner.pose import pose
from planner.validation import validate
from solvers.report import Limits

LIMITS = (64, 256, 1024)
POINTS = (8, 16)
DAY_S = 86_400.0
TRACES = ("azure2023/AzureLLMInferenceTrace_conv.csv", "mooncake/conversation_trace_first3000.jsonl")
SHAPES = ((64, "1A6E"), (256, "2A6E"), (512, "4A6E"))
"""Requests in flight of the paper's operating points, and pools it shows there."""


def main(smoke: bool) -> None:
    """Print sizing times and their growth, then the traces, then the shapes."""
    _sizing(LIMITS[:1] if smoke else LIMITS, 1 if smoke else 5)
    _traces(TRACES[:1] if smoke else TRACES, 1 if smoke else 3)
    _shapes(SHAPES[:1] if smoke else SHAPES)


def random_pools(seed: int, limit: int, points: int) -> dict[str, Any]:
    """Pools of up to ``limit`` GPUs for a model of 160 experts; without a demand."""
    draw = np.random.default_rng(seed)

    def about(value: float) -> float:
        return float(value * draw.uniform(0.7, 1.4))

    grid = [1 << (place * 16 // (points - 1)) for place in range(points)]
    return {
        "paper": "janus",
        "task": "scaling",
        "num_layers": 60,
        "num_experts": 160,
        "top_k": 6,
        "slots_per_instance": 27,
        "slo_tpot_s": 0.1,
        "context_tokens": 2000,
        "attention": {"floor_s": about(1.5e-4), "per_request_s": about(4e-7), "per_cached_token_s": about(4e-10)},
        "moe": {"per_expert_s": about(1.8e-5), "base_s": about(6e-5)},
        "comm": {
            "kind": "two_phase",
            "gpus_per_node": 8,
            "bytes_per_request": 10240.0,
            **{
                name: {"alpha_s": about(alpha), "beta_s_per_byte": about(beta)}
                for name, alpha, beta in (
                    ("gather", 1e-5, 4e-12),
                    ("network", 2e-5, 5e-12),
                    ("multicast", 1e-5, 4e-12),
                    ("reduce", 1e-5, 4e-12),
                )
            },
        },
        "a_max": {"kind": "binomial_bound", "batch_grid": grid},
        "memory": {"capacity_bytes": 8e10, "attention_fixed_bytes": 2.5e10, "kv_bytes_per_token": 69120.0},
        "limits": {"max_attention_instances": limit, "max_expert_instances": limit, "max_total_instances": limit},
    }


def _sizing(limits: Sequence[int], seeds: int) -> None:
    print(
        f"{'GPUs':>5s} {'points':>6s} | {'feasible ms':>11s} {'max':>6s} {'total':>6s} {'enumerate/search':>16s} | "
        f"{'infeasible ms':>13s} {'max':>6s} {'code':>10s}"
    )
    medians: dict[tuple[int, str], float] = {}
    for points in POINTS:
        for limit in limits:
            yes, no, ratios, totals, codes = [], [], [], [], set()
            for seed in range(seeds):
                problem = _feasible(seed, limit, points)
                took, (solution, _) = best_of(3, lambda problem=problem: solve(problem, None, Limits()))
                slow, (other, _) = best_of(1, lambda problem=problem: solve(problem, "enumerate", Limits()))
                assert other == solution
                yes.append(took)
                ratios.append(slow / took)
                totals.append(solution.total_instances)
                late = _too_soon(problem)
                refused, code = best_of(3, lambda problem=late: _refused(problem))
                no.append(refused)
                codes.add(code)
            medians[limit, "feasible"], medians[limit, "infeasible"] = statistics.median(yes), statistics.median(no)
            print(
                f"{limit:5d} {points:6d} | {statistics.median(yes) * 1e3:11.1f} {max(yes) * 1e3:6.1f} "
                f"{statistics.median(totals):6.0f} {statistics.median(ratios):16.1f} | "
                f"{statistics.median(no) * 1e3:13.1f} {max(no) * 1e3:6.1f} {'/'.join(sorted(codes)):>10s}",
                flush=True,
            )
        if len(limits) > 1:
            for kind in ("feasible", "infeasible"):
                growth = math.log(medians[limits[-1], kind] / medians[limits[0], kind], limits[-1] / limits[0])
                print(f"  {kind}: time grows as limit^{growth:.2f} from {limits[0]} to {limits[-1]}")


def _feasible(seed: int, limit: int, points: int) -> ScalingProblem:
    """The largest demand, each tried a quarter above the last, that half of the limit carries."""
    document = random_pools(seed, limit // 2, points)
    demand, problem = 100.0, None
    while True:
        posed = validate(JanusProblem, document | {"demand_tokens_per_s": demand})
        try:
            solve(posed, None, Limits())
        except InfeasibleError:
            break
        problem, demand = document | {"demand_tokens_per_s": demand}, 1.25 * demand
    assert problem is not None
    whole = random_pools(seed, limit, points) | {"demand_tokens_per_s": problem["demand_tokens_per_s"]}
    found = validate(JanusProblem, whole)
    assert isinstance(found, ScalingProblem)
    return found


def _too_soon(problem: ScalingProblem) -> ScalingProblem:
    """The same with an SLO that nothing meets."""
    return problem.model_copy(update={"slo_tpot_s": problem.num_layers * problem.attention.floor_s})


def _refused(problem: ScalingProblem) -> str:
    try:
        solve(problem, None, Limits())
    except InfeasibleError as error:
        return error.code
    raise AssertionError("pools met an SLO that nothing meets")


def _traces(traces: Sequence[str], scales: int) -> None:
    folder = os.environ.get("PLAN_REAL_DATA")
    if folder is None or not Path(folder, "traces").is_dir():
        print("\nPLAN_REAL_DATA names no folder of traces: left out")
        return
    print(
        f"\n{'Qwen3-235B, up to 512 H200, 60 ms, 15 min':46s} {'x':>4s} {'tokens/s':>13s} {'GPUs':>8s} "
        f"{'GPU-hours':>9s} {'one pool':>8s} {'balance':>8s} {'peak':>8s} {'solve s':>7s}"
    )
    for name in traces:
        for scale in (1.0, 10.0, 40.0)[:scales]:
            print(_day(Path(folder, "traces", name), scale), flush=True)


def _day(path: Path, scale: float) -> str:
    document = {
        "paper": "janus",
        "task": "series",
        "derive": _derive("h200-sxm", "qwen3-235b-a22b", "bf16", 512),
        "slo_tpot_s": 0.06,
        "arrivals": {"path": path.name, "interval_s": 900.0, "tile_to_s": DAY_S, "scale": scale},
    }
    problem = pose(document, DeriveOptions(base_folder=str(path.parent))).problem
    assert isinstance(problem, SeriesProblem)
    begin = time.perf_counter()
    solution = solve_series(problem)
    took = time.perf_counter() - begin
    others = {found.name: found.objective for found in baselines(problem, Limits())}
    demands = [interval.demand_tokens_per_s for interval in problem.series]
    totals = [pools.attention_instances + pools.expert_instances for pools in solution.intervals]

    def beside(name: str) -> str:
        hours = others.get(name)
        return f"{'-' if hours is None else format(solution.gpu_hours / hours - 1, '+.1%'):>8s}"

    return (
        f"{path.name:46s} {scale:4.0f} {min(demands):6.0f}-{max(demands):6.0f} {min(totals):3d}-{max(totals):4d} "
        f"{solution.gpu_hours:9.0f} {beside('monolithic')} {beside('megascale')} {beside('peak')} {took:7.2f}"
    )


def _derive(profile: str, model: str, dtype: str, ranks: int) -> dict[str, Any]:
    link = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
    cluster = {"num_ranks": ranks, "gpus_per_node": 8, "inter_node": link}
    return {"profile": profile, "model": model, "dtype": dtype, "extrapolate": "roofline", "cluster": cluster}


def _shapes(shapes: Sequence[tuple[int, str]]) -> None:
    """The requests in flight of the paper's points on our costs of its model and GPU, 27 slots, 512 tokens of context.

    A demand of B / SLO tokens a second is carried by the pools that make tokens of B requests in time.
    """
    print("\nDeepSeek-V2 on H100, 27 slots, 512 tokens of context: shapes by our costs, not the paper's testbed")
    print(
        f"{'SLO ms':>6s} {'B':>4s} {'paper':>6s} {'plan':>6s} {'TPOT ms':>7s} {'tokens/s/GPU':>12s} baselines in GPUs"
    )
    for slo_s in (0.05, 0.1, 0.15):
        for batch, shown in shapes:
            document = {
                "paper": "janus",
                "task": "scaling",
                "derive": _derive("h100-sxm", "deepseek-v2", "bf16", 64)
                | {"slots_per_instance": 27, "baselines": {"fixed_ratio": [1, 1]}},
                "slo_tpot_s": slo_s,
                "demand_tokens_per_s": batch / slo_s,
                "context_tokens": 512,
            }
            try:
                found = compare_document(document, Options())
            except InfeasibleError as error:
                print(f"{slo_s * 1e3:6.0f} {batch:4d} {shown:>6s} {error.code}")
                continue
            solution, problem = found.plan.solution, found.plan.problem
            point = operating_point(
                options(problem)[0], solution.attention_instances, solution.expert_instances, batch / slo_s
            )
            assert point is not None
            others = ", ".join(f"{each.name} {each.objective or 0:.0f}" for each in found.baselines)
            print(
                f"{slo_s * 1e3:6.0f} {batch:4d} {shown:>6s} "
                f"{solution.attention_instances}A{solution.expert_instances}E{'':2s} {point.tpot_s * 1e3:7.1f} "
                f"{solution.tokens_per_s_per_gpu:12.0f} {others}",
                flush=True,
            )
