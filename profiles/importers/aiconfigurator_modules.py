"""aiconfigurator's tables of attention modules and their parts, one declaration a file.

A module is a model's attention with the projections around it: it is measured for one model, whose sizes its rows do
not give, so `workload` is the model. Heads are those of one rank (`tp_size` says of how many it is a part; equal heads
take equal time whatever it is). `first_position` is the prefix already in the cache (`step`) + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from profiles.importers.aiconfigurator_names import own_dtypes, paired
from profiles.importers.aiconfigurator_rows import (
    Floats,
    Ints,
    Reader,
    Source,
    Texts,
    by_kernel,
    groups,
    kernels,
    known_dtypes,
    numbered,
    varies_within,
)
from profiles.importers.parquet import Frame
from profiles.making.building import RawRows

Axis = Callable[[Frame], Ints]
Label = Callable[[Frame], Texts]

# What names a run rather than its cost, and what the labels and axes below have taken in.
_IDENTITY = ("framework", "version", "device", "op_name", "latency", "avg_ms", "power", "power_limit")
_TENSOR_PARALLEL = "heads are those of one rank; tp_size, of how many ranks it is one, does not change the time"


@dataclass(frozen=True)
class Kind:
    """One kind of file: its family, how each axis, dtype and label comes from its columns, and what it must hold.

    `fixed` columns must have that value, other rows are refused; `free` columns may vary without changing the cost.
    """

    table: str
    family: str
    axes: Mapping[str, Axis]
    dtype: Label
    uses: tuple[str, ...]
    workload: tuple[Label, ...] = ()
    backend: Label | None = None
    fixed: Mapping[str, int] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    policy: tuple[str, ...] = ()

    def read(self, frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
        """The rows of one file as tables, one for each dtype, backend and workload."""
        right = np.ones(len(frame), dtype=bool)
        for name, value in self.fixed.items():
            if name in frame:
                right &= frame.integers(name) == value
        source.refuse(int((~right).sum()), f"refused: expected {self.fixed}")
        frame, seconds = frame.where(right), seconds[right]
        axes = {axis: take(frame) for axis, take in self.axes.items()}
        names = self._labels(self.workload, frame)
        backends = self._labels((self.backend,), frame) if self.backend else None
        keys = [*axes.values(), *(np.unique(names, return_inverse=True)[1].reshape(-1),)]
        for dtype, own in known_dtypes(self.dtype(frame), source):
            for workload, rows in groups(names, own):
                parts = groups(backends, rows) if backends is not None else by_kernel(frame, axes.values(), rows)
                for backend, part in parts:
                    if unknown := self._unknown(frame.where(part), [key[part] for key in keys]):
                        source.refuse(int(part.sum()), f"refused: {unknown} varies and is not understood")
                        continue
                    yield RawRows(
                        self.family, dtype, {axis: column[part] for axis, column in axes.items()}, seconds[part],
                        source.id, kernels(frame, part), backend=backend, workload=workload, policy=self.policy,
                    )  # fmt: skip

    @staticmethod
    def _labels(labels: tuple[Label, ...], frame: Frame) -> Texts:
        joined = np.full(len(frame), "", dtype=np.str_)
        for label in labels:
            words = label(frame)
            colon = np.where((joined != "") & (words != ""), ":", "")
            joined = np.char.add(np.char.add(joined, colon), words)
        return joined

    def _unknown(self, frame: Frame, keys: list[Ints]) -> str | None:
        known = {*_IDENTITY, "kernel_source", *self.uses, *self.fixed, *self.free}
        key = [numbered(keys, len(frame))]
        return next(
            (name for name in frame.columns if name not in known and varies_within(key, frame.codes(name))), None
        )


def _column(name: str) -> Axis:
    return lambda frame: frame.integers(name)


def _after(name: str) -> Axis:
    return lambda frame: frame.integers(name) + 1


def _total(frame: Frame) -> Ints:
    return frame.integers("step") + frame.integers("isl")


def _word(name: str) -> Label:
    return lambda frame: frame.text(name)


def _own(name: str) -> Label:
    return lambda frame: own_dtypes(frame.text(name))


def _pair(first: str) -> Label:
    return lambda frame: paired(frame.text(first), frame.text("kv_cache_dtype"))


def _model(frame: Frame) -> Texts:
    return frame.text("model") if "model" in frame else np.full(len(frame), "deepseek-ai/DeepSeek-V3")


def _eight_bit_attention(frame: Frame) -> Texts:
    """Modules compute attention in bf16 unless they say otherwise."""
    return np.where(frame.text("mla_dtype") == "fp8", "fp8_attention", "")


def _skipped(frame: Frame) -> Texts:
    return np.where(np.char.find(frame.text("op_name"), "skip_indexer") >= 0, "skip_indexer", "")


_HEADS: dict[str, Axis] = {"heads": _column("num_heads"), "batch": _column("batch_size")}
_PREFILL: dict[str, Axis] = {**_HEADS, "length": _column("isl")}
_DECODE: dict[str, Axis] = {**_HEADS, "kv_length": _total}
_PREFIXED: dict[str, Axis] = {**_HEADS, "first_position": _after("step"), "length": _column("isl")}
_USED = ("num_heads", "batch_size", "isl", "step", "mla_dtype", "kv_cache_dtype", "model", "gemm_type")
_PREFIX = "first_position is the tokens already cached (step) + 1"
_NEW = "kv_length counts the tokens before the step and the new one (step + isl)"


def _kernel(table: str, family: str, axes: Mapping[str, Axis], rule: str = "", **more: int) -> Kind:
    policy = (*([rule] if rule else []), _TENSOR_PARALLEL)
    return Kind(table, family, axes, _pair("mla_dtype"), _USED, fixed=more, free=("tp_size",), policy=policy)


def _module(table: str, family: str, axes: Mapping[str, Axis], rule: str = "", **more: int) -> Kind:
    policy = ("dtype is that of the projections, then of the cache", *([rule] if rule else []), _TENSOR_PARALLEL)
    names = (_model, _skipped, _eight_bit_attention)
    return Kind(table, family, axes, _pair("gemm_type"), _USED, names, fixed=more, free=("tp_size",), policy=policy)


def _part(table: str, family: str, ratio: int, *names: Label) -> Kind:
    uses = (*_USED, "score_mode")
    policy = (_PREFIX, _TENSOR_PARALLEL)
    return Kind(
        table, family, _PREFIXED, _pair("mla_dtype"), uses, (_model, *names), fixed={"compress_ratio": ratio},
        free=("tp_size",), policy=policy,
    )  # fmt: skip


def _wide(table: str, family: str, axes: Mapping[str, Axis]) -> Kind:
    policy = ("wide expert parallel: the projections to q_lora and kv_lora are outside", _TENSOR_PARALLEL)
    label: Label = lambda frame: np.char.add("wideep_", np.char.lower(frame.text("kernel_source")))  # noqa: E731
    return Kind(table, family, axes, _pair("mla_dtype"), _USED, (_model,), label, free=("tp_size",), policy=policy)


_STATE: dict[str, Axis] = {
    "hidden": _column("d_model"),
    "conv_width": _column("d_conv"),
    "key_heads": _column("num_k_heads"),
    "key_dim": _column("head_k_dim"),
    "value_heads": _column("num_v_heads"),
    "value_dim": _column("head_v_dim"),
    "batch": _column("batch_size"),
    "length": _column("seq_len"),
}
_MAMBA: dict[str, Axis] = {
    "hidden": _column("d_model"),
    "state": _column("d_state"),
    "conv_width": _column("d_conv"),
    "heads": _column("nheads"),
    "head_dim": _column("head_dim"),
    "groups": _column("n_groups"),
    "chunk": _column("chunk_size"),
    "batch": _column("batch_size"),
    "length": _column("seq_len"),
}


def _linear(family: str, axes: Mapping[str, Axis]) -> Kind:
    """A layer is several kernels, each with its own rows: `backend` is the kernel, `workload` the phase."""
    bf16: Label = lambda frame: np.full(len(frame), "bf16")  # noqa: E731
    uses = ("phase", "batch_size", "seq_len", "num_tokens")
    policy = (
        "one kernel of a layer a table; models of equal sizes are repeats of one another",
        "bf16 by the source's use",
    )
    return Kind(
        family, family, axes, bf16, uses, (_word("phase"),), _word("kernel_source"),
        free=("model_name",), policy=policy,
    )  # fmt: skip


_MHC: dict[str, Axis] = {
    "hidden": _column("hidden_size"),
    "streams": _column("hc_mult"),
    "sinkhorn_steps": _column("sinkhorn_iters"),
    "sites": _column("num_sites"),
    "tokens": _column("num_tokens"),
}
_QUANTIZE: dict[str, Axis] = {"width": _column("k"), "tokens": _column("m")}


def _constant(word: str) -> Label:
    return lambda frame: np.full(len(frame), word)


_BMM = Kind(
    "mla_bmm", "mla_bmm", {"heads": _column("num_heads"), "tokens": _column("num_tokens")},
    _own("bmm_dtype"), ("num_heads", "num_tokens", "bmm_dtype"), (_word("op_name"),),
    policy=("mla_gen_pre takes queries into the latent space, mla_gen_post comes back",),
)  # fmt: skip


def _quantize(table: str, workload: str, meaning: str) -> Kind:
    return Kind(
        table,
        "elementwise",
        _QUANTIZE,
        _own("quant_dtype"),
        ("quant_dtype",),
        (_constant(workload),),
        policy=(meaning,),
    )


_KINDS: tuple[tuple[str, Kind], ...] = (
    ("mla", _kernel("context_mla", "mla_prefill", _PREFILL, step=0)),
    ("mla", _kernel("generation_mla", "mla_decode", _DECODE, _NEW, isl=1)),
    ("mla", _module("mla_context_module", "mla_prefill_block", _PREFILL, step=0)),
    ("mla", _module("mla_generation_module", "mla_decode_block", _DECODE, _NEW, isl=1)),
    ("mla", _wide("wideep_context_mla", "mla_prefill_block", _PREFILL)),
    ("mla", _wide("wideep_generation_mla", "mla_decode_block", _DECODE)),
    ("mla_bmm", _BMM),
    ("sparse_attention", _module("dsa_context_module", "dsa_prefill", _PREFIXED, _PREFIX)),
    ("sparse_attention", _module("dsa_generation_module", "dsa_decode", _DECODE, _NEW, isl=1)),
    ("msa", _module("msa_context_module", "msa_prefill", _PREFIXED, _PREFIX)),
    ("msa", _module("msa_generation_module", "msa_decode", _DECODE, _NEW, isl=1)),
    ("sparse_attention", _module("dsv4_csa_context_module", "csa_prefill", _PREFIXED, _PREFIX, compress_ratio=4)),
    ("sparse_attention", _module("dsv4_csa_generation_module", "csa_decode", _DECODE, _NEW, isl=1, compress_ratio=4)),
    ("sparse_attention", _module("dsv4_hca_context_module", "hca_prefill", _PREFIXED, _PREFIX, compress_ratio=128)),
    ("sparse_attention", _module("dsv4_hca_generation_module", "hca_decode", _DECODE, _NEW, isl=1, compress_ratio=128)),
    ("sparse_attention", _part("glm5_dsa_attn_module", "dsa_kernel", 1)),
    ("sparse_attention", _part("glm5_mqa_logits_module", "dsa_logits", 1)),
    ("sparse_attention", _part("glm5_topk_module", "dsa_topk", 1, _word("score_mode"))),
    ("sparse_attention", _part("dsv4_paged_mqa_logits_module", "csa_logits", 4)),
    ("sparse_attention", _part("dsv4_csa_topk_calib", "csa_topk", 4, _word("score_mode"))),
    ("sparse_attention", _part("dsv4_hca_attn_module", "hca_kernel", 128)),
    ("linear_attention", _linear("gdn", _STATE)),
    ("kda", _linear("kda", _STATE)),
    ("linear_attention", _linear("mamba2", _MAMBA)),
    ("mhc", Kind("mhc_module", "mhc", _MHC, _constant("bf16"), (), (_word("op_name"),))),
    ("quantize", _quantize("scale_matrix", "quantize", "bf16 activations to fp8 with a known scale")),
    ("quantize", _quantize("computescale", "quantize_scale", "what finding the scale adds to quantize")),
)

READERS = tuple(
    Reader(kind.table, folder, f"{kind.table}_perf.parquet", (kind.family,), kind.read) for folder, kind in _KINDS
)
