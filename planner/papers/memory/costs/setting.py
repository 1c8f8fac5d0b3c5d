"""What a derived problem names, looked up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.derivation.clusters import device_memory, placed, profile_of
from planner.derivation.hardware import Hardware
from planner.derivation.models import geometry_of, without_file
from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.memory.derived import Derive, MemoryDerivedProblem
from planner.papers.memory.job import Job
from profiles.cluster import Cluster
from profiles.geometry import DiTGeometry, ModelGeometry
from profiles.profile import Profile


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up.

    ``job`` is its own with the model by its sizes where a file held them; ``hardware`` what it says of profile and
    cluster, with the command line's overrides, as it was written. ``cluster`` is None where all dims are stated, and
    ``profile`` also where neither the problem nor the cluster names one.
    """

    given: Derive
    job: Job
    model: ModelGeometry | DiTGeometry
    hardware: Hardware | None
    cluster: Cluster | None
    profile: Profile | None

    @property
    def capacity_bytes(self) -> float:
        """What the cluster's device has, or the profile's. Raises BadInputError (missing_field)."""
        cluster, profile = self.cluster, self.profile
        own = None if cluster is None else cluster.device_classes[0].memory_bytes
        if own is not None:
            return float(own)
        if cluster is None or profile is None:
            message = (
                'missing field "capacity_bytes": the cluster does not say what its device has, and names no profile'
            )
            raise BadInputError(message, code="missing_field", where="capacity_bytes")
        return device_memory(None, cluster, profile)


def setting_of(document: MemoryDerivedProblem, options: DeriveOptions) -> Setting:
    """Look up what a document names. Raises BadInputError (unknown_model, unknown_profile, missing_field, ...)."""
    folder, given = Path(options.base_folder), document.derive
    job = Job(**{name: getattr(given, name) for name in Job.model_fields})
    job = job.model_copy(update={"model": without_file(given.model, folder)})
    hardware, cluster, profile = _hardware(document, options, folder)
    return Setting(given, job, geometry_of(job.model), hardware, cluster, profile)


def _hardware(
    document: MemoryDerivedProblem, options: DeriveOptions, folder: Path
) -> tuple[Hardware | None, Cluster | None, Profile | None]:
    given = document.derive
    if given.cluster is None:
        if options.profile is not None:
            message = 'missing field "cluster": it goes with a profile'
            raise BadInputError(message, code="missing_field", where="derive.cluster")
        return None, None, None
    hardware = Hardware(profile=given.profile, extrapolate=given.extrapolate, cluster=given.cluster)
    hardware = hardware.overridden(options)
    _, cluster = placed(document, given.cluster, folder)
    if hardware.profile is None and cluster.device_classes[0].profile is None:
        return hardware, cluster, None
    named, profile = profile_of(hardware, cluster, folder)
    return hardware.model_copy(update={"profile": named}), cluster, profile
