"""What a derived problem led to, for the reader of its plan: files by name, what was looked up, how far fits are."""

from __future__ import annotations

from planner.derivation.account import Error, weighted_error
from planner.derivation.clusters import hardware_account, name_only
from planner.derivation.moe.weights import weight_bytes
from planner.json_text import Json
from planner.papers.janus.derived import Derive
from planner.papers.janus.prices.footprint import expert_bytes
from planner.papers.janus.prices.priced import Prices
from planner.papers.janus.prices.ways import PricedWay
from profiles.cluster import Cluster


def resolved_of(written: Derive, cluster: Cluster, priced: dict[str, Prices]) -> Json:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to, by device."""
    document, resolved = hardware_account(written, cluster)
    name_only(document, "model")
    for device in document.get("devices", ()):
        name_only(device, "attention_profile")
        name_only(device, "expert_profile")
    first = next(iter(priced.values()))
    model = first.setting.model
    resolved["model"] = {
        "name": model.name,
        "expert_layers": {kind.name: count for kind, count in model.kinds},
        "dense_layers": {kind.name: count for kind, count in model.dense},
        "parameters": model.geometry.parameters,
        "expert_bytes": weight_bytes(first.setting.model, "experts", first.setting.given),
        "bytes_per_expert": expert_bytes(first.setting),
    }
    resolved["load"] = {
        "largest_demand_tokens_per_s": first.setting.load.demand_tokens_per_s,
        "context_tokens": first.setting.load.context_tokens,
    }
    sides = (side for prices in priced.values() for side in (prices.setting.attention, prices.setting.experts))
    resolved["profiles"] = {profile.name: profile.sha256 for profile in sides}
    resolved["fits"] = {name: _fits(prices) for name, prices in priced.items()}
    return {**document, "resolved": resolved}


def error_of(priced: dict[str, Prices]) -> dict[str, float] | None:
    """The profiles' stored error over attention at its largest batch and experts in all their slots, by time.

    The largest over the pairs of devices; None where a large part of one has none stored. Links between nodes are
    stated, or have an error of their own, and are left out, as is the distance of the fits.
    """
    errors = [_error_of(prices) for prices in priced.values()]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return None
    return {part: max(error[part] for error in known) for part in ("median", "p90")}


def _error_of(prices: Prices) -> dict[str, float] | None:
    setting, line = prices.setting, prices.experts.fitted.line
    times = dict(prices.attention.by_family)
    errors: dict[str, Error | None] = {}
    for name in times:
        family, _, dtype = name.partition("/")
        errors[name] = setting.attention.cost_error(family, dtype)
    times["experts"] = line.alpha + line.beta * prices.slots
    errors["experts"] = prices.experts.fitted.error
    return weighted_error(times, errors)


def _fits(prices: Prices) -> dict[str, Json]:
    setting, fit, fitted = prices.setting, prices.attention.fit, prices.experts.fitted
    return {
        "attention_profile": setting.attention.name,
        "expert_profile": setting.experts.name,
        "slots_per_instance": prices.slots,
        "attention": {
            "floor_s": fit.floor_s,
            "per_request_s": fit.per_request_s,
            "per_cached_token_s": fit.per_cached_token_s,
            "mape": fit.mape,
            "worst": fit.worst,
        },
        "experts": {
            "base_s": fitted.line.alpha,
            "per_expert_s": fitted.line.beta,
            "mape": fitted.line.mape,
            "worst": fitted.line.worst,
            "rows": fitted.measured,
            "holds_to_batch": fitted.holds_to_tokens,
        },
        "comm": {name: _way(way) for name, way in prices.ways.items()},
    }


def _way(way: PricedWay) -> dict[str, Json]:
    line = way.line
    said = {"from": way.operation or "cluster", "alpha_s": line.alpha, "beta_s_per_byte": line.beta}
    return {**said, "mape": line.mape, "worst": line.worst}
