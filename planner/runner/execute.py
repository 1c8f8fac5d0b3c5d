"""Run a plan's program on processes of this machine: one a rank, medians over repeats, beside the prediction."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from planner.errors import BadInputError, LimitError, RefutedError
from planner.plan import Plan
from planner.program import Beside, Program, RunReport, Stated
from planner.runner.guard import cores, refuse_too_much
from planner.runner.numerics import TOLERANCES
from planner.runner.rank import RankReport, Step, run_rank
from profiles.measure.kernels import cpu_kernels
from profiles.measure.processes import RankError, Ranks


@dataclass(frozen=True)
class RunOptions:
    """How to run: ``library`` and ``transport`` None are torch and gloo where torch is importable."""

    repeats: int = 3
    library: str | None = None
    transport: str | None = None
    stated: Stated = field(default_factory=Stated)
    force: bool = False
    timeout_s: float = 3600.0


def run_plan(plan: Plan, options: RunOptions) -> RunReport:
    """Execute a plan that is true, and report measured beside predicted.

    Raises BadInputError for a paper that cannot be run, a plan without its model, a dtype the library has not, or more
    than the machine can do; RefutedError if split attention differs from whole; LimitError if a rank dies or is silent.
    """
    if plan.paper.run is None:
        raise BadInputError(f"plan run cannot execute {plan.paper.name} plans yet", code="out_of_range", where="paper")
    program: Program = plan.paper.run(plan.problem, plan.solution, plan.inputs.derive, options.stated)
    _refuse_dtype(program, options)
    if not options.force:
        refuse_too_much(program)
    try:
        with Ranks(program.ranks, options.transport, timeout_s=options.timeout_s) as ranks:
            return run_program(program, ranks, options)
    except RankError as error:
        raise LimitError(f"{error.message}: the plan did not run to its end", code="rank") from None


def run_program(program: Program, ranks: Ranks, options: RunOptions) -> RunReport:
    """`run_plan` on processes that are already there, as many as the program has ranks."""
    return _report(program, ranks.call(run_rank, program, options.library, options.repeats), ranks.transport)


def _refuse_dtype(program: Program, options: RunOptions) -> None:
    kernels = cpu_kernels(options.library)
    transport = options.transport
    known = tuple(d for d in kernels.dtypes if d in TOLERANCES and (d == "fp32" or transport != "shared_memory"))
    if program.dtype not in known:
        raise BadInputError(
            f"{kernels.name} runs {', '.join(known)} here, the plan is priced in {program.dtype} (--dtype runs it in "
            "another)",
            code="out_of_range",
            where="inputs.derive.dtype",
        )


def _report(program: Program, reports: list[RankReport], transport: str) -> RunReport:
    numerics: dict[str, float] = {}
    for report in reports:
        for config, worst in report.numerics.items():
            numerics[config] = max(worst, numerics.get(config, 0.0))
    for config, worst in sorted(numerics.items()):
        if not worst <= TOLERANCES[program.dtype]:
            raise RefutedError(
                f"attention split by {config} differs from whole attention by {worst:.3g} of the largest value",
                code="split_attention",
                where=f"problem.configs.{config}",
            )
    makespans = [_makespan_s(steps) for steps in zip(*(report.steps for report in reports), strict=True)]
    middle = sorted(range(len(makespans)), key=makespans.__getitem__)[(len(makespans) - 1) // 2]
    chosen = [report.steps[middle] for report in reports]
    return RunReport(
        kernels=reports[0].kernels,
        transport=transport,
        dtype=program.dtype,
        profile=program.profile,
        shared_cores=program.ranks > cores(),
        starved_s=tuple(step.starved_s for step in chosen),
        makespans_s=tuple(makespans),
        makespan=Beside("makespan", program.makespan_s, statistics.median(makespans)),
        ranks=tuple(
            Beside(f"rank {rank}", program.rank_s[rank], statistics.median(_busy_s(step) for step in report.steps))
            for rank, report in enumerate(reports)
        ),
        waits_s=tuple(step.wait_s for step in chosen),
        kinds=_kinds(program, reports),
        memory=tuple(
            Beside(f"rank {rank}", (program.rank_peak_bytes or program.rank_bytes)[rank], float(report.peak_bytes))
            for rank, report in enumerate(reports)
            if report.peak_bytes is not None
        ),
        rank_work_s=tuple({**step.work_s, "other": _busy_s(step) - sum(step.work_s.values())} for step in chosen),
        numerics=numerics,
    )


def _makespan_s(steps: tuple[Step, ...]) -> float:
    """From the first start to the last end; all ranks of one machine read the same clock."""
    return max(step.end_s for step in steps) - min(step.start_s for step in steps)


def _busy_s(step: Step) -> float:
    return sum(step.piece_s.values())


def _kinds(program: Program, reports: list[RankReport]) -> tuple[Beside, ...]:
    """Rank-seconds by configuration: each piece on each of its ranks."""
    predicted: dict[str, float] = defaultdict(float)
    measured: dict[str, float] = defaultdict(float)
    for report, indices in zip(reports, program.run_lists, strict=True):
        for index in indices:
            piece = program.pieces[index]
            predicted[piece.config] += piece.predicted_s
            measured[piece.config] += statistics.median(step.piece_s[index] for step in report.steps)
    return tuple(Beside(config, predicted[config], measured[config]) for config in sorted(predicted))
