"""FinDEP's search: time a split over boxes and layers, beside a full replay of the box, and what it finds by length.

Times are of a warm process from the typed problem to the solution with its timeline.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
from measure import best_of

from planner.comparison import compare_document
from planner.papers.findep.certificate import bounds
from planner.papers.findep.engines import solve
from planner.papers.findep.problem import FindepProblem, Order
from planner.papers.findep.scan import replay_all, scan
from planner.papers.findep.schedule import build_solution
from planner.plan import Options
from planner.validation import validate
from solvers.report import Limits

LAYERS = (16, 60, 200)
BOXES = ((16, 4, 16), (64, 8, 64), (256, 16, 64))
MODELS = ("qwen3-235b-a22b", "deepseek-v3")
PROMPTS = (512, 1024, 2048, 4096, 8192)


def main(smoke: bool) -> None:
    """Print planning time by layers and box, then equality with the full replay over random problems."""
    print(
        f"{'layers':>6s} {'m_a x r1 x r2':>13s} {'candidates':>10s} {'scan ms med':>11s} {'max':>6s} {'timeline':>8s} "
        f"{'bounds':>7s} {'replay all':>10s} {'x scan':>7s}"
    )
    for num_layers in LAYERS[:1] if smoke else LAYERS:
        for box in BOXES[:1] if smoke else BOXES:
            print(_row(num_layers, box, 2 if smoke else 6), flush=True)
    _equality(10 if smoke else 400)
    _by_length(MODELS[:1] if smoke else MODELS, PROMPTS[:1] if smoke else PROMPTS)


def random_problem(seed: int, num_layers: int, box: Sequence[int], rounding: str = "real") -> FindepProblem:
    """Costs of one order of magnitude about each other, so that none of the resources is idle for good."""
    source = np.random.default_rng(seed)
    tokens = int(source.choice([1, 64, 1024]))
    ag, eg, experts, top_k = 8, 8, 64, 6
    routed = ag * top_k * tokens / experts

    def line(name: str, per_unit: float) -> dict[str, float]:
        return {"alpha_s": float(10 ** source.uniform(-5, -4)), name: per_unit * float(10 ** source.uniform(-1, 1))}

    per_sample = 1e-4
    document = {
        "num_layers": num_layers,
        "num_experts": experts,
        "top_k": top_k,
        "tokens_per_sample": tokens,
        "attention": line("beta_s_per_sample", per_sample),
        "shared_expert": line("beta_s_per_sample", per_sample / 3) if source.random() < 0.8 else None,
        "expert": line("beta_s_per_token", per_sample / routed / (experts // eg)),
        "splits": [
            {"attention_gpus": ag, "expert_gpus": eg, "a2e": line("beta_s_per_token", per_sample / routed / 16)},
        ],
        "search": {"max_m_a": box[0], "max_r1": box[1], "max_r2": box[2], "token_rounding": rounding},
    }
    return validate(FindepProblem, document)


def _row(num_layers: int, box: Sequence[int], instances: int) -> str:
    scans, timelines, proofs, replays = [], [], [], []
    candidates = 0
    for seed in range(instances):
        problem = random_problem(seed, num_layers, box)
        scan_s, scanned = best_of(3, lambda problem=problem: scan(problem))
        assert scanned.best is not None
        timeline_s, solution = best_of(
            1, lambda problem=problem, found=scanned: build_solution(problem, found.best, found.free_order_bound)
        )
        scans.append(scan_s)
        timelines.append(timeline_s)
        proofs.append(best_of(1, lambda problem=problem, made=solution: bounds(problem, made, False, 1.0))[0])
        if num_layers * np.prod(box) <= 60 * 64 * 8 * 64:
            replay_s, (best, candidates) = best_of(1, lambda problem=problem: replay_all(problem))
            replays.append(replay_s)
            assert best is not None
            assert abs(best.objective / solution.objective - 1) <= 1e-9
    whole = f"{statistics.median(replays) * 1e3:10.0f}" if replays else f"{'-':>10s}"
    ratio = f"{statistics.median(r / s for r, s in zip(replays, scans, strict=True)):7.1f}" if replays else f"{'-':>7s}"
    median_ms = [statistics.median(values) * 1e3 for values in (scans, timelines, proofs)]
    return (
        f"{num_layers:6d} {'x'.join(map(str, box)):>13s} {candidates or '-':>10} {median_ms[0]:11.1f} "
        f"{max(scans) * 1e3:6.1f} {median_ms[1]:8.1f} {median_ms[2]:7.1f} {whole} {ratio}"
    )


def _equality(instances: int) -> None:
    """The scan against a full replay of the box, in either order alone as well."""
    worst = 0.0
    better = {"AASS": 0, "ASAS": 0}
    gaps = []
    for seed in range(instances):
        problem = random_problem(seed, 60, (8, 4, 16), "ceil" if seed % 2 else "real")
        solution, _ = solve(problem, None, Limits())
        best, _ = replay_all(problem)
        assert best is not None
        worst = max(worst, abs(best.objective / solution.objective - 1))
        gaps.append(solution.free_order_bound / solution.objective - 1)
        alone = {order: _in_order(problem, order) for order in better}
        for order, other in (("AASS", "ASAS"), ("ASAS", "AASS")):
            better[order] += alone[order] > alone[other] * (1 + 1e-9)
    print(
        f"\n{instances} random problems of 60 layers, box 8x4x16: worst difference from the full replay {worst:.1e}; "
        f"AASS is the better order in {better['AASS']}, ASAS in {better['ASAS']}; any order is at most "
        f"{statistics.median(gaps):.2%} (median), {max(gaps):.2%} (worst) better\n"
    )


def _in_order(problem: FindepProblem, order: Order) -> float:
    search = problem.search.model_copy(update={"orders": (order,)})
    best = scan(problem.model_copy(update={"search": search})).best
    assert best is not None
    return best.objective


def _by_length(models: Sequence[str], lengths: Sequence[int]) -> None:
    """Gain over the baselines as prompts grow, 8,192 tokens a micro-batch and attention GPU at most."""
    names = ("naive", "pppipe", "dbo2")
    heads = " ".join(f"{'/' + name:>8s}" for name in names)
    print(f"{'model, 8 + 8 A100':20s} {'prompt':>6s} {'m_a, r1, r2, order':>20s} {heads}")
    for model in models:
        for prompt in lengths:
            comparison = compare_document(_prefill(model, prompt), Options())
            solution, reached = comparison.plan.solution, comparison.plan.certificate.objective
            gains = {b.name: reached / b.objective for b in comparison.baselines if b.objective}
            choice = f"{solution.m_a}, {solution.r1}, {solution.r2}, {solution.order}"
            cells = " ".join(f"{gains[name]:8.3f}" for name in names)
            print(f"{model:20s} {prompt:6d} {choice:>20s} {cells}", flush=True)


def _prefill(model: str, prompt: int) -> dict[str, object]:
    return {
        "paper": "findep",
        "derive": {
            "profile": "a100-sxm",
            "model": model,
            "extrapolate": "roofline",
            "phase": "prefill",
            "prompt_tokens": prompt,
            "cluster": {
                "num_ranks": 16,
                "gpus_per_node": 8,
                "inter_node": {"bandwidth_bytes_per_s": 25e9, "latency_s": 1e-5},
            },
            "splits": [{"attention_gpus": 8, "expert_gpus": 8}],
            "memory": None,
        },
        "search": {"max_m_a": max(1, 8192 // prompt), "max_r1": 4, "max_r2": 32},
    }
