"""What attention GPUs do for one micro-batch in one layer: attention with the router, and the shared experts.

Left out, because no built-in profile has rows of them: norms, rotary embeddings, residual sums, activations between
products, top-k, packing of the copies to send.
"""

from __future__ import annotations

import numpy as np

from planner.derivation.account import Account
from planner.papers.findep.attention_kernel import kernel
from planner.papers.findep.products_cost import add_products
from planner.papers.findep.setting import Floats, Setting
from profiles.geometry.attention import LatentAttention
from profiles.geometry.model import LayerKind
from profiles.geometry.products import products
from profiles.geometry.weights import Weight
from profiles.latent import latent_product
from profiles.priced import Priced


def attention_seconds(setting: Setting, samples: Floats) -> Account:
    """t_a by samples (eq. 1): the mean over the layers with experts, which the model takes as alike."""
    account = Account(samples.shape)
    total = setting.model.num_layers
    for kind, count in setting.model.kinds:
        _add_attention(setting, account, kind, samples, count / total)
        rows = samples * setting.given.tokens_per_sample
        router = products(weight for weight in kind.weights if weight.part == "router")
        add_products(setting, account, router, rows, setting.given.activation_dtype, count / total)
    return account


def shared_seconds(setting: Setting, samples: Floats) -> Account | None:
    """t_s by samples: all shared experts as one network, gate and up as one product. None without any.

    The gate that weighs their result (Qwen2-MoE), one column, is left out.
    """
    wanted = products(
        weight
        for weight in setting.model.kinds[0][0].weights
        if weight.part == "shared_experts" and weight.out_features > 1
    )
    if not wanted:
        return None
    account = Account(samples.shape)
    add_products(setting, account, wanted, samples * setting.given.tokens_per_sample, setting.given.dtype)
    return account


def dense_seconds(setting: Setting, samples: Floats) -> Account | None:
    """Seconds of all layers without experts together, by samples: attention GPUs run them whole. None without any."""
    if not setting.model.dense:
        return None
    account = Account(samples.shape)
    for kind, count in setting.model.dense:
        _add_attention(setting, account, kind, samples, count)
        wanted = products(weight for weight in kind.weights if weight.part == "dense_ffn")
        add_products(setting, account, wanted, samples * setting.given.tokens_per_sample, setting.given.dtype, count)
    return account


def head_seconds(setting: Setting, samples: Floats) -> Account:
    """Seconds of the head by samples: one token of each."""
    account = Account(samples.shape)
    head = [weight for weight in setting.model.geometry.ends if weight.name in ("head", "embedding")][-1:]
    add_products(setting, account, products(head), samples, setting.given.activation_dtype)
    return account


def _add_attention(setting: Setting, account: Account, kind: LayerKind, samples: Floats, layers: float) -> None:
    """Projections and kernel of ``layers`` layers."""
    given, attention = setting.given, kind.attention
    rows = samples * given.tokens_per_sample
    wanted = products(weight for weight in kind.weights if _multiplied(weight, given.phase))
    add_products(setting, account, wanted, rows, given.dtype, layers)
    family, price = kernel(setting, attention, samples)
    account.add(family, layers * price.seconds, price.source)
    if isinstance(attention, LatentAttention) and given.phase == "decode":
        for before in (True, False):
            product = _absorbed(setting, attention, rows, before)
            account.add(f"mla_bmm/{given.activation_dtype}", layers * product.seconds, product.source)


def _multiplied(weight: Weight, phase: str) -> bool:
    """Decoding absorbs kv_b into the products on either side of the kernel."""
    return weight.part == "attention" and not (phase == "decode" and weight.name == "kv_b")


def _absorbed(setting: Setting, attention: LatentAttention, rows: Floats, before: bool) -> Priced:
    return latent_product(
        setting.profile,
        rows,
        np.full_like(rows, attention.heads),
        before=before,
        dtype=setting.given.activation_dtype,
        extrapolate=setting.given.extrapolate,
    )
