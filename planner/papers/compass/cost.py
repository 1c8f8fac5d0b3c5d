"""From the derived-cost form to the explicit one (page, "Problem file", its derived part)."""

from __future__ import annotations

import json

import numpy as np

from planner.beside import add_digest
from planner.derivation.clusters import hardware_files, refuse_unstated
from planner.derivation.looked_up import looked_up
from planner.derivation.references import digests, model_file
from planner.paper import Derivation, DeriveOptions
from planner.papers.compass.costs.chunks import chunks_of
from planner.papers.compass.costs.explicit import operator_of
from planner.papers.compass.costs.fused import ring_link
from planner.papers.compass.costs.layout import setting_of
from planner.papers.compass.costs.own import named, read, refuse_other_unit, refuse_unknown
from planner.papers.compass.costs.pairs import Pair
from planner.papers.compass.costs.resolved import error_of, resolved_of
from planner.papers.compass.costs.said import cautions
from planner.papers.compass.costs.setting import Ints, Setting
from planner.papers.compass.costs.stages import Stages, merged, stages_of
from planner.papers.compass.costs.step import beside
from planner.papers.compass.costs.tiles import degrees_of
from planner.papers.compass.derived import CompassDerivedProblem, Derive
from planner.papers.compass.problem import STRATEGIES, CompassProblem
from planner.validation import validate

ALLOWED = "derive.allowed_strategies"


def derive(document: CompassDerivedProblem, options: DeriveOptions) -> Derivation[CompassProblem]:
    """Price every pair of a GEMM and a collective at every degree that it may be cut into.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    setting = setting_of(given, document.launcher_rules, found.profile, found.cluster, folder)
    if any(pair.ranks > given.ranks.gpus_per_node for pair in setting.pairs):
        refuse_unstated(found.cluster, written.cluster)
    stages = _stages(setting)
    refuse_unknown(given, stages)
    rest, unpriced = beside(setting)
    attached = read(_explicit(document, setting, stages, rest, unpriced), folder)
    refuse_other_unit(given, stages, attached.problem)
    arrays = digests([*hardware_files(written, folder), *model_file(written.model, folder)])
    for name, sha256 in attached.files.items():
        add_digest(arrays, name, sha256, "derive")
    return Derivation(
        problem=attached.problem.sorted(),
        derive=resolved_of(written, setting, stages, rest),
        profile=found.profile.name,
        profile_sha256=found.profile.sha256,
        cost_error=error_of(setting, stages),
        arrays=arrays,
        relaxable={
            f"operators.{part.pair.id}.allowed_strategies": (ALLOWED, _with_sequential(given)) for part in stages
        },
    )


def _with_sequential(given: Derive) -> str:
    """The allowed strategies and the sequential one: it is one list for all operators, so that is always enough."""
    return json.dumps([name for name in STRATEGIES if name == "sequential" or name in given.allowed_strategies])


def _stages(setting: Setting) -> list[Stages]:
    """All operators; what the launcher sets under one name is one."""
    given = setting.given
    link = None if given.fused is None else ring_link(setting, given.fused)
    chunks = chunks_of(setting, [_degrees(pair, given.max_degree) for pair in setting.pairs])
    by_id: dict[str, list[Stages]] = {}
    for one in chunks:
        by_id.setdefault(one.pair.id, []).append(stages_of(one, given, link))
    return [merged(parts) for parts in by_id.values()]


def _degrees(pair: Pair, most: int) -> Ints:
    """Legal degrees, ascending (page, sections 3.4 and 3.6)."""
    return np.array(degrees_of(pair.extent, pair.multiple, most, pair.ring), dtype=np.int64)


def _explicit(
    document: CompassDerivedProblem,
    setting: Setting,
    stages: list[Stages],
    rest: dict[str, float],
    unpriced: list[str],
) -> CompassProblem:
    memory = setting.cluster.device_classes[0].memory_bytes or setting.profile.device.memory_bytes
    fields = {
        "launcher_rules": document.launcher_rules,
        "operators": [named(setting.given, part, operator_of(setting.given, part)) for part in stages],
        "memory_capacity_bytes": None if memory is None else float(memory),
        "beside_s": rest or None,
        "cautions": cautions(setting, stages, unpriced) or None,
        "notes": document.notes,
    }
    return validate(CompassProblem, fields)
