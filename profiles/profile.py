"""Profile: prices of operations on one device, each with the source of its number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from profiles.document import Device, ProfileDocument
from profiles.errors import ProfileError, UnknownNameError
from profiles.families import COLLECTIVES, FAMILIES
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate, Pricer
from profiles.sizes import Sizes, checked, flat, pick, whole_number
from profiles.table import CostTable


class Profile:
    """One device's cost tables. Lookups take scalars or arrays, broadcast them, and return `Priced` of that shape.

    With `extrapolate="refuse"` a lookup outside the measured range raises `ProfileError` with the code
    `outside_measured_range`; with `"roofline"` it is priced from a utilisation model and tagged modelled.
    """

    def __init__(self, document: ProfileDocument, sha256: str) -> None:
        self.document = document
        self.sha256 = sha256
        self._pricer = Pricer(document)

    @property
    def name(self) -> str:
        """The profile's name, such as `h200-sxm`."""
        return self.document.name

    @property
    def device(self) -> Device:
        """What the vendor states about the device."""
        return self.document.device

    def gemm(self, m: Sizes, n: Sizes, k: Sizes, *, dtype: str = "bf16", extrapolate: Extrapolate = "refuse") -> Priced:
        """One forward product of an (m, k) by a (k, n) matrix on one device."""
        return self._price("gemm", {"m": m, "n": n, "k": k}, dtype, extrapolate)

    def attention(
        self,
        q_len: Sizes,
        kv_len: Sizes,
        heads: Sizes,
        head_dim: int,
        *,
        dtype: str = "bf16",
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """One forward non-causal attention of batch 1: `heads` heads, q_len queries, kv_len keys and values each.

        Rows are measured at q_len == kv_len. Query rows are independent of each other, so other shapes are priced as
        heads * q_len / kv_len heads of length kv_len (the same FLOPs and the same inner loop) and tagged modelled.
        All that is modelled lies on one smooth surface, where a split is never cheaper in total than the whole.
        """
        head_dim = whole_number(head_dim, "head_dim")
        sizes, shape = flat({"q_len": q_len, "kv_len": kv_len, "heads": heads})
        q, kv = sizes["q_len"], sizes["kv_len"]
        axes = {"head_dim": np.full(q.size, float(head_dim)), "heads": sizes["heads"] * q / kv, "length": kv}
        key, pricer = ("encoder_attention", dtype, "", ""), self._pricer
        measured = pricer.has_head_dim(key, head_dim)
        if not measured and extrapolate == "refuse":
            return pricer.price(key, pricer.table(key), axes, shape, extrapolate)
        square = (q == kv) & measured
        seconds, source = np.empty(q.size), np.full(q.size, MODELLED, dtype=np.int8)
        if square.any():
            some = pricer.price(key, pricer.table(key), pick(axes, square), (-1,), extrapolate)
            seconds[square], source[square] = some.seconds, some.source
        if not square.all():
            seconds[~square] = pricer.modelled_attention(pick(axes, ~square), q[~square], dtype, extrapolate)
        return Priced(seconds.reshape(shape), source.reshape(shape))

    def prefill_attention(
        self,
        length: Sizes,
        batch: Sizes,
        heads: Sizes,
        kv_heads: Sizes,
        head_dim: int,
        *,
        dtype: str = "bf16",
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """One forward causal self-attention of `batch` sequences of `length` tokens."""
        axes = {"length": length, **_grouped(batch, heads, kv_heads, head_dim)}
        return self._price("prefill_attention", axes, dtype, extrapolate)

    def decode_attention(
        self,
        kv_length: Sizes,
        batch: Sizes,
        heads: Sizes,
        kv_heads: Sizes,
        head_dim: int,
        *,
        dtype: str = "bf16",
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """One decoding step's attention: one query token per sequence over `kv_length` tokens, the new one included."""
        axes = {"kv_length": kv_length, **_grouped(batch, heads, kv_heads, head_dim)}
        return self._price("decode_attention", axes, dtype, extrapolate)

    def moe_gemm(
        self,
        tokens: Sizes,
        *,
        hidden: int,
        ffn: int,
        experts: int,
        top_k: int,
        tensor_ranks: int = 1,
        expert_ranks: int = 1,
        workload: str = "balanced",
        dtype: str = "bf16",
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """The expert products of one layer on one rank, `tokens` tokens in the whole expert group before routing."""
        axes = {
            "tokens": tokens, "hidden": hidden, "ffn": ffn, "experts": experts, "top_k": top_k,
            "tensor_ranks": tensor_ranks, "expert_ranks": expert_ranks,
        }  # fmt: skip
        return self._price("moe_gemm", axes, dtype, extrapolate, workload=workload)

    def collective(
        self,
        operation: str,
        message_bytes: Sizes,
        ranks: Sizes,
        *,
        nodes: int = 1,
        backend: str | None = None,
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """One collective of `ranks` GPUs on `nodes` nodes.

        `message_bytes` is the size column of nccl-tests, the larger of one rank's two buffers: all_reduce the buffer;
        all_gather the whole gathered output; reduce_scatter the whole input; all_to_all one rank's whole send buffer.
        So each rank sends (ranks - 1) / ranks of it over the wire (all_reduce: twice that). Fractions of a byte are
        allowed. More ranks or other nodes than measured are refused even under roofline: another link is another law.

        `backend` None is nccl, or what the profile has where that is one other; several others must be told apart.
        """
        if operation not in COLLECTIVES:
            raise UnknownNameError("collective", operation, COLLECTIVES, code="out_of_range")
        backend = self._collective_backend(operation) if backend is None else backend
        axes = {"nodes": nodes, "ranks": ranks, "message_bytes": message_bytes}
        return self._price(operation, axes, self._collective_dtype(operation, backend), extrapolate, backend=backend)

    def operation(
        self,
        family: str,
        axes: Mapping[str, Sizes],
        *,
        dtype: str = "bf16",
        backend: str = "",
        workload: str = "",
        extrapolate: Extrapolate = "refuse",
    ) -> Priced:
        """One operation of any family, by all its axes as `profiles.families` names them.

        Encoder attention is looked up as rows of equal queries and keys: `attention` takes other shapes too.
        Raises `ProfileError` for an unknown family and for axes that are not the family's.
        """
        if family not in FAMILIES:
            raise UnknownNameError("family", family, FAMILIES, code="out_of_range")
        needed = FAMILIES[family].axes
        if set(axes) != set(needed):
            raise ProfileError(
                f"the axes of {family} are {', '.join(needed)}; got {', '.join(axes) or 'none'}",
                code="missing_field" if set(axes) < set(needed) else "unknown_field",
                where="axes",
            )
        return self._price(family, axes, dtype, extrapolate, backend=backend, workload=workload)

    def has(self, family: str, dtype: str = "bf16", *, backend: str = "", workload: str = "") -> bool:
        """Whether there is such a table."""
        return (family, dtype, backend, workload) in self._pricer.entries

    def cost_error(self, family: str, dtype: str = "bf16") -> tuple[float, float] | None:
        """(median, p90) of the stored leave-one-out error along the family's curves, or None if none is stored."""
        for table in self.document.tables:
            if table.family == family and (table.dtype == dtype or family in COLLECTIVES) and table.errors:
                return table.errors[0].median, table.errors[0].p90
        return None

    def formula(self, family: str, dtype: str = "bf16", *, backend: str = "", workload: str = "") -> dict[str, float]:
        """The coefficients of a table's formula (`profiles.roofline`). Raises `ProfileError` without such a table."""
        return dict(self._pricer.formula((family, dtype, backend, workload)))

    def formula_error(self, family: str, dtype: str = "bf16", *, workload: str = "") -> tuple[float, float] | None:
        """(median, p90) of how far a table's rows lie from its formula, or None if that is not stored."""
        entry = self._pricer.entries.get((family, dtype, "", workload))
        return None if entry is None or entry.roofline is None else (entry.roofline.fit.median, entry.roofline.fit.p90)

    def cost_table(self, family: str, dtype: str = "bf16", *, backend: str = "", workload: str = "") -> CostTable:
        """The rows behind the lookups of one family. Raises `ProfileError` if the profile has no such table."""
        return self._pricer.table((family, dtype, backend, workload))

    def _collective_backend(self, operation: str) -> str:
        backends = {table.backend for table in self.document.tables if table.family == operation}
        known = sorted(backend for backend in backends if not backend.endswith("_in_place"))
        if "nccl" in known or not known:
            return "nccl"
        if len(known) > 1:
            raise ProfileError(
                f"profile {self.name} has {operation} of several backends and none is nccl: name one of "
                f"{', '.join(known)}",
                code="out_of_range",
                where="backend",
            )
        return known[0]

    def _collective_dtype(self, operation: str, backend: str) -> str:
        """Bytes decide what a collective costs, so the dtype it was measured with is not asked for."""
        return next((t.dtype for t in self.document.tables if (t.family, t.backend) == (operation, backend)), "bf16")

    def _price(
        self,
        family: str,
        axes: Mapping[str, Sizes],
        dtype: str,
        extrapolate: Extrapolate,
        *,
        backend: str = "",
        workload: str = "",
    ) -> Priced:
        key = (family, dtype, backend, workload)
        query, shape = flat(axes)
        return self._pricer.price(key, self._pricer.table(key), query, shape, extrapolate)


def _grouped(batch: Sizes, heads: Sizes, kv_heads: Sizes, head_dim: int) -> dict[str, Sizes]:
    count, kv = np.broadcast_arrays(checked(heads, "heads"), checked(kv_heads, "kv_heads"))
    if (count % kv != 0).any():
        raise ProfileError("heads must be a multiple of kv_heads", code="out_of_range", where="kv_heads")
    return {"head_dim": head_dim, "batch": batch, "heads": count, "queries_per_kv_head": count / kv}
