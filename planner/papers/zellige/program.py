"""What a Zellige plan asks ranks to do: its run lists, with the model that the prices are of."""

from __future__ import annotations

from typing import Any

from planner.derivation.references import input_errors
from planner.errors import BadInputError
from planner.json_text import Json
from planner.papers.zellige.derived import Derive
from planner.papers.zellige.problem import Config, ZelligeProblem
from planner.papers.zellige.solution import RankSegment, ZelligeSolution
from planner.program import Piece, Program, Split, Stated
from planner.validation import validate
from profiles.geometry import DiTGeometry, GeometrySpec, find_geometry


def program(problem: ZelligeProblem, solution: ZelligeSolution, derive: Json, stated: Stated) -> Program:
    """The step that the plan describes; what it was derived from, or ``stated``, gives the model.

    Raises BadInputError for a plan of explicit costs whose model nobody states, or whose sequences have no length.
    """
    given = None
    if isinstance(derive, dict):
        given = validate(Derive, {name: value for name, value in derive.items() if name != "resolved"})
    model = _model(given, stated)
    tokens = _tokens(problem)
    times = {(group.id, option.config): option.time_s for group in problem.groups for option in group.options}
    group_of = {name: group.id for group in problem.groups for name in group.sequence_ids}
    configs = {config.id: config for config in problem.configs}
    segments = {entry.index: entry for listed in solution.rank_segments for entry in listed.segments}
    place = {index: number for number, index in enumerate(sorted(segments))}

    def piece(segment: RankSegment) -> Piece:
        prices = [times[group_of[name], segment.config] for name in segment.sequence_ids]
        lengths = tuple(tokens[name] for name in segment.sequence_ids)
        return Piece(segment.config, _split(configs[segment.config], model), segment.ranks, lengths, sum(prices))

    return Program(
        model=model,
        dtype=stated.dtype or (given.dtype if given else "fp32"),
        recompute=given is None or given.checkpointing == "full",
        pieces=tuple(piece(segments[index]) for index in sorted(segments)),
        run_lists=tuple(
            tuple(place[segment.index] for segment in listed.segments)
            for listed in sorted(solution.rank_segments, key=lambda listed: listed.rank)
        ),
        makespan_s=solution.metrics.replay_makespan_s,
        rank_s=solution.metrics.rank_time_s,
        rank_bytes=solution.metrics.rank_memory_bytes,
        rank_peak_bytes=_peak_bytes(problem, solution),
        profile=given.profile if given else None,
    )


def _model(given: Derive | None, stated: Stated) -> DiTGeometry:
    model: Any = stated.model if stated.model is not None else given.model if given else None
    if model is None:
        raise BadInputError(
            "this plan was made from explicit costs, which do not say what a sequence is: state the model to run",
            code="missing_field",
            where="--model",
        )
    place = "--model" if stated.model is not None else "inputs.derive.model"
    if isinstance(model, dict):
        try:
            model = validate(GeometrySpec, model)
        except BadInputError as error:
            where = f"{place}.{error.where}" if error.where else place
            raise BadInputError(error.message, code=error.code, where=where) from None
    with input_errors(place):
        return find_geometry(model)


def _tokens(problem: ZelligeProblem) -> dict[str, int]:
    for group in problem.groups:
        if group.tokens is None:
            raise BadInputError(
                "a sequence without a length cannot be run: state tokens of every group",
                code="missing_field",
                where=f"problem.groups.{group.id}.tokens",
            )
    return {name: group.tokens or 0 for group in problem.groups for name in group.sequence_ids}


def _peak_bytes(problem: ZelligeProblem, solution: ZelligeSolution) -> tuple[float, ...] | None:
    """Each rank's saved inputs together, and the most that one sequence needs beside them."""
    causes = {(g.id, option.config): option.memory_causes for g in problem.groups for option in g.options}
    if not all(parts and "saved_inputs" in parts for parts in causes.values()):
        return None
    group_of = {name: group.id for group in problem.groups for name in group.sequence_ids}
    saved, beside = [0.0] * problem.cluster.num_ranks, [0.0] * problem.cluster.num_ranks
    for placed in solution.placements:
        parts = causes[group_of[placed.sequence_id], placed.config] or {}
        for rank in placed.ranks:
            saved[rank] += parts["saved_inputs"]
            beside[rank] = max(beside[rank], sum(parts.values()) - parts["saved_inputs"])
    return tuple(a + b for a, b in zip(saved, beside, strict=True))


def _split(config: Config, model: DiTGeometry) -> Split:
    if model.heads % config.h:
        raise BadInputError(
            f"{model.heads} heads of {model.name} cannot be split {config.h} ways",
            code="out_of_range",
            where=f"problem.configs.{config.id}.h",
        )
    return Split(config.q, config.h, config.k)
