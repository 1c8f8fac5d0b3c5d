"""Hardware facts: what operations cost on a device, measured, imported or fitted, and where each number comes from.

`load(name or path)` gives a `Profile`; its lookups return `Priced`. Names here are resolved on first use, so that
importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiles.cluster import Cluster as Cluster
    from profiles.cluster import Link as Link
    from profiles.clusters.library import cluster_names as cluster_names
    from profiles.clusters.library import load_cluster as load_cluster
    from profiles.document import ProfileDocument as ProfileDocument
    from profiles.document import profile_schema as profile_schema
    from profiles.errors import ProfileError as ProfileError
    from profiles.errors import UnknownNameError as UnknownNameError
    from profiles.geometry import DiTGeometry as DiTGeometry
    from profiles.geometry import ModelGeometry as ModelGeometry
    from profiles.geometry import find_geometry as find_geometry
    from profiles.geometry import geometry_names as geometry_names
    from profiles.geometry import load_model as load_model
    from profiles.geometry import model_names as model_names
    from profiles.library import load as load
    from profiles.library import names as names
    from profiles.priced import SOURCES as SOURCES
    from profiles.priced import Priced as Priced
    from profiles.profile import Profile as Profile

_HOME = {
    "Cluster": "cluster",
    "DiTGeometry": "geometry",
    "Link": "cluster",
    "ModelGeometry": "geometry",
    "Priced": "priced",
    "Profile": "profile",
    "ProfileDocument": "document",
    "ProfileError": "errors",
    "SOURCES": "priced",
    "UnknownNameError": "errors",
    "cluster_names": "clusters.library",
    "find_geometry": "geometry",
    "geometry_names": "geometry",
    "load": "library",
    "load_cluster": "clusters.library",
    "load_model": "geometry",
    "model_names": "geometry",
    "names": "library",
    "profile_schema": "document",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'profiles' has no attribute {name!r}")
    return getattr(import_module(f"profiles.{_HOME[name]}"), name)
