"""Published step times of verl and NeMo-RL against stage times fitted to them, and where our choice of split ranks.

Tables: documentation of verl and NeMo-RL (Apache-2.0), read through PLAN_REAL_DATA. Colocated rows time every stage
alone; rows with a pool for each role overlap stages, so what they call generation is a wait, and leave some stages out.
A step mean and a run total of one row need not agree, so each is compared with its own kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from planner.papers.bidirl.costs.line_fit import Line, fit_line
from planner.papers.bidirl.logs.nemo_rl import Throughput, read_throughputs
from planner.papers.bidirl.logs.verl_modes import read_mode_runs
from planner.papers.bidirl.logs.verl_steps import StepTimes, read_step_times
from planner.papers.bidirl.measurements import StepRow
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import Space, best_split, objectives_s, space_of
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.sweep import best_at
from planner.papers.bidirl.time_kinds import Linear
from planner.papers.bidirl.warned.prices import POOR
from planner.validation import validate

WHERE = "PLAN_REAL_DATA"
TABLE_355, TABLE_446, TABLE_61, TABLE_257 = (
    "verl_fully_async_line355.csv", "verl_fully_async_line446.csv", "verl_one_step_off_line61.csv",
    "verl_v1_async_line257.csv",
)  # fmt: skip
NEMO = ("nemo_rl_perf_summary_line54.csv", "nemo_rl_perf_summary_line73.csv")
STALENESS = 0.5
"""Of the asynchronous rows of verl's tables by lines 355 and 446."""
NODE = 8


def print_published() -> None:
    """All tables; without them, why not."""
    folder = os.environ.get(WHERE)
    path = Path(folder) / "rl" if folder else None
    if path is None or not path.is_dir():
        print(f"published tables skipped: {WHERE} names no folder with rl/")
        return
    _print_verl(path / TABLE_355)
    _print_one_split(path / TABLE_446)
    _print_overlap(path / TABLE_61)
    runs = read_mode_runs(path / TABLE_257)
    print(f"{TABLE_257}: {len(runs)} modes of one number of nodes, no stage times: nothing to predict from, skipped\n")
    rows = [row for name in NEMO for row in read_throughputs(path / name)]
    _print_nemo(rows)


def _print_verl(path: Path) -> None:
    """Colocated rows of three sizes: fits to each stage; then the splits that the same table publishes."""
    rows = read_step_times(path)
    colocated = [row for row in rows if row.pools is not None and row.pools.shared]
    sizes = ", ".join(str(_gpus(row)) for row in colocated)
    print(f"{path.name}: alpha + beta / GPUs through colocated rows of {sizes} GPUs")
    for name, of_row in STAGES.items():
        print(f"  {name:13s} {_said(_fitted(colocated, of_row))}")
    rollout = _fitted(colocated, STAGES["gen"]).time
    for row in rows:
        if row.pools is not None and not row.pools.shared:
            same = next(each for each in colocated if _gpus(each) == row.pools.total)
            train = _fitted(colocated, partial(_training_s, like=row)).time
            _print_row(row, same, rollout, train, _fitted(colocated, STAGES["training"]).time)
    print()


def _fitted(rows: Sequence[StepTimes], of_row: Callable[[StepTimes], float | None]) -> Line:
    times = [(_gpus(row), of_row(row)) for row in rows]
    return _fit([(gpus, seconds) for gpus, seconds in times if seconds is not None])


def _print_one_split(path: Path) -> None:
    """One colocated row and one split: nothing but perfect scaling can be assumed."""
    rows = read_step_times(path)
    colocated = next(row for row in rows if row.pools is not None and row.pools.shared)
    split = next(row for row in rows if row.pools is not None and not row.pools.shared)
    gpus = _gpus(colocated)
    print(f"{path.name}: one colocated row of {gpus} GPUs; alpha 0 assumed, nothing is fitted")
    times = ((colocated.gen_s or 0.0), _training_s(colocated, split), _training_s(colocated))
    _print_row(split, colocated, *(Linear(beta_s=seconds * gpus) for seconds in times))
    print()


def _print_row(row: StepTimes, colocated: StepTimes, rollout: Linear, train: Linear, in_turn: Linear) -> None:
    """One published split: predicted and measured, the order of the rows of its size, its rank among all splits.

    ``train`` has the stages that the split runs, ``in_turn`` those of the colocated row.
    """
    pools = row.pools
    if pools is None:
        raise TypeError("a split has pools")
    problem = _problem(pools.total, rollout, train)
    space = space_of(problem)
    published, best = best_at(problem, space, pools.rollout), best_split(problem)
    if published is None or best is None:
        raise TypeError("published splits are of whole nodes")
    best_s, place, number = _ranked(problem, space, pools.rollout)
    split_s = figures_of(problem, published).objective_s
    in_turn_s = sum(time.alpha_s + time.beta_s / pools.total for time in (rollout, in_turn))
    print(
        f"  {pools.total} GPUs as {pools.rollout}+{pools.train}: {_beside(split_s, row.step_s)}; "
        f"in turn {_beside(in_turn_s, colocated.step_s)}"
    )
    totals = sorted(set(row.run_s) & set(colocated.run_s))
    faster = ", ".join(f"{colocated.run_s[steps] / row.run_s[steps]:.2f} ({steps} steps)" for steps in totals)
    means = colocated.step_s / row.step_s
    print(f"    in turn over split: predicted {in_turn_s / split_s:.2f}, step means {means:.2f}, runs {faster}")
    ours, theirs = split_s < in_turn_s, row.step_s < colocated.step_s
    print(
        f"    of the two rows we choose {'the split' if ours else 'in turn'}, rank {1 if ours == theirs else 2} of 2; "
        f"of {number} splits by whole nodes {best.rollout_gpus}+{best.train_gpus}, theirs is our number {place} "
        f"({split_s / best_s:.2f})"
    )


def _beside(predicted_s: float, published_s: float) -> str:
    return f"predicted {predicted_s:.0f} s a step, published {published_s:.0f} s ({predicted_s / published_s - 1:+.1%})"


def _problem(gpus: int, rollout: Linear, train: Linear) -> BidirlProblem:
    """One-GPU replicas in whole nodes, without lending and without a sync time, which the tables do not state."""
    return validate(
        BidirlProblem,
        {
            "paper": "bidirl",
            "cluster": {"gpus": gpus, "gpus_per_node": NODE, "gpu_memory_bytes": 80e9},
            "batch": {"prompt_groups": 512, "max_response_tokens": 28672, "train_chunks": 512},
            "staleness": STALENESS,
            "objective": "period",
            "split_granularity_gpus": NODE,
            "hot_switch": {"rollout_on_train": False, "train_on_rollout": False},
            "costs": {
                "weight_sync_s": 0.0,
                "rollout_layouts": [{"id": "tp1", "gpus": 1, "memory_bytes": 0, "time": rollout}],
                "train_layouts": [{"id": "fsdp1", "gpus": 1, "memory_bytes": 0, "time": train}],
            },
        },
    )


def _ranked(problem: BidirlProblem, space: Space, rollout_gpus: int) -> tuple[float, int, int]:
    """The least objective of all splits, the place of one among them from 1, and their number."""
    judged = objectives_s(problem, space, 0)[0]
    allowed = sorted(each for each in judged.tolist() if each < float("inf"))
    return allowed[0], allowed.index(float(judged[rollout_gpus])) + 1, len(allowed)


def _print_overlap(path: Path) -> None:
    """Rows that time each pool's own work: (2) at one version of staleness, on the row's own stages."""
    print(f"{path.name}: (2) at staleness 1 on the stage times of the row itself")
    for row in read_step_times(path):
        if row.generate_sequences_s is None or row.gen_s is not None:
            continue
        rollout_s, train_s = row.generate_sequences_s, _training_s(row)
        beside = _beside(max(rollout_s, train_s), row.step_s)
        print(f"  line {row.line}: rollout {rollout_s:.0f} s, training {train_s:.0f} s: {beside}")
    print()


def _print_nemo(rows: Sequence[Throughput]) -> None:
    """Whole steps on policy by GPUs: two rows fit two coefficients exactly, so perfect scaling is shown beside it."""
    print("NeMo-RL: whole steps only, no row varies the split; on-policy rows by model")
    for model in sorted({row.model for row in rows}):
        of_model = [row for row in rows if row.model == model]
        on_policy = [(row.gpus, row.step_s) for row in of_model if not row.staleness]
        if len({gpus for gpus, _ in on_policy}) < 2:
            print(f"  {model}: fewer than two numbers of GPUs on policy, nothing is fitted")
        else:
            print(f"  {model}: {_said(_fit(on_policy))}, as exact as two rows always are")
            print(f"  {'':{len(model)}}  without alpha: {_said(_fit(on_policy, alpha_s=0.0))}")
        for row in of_model:
            same = next((each for each in of_model if not each.staleness and each.gpus == row.gpus), None)
            if row.staleness and same is not None:
                ratio = f"{same.step_s / row.step_s:.2f}"
                print(f"  {'':{len(model)}}  {row.gpus} GPUs: {ratio} times as fast {row.staleness} steps off policy")


def _fit(pairs: Sequence[tuple[int, float]], alpha_s: float | None = None) -> Line:
    rows = [StepRow(replicas=gpus, time_s=seconds) for gpus, seconds in pairs]
    return fit_line(rows, alpha_s=alpha_s, gamma_s_per_token=0.0, max_tokens=1.0, where="")


def _said(line: Line) -> str:
    """Coefficients, the error of each row, and whether the fit is to be believed."""
    errors = "/".join(f"{error:+.1%}" for error in line.errors)
    fit = line.time.fit
    if fit is None:
        raise TypeError("a fitted line says how it was fitted")
    flag = "POOR, flagged" if fit.p90_error > POOR else "not flagged"
    return (
        f"alpha {line.time.alpha_s:.4f} s, beta {line.time.beta_s:.2f} GPU-s, errors {errors}, median "
        f"{fit.median_error:.1%}, p90 {fit.p90_error:.1%}: {flag}"
    )


def _gpus(row: StepTimes) -> int:
    if row.pools is None:
        raise TypeError("the rows of this table say their GPUs")
    return row.pools.total


def _training_s(row: StepTimes, like: StepTimes | None = None) -> float:
    """All stages of training; of those another row runs alone where one is given."""
    run = like or row
    old_s = row.old_log_prob_s if run.old_log_prob_s is not None else None
    ref_s = row.ref_s if run.ref_s is not None else None
    return row.update_actor_s + (old_s or 0.0) + (ref_s or 0.0)


STAGES: dict[str, Callable[[StepTimes], float | None]] = {
    "gen": lambda row: row.gen_s,
    "old_log_prob": lambda row: row.old_log_prob_s,
    "update_actor": lambda row: row.update_actor_s,
    "training": _training_s,
    "step": lambda row: row.step_s,
}
