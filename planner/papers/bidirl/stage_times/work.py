"""What a batch asks of a role, as far as its stage time depends on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.problem import Batch, Role

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """``whole`` parts make a batch: B prompt groups of a rollout, N_u chunks of a train step."""

    whole: int
    responses_per_group: int
    longest_tokens: float


def work_of(batch: Batch, role: Role) -> Work:
    """The work of a whole batch in a role."""
    whole = batch.prompt_groups if role == "rollout" else batch.train_chunks
    return Work(whole, batch.responses_per_group, float(batch.max_response_tokens))
