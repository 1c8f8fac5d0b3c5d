"""Geometries of diffusion transformers by built-in name, from a file, or from an object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from profiles.errors import ProfileError, UnknownNameError, shown
from profiles.geometry.diffusers_config import is_diffusion, read_diffusion
from profiles.geometry.diffusion import DiTGeometry, GeometrySpec
from profiles.geometry.model_file import name_of, read_object
from profiles.validation import validate

_BUILT_IN = (
    DiTGeometry("wan2.1-1.3b", hidden=1536, heads=12, ffn=8960, text_tokens=512, cross_layers=30),
    DiTGeometry("wan2.1-14b", hidden=5120, heads=40, ffn=13824, text_tokens=512, cross_layers=40),
    DiTGeometry("hunyuanvideo", hidden=3072, heads=24, ffn=12288, text_tokens=256, double_layers=20, single_layers=40),
    DiTGeometry(
        "flux",
        hidden=3072,
        heads=24,
        ffn=12288,
        text_tokens=512,
        double_layers=19,
        single_layers=38,
        vae_stride=(1, 8, 8),
    ),
)


def geometry_names() -> list[str]:
    """The built-in geometries, sorted."""
    return sorted(geometry.name for geometry in _BUILT_IN)


def find_geometry(model: str | GeometrySpec | Mapping[str, object]) -> DiTGeometry:
    """A geometry by built-in name, from a file (a path with a separator or ending in .json), or from an object.

    A file holds the fields of `GeometrySpec`, or is a config.json as diffusers writes it. Raises `UnknownNameError`
    (unknown_model) that lists the known names, `ProfileError` for a bad file; pydantic's ValidationError for a bad
    object.
    """
    if isinstance(model, str):
        if "/" in model or model.endswith(".json"):
            return _from_file(Path(model))
        known = {geometry.name: geometry for geometry in _BUILT_IN}
        if model not in known:
            raise UnknownNameError("model", model, sorted(known), code="unknown_model")
        return known[model]
    spec = model if isinstance(model, GeometrySpec) else GeometrySpec.model_validate(model)
    return spec.geometry()


def _from_file(path: Path) -> DiTGeometry:
    config, file = read_object(path), shown(path.name)
    if is_diffusion(config):
        return read_diffusion(config, file, name=name_of(path)).geometry()
    if "model_type" in config:
        raise ProfileError(f"{file}: expected a diffusion transformer, got a language model", code="unknown_model")
    return validate(GeometrySpec, {"name": name_of(path), **config}, file).geometry()
