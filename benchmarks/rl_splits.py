"""BiDiRL: time to plan by GPUs and layouts, to replay by steps, and what published tables say of the model.

Times are of a warm process, each the best of some runs.
"""

from __future__ import annotations

from typing import Any

from measure import best_of
from published_splits import print_published

from planner.papers.bidirl.check import check
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.fractional import fractional_bound_s
from planner.papers.bidirl.policies import replayed
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.replay.of_split import setting_of
from planner.papers.bidirl.replay.setting import Setting
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.solution import POLICIES, Policy
from planner.papers.bidirl.split_figures import figures_of
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]

GPUS = (64, 1024)
LAYOUTS = 12
PLAN_S, IDLE_S, REPLAY_S, LONG_REPLAY_S = 0.05, 0.5, 1.0, 10.0
"""Of the target: a plan at 1,024 GPUs, with idle GPUs, every policy over 100 steps, one over 10,000."""
KINDS = ("linear", "lengths and stages")


def main(smoke: bool) -> None:
    """Print times of planning and of replays, then the study of published tables."""
    runs = 1 if smoke else 5
    columns = " ".join(f"{name:>8s}" for name in ("search", "bound", "plan", "check"))
    print(f"{'GPUs':>5s} {'layouts':>7s} {'times':18s} {'idle':>4s} {columns}  ms")
    for gpus in GPUS[:1] if smoke else GPUS:
        for kind in KINDS:
            for idle in (False, True):
                print(_planned(gpus, kind, runs, idle=idle), flush=True)
    print(f"  target at {GPUS[-1]:,}: search <= {PLAN_S * 1e3:.0f} ms, with idle GPUs <= {IDLE_S * 1e3:.0f} ms\n")
    for steps in (100,) if smoke else (100, 10_000):
        _print_replays(steps, runs)
    print(f"  target: 100 steps of all policies <= {REPLAY_S:.0f} s, 10,000 of one <= {LONG_REPLAY_S:.0f} s\n")
    print_published()


def document(gpus: int, kind: str, *, steps: int = 20, idle: bool = False) -> Document:
    """Layouts of 1 to 16 GPUs in either role, twelve of each; larger replicas are a little less efficient."""
    sizes = [1, 1, 1, 2, 2, 2, 4, 4, 8, 8, 16, 16]
    rollout = [_layout(f"r{place}", size, _rollout(kind, size, place)) for place, size in enumerate(sizes)]
    train = [_layout(f"t{place}", size, _train(kind, size, place)) for place, size in enumerate(sizes)]
    return {
        "paper": "bidirl",
        "cluster": {"gpus": gpus, "gpus_per_node": 8, "gpu_memory_bytes": 80e9},
        "batch": {"prompt_groups": 512, "responses_per_group": 8, "max_response_tokens": 16384, "train_chunks": 512},
        "staleness": 1.0,
        "objective": "period",
        "allow_idle_gpus": idle,
        "costs": {
            "weight_sync_s": 2.0,
            "rollout_layouts": rollout[:LAYOUTS],
            "train_layouts": train[:LAYOUTS],
            "switch": {
                "rollout_on_train": {"in_s": 7.7, "out_s": 5.59},
                "train_on_rollout": {"in_s": 6.16, "out_s": 5.62, "grad_s": 1.21},
            },
        },
        "simulation": {
            "steps": steps,
            "responses": {"distribution": "lognormal", "median": 3000, "sigma": 0.8, "cap": 16384},
            "batches": min(steps, 100),
        },
    }


def _layout(name: str, gpus: int, time: Document) -> Document:
    return {"id": name, "gpus": gpus, "memory_bytes": 40e9, "time": time}


def _rollout(kind: str, gpus: int, place: int) -> Document:
    slower = 1 + 0.03 * place
    if kind == "linear":
        return {"kind": "linear", "alpha_s": 5.0, "beta_s": 40000 * slower / gpus, "gamma_s_per_token": 0.004}
    return {
        "kind": "lengths", "alpha_s": 4.0, "prompt_tokens": 1024, "prefill_s_per_token": 2e-5 * slower / gpus,
        "mean_response_tokens": 4000, "concurrency": 64 * gpus, "step_base_s": 0.008,
        "step_per_sequence_s": 0.0002 * slower / gpus,
    }  # fmt: skip


def _train(kind: str, gpus: int, place: int) -> Document:
    slower = 1 + 0.03 * place
    if kind == "linear":
        return {"kind": "linear", "alpha_s": 8.0, "beta_s": 30000 * slower / gpus}
    chunk_s = 40 * slower / gpus
    stages = [("old_log_prob", 0.3 * chunk_s), ("ref_log_prob", 0.3 * chunk_s), ("update", chunk_s)]
    return {
        "kind": "stages",
        "stages": [{"name": name, "fixed_s": 1.0, "chunks": 512, "chunk_s": each} for name, each in stages],
    }


def _posed(given: Document) -> BidirlProblem:
    return validate(BidirlProblem, given).sorted()


def _planned(gpus: int, kind: str, runs: int, *, idle: bool) -> str:
    problem = _posed(document(gpus, kind, idle=idle))
    searched_s, split = best_of(runs, lambda: best_split(problem))
    reached_s = figures_of(problem, split).objective_s
    bound_s, _ = best_of(runs, lambda: fractional_bound_s(problem, reached_s))
    solved_s, (solution, _) = best_of(runs, lambda: solve(problem, None, Limits()))
    checked_s, violations = best_of(1, lambda: check(problem, solution))
    assert not violations
    assert (split.rollout_gpus, split.train_gpus) == (solution.rollout_gpus, solution.train_gpus)
    pairs = f"{len(problem.costs.rollout_layouts)}x{len(problem.costs.train_layouts)}"
    times = " ".join(f"{seconds * 1e3:8.1f}" for seconds in (searched_s, bound_s, solved_s, checked_s))
    return f"{gpus:5,d} {pairs:>7s} {kind:18s} {'yes' if idle else 'no':>4s} {times}"


def _print_replays(steps: int, runs: int) -> None:
    """Every policy by itself and all of them, over drawn batches, for each staleness."""
    for staleness in (0.0, 0.5, 1.0, 4.0):
        given = document(64, "linear", steps=steps) | {"staleness": staleness}
        problem = _posed(given)
        split = best_split(problem)
        if split is None:
            raise TypeError("the problem has splits")
        setting = setting_of(problem, split)
        taken = {policy: _replay_s(setting, policy, runs) for policy in POLICIES if policy != "half_split"}
        slowest = max(taken, key=lambda policy: taken[policy])
        print(
            f"{steps:6,d} steps, staleness {staleness:g}: all policies {sum(taken.values()) * 1e3:7.1f} ms, slowest "
            f"{slowest} {taken[slowest] * 1e3:.1f} ms, {taken[slowest] / steps * 1e6:.1f} µs a step",
            flush=True,
        )


def _replay_s(setting: Setting, policy: Policy, runs: int) -> float:
    return best_of(runs if setting.steps <= 100 else 1, lambda: replayed(setting, policy))[0]
