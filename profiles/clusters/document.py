"""The cluster document: classes of nodes and their tiers, written out or on top of a preset.

Tiers are ordered by how many GPUs a group of them holds, never by their place in the file.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from profiles.clusters.tiers import NODE, STATED, DeviceClass, Tier
from profiles.errors import ProfileError, nearest_name, shown
from profiles.validation import Part

FORMAT_VERSION = "1.0"
MAX_RANKS = 1 << 18
LEAST_BYTES_PER_S = 1e7
"""Less is a number in another unit: GB/s, or Gb/s."""


def _whole(value: object) -> object:
    """80e9 for 80000000000: a float without a fraction counts as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


Name = Annotated[str, Field(min_length=1, max_length=100)]
Count = Annotated[int, Field(ge=1, le=MAX_RANKS), BeforeValidator(_whole)]
Sources = dict[Name, Annotated[str, Field(min_length=1, max_length=500)]]


class TierDocument(Part):
    """One tier. What is left out comes from the preset, or stays unknown."""

    gpus: Count | None = Field(None, description="ranks one group of the tier holds; null: all, which one tier may be")
    bandwidth_bytes_per_s: Annotated[float, Field(ge=LEAST_BYTES_PER_S, le=1e15)] | None = Field(
        None, description="of one port, one direction, in bytes: 400 Gb/s are 50e9"
    )
    latency_s: Annotated[float, Field(ge=0, le=1)] | None = Field(None, description="of one step across the tier")
    port: Name = Field("port", description="what the bandwidth belongs to: NIC, PCIe switch, ...")
    gpus_per_port: Count = Field(1, description="consecutive GPUs behind one port, which share its bandwidth")
    through: list[Name] = Field(default_factory=list, description="tiers whose ports this traffic passes too")
    sources: Sources = Field(default_factory=dict, description="who says so, by field")


class ClassDocument(Part):
    """Nodes of one kind, and the tiers that join them."""

    name: Name | None = None
    preset: Name | None = None
    nodes: Count = 1
    device: Name | None = None
    profile: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(None, description="its cost table")
    memory_bytes: Annotated[int, Field(gt=0), BeforeValidator(_whole)] | None = None
    tiers: dict[Name, TierDocument] = Field(default_factory=dict)
    sources: Sources = Field(default_factory=dict)


class ClusterDocument(ClassDocument):
    """A cluster of one class (its fields written here), or of several under `device_classes`."""

    format_version: Literal["1.0"] = "1.0"
    device_classes: list[ClassDocument] | None = Field(None, description="in the order of their ranks")
    notes: str | None = None


def with_preset(given: dict[str, object], preset: dict[str, object]) -> dict[str, object]:
    """The document `given`, its gaps filled from a preset, field by field and tier by tier; both as parsed.

    A number that is written here is the user's, so the preset's source of it goes.
    """
    merged = {**preset, **given}
    own, base = _table(given.get("tiers")), _table(preset.get("tiers"))
    merged["tiers"] = {
        name: _filled(_table(own.get(name)), _table(base.get(name))) if name in own else base[name]
        for name in (*base, *(name for name in own if name not in base))
    }
    merged["sources"] = _sources(given, preset)
    return merged


def classes_of(document: ClusterDocument, name: str) -> tuple[DeviceClass, ...]:
    """The device classes with their ranks. `name` is for messages. Raises `ProfileError` naming the place."""
    listed = document.device_classes
    if listed is None:
        parts: list[tuple[ClassDocument, str]] = [(document, "")]
    else:
        parts = [(part, f"device_classes.{index}.") for index, part in enumerate(listed)]
        own = sorted({"tiers", "nodes", "device", "profile", "memory_bytes", "preset"} & document.model_fields_set)
        if own or not listed:
            wrong = f'"{own[0]}" beside it' if own else "none"
            raise ProfileError(
                f"{name}: expected the classes under device_classes, got {wrong}",
                code="out_of_range",
                where="device_classes",
            )
    classes: list[DeviceClass] = []
    for part, place in parts:
        label = part.name or part.preset or (name if listed is None else "")
        if not label or label in {other.name for other in classes}:
            code = "duplicate_id" if label else "missing_field"
            raise ProfileError(f"{name}: each device class needs a name of its own", code=code, where=f"{place}name")
        classes.append(_class(part, label, place, classes[-1] if classes else None))
    return tuple(classes)


def _class(part: ClassDocument, label: str, place: str, before: DeviceClass | None) -> DeviceClass:
    tiers = _tiers(part, place)
    node = next((tier for tier in tiers if tier.name == NODE), None)
    if node is None or node.gpus is None:
        raise ProfileError(
            f'{label}: expected a tier "{NODE}" with its number of gpus',
            code="missing_field",
            where=f"{place}tiers.node",
        )
    for tier in tiers:
        if node.gpus % tier.gpus_per_port and tier.gpus_per_port % node.gpus:
            raise ProfileError(
                f"expected gpus_per_port to divide the node's {node.gpus} gpus or to be a multiple of them, "
                f"got {tier.gpus_per_port}",
                code="out_of_range",
                where=f"{place}tiers.{tier.name}.gpus_per_port",
            )
        holder = node.gpus if tier.gpus is not None and tier.gpus < node.gpus else tier.gpus
        if holder is not None and holder % tier.gpus_per_port:
            raise ProfileError(
                f"expected the gpus_per_port of tier {shown(tier.name)!r} to divide the {holder} gpus that can share a "
                f"port of it, got {tier.gpus_per_port}: a port that several of them share belongs to an outer tier",
                code="out_of_range",
                where=f"{place}tiers.{tier.name}.gpus_per_port",
            )
    first_rank = before.first_rank + before.num_ranks if before else 0
    if first_rank + part.nodes * node.gpus > MAX_RANKS:
        raise ProfileError(f"expected at most {MAX_RANKS} ranks", code="out_of_range", where=f"{place}nodes")
    return DeviceClass(
        name=label,
        nodes=part.nodes,
        gpus_per_node=node.gpus,
        num_ranks=part.nodes * node.gpus,
        tiers=tiers,
        first_rank=first_rank,
        first_node=before.first_node + before.nodes if before else 0,
        profile=part.profile,
        device=part.device,
        memory_bytes=part.memory_bytes,
        sources=dict(part.sources),
        place=place,
    )


def _tiers(part: ClassDocument, place: str) -> tuple[Tier, ...]:
    """The tiers of a class, innermost first. Sizes must nest, and at most one tier holds all ranks."""
    ordered = sorted(part.tiers.items(), key=lambda item: (item[1].gpus is None, item[1].gpus or 0, item[0]))
    for (inner, one), (outer, other) in pairwise(ordered):
        if one.gpus is None:
            near = "; is one the other misspelt?" if nearest_name(outer, [inner]) else ""
            raise ProfileError(
                f"tiers {shown(inner)!r} and {shown(outer)!r} both lack gpus, and only one tier holds all ranks{near}",
                code="out_of_range",
                where=f"{place}tiers",
            )
        if other.gpus is not None and (other.gpus == one.gpus or other.gpus % one.gpus):
            raise ProfileError(
                f"expected tier {outer!r} to hold a multiple of the {one.gpus} gpus of {inner!r}, got {other.gpus}",
                code="out_of_range",
                where=f"{place}tiers.{outer}.gpus",
            )
    names = [name for name, _ in ordered]
    for position, (tier_name, tier) in enumerate(ordered):
        for through in tier.through:
            if through not in names[:position]:
                raise ProfileError(
                    f"expected through to name tiers inside {tier_name!r} ({', '.join(names[:position]) or 'none'}), "
                    f"got {shown(through)!r}",
                    code="out_of_range",
                    where=f"{place}tiers.{tier_name}.through",
                )
    return tuple(_tier(name, tier) for name, tier in ordered)


def _tier(name: str, given: TierDocument) -> Tier:
    numbers = ("bandwidth_bytes_per_s", "latency_s")
    stated = {number: STATED for number in numbers if getattr(given, number) is not None}
    return Tier(
        name=name,
        gpus=given.gpus,
        bandwidth_bytes_per_s=given.bandwidth_bytes_per_s,
        latency_s=given.latency_s,
        port=given.port,
        gpus_per_port=given.gpus_per_port,
        through=tuple(given.through),
        sources={**stated, **given.sources},
    )


def _filled(given: dict[str, object], base: dict[str, object]) -> dict[str, object]:
    return {**base, **given, "sources": _sources(given, base)}


def _sources(given: dict[str, object], base: dict[str, object]) -> dict[str, object]:
    kept = {name: text for name, text in _table(base.get("sources")).items() if name not in given}
    return {**kept, **_table(given.get("sources"))}


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
