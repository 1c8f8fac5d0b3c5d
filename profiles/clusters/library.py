"""Clusters by name and from files."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path

from profiles.cluster import Cluster, cluster_of_classes
from profiles.clusters.document import FORMAT_VERSION, ClassDocument, ClusterDocument, classes_of, with_preset
from profiles.errors import ProfileError, UnknownNameError, shown
from profiles.strict_json import parse, read_limited, refuse_placeholder
from profiles.strict_yaml import parse_yaml
from profiles.validation import validate

MAX_FILE_BYTES = 1 << 20
SUFFIXES = (".json", ".yaml", ".yml")


def cluster_names() -> list[str]:
    """The built-in clusters, sorted."""
    folder = resources.files("profiles") / "clusters" / "presets"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def is_cluster_file(name: str) -> bool:
    """Whether a text means a file rather than a built-in name: it has a separator, or ends in .yaml, .yml or .json."""
    return "/" in name or name.endswith(SUFFIXES)


def load_cluster(name_or_path: str | Path) -> Cluster:
    """A built-in cluster by name, or one described by a YAML or JSON file.

    Raises `UnknownNameError` (unknown_profile) that lists the known names, or `ProfileError` naming the place.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or is_cluster_file(text):
        path = Path(name_or_path)
        return cluster_of(_read(path), path.name, default_name=path.stem)
    _refuse_unknown(text, None)
    return cluster_of({"preset": text}, text)


def cluster_of(value: object, name: str, *, default_name: str | None = None) -> Cluster:
    """The cluster that a parsed document describes: the fields of a file. `name` is for messages.

    Raises `UnknownNameError` for an unknown preset, `ProfileError` naming the place for anything else.
    """
    if not isinstance(value, dict):
        raise ProfileError(f"{name}: expected an object that describes a cluster", code="wrong_type")
    version = value.get("format_version", FORMAT_VERSION)
    if not isinstance(version, str) or version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise ProfileError(
            f"{name}: format_version {shown(str(version))!r} is not supported; this program reads 1.x",
            code="unsupported_version",
            where="format_version",
        )
    value = {**value, "format_version": FORMAT_VERSION}
    given = validate(ClusterDocument, value, name)
    if given.device_classes is not None:
        parts = [
            _expanded(part, raw, f"device_classes.{index}.")
            for index, (part, raw) in enumerate(zip(given.device_classes, value["device_classes"], strict=True))
        ]
        whole = validate(ClusterDocument, {**value, "device_classes": parts}, name)
    else:
        whole = validate(ClusterDocument, _expanded(given, value, ""), name)
    label = given.name or default_name or given.preset or name
    return cluster_of_classes(classes_of(whole, label), label)


def _expanded(part: ClassDocument, raw: dict[str, object], place: str) -> dict[str, object]:
    if part.preset is None:
        return raw
    return with_preset(raw, _preset(part.preset, place))


@lru_cache(maxsize=32)
def _preset_text(name: str) -> str:
    return (resources.files("profiles") / "clusters" / "presets" / f"{name}.yaml").read_text(encoding="utf-8")


def _refuse_unknown(name: str, where: str | None) -> None:
    known = cluster_names()
    if name not in known:
        error = UnknownNameError("cluster", name, known, code="unknown_profile")
        error.where = where
        raise error


def _preset(name: str, place: str) -> dict[str, object]:
    _refuse_unknown(name, f"{place}preset")
    parsed = parse_yaml(_preset_text(name), f"{name}.yaml")
    if not isinstance(parsed, dict):
        raise TypeError(f"the preset {name} is not an object")
    return {key: value for key, value in parsed.items() if key not in ("format_version", "notes")}


def _read(path: Path) -> object:
    try:
        data = read_limited(path)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ProfileError(f"cannot read the cluster {shown(path.name)}: {reason}", code="unknown_profile") from None
    if len(data) > MAX_FILE_BYTES:
        raise ProfileError(
            f"{shown(path.name)} has {len(data)} bytes; a cluster has at most {MAX_FILE_BYTES}", code="too_large"
        )
    name = shown(path.name)
    refuse_placeholder(data, name)
    if path.suffix == ".json":
        return parse(data, name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProfileError(f"{name} is not UTF-8 text (byte {error.start})", code="not_json") from None
    return parse_yaml(text, name)
