"""The explicit problem around the rows of its cost table: cluster, batch, model, lists, links, bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from planner.derivation.clusters import device_memory
from planner.derivation.training.calibration import Calibration
from planner.errors import BadInputError
from planner.memory.messages import boundary_bytes
from planner.papers.layout.costs.links import slowed
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.problem import Batch, LayoutProblem, Rules, Search
from planner.papers.layout.table import Costs, Overlap, Row, Tiers
from planner.validation import validate

PLACES = (
    ("cluster.gpu_memory_bytes", "derive.memory.capacity_bytes"),
    ("cluster.reserve_bytes", "derive.memory.reserve_bytes"),
    ("cluster", "derive.cluster"),
    ("model", "derive.model"),
    ("costs.rows", "search"),
    ("costs", "derive"),
)
"""Fields of the explicit form, and those of the derived form that they come from; the others are the same in both."""

UNSTATED = Overlap(dp=0.0, p2p=0.0)

NO_ROW = Row(
    kind="head",
    tp=1,
    cp=1,
    sp=False,
    micro_batch=1,
    forward_s=0.0,
    backward_s=0.0,
    comm_forward_s=0.0,
    comm_backward_s=0.0,
    selective_s=0.0,
    params=0.0,
    expert_params=0.0,
    kept_bytes=0.0,
    selective_bytes=0.0,
    input_bytes=0.0,
)
"""Where rules are asked before anything is priced."""


def frame_of(
    setting: Setting,
    num_gpus: int,
    batch: Batch,
    costs: Costs,
    rules: Rules = "none",
    search: Search | None = None,
) -> LayoutProblem:
    """A problem of this model and device. Raises BadInputError, with the place in the derived form."""
    given = setting.given
    fields = {
        "launcher_rules": rules,
        "cluster": {
            "num_gpus": num_gpus,
            "gpus_per_node": setting.cluster.gpus_per_node,
            "gpu_memory_bytes": device_memory(given.memory.capacity_bytes, setting.cluster, setting.profile),
            "reserve_bytes": given.memory.reserve_bytes,
        },
        "batch": batch,
        "model": setting.model,
        "search": search or Search(),
        "costs": costs,
    }
    with _derived_places():
        return validate(LayoutProblem, fields)


def costs_of(setting: Setting, tiers: Tiers, rows: Sequence[Row], calibration: Calibration) -> Costs:
    """All prices. Raises BadInputError: more rows than a table may have."""
    given = setting.given
    slower = tiers if calibration.communication == 1.0 else slowed(tiers, calibration.communication)
    fields = dict[str, object](
        rows=tuple(rows),
        collectives=slower,
        p2p=slower.hops,
        boundary_bytes_per_sample=float(
            boundary_bytes(setting.geometry.hidden, setting.sequence_length, 1, setting.device.element_bytes)
        ),
        bytes_per_param=given.bytes_per_param,
        comm_bytes=given.sent,
        optimizer_s_per_param=_optimizer_s(setting, calibration),
        overlap=given.overlap or UNSTATED,
        fixed_s=calibration.fixed_s,
        fragmentation=given.fragmentation,
        communicator_bytes=given.communicator_bytes,
        selective=setting.selective or None,
    )
    with _derived_places(under="costs"):
        return validate(Costs, fields)


@contextmanager
def _derived_places(under: str = "") -> Iterator[None]:
    """A fault of the explicit form, or of its part ``under``, is told with the field that led to it."""
    try:
        yield
    except BadInputError as error:
        where = ".".join(part for part in (under, error.where) if part)
        place = next((own for field, own in PLACES if f"{where}.".startswith(f"{field}.")), error.where)
        raise BadInputError(error.message, code=error.code, where=place) from None


def _optimizer_s(setting: Setting, calibration: Calibration) -> float:
    """A gradient read, states read and written, a parameter written, at the speed of memory."""
    given = setting.given
    if given.optimizer_s_per_param is not None:
        return given.optimizer_s_per_param
    each = given.bytes_per_param
    moved = each.grad + 2 * each.optimizer + each.param
    return float(f"{calibration.elementwise * moved / setting.device.memory_bytes_per_s:.8e}")
