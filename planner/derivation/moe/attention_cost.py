"""What attention devices do for a batch: attention with the router, shared experts, dense layers, the head.

Left out, because no built-in profile has rows of them: norms, rotary embeddings, residual sums, activations between
products, top-k, packing of the copies to send.
"""

from __future__ import annotations

import numpy as np

from planner.derivation.account import Account, Floats
from planner.derivation.moe.attention_kernel import kernel
from planner.derivation.moe.forward import Forward
from planner.derivation.moe.products_cost import add_products
from profiles.geometry.attention import LatentAttention
from profiles.geometry.model import LayerKind
from profiles.geometry.products import products
from profiles.geometry.weights import Weight
from profiles.latent import latent_product
from profiles.priced import Priced


def attention_seconds(forward: Forward, samples: Floats) -> Account:
    """Attention and router of a layer by samples: the mean over the layers with experts, which are taken as alike."""
    account = Account(samples.shape)
    total = forward.model.num_layers
    for kind, count in forward.model.kinds:
        _add_attention(forward, account, kind, samples, count / total)
        rows = samples * forward.tokens_per_sample
        router = products(weight for weight in kind.weights if weight.part == "router")
        add_products(forward, account, router, rows, forward.activation_dtype, count / total)
    return account


def shared_seconds(forward: Forward, samples: Floats) -> Account | None:
    """Shared experts of a layer by samples: all of them as one network, gate and up as one product. None without any.

    The gate that weighs their result (Qwen2-MoE), one column, is left out.
    """
    wanted = products(
        weight
        for weight in forward.model.kinds[0][0].weights
        if weight.part == "shared_experts" and weight.out_features > 1
    )
    if not wanted:
        return None
    account = Account(samples.shape)
    add_products(forward, account, wanted, samples * forward.tokens_per_sample, forward.dtype)
    return account


def dense_seconds(forward: Forward, samples: Floats) -> Account | None:
    """Seconds of all layers without experts together, by samples: attention devices run them. None without any."""
    if not forward.model.dense:
        return None
    account = Account(samples.shape)
    for kind, count in forward.model.dense:
        _add_attention(forward, account, kind, samples, count)
        wanted = products(weight for weight in kind.weights if weight.part == "dense_ffn")
        add_products(forward, account, wanted, samples * forward.tokens_per_sample, forward.dtype, count)
    return account


def head_seconds(forward: Forward, samples: Floats) -> Account:
    """Seconds of the head by samples: one token of each."""
    account = Account(samples.shape)
    head = [weight for weight in forward.model.geometry.ends if weight.name in ("head", "embedding")][-1:]
    add_products(forward, account, products(head), samples, forward.activation_dtype)
    return account


def _add_attention(forward: Forward, account: Account, kind: LayerKind, samples: Floats, layers: float) -> None:
    """Projections and kernel of ``layers`` layers."""
    attention = kind.attention
    rows = samples * forward.tokens_per_sample
    wanted = products(weight for weight in kind.weights if _multiplied(weight, forward.phase))
    add_products(forward, account, wanted, rows, forward.dtype, layers)
    family, price = kernel(forward, attention, samples)
    account.add(family, layers * price.seconds, price.source)
    if isinstance(attention, LatentAttention) and forward.phase == "decode":
        for before in (True, False):
            product = _absorbed(forward, attention, rows, before)
            account.add(f"mla_bmm/{forward.activation_dtype}", layers * product.seconds, product.source)


def _multiplied(weight: Weight, phase: str) -> bool:
    """Decoding absorbs kv_b into the products on either side of the kernel."""
    return weight.part == "attention" and not (phase == "decode" and weight.name == "kv_b")


def _absorbed(forward: Forward, attention: LatentAttention, rows: Floats, before: bool) -> Priced:
    return latent_product(
        forward.profile,
        rows,
        np.full_like(rows, attention.heads),
        before=before,
        dtype=forward.activation_dtype,
        extrapolate=forward.extrapolate,
    )
