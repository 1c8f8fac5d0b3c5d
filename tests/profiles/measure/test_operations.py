"""What runs at a place on a CPU is what its row says: FLOPs by the family's formula, messages by its convention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from profiles.measure.numpy_kernels import NumpyKernels
from profiles.measure.operations import prepare
from profiles.measure.place import Curve, Place

GROUPED = (("head_dim", 16), ("queries_per_kv_head", 2), ("batch", 3), ("heads", 4))
EXPERTS = (("hidden", 32), ("ffn", 16), ("experts", 4), ("top_k", 2), ("tensor_ranks", 2), ("expert_ranks", 2))


class Counting(NumpyKernels):
    """Kernels that count FLOPs, and bytes of keys and values, instead of running."""

    def __init__(self) -> None:
        self.flops = self.cache_bytes = 0

    def matmul(self, a: Any, b: Any) -> Any:
        assert a.shape[1] == b.shape[0]
        self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]

    def attention(self, q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
        assert k.shape == v.shape
        assert len(q) % len(k) == 0
        self.flops += (2 if causal else 4) * q.shape[0] * q.shape[1] * k.shape[1] * q.shape[2]
        self.cache_bytes += k.nbytes + v.nbytes


class Listening:
    """A group of four whose members send what it remembers, in bytes."""

    rank, ranks, transport = 1, 4, "listening"

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda x, *ways: self.sent.append((name, x.nbytes))


@pytest.mark.parametrize(
    ("family", "fixed", "size", "flops"),
    [
        ("gemm", (("n", 64), ("k", 32)), 16, 2 * 16 * 64 * 32),
        ("encoder_attention", (("head_dim", 16), ("heads", 2)), 64, 4 * 16 * 2 * 64**2),
        ("prefill_attention", GROUPED, 64, 2 * 16 * 3 * 4 * 64**2),
        ("decode_attention", GROUPED, 64, 4 * 16 * 3 * 4 * 64),
        # 10 tokens x 2 choices on 2 expert ranks are 10 rows here; gate, up and down of 32 x (16 / 2).
        ("moe_gemm", EXPERTS, 10, 6 * 32 * 8 * 10),
    ],
)
def test_compute_has_the_flops_of_its_row(family: str, fixed: Any, size: int, flops: int) -> None:
    kernels = Counting()
    prepare(Place(Curve(family, "fp32", "", "", fixed), size), kernels, Listening())()
    assert kernels.flops == flops


def test_decoding_reads_the_cache_once_for_all_queries_that_share_it() -> None:
    kernels = Counting()
    prepare(Place(Curve("decode_attention", "fp32", "", "", GROUPED), 64), kernels, Listening())()
    # Keys and values of 3 sequences x 2 KV heads x 64 tokens x 16 numbers of 4 bytes.
    assert kernels.cache_bytes == 2 * 3 * 2 * 64 * 16 * 4


@pytest.mark.parametrize(
    ("family", "given"),
    # message_bytes is the larger of a rank's two buffers: of all_gather what comes, else what is given.
    [("all_reduce", 4096), ("all_gather", 1024), ("reduce_scatter", 4096), ("all_to_all", 4096), ("send_recv", 4096)],
)
def test_messages_follow_the_convention(family: str, given: int) -> None:
    group = Listening()
    curve = Curve(family, "fp32", "listening", "", (("nodes", 1), ("ranks", 4)))
    prepare(Place(curve, 4096), NumpyKernels(), group)()
    assert group.sent == [(family, given)]


def test_a_copy_moves_its_bytes() -> None:
    class Copying(NumpyKernels):
        """Remembers what was copied."""

        moved: Sequence[int] = ()

        def copy(self, target: Any, source: Any) -> None:
            super().copy(target, source)
            self.moved = (target.nbytes, source.nbytes)
            assert np.array_equal(target, source)

    kernels = Copying()
    prepare(Place(Curve("memory_copy", "int8", "", "host_to_host", ()), 4096), kernels, Listening())()
    assert kernels.moved == (4096, 4096)
