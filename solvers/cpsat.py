"""CP-SAT: runs a native model within limits and translates its answer. Modelling stays with the caller."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from solvers.report import Limits, Status

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

ENGINE = "cp-sat"


@dataclass(frozen=True)
class Answer:
    """``values`` are those of the variables asked for, None without a solution; ``bound`` is in model units.

    ``timed_out``: the wall clock, not the deterministic budget, ended it without values to keep.

    A model without an objective answers OPTIMAL for any solution, with objective and bound 0.
    """

    status: Status
    values: tuple[int, ...] | None
    objective: float
    bound: float
    timed_out: bool = False


def run(
    model: cp_model.CpModel,
    wanted: list[cp_model.IntVar],
    limits: Limits,
    deterministic_time: float,
    linearization: int = 1,
) -> Answer:
    """Solve with one worker per ``limits.workers``, a fixed seed and ``deterministic_time`` × effort.

    ``linearization`` 0 to 2 is how much of the model becomes linear relaxations: none, CP-SAT's default, all.

    When the wall-clock limit fires first, the answer depends on the machine and is dropped unless ``keep_best``.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.max_deterministic_time = deterministic_time * limits.effort
    solver.parameters.relative_gap_limit = limits.gap
    solver.parameters.linearization_level = linearization
    if limits.time_limit_s is not None:
        solver.parameters.max_time_in_seconds = limits.time_limit_s
    code = _interruptible(solver, model)
    if code == cp_model.MODEL_INVALID:
        raise ValueError(model.validate())
    if code == cp_model.INFEASIBLE:
        return Answer(Status.INFEASIBLE, None, 0.0, 0.0)
    cut_short = limits.time_limit_s is not None and solver.wall_time >= limits.time_limit_s
    if code == cp_model.UNKNOWN or (code == cp_model.FEASIBLE and cut_short and not limits.keep_best):
        return Answer(Status.LIMIT, None, 0.0, 0.0 if cut_short else solver.best_objective_bound, cut_short)
    # With a gap CP-SAT says OPTIMAL for "within the gap".
    proved = code == cp_model.OPTIMAL and solver.objective_value <= solver.best_objective_bound
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    values = tuple(solver.value(variable) for variable in wanted)
    return Answer(status, values, solver.objective_value, solver.best_objective_bound)


def _interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel) -> int:
    """Solve so that Ctrl-C and the alarm of a time limit reach the main thread at once and end the search.

    OR-Tools would take the signal for itself and pass a cut-short answer off as a finished one.
    """
    solver.parameters.catch_sigint_signal = False
    if threading.current_thread() is not threading.main_thread():
        return int(solver.solve(model))
    codes: list[int] = []
    done = threading.Event()

    def work() -> None:
        try:
            codes.append(int(solver.solve(model)))
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        # Not Thread.join: when a signal interrupts that, Python takes the thread for finished.
        while not done.wait(0.1):
            pass
    except BaseException:
        while not done.wait(0.05):
            solver.stop_search()
        raise
    if not codes:
        raise RuntimeError("the solver thread ended without an answer")
    return codes[0]


def engine_version() -> str:
    """The version of OR-Tools."""
    return version("ortools")
