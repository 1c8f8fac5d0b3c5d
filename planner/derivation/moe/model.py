"""A model with experts, looked up: its layers with experts, which have all the same ones, and the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.derivation.models import PLACE, language_model
from planner.errors import BadInputError
from planner.memory.inference import expert_matrix_bytes
from profiles.families import DTYPE_BYTES
from profiles.geometry import ModelGeometry
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Experts
from profiles.geometry.model import LayerKind
from profiles.geometry.spec import ModelSpec
from profiles.latent import has_known_widths


@dataclass(frozen=True)
class MoeModel:
    """A model with experts. ``kinds`` and ``dense`` are its kinds of layer with and without, each with its count.

    ``kinds`` have the same experts and differ in attention alone (whether it slides).
    """

    geometry: ModelGeometry
    experts: Experts
    kinds: tuple[tuple[LayerKind, int], ...]
    dense: tuple[tuple[LayerKind, int], ...]

    @property
    def name(self) -> str:
        """As its file, or the model list, calls it."""
        return self.geometry.name

    @property
    def hidden(self) -> int:
        """Width of a token."""
        return self.geometry.hidden

    @property
    def num_layers(self) -> int:
        """Layers with experts."""
        return sum(count for _, count in self.kinds)

    @property
    def every_kind(self) -> tuple[tuple[LayerKind, int], ...]:
        """All layers."""
        return (*self.kinds, *self.dense)

    def expert_bytes(self, dtype: str) -> float:
        """The matrices of one expert of one layer."""
        return expert_matrix_bytes(self.hidden, self.experts, DTYPE_BYTES[dtype])


def moe_model(named: str | ModelSpec, folder: Path) -> MoeModel:
    """The model of a problem in ``folder``. Raises BadInputError: unknown, without experts, or with unlike ones."""
    geometry = language_model(named, folder)
    kinds = [(kind, count) for kind, count in geometry.kinds() if isinstance(kind.feed_forward, Experts)]
    dense = [(kind, count) for kind, count in geometry.kinds() if not isinstance(kind.feed_forward, Experts)]
    networks = {kind.feed_forward for kind, _ in kinds}
    if not networks:
        raise _refused(f"{geometry.name} has no experts: there is nothing to place")
    experts = networks.pop()
    if networks or not isinstance(experts, Experts):
        raise _refused(f"{geometry.name} has layers with different experts: a plan takes all layers as alike")
    return MoeModel(geometry, experts, tuple(kinds), tuple(dense))


def refuse_unpriced(model: MoeModel) -> None:
    """Raise BadInputError for experts or attention that nothing prices: not gated, sparse, or of unknown widths."""
    if not model.experts.gated:
        raise _refused(f"the experts of {model.name} are not gated: rows of experts are of three products each")
    for kind, _ in model.geometry.kinds():
        _refuse_unpriced(model.name, kind)


def _refuse_unpriced(name: str, kind: LayerKind) -> None:
    attention = kind.attention
    if not isinstance(attention, LatentAttention):
        return
    if attention.indexer is not None:
        raise _refused(f"{name} has sparse attention (an indexer), which has no formula: it is not priced")
    if not has_known_widths(attention):
        raise _refused(
            f"latent attention is priced at the widths of DeepSeek V2 and V3 (nope 128, rope 64, v 128, kv_lora 512), "
            f"not at those of {name}"
        )


def _refused(message: str) -> BadInputError:
    return BadInputError(message, code="out_of_range", where=PLACE)
