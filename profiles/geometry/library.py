"""Language models by name, and from files."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path

from profiles.errors import ProfileError, UnknownNameError, nearest_name, shown
from profiles.geometry.config_json import read_config
from profiles.geometry.diffusion_library import geometry_names
from profiles.geometry.model import ModelGeometry
from profiles.geometry.model_file import name_of, read_object
from profiles.geometry.spec import ModelSpec
from profiles.strict_json import parse
from profiles.validation import validate


def model_names() -> list[str]:
    """The built-in language models, sorted. Diffusion transformers are in `geometry_names`."""
    folder = resources.files("profiles") / "geometry" / "models"
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def load_model(name_or_path: str | Path) -> ModelGeometry:
    """A built-in language model by name, or one from a file: a published config.json, or the fields of `ModelSpec`.

    Raises `UnknownNameError` (unknown_model) that lists the known names, or `ProfileError` naming the field.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith(".json"):
        path = Path(name_or_path)
        near = None if path.exists() else nearest_name(path.name.removesuffix(".json"), model_names())
        if near is not None:
            raise ProfileError(f"no file {shown(path.name)}; did you mean the built-in {near!r}?", code="unknown_model")
        return read_model(path).geometry()
    return _built_in(text)


def read_model(path: Path) -> ModelSpec:
    """The sizes in a file; its folder's name is the model's where the file is called config.json."""
    return model_of(read_object(path), shown(path.name), name=name_of(path))


def model_of(value: object, file: str, *, name: str | None = None) -> ModelSpec:
    """The sizes that a parsed config.json or `ModelSpec` object states. `file` is for messages.

    Raises `ProfileError` naming the field; unknown_model with the reason for a model that is not modelled.
    """
    if not isinstance(value, dict):
        raise ProfileError(f"{file}: expected an object with a model's sizes", code="wrong_type")
    if "_class_name" in value:
        raise ProfileError(
            f"{file}: a diffusion transformer, not a language model: find_geometry reads it", code="unknown_model"
        )
    if "hidden" in value:
        return validate(ModelSpec, {"name": name or file, **value} if name else value, file)
    return read_config(value, file, name=name)


@lru_cache(maxsize=64)
def _built_in(name: str) -> ModelGeometry:
    known = model_names()
    if name not in known:
        if name in geometry_names():
            raise ProfileError(
                f"{name} is a diffusion transformer, not a language model: find_geometry knows it",
                code="unknown_model",
            )
        raise UnknownNameError("model", name, known, code="unknown_model")
    data = (resources.files("profiles") / "geometry" / "models" / f"{name}.json").read_bytes()
    return validate(ModelSpec, {**_object(parse(data, name)), "name": name}, name).geometry()


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("a built-in model is an object")
    return value
