"""What a derived problem led to, for the reader of its plan: files by name, what was looked up, how far lines are."""

from __future__ import annotations

from planner.derivation.account import Error, weighted_error
from planner.derivation.clusters import hardware_account, name_only
from planner.derivation.lines import Line
from planner.derivation.moe.weights import weight_bytes
from planner.json_text import Json
from planner.papers.findep.curves import Curve
from planner.papers.findep.derived import Derive
from planner.papers.findep.expert_cost import expert_error, expert_rows
from planner.papers.findep.priced import Prices, Way
from planner.papers.findep.problem import Memory
from planner.papers.findep.setting import Setting


def resolved_of(written: Derive, setting: Setting, prices: Prices, memory: Memory | None) -> Json:
    """The derive object after defaults and overrides, and under ``resolved`` what it led to."""
    document, resolved = hardware_account(written, setting.cluster)
    name_only(document, "model")
    model = setting.model
    resolved["model"] = {
        "name": model.name,
        "expert_layers": {kind.name: count for kind, count in model.kinds},
        "dense_layers": {kind.name: count for kind, count in model.dense},
        "parameters": model.geometry.parameters,
        "expert_bytes": weight_bytes(setting.model, "experts", setting.given),
        "expert_ranks_measured": list(expert_rows(setting).expert_ranks()),
    }
    resolved["memory"] = None if memory is None else {"capacity_bytes": memory.attention_capacity_bytes}
    resolved["fits"] = _fits(setting, prices)
    resolved["outside_the_makespan"] = {
        "dense_layers_s": _per_micro_batch(prices.dense),
        "head_s": _per_micro_batch(prices.head),
    }
    return {**document, "resolved": resolved}


def error_of(setting: Setting, prices: Prices) -> dict[str, float] | None:
    """The profile's stored error over the families used, weighted by time; None where a large one has none stored.

    Links across nodes are stated, or have an error of their own, and are left out.
    """
    errors: dict[str, Error | None] = {}
    for name in prices.by_family:
        family, _, dtype = name.partition("/")
        errors[name] = expert_error(setting) if family == "moe_gemm" else setting.profile.cost_error(family, dtype)
    return weighted_error(prices.by_family, errors)


def _fits(setting: Setting, prices: Prices) -> dict[str, Json]:
    """The paper's lines through the priced points, used or not; a link across nodes is a line already."""
    per_split = [
        {
            "attention_gpus": pools.attention_gpus,
            "expert_gpus": pools.expert_gpus,
            "expert": _token_line(prices.experts[row].line),
            "a2e": _way(prices.a2e[row]),
            "e2a": _way(prices.e2a[row]),
        }
        for row, pools in enumerate(setting.splits)
    ]
    return {
        "attention": _sample_line(prices.attention.line),
        "shared_expert": None if prices.shared is None else _sample_line(prices.shared.line),
        "splits": per_split,
    }


def _sample_line(line: Line) -> dict[str, Json]:
    return {"alpha_s": line.alpha, "beta_s_per_sample": line.beta, "mape": line.mape, "worst": line.worst}


def _token_line(line: Line) -> dict[str, Json]:
    return {"alpha_s": line.alpha, "beta_s_per_token": line.beta, "mape": line.mape, "worst": line.worst}


def _way(way: Way) -> dict[str, Json]:
    if way.curve is not None:
        return _token_line(way.curve.line)
    line = way.line
    if line is None:
        raise TypeError("a way has a curve or a line")
    return _token_line(Line(line.alpha_s, line.beta_s_per_token, 0.0, 0.0))


def _per_micro_batch(curve: Curve | None) -> Json:
    """Seconds of one micro-batch by samples, at powers of two and the largest."""
    if curve is None:
        return None
    last = len(curve.amounts) - 1
    kept = [index for index in range(last + 1) if index == last or (int(curve.amounts[index]).bit_count() == 1)]
    return {"samples": [curve.amounts[i] for i in kept], "times_s": [curve.seconds[i] for i in kept]}
