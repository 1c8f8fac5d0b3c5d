"""What models are made of: diffusion transformers (`find_geometry`) and language models (`load_model`).

Sizes come from a built-in name, a `config.json` as published, or an object; counts of parameters, FLOPs and bytes
follow from them.
"""

from profiles.geometry.diffusion import (
    DiTGeometry,
    GeometrySpec,
    Kind,
    Projection,
    Rows,
    element_bytes,
)
from profiles.geometry.diffusion_library import find_geometry, geometry_names
from profiles.geometry.library import load_model, model_names
from profiles.geometry.model import LayerRun, ModelGeometry

__all__ = [
    "DiTGeometry",
    "GeometrySpec",
    "Kind",
    "LayerRun",
    "ModelGeometry",
    "Projection",
    "Rows",
    "element_bytes",
    "find_geometry",
    "geometry_names",
    "load_model",
    "model_names",
]
