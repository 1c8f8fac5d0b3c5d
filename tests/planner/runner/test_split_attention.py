"""Split attention and the layers around it: the numbers of whole attention, and the work that the prices count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from planner.program import Piece, Program, Split
from planner.runner import attention as attention_module
from planner.runner.attention import SplitAttention
from planner.runner.backward import attention_backward
from planner.runner.clock import Clock
from planner.runner.exchange import Place, find_place
from planner.runner.numerics import TOLERANCES, differences
from planner.runner.rank import _Rank
from profiles.geometry import DiTGeometry
from profiles.measure.group import Group
from profiles.measure.kernels import Array, cpu_kernels
from profiles.measure.numpy_kernels import NumpyKernels
from profiles.measure.processes import Ranks

HEADS, DEPTH, TOKENS, TEXT = 4, 8, 37, 6
SPLITS = [Split(q, h, k) for q, h, k in product((1, 2, 4), repeat=3) if q * h * k == 4]


# --- numbers ------------------------------------------------------------------------------------------------------


def off_by(group: Group, splits: Sequence[Split]) -> list[float]:
    return [differences(cpu_kernels("numpy"), group, split, group.rank, HEADS, DEPTH, "fp32") for split in splits]


def with_text(group: Group, split: Split) -> float:
    """How far joint attention with text is from that of one rank, relative to the largest value."""
    kernels = cpu_kernels("numpy")
    image, text = ([kernels.array((n, HEADS, DEPTH), "fp32", seed + n) for seed in range(3)] for n in (TOKENS, TEXT))
    both = [np.concatenate(pair).swapaxes(0, 1) for pair in zip(image, text, strict=True)]
    whole = kernels.attention(*both).swapaxes(0, 1)
    start = sum(split.rows(TOKENS, i) for i in range(group.rank))
    own = slice(start, start + split.rows(TOKENS, group.rank))
    shared = SplitAttention(kernels, find_place(split, group.rank, group), TOKENS, TEXT, "fp32", Clock())
    out, kept = shared.forward(*(np.concatenate((x[own], t)) for x, t in zip(image, text, strict=True)))
    expected = np.concatenate((whole[own], whole[TOKENS:]))
    grads = shared.backward(kept, np.ones_like(out))
    assert [grad.shape for grad in grads] == [out.shape] * 3
    return float(np.abs(out - expected).max() / np.abs(expected).max())


def wrongly_merged(group: Group, split: Split) -> float:
    """The difference if the parts of a ring are averaged, as if all keys weighed the same."""
    attention_module.merge_attention = lambda parts: np.mean([part[0] for part in parts], axis=0)
    return differences(cpu_kernels("numpy"), group, split, group.rank, HEADS, DEPTH, "fp32")


def test_every_split_of_four_ranks_equals_the_whole_forward_and_backward() -> None:
    with Ranks(4, "shared_memory") as ranks:
        found = dict(zip(SPLITS, zip(*ranks.call(off_by, SPLITS), strict=True), strict=True))
        assert {split: off for split, off in found.items() if max(off) > 1e-5} == {}
        assert max(max(ranks.call(with_text, split)) for split in SPLITS) < 1e-5
        # And the check bites.
        assert max(ranks.call(wrongly_merged, Split(1, 1, 4))) > 100 * TOLERANCES["fp32"]


def test_the_backward_is_the_derivative() -> None:
    # Central differences of sum(attention * grad), in float32: good to a few parts in a thousand.
    kernels = cpu_kernels("numpy")
    q, k, v, grad = (kernels.array((2, n, 4), "fp32", seed) for seed, n in enumerate((3, 5, 5, 3)))
    out, lse = kernels.attention_with_lse(q, k, v)
    found = attention_backward(kernels, q, k, v, out, lse, grad)
    for which, x in enumerate((q, k, v)):
        at = (1, 2, 3)
        step = np.zeros_like(x)
        step[at] = 1e-2
        up, down = ([y + sign * step if i == which else y for i, y in enumerate((q, k, v))] for sign in (1, -1))
        slope = float(((kernels.attention(*up) - kernels.attention(*down)) * grad).sum()) / 2e-2
        assert found[which][at] == pytest.approx(slope, rel=1e-2, abs=1e-4)


# --- work ---------------------------------------------------------------------------------------------------------


class CountingKernels(NumpyKernels):
    """Kernels that count what they do."""

    def __init__(self) -> None:
        self.flops: Counter[str] = Counter()

    def matmul(self, a: Array, b: Array) -> Array:
        self.flops["products"] += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return super().matmul(a, b)

    def attention_with_lse(self, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        self.flops["attention"] += 4 * q.shape[0] * q.shape[1] * k.shape[1] * q.shape[2]
        return super().attention_with_lse(q, k, v)


class Alone:
    """A group of one."""

    rank, ranks, transport = 0, 1, "none"

    def barrier(self) -> None:
        return


MODELS = [
    DiTGeometry("cross", hidden=32, heads=4, ffn=48, text_tokens=6, cross_layers=2),
    DiTGeometry("joint", hidden=32, heads=4, ffn=48, text_tokens=6, double_layers=1, single_layers=2),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("recompute", [True, False])
def test_a_step_does_the_work_that_the_prices_count(model: DiTGeometry, recompute: bool) -> None:
    # Equation (18): forward and, under checkpointing, once more; the backward of a product is two products. Attention
    # goes forward as often; its backward, five products instead of two, is another kernel.
    piece = Piece("whole", Split(1, 1, 1), (0,), (11, 13), 1.0)
    program = Program(model, "fp32", recompute, (piece,), ((0,),), 1.0, (1.0,), (1.0,), None, None)
    kernels = CountingKernels()
    group: Any = Alone()
    step = _Rank(group, program, kernels).step()
    forwards = 2 if recompute else 1
    products = attention = 0
    for tokens in piece.tokens:
        rows = {"image": tokens, "text": model.text_tokens, "joint": tokens + model.text_tokens}
        products += model.layers * sum(
            2 * p.count * rows[p.rows] * p.out_features * p.in_features for p in model.projections()
        )
        attention += model.forward_flops(tokens)
    attention -= products  # what of (16) and (17) is no product
    assert kernels.flops["products"] == (forwards + 2) * products
    assert kernels.flops["attention"] == forwards * attention
    assert step.end_s > step.start_s
    assert set(step.piece_s) == {0}


def test_a_place_without_groups_is_the_whole() -> None:
    place = Place(Split(1, 1, 1), 0, None, None, None)
    kernels = cpu_kernels("numpy")
    x = [kernels.array((9, HEADS, DEPTH), "fp32", seed) for seed in range(3)]
    out, _ = SplitAttention(kernels, place, 9, 0, "fp32", Clock()).forward(*x)
    expected = kernels.attention(*(y.swapaxes(0, 1) for y in x)).swapaxes(0, 1)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
