"""From the derived-cost form to the explicit one (page, "Derived-cost form")."""

from __future__ import annotations

from pathlib import Path

from planner.derivation.clusters import device_memory, hardware_files, refuse_unstated
from planner.derivation.looked_up import looked_up
from planner.derivation.moe.model import moe_model, refuse_unpriced
from planner.derivation.references import digests, input_errors, located, model_file
from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.janus.costs import ActivatedBound, Limits
from planner.papers.janus.derived import Derive, DerivedDevice, DerivedLimits, JanusDerivedProblem
from planner.papers.janus.prices.account import error_of, resolved_of
from planner.papers.janus.prices.footprint import CAPACITY
from planner.papers.janus.prices.load import Load, load_of
from planner.papers.janus.prices.one_pool import monolithic_of
from planner.papers.janus.prices.priced import Prices, prices_of
from planner.papers.janus.prices.setting import Setting
from planner.papers.janus.problem import Baselines, Device, JanusProblem
from planner.validation import validate
from profiles.cluster import Cluster
from profiles.library import load
from profiles.profile import Profile

OWN = "own"
"""How the problem's own pair of devices is called beside those that it lists."""
MOST_INSTANCES = 65536
RANKS = "derive.cluster.num_ranks"

_COPIED = (
    "task", "slo_tpot_s", "launcher_rules", "prices", "price_unit", "layers", "notes", "demand_tokens_per_s", "series",
    "arrivals",
)  # fmt: skip


def derive(document: JanusDerivedProblem, options: DeriveOptions) -> Derivation[JanusProblem]:
    """Price both sides on every pair of devices, and what goes between them.

    Raises BadInputError (unknown_profile, unknown_model, outside_measured_range, missing_field, out_of_range, ...).
    """
    found = looked_up(document, document.derive, options)
    document, folder, written, given = found.document, found.folder, found.written, found.given
    cluster, profile = found.cluster, found.profile
    if cluster.num_ranks < 2:
        raise BadInputError(
            "expected at least two ranks, one for each side, got 1", code="out_of_range", where="derive.cluster"
        )
    model = moe_model(given.model, folder)
    refuse_unpriced(model)
    if cluster.num_ranks > cluster.gpus_per_node:
        refuse_unstated(cluster, written.cluster)
    whole = Setting(
        given=given,
        model=model,
        load=load_of(document, folder),
        cluster=cluster,
        attention=profile,
        experts=profile,
        attention_bytes=_memory(given, cluster, profile),
        expert_bytes=_memory(given, cluster, profile),
    )
    priced = {OWN: prices_of(whole)}
    priced |= {device.id: prices_of(_on(device, whole, folder)) for device in given.devices}
    return Derivation(
        problem=_explicit(document, given, priced).sorted(),
        derive=resolved_of(written, cluster, priced),
        profile=profile.name,
        profile_sha256=profile.sha256,
        cost_error=error_of({name: priced[name] for name in priced if name != OWN or not given.devices}),
        arrays=digests([*hardware_files(written, folder), *model_file(written.model, folder)]),
        relaxable=_relaxable(document, written, cluster),
        multiples={RANKS: cluster.gpus_per_node},
    )


def _memory(given: Derive, cluster: Cluster, profile: Profile) -> float | None:
    return None if given.memory is None else device_memory(given.memory.capacity_bytes, cluster, profile)


def _on(device: DerivedDevice, whole: Setting, folder: Path) -> Setting:
    """The setting of one pair of devices; its memory is the stated one, else that of its own profiles."""
    sides = []
    for name in ("attention_profile", "expert_profile"):
        stated = getattr(device, name)
        place = f"derive.devices.{device.id}.{name}"
        with input_errors(place):
            profile = whole.attention if stated is None else load(located(stated, folder))
        held = whole.attention_bytes
        if whole.given.memory is not None and whole.given.memory.capacity_bytes is None and stated is not None:
            held = profile.device.memory_bytes
            if held is None:
                message = f"profile {profile.name} does not say how much memory its device has"
                raise BadInputError(message, code="missing_field", where=CAPACITY)
        sides.append((profile, None if held is None else float(held)))
    (attention, attention_bytes), (experts, expert_bytes) = sides
    return Setting(
        given=whole.given,
        model=whole.model,
        load=whole.load,
        cluster=whole.cluster,
        attention=attention,
        experts=experts,
        attention_bytes=attention_bytes,
        expert_bytes=expert_bytes,
    )


def _explicit(document: JanusDerivedProblem, given: Derive, priced: dict[str, Prices]) -> JanusProblem:
    own = priced[OWN]
    setting = own.setting
    limits = _owned(setting.cluster)
    if document.limits is not None:
        limits = document.limits.filled(limits)
    fields = {name: getattr(document, name) for name in _COPIED if name in document.model_fields_set}
    fields |= {
        "paper": document.paper,
        "num_layers": setting.model.num_layers,
        "num_experts": setting.model.experts.count,
        "top_k": setting.model.experts.top_k,
        "slots_per_instance": own.slots,
        "context_tokens": setting.load.context_tokens,
        "attention": own.attention.document,
        "moe": own.experts.document,
        "comm": own.comm,
        "a_max": document.a_max or _bound(setting.load),
        "memory": own.memory,
        "limits": limits,
        "devices": tuple(_device(device, priced[device.id], limits) for device in given.devices),
        "baselines": Baselines(
            monolithic=monolithic_of(setting, own.memory) if given.baselines.monolithic else None,
            fixed_ratio=given.baselines.fixed_ratio,
        ),
    }
    return validate(JanusProblem, fields)


def _device(device: DerivedDevice, prices: Prices, limits: Limits) -> Device:
    return Device(
        id=device.id,
        prices=device.prices,
        attention=prices.attention.document,
        moe=prices.experts.document,
        comm=prices.comm,
        memory=prices.memory,
        slots_per_instance=prices.slots,
        limits=None if device.limits is None else device.limits.filled(limits),
    )


def _bound(carried: Load) -> ActivatedBound:
    return ActivatedBound(kind="binomial_bound", batch_grid=carried.batch_grid())


def _owned(cluster: Cluster) -> Limits:
    """All ranks, at least one of them on the other side."""
    beside = min(MOST_INSTANCES, cluster.num_ranks - 1)
    return Limits(max_attention_instances=beside, max_expert_instances=beside, max_total_instances=cluster.num_ranks)


def _relaxable(document: JanusDerivedProblem, written: Derive, cluster: Cluster) -> dict[str, tuple[str, float]]:
    """A capacity that is not stated is that of a device: to relax it is to state it, for all devices alike.

    Limits that are not stated are the ranks of the cluster. Whole nodes more change no price; in one node they would.
    """
    devices = [device.id for device in written.devices]
    found: dict[str, tuple[str, float]] = {}
    if written.memory is not None:
        places = ("memory", *(f"devices.{device}.memory" for device in devices))
        found |= {f"{place}.capacity_bytes": (CAPACITY, 0.0) for place in places}
    for device in devices:
        place = f"devices.{device}.limits"
        found |= {f"{place}.{name}": (f"derive.{place}.{name}", 0.0) for name in DerivedLimits.model_fields}
    if document.limits is None and written.placed and cluster.num_ranks > cluster.gpus_per_node:
        found["limits"] = (RANKS, 0.0)
    return found
