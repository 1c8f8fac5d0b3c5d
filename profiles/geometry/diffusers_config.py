"""A config.json of a diffusion transformer, as diffusers writes it or Wan's own, as a `GeometrySpec`.

Neither the number of text tokens nor the autoencoder's stride stands in it (only Wan's own has text_len): they are
those of the pipeline that goes with the class, its max_sequence_length and its autoencoder. State a `GeometrySpec` to
change them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from profiles.errors import ProfileError, shown
from profiles.geometry.config_fields import Fields
from profiles.geometry.diffusion import GeometrySpec
from profiles.validation import validate

MAX_RATIO = 64


@dataclass(frozen=True)
class _Class:
    """What a class of transformer means; `text_tokens`, `vae_stride` and `patch` are of its pipeline."""

    read: Callable[[Fields, Mapping[str, object]], dict[str, object]]
    text_tokens: int
    vae_stride: tuple[int, int, int]
    patch: tuple[int, int, int]


def is_diffusion(config: Mapping[str, object]) -> bool:
    """Whether a config.json is of a diffusion transformer rather than of a language model."""
    return "_class_name" in config or "_diffusers_version" in config


def read_diffusion(config: Mapping[str, object], file: str, *, name: str | None = None) -> GeometrySpec:
    """The sizes in such a config.json. `file` is for messages; `name` is the model's, by default the file's.

    Raises `ProfileError`: unknown_model with the reason for what is not modelled, else the field and what is wrong.
    """
    given = Fields(config, file)
    kind = given.text("_class_name") or ""
    if kind not in _CLASSES:
        asked = shown(repr(kind)) if kind else "no _class_name"
        raise ProfileError(
            f"{file}: expected a diffusion transformer of class {', '.join(_CLASSES)}, got {asked}",
            code="unknown_model",
            where="_class_name",
        )
    found = _CLASSES[kind]
    spec: dict[str, object] = {
        "name": (name or file)[:100],
        "text_tokens": given.whole("text_len") or found.text_tokens,
        "vae_stride": list(found.vae_stride),
        "patch": list(found.patch),
    }
    return validate(GeometrySpec, spec | found.read(given, config), file)


def _wan(given: Fields, config: Mapping[str, object]) -> dict[str, object]:
    image = given.has("added_kv_proj_dim", "image_dim")
    if image or given.text("model_type") not in (None, "t2v"):
        raise ProfileError(
            f"{given.file}: cross-attention to an image is not modelled",
            code="unknown_model",
            where=image or "model_type",
        )
    heads = given.needed("num_attention_heads", "num_heads")
    hidden = given.whole("dim") or heads * given.needed("attention_head_dim")
    return {
        "hidden": hidden,
        "heads": heads,
        "ffn": given.needed("ffn_dim"),
        "cross_layers": given.needed("num_layers"),
        "patch": config.get("patch_size") or [1, 2, 2],
    }


def _hunyuan(given: Fields, config: Mapping[str, object]) -> dict[str, object]:
    if given.has("image_condition_type"):
        raise ProfileError(
            f"{given.file}: image conditioning is not modelled", code="unknown_model", where="image_condition_type"
        )
    space = given.needed("patch_size")
    return _joint(given, config) | {"patch": [given.needed("patch_size_t"), space, space]}


def _joint(given: Fields, config: Mapping[str, object]) -> dict[str, object]:
    heads = given.needed("num_attention_heads")
    hidden = heads * given.needed("attention_head_dim")
    ratio = config.get("mlp_ratio", 4.0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= MAX_RATIO:
        raise _bad_ratio(given, f"a number up to {MAX_RATIO}", ratio)
    if ratio * hidden != int(ratio * hidden):
        raise _bad_ratio(given, f"a number that gives a whole width with hidden {hidden}", ratio)
    return {
        "hidden": hidden,
        "heads": heads,
        "ffn": int(ratio * hidden),
        "double_layers": given.needed("num_layers"),
        "single_layers": given.needed("num_single_layers"),
    }


def _bad_ratio(given: Fields, expected: str, ratio: object) -> ProfileError:
    return ProfileError(
        f"{given.file}: expected mlp_ratio as {expected}, got {shown(repr(ratio))}",
        code="out_of_range",
        where="mlp_ratio",
    )


_CLASSES: Mapping[str, _Class] = {
    # Pipelines of huggingface/diffusers: max_sequence_length 512 (Wan), 256 (HunyuanVideo), 512 (Flux). FLUX packs
    # 2 x 2 latents into the channels before its transformer, whose own patch_size is 1.
    "WanTransformer3DModel": _Class(_wan, 512, (4, 8, 8), (1, 2, 2)),
    "WanModel": _Class(_wan, 512, (4, 8, 8), (1, 2, 2)),
    "HunyuanVideoTransformer3DModel": _Class(_hunyuan, 256, (4, 8, 8), (1, 2, 2)),
    "FluxTransformer2DModel": _Class(_joint, 512, (1, 8, 8), (1, 2, 2)),
}
