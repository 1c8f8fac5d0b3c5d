"""From the derived-cost form to the explicit one (page, section 6, its derived part)."""

from __future__ import annotations

from planner.derivation.hardware import DerivedCluster
from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.bidirl.costs.held import Held, held_by_rollout, held_by_train
from planner.papers.bidirl.costs.resolved import resolved_of
from planner.papers.bidirl.costs.responses import distribution_of, read_lengths
from planner.papers.bidirl.costs.setting import Setting, setting_of
from planner.papers.bidirl.costs.times import rollout_times, train_times
from planner.papers.bidirl.costs.told import Told
from planner.papers.bidirl.costs.weight_sync import weight_sync_s
from planner.papers.bidirl.derived import BidirlDerivedProblem
from planner.papers.bidirl.problem import BidirlProblem, Cluster, Costs
from planner.papers.bidirl.training_run import Simulation
from planner.validation import validate

RESPONSES = "derive.responses"
COPIED = (
    "batch", "staleness", "objective", "layout_policy", "allow_idle_gpus", "split_granularity_gpus", "hot_switch",
    "notes",
)  # fmt: skip


def derive(document: BidirlDerivedProblem, options: DeriveOptions) -> Derivation[BidirlProblem]:
    """Bytes of every candidate by the memory model, times of those that were measured, what is stated as it is.

    Raises BadInputError (unknown_model, unknown_layout, missing_field, ...), of a log with its line.
    """
    setting = setting_of(document, options)
    given = setting.given
    cluster = Cluster(
        gpus=setting.cluster.num_ranks,
        gpus_per_node=setting.node,
        gpu_memory_bytes=setting.gpu_memory_bytes,
        memory_reserve_fraction=given.memory_reserve_fraction,
    )
    simulation, mean_tokens = _simulation(setting)
    rollout, train = held_by_rollout(setting), held_by_train(setting)
    rolls = rollout_times(setting, rollout.candidates, rollout.smallest(cluster.usable_bytes), mean_tokens)
    trains = train_times(setting, train.candidates, train.smallest(cluster.usable_bytes))
    sync_s, sync_sources = weight_sync_s(given, setting.model)
    costs = {
        "weight_sync_s": sync_s,
        "sync_sources": sync_sources,
        "colocated_switch_s": given.colocated_switch_s,
        "rollout_layouts": _layouts(rollout, rolls),
        "train_layouts": _layouts(train, trains),
        "switch": given.switch,
    }
    fields = {
        **{name: getattr(document, name) for name in COPIED},
        "cluster": cluster,
        "costs": validate(Costs, costs),
        "simulation": simulation,
        "cautions": {**rolls.cautions, **trains.cautions} or None,
    }
    errors = [*rolls.errors, *trains.errors]
    return Derivation(
        problem=validate(BidirlProblem, fields),
        derive=resolved_of(setting, {"rollout": (rollout, rolls), "train": (train, trains)}, mean_tokens),
        profile=None if setting.profile is None else setting.profile.name,
        profile_sha256=None if setting.profile is None else setting.profile.sha256,
        cost_error=_worst(errors),
        arrays=setting.files,
        relaxable=_relaxable(document),
        multiples={"derive.cluster.num_ranks": setting.node},
    )


def _layouts(held: Held, told: Told) -> list[dict[str, object]]:
    """Those that have a time."""
    return [
        {
            "id": name,
            "gpus": each.gpus,
            "memory_bytes": held.total(name),
            "memory_causes": dict(held.causes[name]),
            "time": told.times[name],
        }
        for name, each in held.candidates.items()
        if name in told.times
    ]


def _simulation(setting: Setting) -> tuple[Simulation, float | None]:
    """The simulation with the lengths that were met, and their mean; as it is where no file of them is named."""
    given, most = setting.given.responses, setting.document.batch.max_response_tokens
    if given is None:
        return setting.document.simulation, None
    path = setting.file(given.path, f"{RESPONSES}.path")
    lengths = read_lengths(path, given, most, RESPONSES)
    written = setting.document.simulation.model_dump(exclude_none=True)
    written["responses"] = distribution_of(lengths, given, most)
    try:
        return validate(Simulation, written), sum(lengths) / len(lengths)
    except BadInputError as error:
        raise BadInputError(error.message, code=error.code, where=f"simulation.{error.where}") from None


def _worst(errors: list[tuple[float, float]]) -> dict[str, float] | None:
    """Of all fits, the largest median and the largest p90."""
    if not errors:
        return None
    return {"median": max(each[0] for each in errors), "p90": max(each[1] for each in errors)}


def _relaxable(document: BidirlDerivedProblem) -> dict[str, tuple[str, float | str]]:
    """Memory that is not stated is that of a device; GPUs are a field of their own only where ranks are written out."""
    found: dict[str, tuple[str, float | str]] = {"cluster.gpu_memory_bytes": ("derive.gpu_memory_bytes", 0.0)}
    if isinstance(document.derive.cluster, DerivedCluster):
        found["cluster.gpus"] = ("derive.cluster.num_ranks", 0.0)
    return found
