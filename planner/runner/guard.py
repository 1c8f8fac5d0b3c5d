"""What a machine cannot run in reasonable time or memory is refused before a process starts."""

from __future__ import annotations

import os
from pathlib import Path

from planner.errors import BadInputError
from planner.program import Program
from planner.units import in_bytes
from profiles.families import DTYPE_BYTES

RANKS_PER_CORE = 4
SLOW_CPU_FLOP_PER_S = 2e10
"""Of one core; most do more."""
LONGEST_STEP_S = 600.0


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_too_much(program: Program) -> None:
    """Raise BadInputError (out_of_range) for more ranks, longer steps or more memory than this machine has."""
    if program.ranks > RANKS_PER_CORE * cores():
        raise BadInputError(
            f"the plan has {program.ranks} ranks and this machine {cores()} cores; more than {RANKS_PER_CORE} ranks "
            "a core measure nothing (--force runs them)",
            code="out_of_range",
            where="problem.cluster.num_ranks",
        )
    step_s = _flops(program) / SLOW_CPU_FLOP_PER_S / min(cores(), program.ranks)
    if step_s > LONGEST_STEP_S:
        raise BadInputError(
            f"a step of this plan takes a CPU about {step_s / 3600:.2g} h (--force runs it)",
            code="out_of_range",
            where="problem.groups",
        )
    needed, available = _bytes(program), _available_bytes()
    if available is not None and needed > available:
        raise BadInputError(
            f"the ranks of this plan need about {in_bytes(needed)} together; {in_bytes(available)} are free "
            "(--force runs them)",
            code="out_of_range",
            where="problem.cluster.num_ranks",
        )


def _flops(program: Program) -> float:
    """Forward, backward and recomputation of all sequences."""
    passes = 4.0 if program.recompute else 3.0
    return passes * sum(program.model.forward_flops(tokens) for piece in program.pieces for tokens in piece.tokens)


def _bytes(program: Program) -> float:
    """Weights of every rank, and what the plan says that its sequences need."""
    weights = sum(product.count * product.out_features * product.in_features for product in program.model.projections())
    per_rank = program.model.layers * weights * DTYPE_BYTES[program.dtype] + 3e8
    return program.ranks * per_rank + sum(program.rank_bytes)


def _available_bytes() -> float | None:
    info = Path("/proc/meminfo")
    if not info.exists():
        return None
    line = next((line for line in info.read_text().splitlines() if line.startswith("MemAvailable:")), None)
    return None if line is None else float(line.split()[1]) * 1024
