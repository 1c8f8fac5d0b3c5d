"""The loop closed on this machine: measure its CPU, plan small batches on two ranks, run the plans, compare.

Twenty-five plans of a small diffusion transformer: five batches, each placed whole, with its longest sequence split by
queries, heads or keys, and with every sequence split. Predicted is the plan's makespan under the profile measured just
before; measured is the median of the timed steps; noise is how far those lie apart, (max - min) / 2 / median.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner import papers
from planner.api import Options, make_plan, pose
from planner.documents import canonical_bytes
from planner.envelope import dump_model
from planner.paper import DeriveOptions
from planner.papers.zellige.problem import ZelligeProblem
from planner.plan import Plan
from planner.program import Beside, RunReport, Stated
from planner.runner.execute import RunOptions, run_program
from profiles.measure.kernels import cpu_kernels
from profiles.measure.measuring import measure
from profiles.measure.options import Options as MeasureOptions
from profiles.measure.processes import Ranks

MODEL = {"name": "small", "hidden": 256, "heads": 4, "ffn": 1024, "text_tokens": 64, "cross_layers": 2}
RANKS = 2
BATCHES = {
    "one long": (1536, *(192,) * 8),
    "two long": (1024, 768, 384, 384),
    "mixed": (900, 800, 700, 500, 300, 200),
    "alike": (512,) * 6,
    "short": (1024, 384, 384, 384, 192, 192),
}
CONFIGS = [
    {"id": "whole", "q": 1, "h": 1, "k": 1},
    {"id": "q2", "q": 2, "h": 1, "k": 1},
    {"id": "h2", "q": 1, "h": 2, "k": 1},
    {"id": "k2", "q": 1, "h": 1, "k": 2},
]
SPLITS = ("q2", "h2", "k2")
REPEATS = 5


@dataclass(frozen=True)
class Case:
    """A plan of the study and what came of it."""

    batch: str
    kind: str
    report: RunReport

    @property
    def error(self) -> float:
        """predicted / measured - 1 of the makespan."""
        return self.report.makespan.relative_error or 0.0

    @property
    def noise(self) -> float:
        """Half the range of the repeats over their median."""
        times = self.report.makespans_s
        return (max(times) - min(times)) / 2 / statistics.median(times)


def main(smoke: bool) -> None:
    """Measure, plan, run, and print a line a plan and the mean errors."""
    with tempfile.TemporaryDirectory() as folder:
        profile = _profile(Path(folder), 25.0 if smoke else 120.0)
        batches = dict(list(BATCHES.items())[:1]) if smoke else BATCHES
        cases = []
        with Ranks(RANKS) as ranks:
            for batch, tokens in batches.items():
                for kind, plan in _plans(profile, tokens):
                    program = papers.get("zellige").run(plan.problem, plan.solution, None, Stated(MODEL, "fp32"))
                    report = run_program(program, ranks, RunOptions(repeats=1 if smoke else REPEATS))
                    cases.append(Case(batch, kind, report))
                    print(_line(cases[-1]), flush=True)
    print(summary(cases))


def _profile(folder: Path, budget_s: float) -> Path:
    """A profile of this CPU at the model's shapes, both cores busy."""
    model = folder / "model.json"
    model.write_bytes(canonical_bytes(MODEL))
    options = MeasureOptions(
        folder=folder / "measured",
        ops=("gemm", "encoder_attention", "all_gather", "reduce_scatter", "all_to_all"),
        dtypes=("fp32",),
        ranks=RANKS,
        budget_s=budget_s,
        models=(str(model),),
    )
    outcome = measure(options)
    print(f"{cpu_kernels().name}: {sum(outcome.points.values())} points; {outcome.ended}")
    if outcome.profile is None:
        raise SystemExit("nothing was measured")
    return outcome.profile


def _plans(profile: Path, tokens: tuple[int, ...]) -> Iterable[tuple[str, Plan]]:
    """The batch whole, with its longest sequence split in each way, and with every sequence split."""
    document = {
        "paper": "zellige",
        "derive": {
            "profile": str(profile.resolve()),
            "model": MODEL,
            "dtype": "fp32",
            "extrapolate": "roofline",
            "cluster": {"num_ranks": RANKS, "gpus_per_node": RANKS},
            "memory": {"capacity_bytes": 1e12, "reserve_bytes": 0},
            "batch": {"records": [{"tokens": length} for length in tokens]},
        },
        "configs": CONFIGS,
    }
    posed = pose(document, DeriveOptions())
    longest = max(tokens)
    yield "whole", _plan(posed.problem, {})
    for split in SPLITS:
        yield f"longest {split}", _plan(posed.problem, {longest: split})
    mixed = {length: SPLITS[number % 3] for number, length in enumerate(sorted(set(tokens)))}
    yield "all split", _plan(posed.problem, mixed)


def _plan(problem: ZelligeProblem, forced: dict[int, str]) -> Plan:
    """A plan in which sequences of the forced lengths are split so, and all others are whole."""
    groups: list[dict[str, Any]] = []
    for group in problem.groups:
        kept = [o for o in group.options if o.config == forced.get(group.tokens or 0, "whole")]
        groups.append({**dump_model(group), "options": [dump_model(option) for option in kept]})
    document = {**dump_model(problem), "groups": groups}
    return make_plan(pose(document, DeriveOptions()), Options())


def _line(case: Case) -> str:
    makespan = case.report.makespan
    return (
        f"{case.batch:9s} {case.kind:11s} predicted {makespan.predicted:7.3f} s  measured {makespan.measured:7.3f} s  "
        f"error {case.error:+7.1%}  noise {case.noise:6.1%}  starved {case.report.starved:6.1%}"
    )


def summary(cases: list[Case]) -> str:
    """Mean absolute percentage errors, and what they are made of."""
    errors = [abs(case.error) for case in cases]
    noise = statistics.mean(case.noise for case in cases)
    ranks = [row for case in cases for row in case.report.ranks]
    memory = [row for case in cases for row in case.report.memory]
    starved = statistics.mean(case.report.starved for case in cases)
    kinds: dict[str, list[Beside]] = defaultdict(list)
    work: dict[str, float] = defaultdict(float)
    for case in cases:
        for row in case.report.kinds:
            kinds[row.name].append(row)
        for spent in case.report.rank_work_s:
            for name, seconds in spent.items():
                work[name] += seconds
    shares = {name: seconds / sum(work.values()) for name, seconds in work.items()}
    return "\n".join(
        (
            f"{len(cases)} plans: makespan {statistics.mean(errors):.1%} mean absolute error (median "
            f"{statistics.median(errors):.1%}, worst {max(errors):.1%}), bias "
            f"{statistics.mean(case.error for case in cases):+.1%}",
            f"noise of the steps {noise:.1%}; ranks were kept off their cores for {starved:.1%} of the step",
            f"busy time of a rank {_error(ranks)}; memory of a rank {_error(memory)}",
            "rank-seconds by configuration: " + "; ".join(f"{name} {_error(rows)}" for name, rows in kinds.items()),
            "time went to " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
        )
    )


def _error(rows: list[Beside]) -> str:
    """Mean absolute and mean signed error."""
    found = [row.relative_error for row in rows if row.relative_error is not None]
    if not found:
        return "not measured"
    return f"{statistics.mean(map(abs, found)):.1%} (bias {statistics.mean(found):+.1%})"
