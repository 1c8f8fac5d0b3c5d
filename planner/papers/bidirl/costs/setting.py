"""What a derived problem names, looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from planner.beside import Beside, add_digest, find
from planner.derivation.clusters import hardware_files, placed, profile_of
from planner.derivation.hardware import Hardware
from planner.derivation.models import geometry_of, without_file
from planner.derivation.references import digests, model_file
from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.papers.bidirl.derived import BidirlDerivedProblem, Derive
from planner.papers.bidirl.logs.rows import read_rows
from planner.papers.bidirl.measurements import (
    DecodeRow,
    DecodeRows,
    PrefillRow,
    PrefillRows,
    StepRow,
    StepRows,
    TimerRow,
    TimerRows,
)
from profiles.cluster import Cluster
from profiles.geometry.model import ModelGeometry
from profiles.profile import Profile

LEAST_GPUS = 2


@dataclass(frozen=True)
class Setting:
    """A derived problem after everything it names was looked up; ``files`` are those read, by base name.

    ``profile`` is the cluster's own, where that alone says what memory its GPUs have.
    """

    document: BidirlDerivedProblem
    folder: Path
    model: ModelGeometry
    cluster: Cluster
    hardware: Hardware
    profile: Profile | None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def given(self) -> Derive:
        """The document's ``derive``."""
        return self.document.derive

    @property
    def node(self) -> int:
        """GPUs of a node."""
        return min(self.cluster.gpus_per_node, self.cluster.num_ranks)

    @property
    def sequence_tokens(self) -> int:
        """Of the longest sequence."""
        return self.given.prompt_tokens + self.document.batch.max_response_tokens

    @property
    def gpu_memory_bytes(self) -> float:
        """Stated, or the cluster's, or its profile's. Raises BadInputError (missing_field)."""
        found = self.given.gpu_memory_bytes or self.cluster.device_classes[0].memory_bytes
        if found is None and self.profile is not None:
            found = self.profile.device.memory_bytes
        if found is None:
            raise BadInputError(
                'missing field "gpu_memory_bytes": the cluster does not say what its GPUs have',
                code="missing_field",
                where="derive.gpu_memory_bytes",
            )
        return float(found)

    def file(self, name: str, where: str) -> Path:
        """A file beside the problem, its digest noted. Raises BadInputError: no such file, or another of that name."""
        found = find(Beside(str(self.folder)), name, None, where)
        add_digest(self.files, found.name, found.sha256, where)
        return found.path

    def steps(self, given: StepRows, where: str) -> tuple[StepRow, ...]:
        """Rows of a log, from its file if they are there. Raises BadInputError with the line."""
        return given.rows or tuple(read_rows(self.file(given.path or "", where), StepRow, where))

    def decodes(self, given: DecodeRows, where: str) -> tuple[DecodeRow, ...]:
        """The same of decode steps."""
        return given.rows or tuple(read_rows(self.file(given.path or "", where), DecodeRow, where))

    def prefills(self, given: PrefillRows, where: str) -> tuple[PrefillRow, ...]:
        """The same of prefills."""
        return given.rows or tuple(read_rows(self.file(given.path or "", where), PrefillRow, where))

    def timers(self, given: TimerRows, where: str) -> tuple[TimerRow, ...]:
        """The same of trainer timers."""
        return given.rows or tuple(read_rows(self.file(given.path or "", where), TimerRow, where))


def setting_of(document: BidirlDerivedProblem, options: DeriveOptions) -> Setting:
    """Look up model and cluster. Raises BadInputError (unknown_model, unknown_profile, out_of_range, ...)."""
    if options.profile is not None or options.extrapolate is not None:
        message = "no time of this paper is priced by a profile: expected neither --profile nor --extrapolate"
        raise BadInputError(message, code="unknown_field", where="derive")
    folder = Path(options.base_folder)
    model = geometry_of(without_file(document.derive.model, folder))
    if not isinstance(model, ModelGeometry):
        message = f"expected a language model, got {model.name}"
        raise BadInputError(message, code="unknown_model", where="derive.model")
    hardware = Hardware(cluster=document.derive.cluster)
    _, cluster = placed(document, document.derive.cluster, folder)
    if cluster.num_ranks < LEAST_GPUS:
        message = f"expected at least {LEAST_GPUS} GPUs, one of either pool, got {cluster.num_ranks}"
        raise BadInputError(message, code="out_of_range", where="derive.cluster")
    files = digests([*hardware_files(hardware, folder), *model_file(document.derive.model, folder)])
    return Setting(document, folder, model, cluster, hardware, _profile(document, hardware, cluster, folder), files)


def _profile(document: BidirlDerivedProblem, hardware: Hardware, cluster: Cluster, folder: Path) -> Profile | None:
    device = cluster.device_classes[0]
    if document.derive.gpu_memory_bytes or device.memory_bytes or device.profile is None:
        return None
    return profile_of(hardware, cluster, folder)[1]
