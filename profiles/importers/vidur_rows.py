"""One line of a Vidur table as rows of ours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from profiles.table import LARGEST_AXIS_VALUE

MODEL_COLUMNS = (
    "n_head", "n_kv_head", "n_embd", "n_expanded_embd", "use_gated_mlp", "num_tokens", "num_tensor_parallel_workers",
    "time_stats.mlp_up_proj.median",
)  # fmt: skip
COLLECTIVE_COLUMNS = ("collective", "num_workers", "size", "devices_per_node", "max_devices_per_node")
_WHOLE = re.compile(r"^([0-9]{1,13})(?:\.0*)?$")
_ROUNDING = 1e-9
# `size` counts the bytes of the smaller buffer; ours count the larger one.
_GROWS = {"all_gather", "reduce_scatter"}
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "send_recv", "broadcast")


@dataclass(frozen=True)
class Row:
    """One measurement: its table, its axes, seconds."""

    family: str
    axes: Mapping[str, int]
    seconds: float
    backend: str = ""
    workload: str = ""


def model_rows(values: Mapping[str, str]) -> list[Row]:
    """The products and element-wise operations of one line. Raises `ValueError` with the reason."""
    ranks, tokens = _whole(values, "num_tensor_parallel_workers"), _whole(values, "num_tokens")
    heads, kv_heads = _whole(values, "n_head"), _whole(values, "n_kv_head")
    hidden, ffn = _whole(values, "n_embd"), _whole(values, "n_expanded_embd")
    gated = {"true": True, "false": False}.get(values["use_gated_mlp"].strip().lower())
    if gated is None:
        raise ValueError(f"expected use_gated_mlp as True or False, got {values['use_gated_mlp']!r:.40}")
    head_dim = _share(hidden, heads, "n_embd", "heads")
    queries, keys = _share(heads, ranks, "n_head", "ranks"), _share(kv_heads, ranks, "n_kv_head", "ranks")
    own_ffn, own_hidden = _share(ffn, ranks, "n_expanded_embd", "ranks"), _share(hidden, ranks, "n_embd", "ranks")
    products = {
        "attn_pre_proj": ((queries + 2 * keys) * head_dim, hidden),
        "attn_post_proj": (hidden, own_hidden),
        "mlp_up_proj": (own_ffn * (2 if gated else 1), hidden),
        "mlp_down_proj": (hidden, own_ffn),
    }
    # Without a second norm the block runs attention and feed-forward beside each other and adds three tensors.
    added = "add" if "time_stats.post_attention_layernorm.median" in values else "add_of_three"
    widths = {
        "emb": ("embedding", hidden),
        "input_layernorm": ("input_layernorm", hidden),
        "post_attention_layernorm": ("post_attention_layernorm", hidden),
        "attn_rope": ("rope", (queries + keys) * head_dim),
        "mlp_act": ("gated_activation" if gated else "activation", own_ffn),
        "add": (added, hidden),
    }
    rows = [
        Row("gemm", _axes(m=tokens, n=n, k=k), _seconds(values, name))
        for name, (n, k) in products.items()
        if f"time_stats.{name}.median" in values
    ]
    return rows + [
        Row("elementwise", _axes(width=width, tokens=tokens), _seconds(values, name), workload=workload)
        for name, (workload, width) in widths.items()
        if f"time_stats.{name}.median" in values
    ]


def collective_row(values: Mapping[str, str]) -> tuple[Row, int]:
    """The collective of one line and the devices that its nodes have. Raises `ValueError` with the reason."""
    operation = values["collective"]
    if operation not in _COLLECTIVES:
        raise ValueError(f"expected a collective among {', '.join(_COLLECTIVES)}, got {operation!r:.40}")
    ranks, size = _whole(values, "num_workers"), _whole(values, "size")
    if ranks < 2:
        raise ValueError("a collective of one rank moves nothing")
    devices, most = _whole(values, "devices_per_node"), _whole(values, "max_devices_per_node")
    if devices > most:
        raise ValueError(f"devices_per_node {devices} is above max_devices_per_node {most}")
    nodes = _share(ranks, devices, "num_workers", "devices per node")
    message = size * ranks if operation in _GROWS else size
    axes = _axes(nodes=nodes, ranks=ranks, message_bytes=message)
    return Row(operation, axes, _seconds(values, operation), backend="nccl"), most


def _axes(**axes: int) -> dict[str, int]:
    for name, value in axes.items():
        if value > LARGEST_AXIS_VALUE:
            raise ValueError(f"{name} would be {value}: expected at most {LARGEST_AXIS_VALUE}")
    return axes


def _whole(values: Mapping[str, str], name: str) -> int:
    text = values[name].strip()
    # pandas writes whole numbers with a point where the column once held a gap.
    found = _WHOLE.match(text)
    if not found or int(found.group(1)) < 1:
        raise ValueError(f"expected {name} as a whole number >= 1, got {text!r:.40}")
    return int(found.group(1))


def _share(total: int, parts: int, name: str, of: str) -> int:
    if total % parts:
        raise ValueError(f"{name} {total} does not divide into {parts} {of}")
    return total // parts


def _seconds(values: Mapping[str, str], name: str) -> float:
    median = _milliseconds(values, name, "median")
    if not 0 < median < 1e9:
        text = values.get(f"time_stats.{name}.median", "")
        raise ValueError(f"expected the median of {name} as milliseconds > 0, got {text!r:.40}")
    low, high = (
        _milliseconds(values, name, end) if f"time_stats.{name}.{end}" in values else median for end in ("min", "max")
    )
    if not low * (1 - _ROUNDING) <= median <= high * (1 + _ROUNDING):
        raise ValueError(f"the median of {name}, {median:g} ms, is not within its own {low:g}..{high:g} ms")
    return median * 1e-3


def _milliseconds(values: Mapping[str, str], name: str, statistic: str) -> float:
    try:
        return float(values.get(f"time_stats.{name}.{statistic}", ""))
    except ValueError:
        return math.nan
