"""Bytes that a layer keeps of a token for its backward, entry by entry, for the check (page, section 3.4)."""

from __future__ import annotations

from collections import defaultdict

from planner.papers.memory.job import Job
from profiles.geometry.attention import Attention, LatentAttention
from profiles.geometry.diffusion_blocks import DiffusionBlock
from profiles.geometry.feed_forward import Experts, FeedForward
from profiles.geometry.model import LayerKind

Layer = LayerKind | DiffusionBlock


def per_token(layer: Layer, job: Job, length: int) -> dict[str, float]:
    """Entries of one layer in 16 bits, by the module whose recomputation saves them; what none does under ``""``.

    Scores, where they are kept, are of all ``length`` tokens of a sequence.
    """
    q = job.layout.norm_ranks
    inside, out = norm_entries(layer.hidden, job)
    found: dict[str, float] = defaultdict(float, {"": 2 * inside, "attention_norm": out, "ffn_norm": out})
    if job.training_code.dropout:
        found[""] += 2 * layer.hidden / q
    if isinstance(layer, DiffusionBlock):
        found[""] += 8 * layer.hidden / q
        if layer.kind == "cross":
            found[""] += inside + _to_text(layer, job)
            found["norms"] += out
    for part in (_attention(layer.attention, job, length), _feed_forward(layer.feed_forward, layer.hidden, job)):
        for module, amount in part.items():
            found[module] += amount
    return found


def _to_text(layer: DiffusionBlock, job: Job) -> float:
    """Queries and results of cross-attention, and statistics of its rows; a mask of its dropout."""
    code, t = job.training_code, job.layout.tp
    mask = layer.hidden / job.layout.norm_ranks if code.dropout else 0.0
    return (4 * layer.hidden + (4 * layer.heads if code.flash_attention else 0)) / t + mask


def norm_entries(hidden: int, job: Job) -> tuple[float, float]:
    """What one norm reads, and what it writes: its output, whole where products' inputs are not gathered again."""
    code, q = job.training_code, job.layout.norm_ranks
    written = 2 * hidden / q if code.regathered else 2 * hidden
    return 2 * hidden / q, written + (0 if code.fused_norm else 2 * hidden / q)


def _attention(attention: Attention, job: Job, length: int) -> dict[str, float]:
    t, q, heads = job.layout.tp, job.layout.norm_ranks, attention.heads
    if isinstance(attention, LatentAttention):
        query = attention.nope + attention.rope
        down = 4 * (attention.q_lora or 0) + 4 * attention.kv_lora + 2 * attention.rope
        found = {
            "": down / q + 2 * heads * attention.v / t,
            "latent_up": (4 * heads * query + 2 * heads * attention.v) / t,
        }
    else:
        shared = attention.kv_heads / min(t, attention.kv_heads)
        found = {"": attention.head_dim * (4 * heads / t + 4 * shared)}
    if job.training_code.flash_attention:
        found[""] += 4 * heads / t
    else:
        width = 5 if job.training_code.dropout else 2
        found["core_attention"] = width * heads * length / t
    return found


def _feed_forward(network: FeedForward, hidden: int, job: Job) -> dict[str, float]:
    t, q = job.layout.tp, job.layout.norm_ranks
    before = 4 if network.gated else 2
    after = 4 if network.gated and not job.training_code.fused_gate else 2
    if not isinstance(network, Experts):
        return {"": before * network.ffn / t, "ffn_activation": after * network.ffn / t}
    copies = network.top_k * job.load_factor / q
    sent = 2 * hidden * (job.layout.etp + 1)
    return {
        "": 4 * network.count / q + copies * (sent + before * network.ffn) + before * network.shared_ffn / t,
        "expert_activation": copies * after * network.ffn,
        "ffn_activation": after * network.shared_ffn / t,
    }
