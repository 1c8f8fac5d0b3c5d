"""What the reader of a plan should know of derived prices: warnings by code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.devices import differ
from planner.derivation.hardware import AnyCluster, TieredCluster
from planner.derivation.narrow_dtype import experts_slower, measured_as, times_slower
from planner.derivation.training.calibration import Calibration
from planner.derivation.training.rank_products import rank_products
from planner.derivation.training.routed_experts import as_products
from planner.papers.layout.costs.rows import Priced
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.costs.unpriced import missing_of
from planner.papers.layout.table import Kind
from profiles.clusters.tiers import NODE
from profiles.errors import shown
from profiles.experts import FAMILY, whole_products
from profiles.geometry.model import LayerKind

MOST_TEXT = 400


def cautions(setting: Setting, found: Mapping[Kind, Priced], more: Mapping[str, str]) -> dict[str, str]:
    """By code, only what applies; with ``more`` that others have to say."""
    given, geometry = setting.given, setting.geometry
    said = {
        **more,
        "combinations_unpriced": "; ".join(f"{kind} {why}" for kind, why in missing_of(found).items()),
        "narrow_dtype_slower": _slower(setting) or _experts_slower(setting),
        "other_device": _other_device(setting),
    }
    if given.runs is None and given.calibration == Calibration():
        said["uncalibrated"] = (
            "prices are those of kernels measured one by one; a training step on another software stack was 20 to 50 % "
            "off such prices, and experts over a network more: fit them to runs of yours (derive.runs)"
        )
    if given.overlap is None:
        said["overlap_unmeasured"] = (
            "no overlap was stated: data-parallel collectives and pipeline hops hide behind nothing here; measure it "
            "and state derive.overlap"
        )
    if any(len(mixed) > 1 for mixed in setting.kinds.values()):
        said["sliding_averaged"] = (
            f"layers of {shown(geometry.name)} that slide and that do not are priced as their mean: a stage with more "
            "of either differs"
        )
    if geometry.mtp_layers:
        said["mtp_left_out"] = (
            f"{geometry.mtp_layers} multi-token-prediction layers ({geometry.mtp_parameters / 1e9:.3g}e9 parameters) "
            "are left out of times and bytes"
        )
    experts = setting.experts
    if experts is not None and as_products(setting.device, experts):
        said["experts_as_products"] = (
            f"no rows in {setting.device.experts_dtype} are of experts such as {shown(geometry.name)} has: they are "
            "priced as products one after the other"
        )
    if experts is not None and given.load_factor == 1.0:
        said["balanced_routing"] = (
            "every expert gets as many tokens: the fullest rank has more; state derive.load_factor"
        )
    return {code: text[:MOST_TEXT] for code, text in said.items() if text}


def of_node(written: AnyCluster) -> dict[str, str]:
    """That a stated link inside the node is not read. ``written`` is the cluster as stated."""
    node = written.tiers.get(NODE) if isinstance(written, TieredCluster) else None
    read = ("bandwidth_bytes_per_s", "latency_s")
    stated = [] if node is None else [name for name in read if name in node.model_fields_set]
    if not stated:
        return {}
    fields = " and ".join(f"derive.cluster.tiers.{NODE}.{name}" for name in stated)
    return {
        "node_link_unread": f"{fields}: not read, inside a node prices are the profile's rows; state another profile"
    }


def _other_device(setting: Setting) -> str:
    own, priced = setting.cluster.device_classes[0].device, setting.profile.device.name
    if not differ(own, priced):
        return ""
    return (
        f"the cluster is of {shown(own or '')}, but its work is priced by rows of {shown(priced)}: measure or import a "
        "profile of this machine"
    )


def _slower(setting: Setting) -> str:
    """That products of whole layers are slower in a narrow dtype than in the activations'."""
    given, wide = setting.given, setting.given.activation_dtype
    if given.dtype == wide:
        return ""
    kind: LayerKind = next(iter(setting.kinds.values()))[0][0]
    shapes = [one.product for one in rank_products(kind.weights, 1) if one.product.name != "router"]
    n, k = (np.array([float(getattr(each, axis)) for each in shapes]) for axis in ("out_features", "in_features"))

    def price(dtype: str) -> Floats:
        tokens = float(setting.sequence_length)
        return setting.profile.gemm(tokens, n, k, dtype=dtype, extrapolate=given.extrapolate).seconds

    times = times_slower(given.dtype, wide, price(given.dtype), lambda: price(wide))
    if times is None:
        return ""
    return (
        f"products are priced {times:.2g} times slower in {given.dtype} than in {wide}, as "
        f"{measured_as(setting.profile, 'gemm', given.dtype)} was measured: compare derive.dtype={wide}"
    )


def _experts_slower(setting: Setting) -> str:
    """That all experts on one device are slower in a narrow dtype than in the activations'."""
    device, experts = setting.device, setting.experts
    dtype, wide = device.experts_dtype, device.activation_dtype
    if experts is None or dtype == wide or as_products(device, experts):
        return ""
    tokens = np.array([float(setting.sequence_length)])

    def price(dtype: str) -> Floats:
        return whole_products(setting.expert_rows(dtype), tokens, device.extrapolate).seconds

    times = times_slower(dtype, wide, price(dtype), lambda: price(wide))
    if times is None:
        return ""
    field = "dtype" if setting.given.expert_dtype is None else "expert_dtype"
    return experts_slower(times, dtype, wide, measured_as(setting.profile, FAMILY, dtype, device.workload), field)
