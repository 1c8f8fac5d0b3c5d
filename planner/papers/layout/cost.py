"""From the derived-cost form to the explicit one (page, "Problem file", its derived part)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from planner.derivation.clusters import hardware_files
from planner.derivation.hardware import AnyCluster, DerivedCluster, TieredCluster
from planner.derivation.looked_up import looked_up
from planner.derivation.references import digests, input_errors, model_file
from planner.paper import Derivation, DeriveOptions
from planner.papers.layout.calibration.learned import Learned, applied, learn
from planner.papers.layout.calibration.runs import other_columns, read_runs
from planner.papers.layout.costs.combinations import wanted_cuts, without_experts
from planner.papers.layout.costs.frame import NO_ROW, costs_of, frame_of
from planner.papers.layout.costs.links import tiers_of
from planner.papers.layout.costs.lists import search_of
from planner.papers.layout.costs.resolved import error_of, resolved_of
from planner.papers.layout.costs.rows import Priced, priced, rows_of
from planner.papers.layout.costs.said import cautions, of_node
from planner.papers.layout.costs.said_of_runs import cautions_of_runs
from planner.papers.layout.costs.selective import refuse_unsayable
from planner.papers.layout.costs.setting import Setting, setting_of
from planner.papers.layout.costs.unpriced import refuse_all_missing
from planner.papers.layout.derived import Derive, LayoutDerivedProblem, Runs
from planner.papers.layout.infeasibility import NODES, RANKS
from planner.papers.layout.problem import LayoutProblem, Search
from planner.papers.layout.table import Costs, Kind, Tiers
from planner.validation import validate

CAPACITY = "derive.memory.capacity_bytes"
PRICED = "derive.profile"
RUNS = "derive.runs"


def derive(document: LayoutDerivedProblem, options: DeriveOptions) -> Derivation[LayoutProblem]:
    """Price every kind of layer in every combination that the rules leave.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    rules = document.launcher_rules
    setting = setting_of(given, document.batch.sequence_length, found.profile, found.cluster, folder, rules)
    refuse_unsayable(given.training_code, rules, document.search.recompute or (), setting.selective)
    tiers = tiers_of(setting, written.cluster)
    learned = None if given.runs is None else _learned(setting, tiers, given.runs, folder)
    if learned is not None:
        setting = replace(setting, given=applied(given, learned))
    calibration = setting.given.calibration
    frame = _frame(document, setting, costs_of(setting, tiers, [NO_ROW], calibration))
    table = _table(setting, frame, _others(document, setting))
    rows, times = rows_of(table, calibration)
    changed = {
        "costs": costs_of(setting, tiers, rows or [NO_ROW], calibration),
        "cautions": cautions(setting, table, {**_of_runs(learned, given.runs, folder), **of_node(written.cluster)})
        or None,
        "notes": document.notes,
    }
    return Derivation(
        problem=validate(LayoutProblem, {**dict(frame), **changed}).sorted(),
        derive=resolved_of(written, setting, table, learned),
        profile=found.profile.name,
        profile_sha256=found.profile.sha256,
        cost_error=error_of(setting, table, times, learned),
        arrays=digests(_files(written, folder)),
        relaxable=_relaxable(written.cluster),
    )


def _learned(setting: Setting, tiers: Tiers, given: Runs, folder: Path) -> Learned:
    """What measured runs teach of this model's prices."""
    return learn(setting, tiers, read_runs(folder / given.path, RUNS, given.groups), RUNS)


def _of_runs(learned: Learned | None, given: Runs | None, folder: Path) -> dict[str, str]:
    if learned is None or given is None:
        return {}
    return cautions_of_runs(learned, other_columns(folder / given.path, RUNS))


def _files(written: Derive, folder: Path) -> list[Path]:
    """All that the derive object names by file."""
    runs = [] if written.runs is None else [folder / written.runs.path]
    return [*hardware_files(written, folder), *model_file(written.model, folder), *runs]


def _frame(document: LayoutDerivedProblem, setting: Setting, costs: Costs) -> LayoutProblem:
    """The problem before anything is priced."""
    batch, rules = document.batch, document.launcher_rules
    search = search_of(document.search, setting, batch, rules)
    return frame_of(setting, setting.cluster.num_ranks, batch, costs, rules, search)


def _others(document: LayoutDerivedProblem, setting: Setting) -> Iterator[Search]:
    """The search with one stated list as it would be without it."""
    given = document.search
    for name in ("tp", "cp", "ep", "etp", "micro_batch", "sequence_parallel"):
        if getattr(given, name) is not None:
            changed = given.model_copy(update={name: None})
            yield search_of(changed, setting, document.batch, document.launcher_rules)


def _table(setting: Setting, frame: LayoutProblem, others: Iterable[Search]) -> dict[Kind, Priced]:
    """Of every kind, in every combination that the rules leave of the frame; if none, of ``others``."""
    cuts = wanted_cuts(frame, others)
    few = without_experts(cuts)
    kinds: list[Kind] = [*setting.kinds, "embedding", "head"]
    with input_errors(PRICED):
        found = {kind: priced(setting, kind, cuts if kind == "moe" else few) for kind in kinds}
    refuse_all_missing(setting.given, found)
    return found


def _relaxable(written: AnyCluster) -> dict[str, tuple[str, float | str]]:
    """A capacity that is not stated is that of a device: to relax it is to state it.

    The batch is the same field in both forms; GPUs are ranks where those are written out, else whole nodes.
    """
    found: dict[str, tuple[str, float | str]] = {"cluster.gpu_memory_bytes": (CAPACITY, 0.0)}
    if isinstance(written, DerivedCluster):
        found[RANKS] = ("derive.cluster.num_ranks", 0.0)
    elif isinstance(written, TieredCluster):
        found[NODES] = ("derive.cluster.nodes", 0.0)
    return found
