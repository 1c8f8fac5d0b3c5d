"""Why no layout keeps the rules and fits (page, section 4), and the smallest change that helps."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nextafter

from planner.errors import InfeasibleError, Relaxation
from planner.papers.layout.evaluate import Evaluated, fits
from planner.papers.layout.presentation import words
from planner.papers.layout.problem import MAX_TASKS, LayoutProblem
from planner.papers.layout.search.best import best
from planner.papers.layout.search.candidates import ROUNDING, Candidates, candidates
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.search.missing import missing_keys
from planner.papers.layout.search.relaxed import batches_that_admit, gpus_that_admit
from planner.papers.layout.solution import RULES
from planner.papers.layout.table import MAX_DEGREE, MOST_BYTES, said
from planner.papers.layout.ties import ranked
from planner.units import in_bytes

MEMORY = "cluster.gpu_memory_bytes"
BATCH = "batch.global_batch_size"
GPUS = "cluster.num_gpus"
NODES = "cluster.nodes"
RANKS = "cluster.num_ranks"
"""What only a derived form has, in place of GPUS: by nodes, or by ranks in whole nodes."""

MOST_SOLVED = 40
"""Values of one field that are solved in full before the first that admits a layout is named as needed alone."""
MOST_ASKED = 1_000
"""Values of one field of which it is asked whether a problem may have them."""
TOLD_KEYS = 4
"""Missing rows that a message lists."""

Choice = str | tuple[int] | tuple[str]
"""A word, or a list of one."""

_FIELDS = {
    "world_size": GPUS,
    "expert_world_size": GPUS,
    "no_experts": "search.ep",
    "expert_split": "search.ep",
    "tp_crosses_node": "search.tp",
    "heads": "search.tp",
    "cp_sequence": "search.cp",
    "sp_without_tp": "search.sequence_parallel",
    "sp_sequence": "search.sequence_parallel",
    "global_batch": BATCH,
    "vpp_without_pp": "search.vpp",
    "interleave_micro_batches": BATCH,
    "moe_needs_sp": "search.sequence_parallel",
    "megatron_zero_stage": "search.zero_stage",
    "deepspeed_zero_pipeline": "search.zero_stage",
    "deepspeed_interleave": "search.vpp",
    "deepspeed_cp": "search.cp",
    "torchtitan_fsdp": "search.zero_stage",
    "torchtitan_ep": "search.ep",
    "torchtitan_sp": "search.sequence_parallel",
    "partition": "search.partitions",
    "row_not_in_table": "costs.rows",
}


def no_layout(problem: LayoutProblem, offered: Candidates) -> InfeasibleError:
    """The error of a problem none of whose layouts fits; ``offered`` are its candidates."""
    return _memory_error(problem, offered) if offered.legal else _rules_error(problem, offered)


def _memory_error(problem: LayoutProblem, offered: Candidates) -> InfeasibleError:
    """With the least memory that is enough: of layouts that arrays cannot tell from the least all are evaluated."""
    cluster = problem.cluster
    near_bytes = _with_room(offered.least_bytes * (1 + 2 * ROUNDING), cluster.reserve_bytes)
    roomy, evaluations = candidates(_changed(problem, MEMORY, near_bytes)), Evaluations(problem)
    nearest = [evaluations.of(roomy.layout(index)) for index in range(roomy.size)]
    needed = _with_room(min(one.peak_memory_bytes for one in nearest), cluster.reserve_bytes)
    enough = _changed(problem, MEMORY, needed)
    found = ranked(one for one in nearest if fits(enough, one))[0]
    reserve = f" with a reserve of {in_bytes(cluster.reserve_bytes)}" if cluster.reserve_bytes else ""
    return InfeasibleError(
        f"none of {offered.legal:,} layouts that keep the rules fits{reserve}; the one that needs least is "
        f"{words(found.layout)}",
        code="memory",
        where=MEMORY,
        required=needed,
        available=cluster.gpu_memory_bytes,
        unit="bytes",
        relaxation=Relaxation(MEMORY, needed, proven=True) if needed <= MOST_BYTES else None,
    )


def _with_room(peak_bytes: float, reserve_bytes: float) -> float:
    """The least memory that leaves so much beside the reserve, rounding included."""
    memory = peak_bytes + reserve_bytes
    while memory - reserve_bytes < peak_bytes:
        memory = nextafter(memory, inf)
    return memory


def _rules_error(problem: LayoutProblem, offered: Candidates) -> InfeasibleError:
    """Named after the rule that excludes most, of equal ones the first; with a batch or a number of GPUs that helps."""
    rule = max(offered.excluded, key=lambda name: (offered.excluded[name], -RULES.index(name)))
    total = problem.search.combinations
    message = (
        f"no layout of {total:,} combinations keeps the rules; {rule} excludes most of them, {offered.excluded[rule]:,}"
    )
    if rule == "row_not_in_table":
        message += _missing(problem)
    relaxation = _relaxation(problem)
    stated = {BATCH: problem.batch.global_batch_size, GPUS: problem.cluster.num_gpus}
    amount = relaxation is not None and relaxation.field == _FIELDS[rule] and relaxation.field in stated
    return InfeasibleError(
        message,
        code=rule,
        where=_FIELDS[rule],
        required=float(relaxation.value) if relaxation is not None and amount else None,
        available=stated[_FIELDS[rule]] if amount else None,
        relaxation=relaxation,
        also=_whole_nodes(problem) if relaxation is not None and relaxation.field == GPUS else (),
    )


def _whole_nodes(problem: LayoutProblem) -> tuple[Relaxation, ...]:
    """Fewer GPUs that fill their nodes. A derivation may price more combinations on them, so more might do, too."""
    per_node = problem.cluster.gpus_per_node
    filled = [value for value in gpus_that_admit(problem) if value % per_node == 0 or value < per_node]
    for value in filled[:MOST_SOLVED]:
        if solved(_changed(problem, GPUS, value)) is not None:
            nodes = () if value % per_node else (Relaxation(NODES, value // per_node, proven=False),)
            return (*nodes, Relaxation(RANKS, value, proven=False))
    return ()


def _missing(problem: LayoutProblem) -> str:
    keys = missing_keys(problem)
    more = f" and {len(keys) - TOLD_KEYS:,} more" if len(keys) > TOLD_KEYS else ""
    return f"; the table lacks {', '.join(said(key) for key in keys[:TOLD_KEYS])}{more}"


def _relaxation(problem: LayoutProblem) -> Relaxation | None:
    """The least larger batch, up to four times, under which layouts keep the rules; else the most GPUs below."""
    for field, admitting in ((BATCH, batches_that_admit(problem)), (GPUS, gpus_that_admit(problem))):
        values = [value for value in admitting[:MOST_ASKED] if _is_accepted(_changed(problem, field, value), value)]
        if not values:
            continue
        for value in values[:MOST_SOLVED]:
            if solved(_changed(problem, field, value)) is not None:
                return Relaxation(field, value, proven=True, smaller=field == GPUS)
        return Relaxation(field, values[0], proven=False, enough=False)
    for field, choice in _other_choices(problem):
        if solved(_changed(problem, field, choice)) is not None:
            return Relaxation(field, choice[0] if isinstance(choice, tuple) else choice, proven=False)
    return None


def _is_accepted(problem: LayoutProblem, value: int) -> bool:
    """Whether a problem with another value is within what is read at all."""
    return value <= MAX_DEGREE and problem.most_tasks <= MAX_TASKS


def _other_choices(problem: LayoutProblem) -> Iterator[tuple[str, Choice]]:
    """One value of one list, or no launcher's rules: what is left to change where neither batch nor GPUs help."""
    search = problem.search
    for field in ("tp", "cp", "pp", "vpp", "ep", "etp", "micro_batch"):
        for value in sorted({1, *_priced(problem, field)} - set(getattr(search, field))):
            yield f"search.{field}", (value,)
    for stage in range(4):
        if stage not in search.zero_stage:
            yield "search.zero_stage", (stage,)
    if "ends" not in search.partitions:
        yield "search.partitions", ("ends",)
    if problem.launcher_rules != "none":
        yield "launcher_rules", "none"


def _priced(problem: LayoutProblem, field: str) -> set[int]:
    """Values of a list that some row is of."""
    if field in ("pp", "vpp"):
        return set()
    return {value for row in problem.costs.rows if (value := getattr(row, field)) is not None}


def solved(problem: LayoutProblem) -> Evaluated | None:
    """The best layout of a problem; None where none fits."""
    offered = candidates(problem)
    return best(offered, Evaluations(problem), 1)[0] if offered.size else None


def _changed(problem: LayoutProblem, field: str, value: float | Choice) -> LayoutProblem:
    part, _, name = field.partition(".")
    if not name:
        return problem.model_copy(update={part: value})
    changed = getattr(problem, part).model_copy(update={name: value})
    return problem.model_copy(update={part: changed})
