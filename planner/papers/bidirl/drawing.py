"""Draws the work and the longest response of every batch from a distribution of response lengths."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.problem import Batch
from planner.papers.bidirl.training_run import Drawn, Empirical, Lognormal, Simulation

Floats = npt.NDArray[np.float64]

BLOCK = 2**20
"""Responses that are held at once."""


def with_drawn(simulation: Simulation, batch: Batch) -> Simulation:
    """The simulation with what it draws written down; as it is where that stands already, or nothing is drawn."""
    responses = simulation.responses
    if responses is None:
        return simulation if simulation.drawn is None else simulation.model_copy(update={"drawn": None})
    batches, of_batch = simulation.batches or simulation.steps, batch.prompt_groups * batch.responses_per_group
    said = (responses.model_dump_json(), simulation.seed, batches, of_batch)
    by = hashlib.sha256(repr(said).encode()).hexdigest()
    if simulation.drawn is not None and simulation.drawn.by == by:
        return simulation
    random = np.random.default_rng(simulation.seed)
    return simulation.model_copy(update={"drawn": _draw(responses, random, batches, of_batch, by)})


def workload(simulation: Simulation, batch: Batch) -> tuple[Floats, Floats]:
    """Work factor and longest response of each step, shape [steps]: listed, else drawn, else 1 and the batch's own."""
    drawn = with_drawn(simulation, batch).drawn
    work = simulation.work_factor or (drawn.work_factor if drawn is not None else (1.0,))
    longest = simulation.max_response_tokens or (
        drawn.max_response_tokens if drawn is not None else (float(batch.max_response_tokens),)
    )
    steps = simulation.steps
    return np.resize(np.array(work, dtype=np.float64), steps), np.resize(np.array(longest, dtype=np.float64), steps)


def _draw(responses: Lognormal | Empirical, random: np.random.Generator, batches: int, of_batch: int, by: str) -> Drawn:
    total, longest = np.zeros(batches), np.zeros(batches)
    rows = max(1, BLOCK // of_batch)
    for start in range(0, batches, rows):
        lengths = _lengths(responses, random, (min(rows, batches - start), of_batch))
        total[start : start + rows] = lengths.sum(axis=1)
        longest[start : start + rows] = lengths.max(axis=1)
    work = total / total.mean()
    return Drawn(work_factor=tuple(work.tolist()), max_response_tokens=tuple(longest.tolist()), by=by)


def _lengths(responses: Lognormal | Empirical, random: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Tokens of each response, shape [batches, responses]."""
    if isinstance(responses, Lognormal):
        return np.minimum(random.lognormal(np.log(responses.median), responses.sigma, shape), responses.cap)
    drawn = random.choice(np.array(responses.tokens, dtype=np.float64), shape)
    return drawn if responses.cap is None else np.minimum(drawn, responses.cap)
