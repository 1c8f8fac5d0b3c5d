"""What HierMoE needs of a model: the width of a token, and the experts, which all its MoE layers have alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.derivation.references import input_errors, located
from planner.errors import BadInputError
from planner.papers.hiermoe.derived import Derive
from profiles.families import DTYPE_BYTES
from profiles.geometry import load_model
from profiles.geometry.feed_forward import Experts

PLACE = "derive.model"


@dataclass(frozen=True)
class MoeModel:
    """A model with ``layers`` layers of experts."""

    name: str
    hidden: int
    experts: Experts
    layers: int

    def expert_bytes(self, dtype: str) -> float:
        """All weights of one expert: three products where it is gated, else two."""
        products = 3 if self.experts.gated else 2
        return float(products * self.hidden * self.experts.ffn * DTYPE_BYTES[dtype])


def moe_model(given: Derive, folder: Path) -> MoeModel:
    """The model of a problem. Raises BadInputError: unknown, without experts, or with several kinds of them."""
    with input_errors(PLACE):
        geometry = load_model(located(given.model, folder)) if isinstance(given.model, str) else given.model.geometry()
    found: dict[Experts, int] = {}
    for kind, count in geometry.kinds():
        if isinstance(kind.feed_forward, Experts):
            found[kind.feed_forward] = found.get(kind.feed_forward, 0) + count
    if len(found) != 1:
        what = "has layers with different experts" if found else "has no experts: there is nothing to place"
        raise BadInputError(f"{geometry.name} {what}", code="out_of_range", where=PLACE)
    [(experts, layers)] = found.items()
    return MoeModel(geometry.name, geometry.hidden, experts, layers)
