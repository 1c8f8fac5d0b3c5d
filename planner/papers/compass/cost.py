"""From the derived-cost form to the explicit one (page, "Problem file", its derived part)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from planner.derivation.clusters import hardware_files, placed, profile_of, refuse_unstated
from planner.derivation.references import digests, is_file
from planner.paper import Derivation, DeriveOptions
from planner.papers.compass.costs.chunks import chunks_of
from planner.papers.compass.costs.explicit import operator_of
from planner.papers.compass.costs.fused import ring_link
from planner.papers.compass.costs.layout import setting_of
from planner.papers.compass.costs.pairs import Pair
from planner.papers.compass.costs.resolved import error_of, resolved_of
from planner.papers.compass.costs.said import cautions
from planner.papers.compass.costs.setting import Ints, Setting
from planner.papers.compass.costs.stages import Stages, merged, stages_of
from planner.papers.compass.costs.step import beside
from planner.papers.compass.degrees import divisors
from planner.papers.compass.derived import CompassDerivedProblem, Derive
from planner.papers.compass.problem import CompassProblem
from planner.validation import validate

STRATEGIES = "derive.allowed_strategies"


def derive(document: CompassDerivedProblem, options: DeriveOptions) -> Derivation[CompassProblem]:
    """Price every pair of a GEMM and a collective at every degree that it may be cut into.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    folder = Path(options.base_folder)
    written = document.derive.overridden(options)
    document, cluster = placed(document, document.derive.cluster, folder)
    named, profile = profile_of(written, cluster, folder)
    written = written.model_copy(update={"profile": named})
    given = document.derive.overridden(options)
    setting = setting_of(given, document.launcher_rules, profile, cluster, folder)
    if any(pair.ranks > given.ranks.gpus_per_node for pair in setting.pairs):
        refuse_unstated(cluster, written.cluster)
    stages = _stages(setting)
    rest, unpriced = beside(setting)
    return Derivation(
        problem=_explicit(document, setting, stages, rest, unpriced).sorted(),
        derive=resolved_of(written, setting, stages, rest),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=error_of(setting, stages),
        arrays=digests(_files(written, folder)),
        relaxable={f"operators.{part.pair.id}.allowed_strategies": (STRATEGIES, 0.0) for part in stages},
    )


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
    multiples, rest = divmod(pair.extent, pair.multiple)
    found = () if rest else divisors(multiples, most)
    if pair.cutting == "shards":
        found = tuple(d for d in found if d == pair.ranks or 2 * d == pair.ranks)
    return np.array(found, dtype=np.int64)


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
        "operators": [operator_of(setting.given, part) for part in stages],
        "memory_capacity_bytes": None if memory is None else float(memory),
        "beside_s": rest or None,
        "cautions": cautions(setting, stages, unpriced) or None,
        "notes": document.notes,
    }
    return validate(CompassProblem, fields)


def _files(given: Derive, folder: Path) -> list[Path]:
    paths = hardware_files(given, folder)
    return [*paths, folder / given.model] if isinstance(given.model, str) and is_file(given.model) else paths
