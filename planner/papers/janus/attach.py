"""What a problem names by file or leaves to its trace, read and worked out: statistics, a_max tables, series."""

from __future__ import annotations

from functools import partial

from planner.beside import Beside
from planner.errors import BadInputError
from planner.paper import Attached
from planner.papers.janus.arrivals import resolved
from planner.papers.janus.costs import Activated
from planner.papers.janus.experts.activated_table import activated_table, read_off
from planner.papers.janus.experts.statistics import count, pairs_of
from planner.papers.janus.experts.tokens import traced
from planner.papers.janus.problem import Device, JanusProblem, PlacementProblem, SeriesProblem, SizingProblem
from planner.routing.document import MaskRouting, Routing
from planner.routing.faults import Wrong, wrong_tokens
from planner.routing.reading import with_files
from planner.routing.routed import Kept, TokenArrays, TokenFiles
from planner.validation import validate

MOST_PAIRS = 2**20
"""Pairs of experts that a placement problem writes out."""


def attach(problem: JanusProblem, beside: Beside) -> Attached[JanusProblem]:
    """The problem with its files read and all that its routing tells written into it.

    Token files of ``layers`` stay beside it, named by digest, for the copies and placement of their experts. Raises
    BadInputError: a file that is missing or another, is not what it should be, or does not fit the problem.
    """
    files: dict[str, str] = {}
    if isinstance(problem, PlacementProblem):
        return Attached(_with_statistics(problem, beside, files), files)
    if isinstance(problem, SizingProblem):
        if isinstance(problem, SeriesProblem):
            problem = resolved(problem, beside, files)
        problem = _with_tables(_with_layers(problem, beside, files))
    return Attached(problem, files)


def _with_layers(problem: SizingProblem, beside: Beside, files: dict[str, str]) -> SizingProblem:
    routings, kept = with_files(
        [layer.routing for layer in problem.layers],
        [f"layers.{index}.routing" for index in range(len(problem.layers))],
        problem.num_experts,
        partial(_wrong, problem.num_experts, problem.top_k),
        beside,
        files,
    )
    if not files:
        return problem
    layers = tuple(
        layer.model_copy(update={"routing": routing}) for layer, routing in zip(problem.layers, routings, strict=True)
    )
    attached = _rewritten(problem, {"layers": layers})
    attached.kept.files.update(kept)
    return attached


def _wrong(experts: int, top_k: int | None, arrays: TokenArrays) -> Wrong | None:
    K = arrays.expert_ids.shape[1]
    if top_k is not None and top_k != K:
        return Wrong(f"expected top_k = {top_k} experts a token, got {K}", "top_k_mismatch", "expert_ids")
    return wrong_tokens(arrays.expert_ids, None, 1, experts)


def _with_tables(problem: SizingProblem) -> SizingProblem:
    """Tables where the problem asks for its routing, or has one of other layers: of each device with slots of its own,
    too."""
    changes: dict[str, object] = {}
    common = read_off(problem, problem.a_max, problem.slots_per_instance, "a_max")
    if common is not None:
        most = problem.limits.max_expert_instances
        changes["a_max"] = activated_table(problem, common, problem.slots_per_instance, most, "a_max")
    devices = tuple(
        device.model_copy(update={"a_max": table}) if (table := _own_table(problem, device)) is not None else device
        for device in problem.devices
    )
    if devices != problem.devices:
        changes["devices"] = devices
    return _rewritten(problem, changes) if changes else problem


def _own_table(problem: SizingProblem, device: Device) -> Activated | None:
    """The table of a device's own slots; None where it has no need of one."""
    C = device.slots_per_instance or problem.slots_per_instance
    a_max, place = device.a_max, f"devices.{device.id}.a_max"
    if a_max is None and problem.slots_per_instance != C:
        a_max, place = problem.a_max, "a_max"
    wanted = None if a_max is None else read_off(problem, a_max, C, place)
    if wanted is None:
        return None
    limits = device.limits or problem.limits
    return activated_table(problem, wanted, C, limits.max_expert_instances, place)


def _with_statistics(problem: PlacementProblem, beside: Beside, files: dict[str, str]) -> PlacementProblem:
    if problem.routing is None:
        return problem
    E, kept = problem.num_experts, Kept()
    fault = partial(_wrong, E, problem.top_k)
    [routing], arrays = with_files([problem.routing], ["routing"], E, fault, beside, files)
    kept.files.update(arrays)
    K = problem.top_k or _written_top_k(routing, arrays)
    statistics = count(traced(routing, kept, E, K, 0, "routing").ids, E)
    pairs = pairs_of(statistics)
    if len(pairs) > MOST_PAIRS:
        message = f"expected routing with at most {MOST_PAIRS:,} pairs of experts to write out, got {len(pairs):,}"
        raise BadInputError(message, code="too_large", where="routing")
    written: dict[str, object] = {
        name: getattr(problem, name) for name in problem.model_fields_set - {"routing", "top_k"}
    }
    load = tuple(statistics.load.tolist())
    return validate(PlacementProblem, written | {"expert_load": load, "coactivation": tuple(pairs)})


def _written_top_k(routing: Routing, arrays: TokenFiles) -> int:
    """K of tokens that are written out."""
    if isinstance(routing, MaskRouting) and routing.expert_ids:
        return len(routing.expert_ids[0])
    return next((tokens.expert_ids.shape[1] for tokens in arrays.values()), 1)


def _rewritten(problem: SizingProblem, changes: dict[str, object]) -> SizingProblem:
    written: dict[str, object] = {name: getattr(problem, name) for name in problem.model_fields_set}
    attached = validate(type(problem), written | changes)
    _keep(attached, problem.kept)
    return attached


def _keep(problem: SizingProblem, kept: Kept) -> None:
    """What was read and worked out for a problem, beside another form of it."""
    problem.kept.files.update(kept.files)
    problem.kept.made.update(kept.made)
    problem.kept.worked_out.update(kept.worked_out)
