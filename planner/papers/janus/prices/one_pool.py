"""What the baseline of one pool needs to be told: which GPUs it may have, and its exchange."""

from __future__ import annotations

from planner.memory.messages import expert_message_bytes
from planner.papers.janus.costs import Memory
from planner.papers.janus.prices.footprint import expert_bytes
from planner.papers.janus.prices.load import MOST_BATCH
from planner.papers.janus.prices.setting import Setting
from planner.papers.janus.prices.ways import links_per_node
from planner.papers.janus.problem import MAX_EXPERTS, Monolithic
from profiles.errors import ProfileError


def monolithic_of(setting: Setting, memory: Memory | None) -> Monolithic | None:
    """Whole nodes up to the GPUs owned and one expert each; in one node any power of two, and all of it.

    The paper takes the exchange as a constant. Here it is the dispatch and the combine, two all-to-alls, of the fewest
    of these GPUs that hold the model, with as many requests each as the demand keeps in flight at the SLO, every one
    sent to K experts. Over several nodes each is two steps, as the pools' own exchange is: inside the nodes by rows of
    the profile, and between them each GPU sends what goes to other nodes over its part of the node's links, all at
    once, after one latency. None where nothing prices that.
    """
    allowed, each = _allowed(setting), expert_bytes(setting)
    gpus = next((count for count in allowed if _holds(setting, memory, count, each)), allowed[-1])
    per_gpu = min(setting.load.most_in_flight, MOST_BATCH) / gpus
    model = setting.model
    payload = expert_message_bytes(model.hidden, model.experts.top_k, per_gpu, setting.given.sent_bytes)
    try:
        comm_s = 2.0 * _all_to_all(setting, gpus, payload)
    except ProfileError:
        return None
    return Monolithic(allowed_gpus=tuple(allowed), comm_s=float(f"{comm_s:.8e}"), expert_bytes=float(round(each)))


def _allowed(setting: Setting) -> list[int]:
    most = min(setting.cluster.num_ranks, setting.model.experts.count, MAX_EXPERTS)
    node = setting.node
    if setting.cluster.num_ranks > node and most >= node:
        return list(range(node, most + 1, node))
    powers = [2**power for power in range(most.bit_length())]
    return powers if powers[-1] == most else [*powers, most]


def _holds(setting: Setting, memory: Memory | None, gpus: int, each: float) -> bool:
    if memory is None or not isinstance(memory.attention_fixed_bytes, dict):
        return True
    hosted = -(-setting.model.experts.count // gpus)
    return sum(memory.attention_fixed_bytes.values()) + hosted * each <= memory.capacity_bytes


def _all_to_all(setting: Setting, gpus: int, payload: float) -> float:
    """Seconds of ``payload`` bytes of each GPU, in even parts to all of them. Raises ProfileError."""
    inside = min(gpus, setting.node)
    return _inside(setting, inside, payload * inside / gpus) + _between(setting, payload * (gpus - inside) / gpus)


def _inside(setting: Setting, gpus: int, payload: float) -> float:
    if gpus == 1:
        return 0.0
    priced = setting.attention.collective("all_to_all", payload, gpus, extrapolate=setting.given.extrapolate)
    return float(priced.seconds)


def _between(setting: Setting, payload: float) -> float:
    link = setting.cluster.link
    if payload == 0 or link is None:
        return 0.0
    return link.latency_s + payload * setting.node / (links_per_node(setting) * link.bandwidth_bytes_per_s)
