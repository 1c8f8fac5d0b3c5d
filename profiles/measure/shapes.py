"""What a model asks of a device: its products, attention and experts."""

from __future__ import annotations

from dataclasses import dataclass

from profiles.errors import ProfileError, UnknownNameError
from profiles.geometry import DiTGeometry, ModelGeometry, find_geometry, geometry_names, load_model, model_names
from profiles.geometry.attention import GroupedAttention
from profiles.geometry.feed_forward import Experts


@dataclass(frozen=True)
class Shapes:
    """Products (n, k), non-causal attention (head_dim, heads), causal attention (head_dim, queries_per_kv_head, heads),
    experts (hidden, ffn, experts, top_k, tensor_ranks, expert_ranks); each without repeats, in order."""

    products: tuple[tuple[int, int], ...] = ()
    encoder: tuple[tuple[int, int], ...] = ()
    causal: tuple[tuple[int, int, int], ...] = ()
    experts: tuple[tuple[int, ...], ...] = ()


def shapes_of(models: tuple[str, ...]) -> Shapes:
    """The shapes of all models: built-in names, or files as `find_geometry` and `load_model` read them.

    Latent attention has none: its kernels are not measured. Raises `ProfileError` for a name that is not known.
    """
    found = [_shapes_of(model) for model in models]
    return Shapes(
        products=tuple(sorted({shape for one in found for shape in one.products})),
        encoder=tuple(sorted({shape for one in found for shape in one.encoder})),
        causal=tuple(sorted({shape for one in found for shape in one.causal})),
        experts=tuple(sorted({shape for one in found for shape in one.experts})),
    )


def _shapes_of(model: str) -> Shapes:
    if model in geometry_names():
        return _diffusion(find_geometry(model))
    if model in model_names():
        return _language(load_model(model))
    if "/" not in model and not model.endswith(".json"):
        raise UnknownNameError("model", model, [*geometry_names(), *model_names()], code="unknown_model")
    try:
        return _language(load_model(model))
    except ProfileError as refused:
        try:
            return _diffusion(find_geometry(model))
        except ProfileError:
            raise refused from None


def _diffusion(model: DiTGeometry) -> Shapes:
    """One head and all heads, so that a split by heads lies between."""
    return Shapes(
        products=tuple((product.out_features, product.in_features) for product in model.projections()),
        encoder=((model.head_dim, 1), (model.head_dim, model.heads)),
    )


def _language(model: ModelGeometry) -> Shapes:
    """On one rank; the experts' products are in their own family."""
    kinds = [kind for kind, _ in model.kinds()]
    weights = [*model.ends, *(weight for kind in kinds for weight in kind.weights)]
    dense = [weight for weight in weights if not weight.vector and weight.part not in ("experts", "embeddings")]
    attention = [kind.attention for kind in kinds if isinstance(kind.attention, GroupedAttention)]
    experts = [(kind.hidden, kind.feed_forward) for kind in kinds if isinstance(kind.feed_forward, Experts)]
    return Shapes(
        products=tuple((weight.out_features, weight.in_features) for weight in dense),
        causal=tuple((one.head_dim, one.heads // one.kv_heads, one.heads) for one in attention),
        experts=tuple((hidden, one.ffn, one.count, one.top_k, 1, 1) for hidden, one in experts if one.gated),
    )
