"""What else of a step takes time beside the pairs: the products they leave and the attention between them.

Told, never decided: it says how much of a step the choice is about. Left out as well: embedding, head, norms and other
element-wise work; the optimizer; other parallel dimensions; what every rank holds whole (router, down-projections of
latent attention); weight gradients of experts; the all-gather of inputs for weight gradients, which Megatron hides
behind a product. Pairs that a launcher's rules leave out are here whole, one stage after the other: in sequence a step
takes the same under all rules, though TransformerEngine may hide their reduce-scatters behind weight gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.derivation.account import nine_digits
from planner.derivation.causal_attention import grouped_causal
from planner.derivation.training.causal import BACKWARD_ATTENTION
from planner.errors import BadInputError
from planner.papers.compass.costs.chunks import chunks_of
from planner.papers.compass.costs.setting import Setting
from profiles.errors import ProfileError
from profiles.geometry.attention import Attention, GroupedAttention
from profiles.latent import has_known_widths, latent_prefill


def beside(setting: Setting) -> tuple[dict[str, float], list[str]]:
    """Seconds of a step by what takes them, and what of it no row or formula reaches."""
    parts: dict[str, Callable[[], float]] = {"attention kernels": lambda: _attention(setting)}
    if setting.given.backward:
        parts["weight gradients"] = lambda: _weight_gradients(setting)
    parts["other GEMMs"] = lambda: _other_gemms(setting)
    if setting.experts is not None:
        parts["expert results"] = lambda: _combine(setting)
    if setting.dropped:
        parts["collectives of other GEMMs"] = lambda: _dropped(setting, experts=False)
    if any(pair.cutting == "experts" for pair in setting.dropped):
        parts["experts and their dispatch"] = lambda: _dropped(setting, experts=True)
    seconds, missing = {}, []
    for name, price in parts.items():
        try:
            found = price()
        except (ProfileError, BadInputError):
            missing.append(name)
            continue
        if found > 0:
            seconds[name] = nine_digits(np.array([found * setting.given.micro_batches]))[0]
    return seconds, missing


def _attention(setting: Setting) -> float:
    passes = 1.0 + (BACKWARD_ATTENTION if setting.given.backward else 0.0)
    kinds: dict[Attention, int] = {}
    for kind, count in setting.geometry.kinds():
        kinds[kind.attention] = kinds.get(kind.attention, 0) + count
    return passes * sum(count * _kernel(setting, attention) for attention, count in kinds.items())


def _kernel(setting: Setting, attention: Attention) -> float:
    """One forward kernel of a layer."""
    given, p = setting.given, setting.given.tp_size
    dtype, extrapolate = given.activation_dtype, given.extrapolate
    length, batch, heads = given.sequence_tokens, float(given.micro_batch), max(1, attention.heads // p)
    if not isinstance(attention, GroupedAttention):
        if attention.indexer is not None or not has_known_widths(attention):
            raise ProfileError("no rows of these widths", code="outside_measured_range")
        return float(
            latent_prefill(setting.profile, length, batch, heads, dtype=dtype, extrapolate=extrapolate).seconds
        )
    kv_heads, window = max(1, attention.kv_heads // p), attention.window
    priced, _ = grouped_causal(
        setting.profile,
        length,
        batch,
        heads,
        kv_heads,
        attention.head_dim,
        window,
        dtype=dtype,
        extrapolate=extrapolate,
    )
    return float(priced.seconds)


def _weight_gradients(setting: Setting) -> float:
    """(n, M) by (M, k) of every cut weight."""
    return _gemms(setting, [(cut.n, cut.k, setting.given.tokens, cut.layers) for cut in setting.cuts])


def _other_gemms(setting: Setting) -> float:
    """Forward products and gradients of inputs that are in no pair: without a collective, or without overlap."""
    given = setting.given
    paired: dict[tuple[int, int], int] = {}
    for pair in setting.pairs:
        if pair.cutting != "experts":
            paired[pair.n, pair.k] = paired.get((pair.n, pair.k), 0) + pair.count // given.micro_batches
    left: dict[tuple[int, int], int] = {}
    for cut in setting.cuts:
        for shape in ((cut.n, cut.k), (cut.k, cut.n))[: 2 if given.backward else 1]:
            left[shape] = left.get(shape, 0) + cut.layers
    alone = {shape: count - paired.get(shape, 0) for shape, count in left.items()}
    return _gemms(setting, [(given.tokens, *shape, count) for shape, count in alone.items() if count > 0])


def _dropped(setting: Setting, experts: bool) -> float:
    """Pairs that the rules leave out: of experts both stages, of others the collective, whose GEMM is counted already.

    Seconds of a micro-batch.
    """
    pairs = tuple(pair for pair in setting.dropped if (pair.cutting == "experts") == experts)
    none = np.array([], dtype=np.int64)
    whole = chunks_of(replace(setting, pairs=pairs), [none] * len(pairs)) if pairs else []
    times = [one.pair.count * float(one.comm[0] + (one.gemm[0] if experts else 0.0)) for one in whole]
    return sum(times) / setting.given.micro_batches


def _combine(setting: Setting) -> float:
    """The results' way back and, backward, the gradients' way to the tokens: no GEMM hides behind either here."""
    every = setting.pairs + setting.dropped
    given, [pair, *_] = setting.given, [pair for pair in every if pair.cutting == "experts"]
    layers = pair.count // given.micro_batches
    message = pair.message_bytes / given.gathered_bytes * given.reduced_bytes
    if pair.ranks > given.ranks.gpus_per_node:
        priced = setting.cluster.network_collective("all_to_all", message, pair.ranks)
    else:
        priced = setting.profile.collective("all_to_all", message, pair.ranks, extrapolate=given.extrapolate)
    return float(priced.seconds) * layers * (2 if given.backward else 1)


def _gemms(setting: Setting, shapes: list[tuple[int, int, int, int]]) -> float:
    """Seconds of (m, n, k, how often)."""
    if not shapes:
        return 0.0
    m, n, k, count = np.array(shapes, dtype=np.float64).T
    given = setting.given
    priced = setting.profile.gemm(m, n, k, dtype=given.dtype, extrapolate=given.extrapolate)
    return float(count @ priced.seconds)
