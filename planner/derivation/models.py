"""Models of either kind, as a derived problem names them: language models and diffusion transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from planner.derivation.references import input_errors, is_file, located
from planner.errors import BadInputError
from profiles.errors import shown
from profiles.geometry import DiTGeometry, GeometrySpec, ModelGeometry, find_geometry, geometry_names, load_model
from profiles.geometry.diffusers_config import is_diffusion
from profiles.geometry.library import model_of
from profiles.geometry.model_file import name_of, read_object
from profiles.geometry.spec import ModelSpec

PLACE = "derive.model"

_DIFFUSION_ALONE = GeometrySpec.model_fields.keys() - ModelSpec.model_fields.keys()


def _form(value: object) -> str:
    if isinstance(value, str):
        return "name"
    diffusion = isinstance(value, GeometrySpec) or (isinstance(value, dict) and bool(_DIFFUSION_ALONE & value.keys()))
    return GeometrySpec.__name__ if diffusion else ModelSpec.__name__


AnyModel = Annotated[
    Annotated[GeometrySpec, Tag(GeometrySpec.__name__)]
    | Annotated[ModelSpec, Tag(ModelSpec.__name__)]
    | Annotated[str, Field(min_length=1, max_length=1000), Tag("name")],
    Discriminator(_form),
]
"""A built-in name, a file's path, or the sizes of a language model or of a diffusion transformer."""


def language_model(named: str | ModelSpec, folder: Path) -> ModelGeometry:
    """The language model of a problem in ``folder``. Raises BadInputError."""
    with input_errors(PLACE):
        return load_model(located(named, folder)) if isinstance(named, str) else named.geometry()


def without_file(named: str | ModelSpec | GeometrySpec, folder: Path) -> str | ModelSpec | GeometrySpec:
    """The same model, by its sizes where a file of ``folder`` holds them. Raises BadInputError."""
    if not isinstance(named, str) or not is_file(named):
        return named
    path = Path(located(named, folder))
    with input_errors(PLACE):
        config = read_object(path)
        if is_diffusion(config) or _DIFFUSION_ALONE & config.keys():
            return _spec(find_geometry(str(path)))
        return model_of(config, shown(path.name), name=name_of(path))


def geometry_of(model: str | ModelSpec | GeometrySpec) -> ModelGeometry | DiTGeometry:
    """The geometry of a built-in name or of sizes; no file is read. Raises BadInputError."""
    if isinstance(model, str) and is_file(model):
        message = f"expected a built-in name or sizes, got the file {shown(Path(model).name)}"
        raise BadInputError(message, code="unknown_model", where=PLACE)
    with input_errors(PLACE):
        if not isinstance(model, str):
            return model.geometry()
        return find_geometry(model) if model in geometry_names() else load_model(model)


def _spec(geometry: DiTGeometry) -> GeometrySpec:
    fields = vars(geometry) | {"vae_stride": list(geometry.vae_stride), "patch": list(geometry.patch)}
    return GeometrySpec(**{name: fields[name] for name in GeometrySpec.model_fields})
